// An agent is exact: the same seed gives the same bits, on any number of threads, and when it is taken up again between
// two iterations, and where a device plays acts together; a minibatch may be split. On a card too, in its precisions
// (gpu_test_agent).
#include "cpu/cpu.h"
#include "env/exchange.h"
#include "ops/trial.h"
#include "rl/scene.h"
#include "run/checkpoint.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    const device *d;
    queue *q;
    agent *a;
} stage;

// Agents of `market` with choices see its lags by a transformer, all others side by side.
static model_spec net_of(const agent_settings *s) {
    const env_settings *env = &s->world.env;
    return env->kind == ENV_market && !env->market.continuous ? scene_transformer() : scene_net();
}

static stage stage_open_on(const place *p, agent_settings s, int threads) {
    err e;
    stage t = {p->device, p->device->open(&(queue_options){.threads = threads, .card = p->card}, &e), NULL};
    support_ok(t.q != NULL, &e);
    model_spec net = net_of(&s);
    s.precision = p->precision;
    t.a = agent_new(&(agent_place){.device = t.d, .queue = t.q}, &s, &net, &e);
    support_ok(t.a != NULL, &e);
    return t;
}

static void stage_close(stage *t) {
    agent_free(t->a);
    t->d->close(t->q);
}

// Where agents are tried: the CPU, or the card in each of its precisions, fp32 first.
static int places_of(place *p) {
#ifdef TEST_CUDA
    return trial_places(p);
#else
    p[0] = (place){&cpu_device, NULL, PRECISION_FP32, 0, {0}};
    return 1;
#endif
}

// In fp32.
static stage stage_open(const agent_settings *s, int threads) {
    place p[PLACES_MOST];
    assert_true(places_of(p) > 0 && p[0].precision == PRECISION_FP32);
    return stage_open_on(&p[0], *s, threads);
}

static agent_report iterate(stage *t, int times) {
    err e;
    agent_report r = {0};
    for (int i = 0; i < times; i++)
        if (!agent_iterate(t->a, &r, &e)) fail_msg("%s", e.text);
    return r;
}

static void save(stage *t, const char *path) {
    err e;
    if (!agent_checkpoint(t->a, path, NULL, 0, NULL, 0, &e)) fail_msg("%s", e.text);
}

static void same_files(const char *a, const char *b) {
    char command[256];
    snprintf(command, sizeof command, "cmp %s %s", a, b);
    assert_int_equal(system(command), 0);
}

// Trades a made-up market; evaluations pass over its stretches.
static agent_settings trader(bool continuous) {
    static exchange x;
    agent_settings s = scene_cartpole(7);
    exchange_init(&x);
    s.world = (agent_world){.env = {.limit = 20}};
    exchange_world(&x, &s.world);
    s.world.env.market.continuous = continuous;
    s.world.env.market.reward = continuous ? MARKET_SHARPE : MARKET_SHAPED;
    s.test = s.world;
    s.test.env.market.from_first = true;
    s.test.env.limit = 0;
    s.tests = EXCHANGE_STRETCHES;
    s.batch = s.micro = 64;
    return s;
}

enum { TRADER = 7, CASES = 9 };

// Settings of every kind that an agent can have.
static agent_settings case_of(int k) {
    agent_settings s = k >= TRADER ? trader(k > TRADER) : k < 3 ? scene_cartpole(7) : scene_pendulum(7);
    if (k >= 3 && k < TRADER) s.steps = 64;
    s.epochs = 3;
    if (k == 1 || k == 8) s.normalise_observation = s.normalise_reward = true;
    if (k == 2) s.shared = true;
    if (k == 4) s.state_noise = false;
    if (k == 1 || k == 4) s.target_kl = (ramp){RAMP_CONSTANT, 0.001, 0};
    if (k == 5) {
        s = scene_cartpole(7);
        s.epochs = 3;
        s.world.env.kind = s.test.env.kind = ENV_cartpole_positions;
        s.lstm = 16;
        s.batch = s.micro = 64;
        s.world.env.limit = 20;
    }
    if (k == 6) s.lstm = 16, s.batch = s.micro = 128;
    if (k >= 3 && k < TRADER && k != 5) s.world.env.limit = s.test.env.limit = 50;
    return s;
}

// The same for a place. In fp16 the loss scale finds its level in the first minibatches, so there are more of them.
static agent_settings case_on(const place *p, int k) {
    agent_settings s = case_of(k);
    if (p->precision == PRECISION_FP16) s.batch = s.micro = s.steps;
    return s;
}

// Runs a check with all settings on all places, or on those of fp32 and bf16.
static void each_case(bool all, void (*check)(const place *, const agent_settings *)) {
    place p[PLACES_MOST];
    int places = places_of(p);
    for (int i = 0; i < places; i++) {
        if (!all && p[i].precision != PRECISION_FP32 && p[i].precision != PRECISION_BF16) continue;
        for (int k = 0; k < CASES; k++) {
            agent_settings s = case_on(&p[i], k);
            print_message("case %d on %s in %s\n", k, p[i].device->name, precision_name(p[i].precision));
            check(&p[i], &s);
        }
    }
}

// Takes a checkpoint up in an agent that is made anew.
static stage continue_from(const place *p, const agent_settings *s, int threads, const char *path) {
    err e;
    stage t = stage_open_on(p, *s, threads);
    safetensors *from = checkpoint_open(path, &e);
    support_ok(from != NULL, &e);
    support_ok(agent_restore(t.a, from, path, NULL, 0, &e), &e);
    safetensors_close(from);
    return t;
}

// Four iterations without a pause, and two and two in agents of their own.
static void check_same_bits(const place *p, const agent_settings *s) {
    err e;
    stage one = stage_open_on(p, *s, 1), two = stage_open_on(p, *s, 2);
    iterate(&one, 2);
    support_ok(agent_keep(one.a, &e), &e);
    iterate(&one, 2);
    iterate(&two, 2);
    support_ok(agent_keep(two.a, &e), &e);
    support_ok(agent_save(two.a, "best.safetensors", NULL, 0, &e), &e);
    save(&two, "half.safetensors");
    stage_close(&two);
    stage again = continue_from(p, s, 2, "half.safetensors");
    agent_score scored, best; // an evaluation between two iterations moves nothing
    support_ok(agent_evaluate(again.a, &scored, &e), &e);
    iterate(&again, 2);
    save(&one, "whole.safetensors");
    save(&again, "again.safetensors");
    same_files("whole.safetensors", "again.safetensors");
    support_ok(agent_back(again.a, &e) && agent_evaluate(again.a, &best, &e), &e);
    assert_true(best.mean == scored.mean);
    support_ok(agent_save(again.a, "back.safetensors", NULL, 0, &e), &e); // moments of rewards included
    same_files("best.safetensors", "back.safetensors");
    stage_close(&one);
    stage_close(&again);
}

static void test_the_same_bits(void **state) {
    (void)state;
    each_case(true, check_same_bits);
}

// Says stop at the question of a number; 0: never.
typedef struct {
    int asked, stop_at;
} wish;

static bool goes_on(void *arg, double share) {
    wish *w = arg;
    assert_true(share >= 0 && share <= 1);
    return ++w->asked != w->stop_at;
}

// Gives the next iteration up at question `at`, or the evaluation behind it, and expects the agent as it was before.
static void give_up(stage *t, int at, int asked_before_evaluation) {
    err e;
    agent_report r;
    agent_score score = {0};
    wish w = {.stop_at = at};
    agent_watch(t->a, goes_on, &w);
    if (!agent_iterate(t->a, &r, &e)) fail_msg("%s", e.text);
    assert_true(r.stopped == (at <= asked_before_evaluation));
    if (!r.stopped) assert_true(agent_evaluate(t->a, &score, &e) && score.stopped);
    assert_int_equal(w.asked, at);
    agent_watch(t->a, NULL, NULL);
    save(t, "after.safetensors");
    same_files("before.safetensors", "after.safetensors");
}

// Wherever an iteration is given up, nothing of it is left, and the run goes on to the same bits, in the same process
// and in another.
static void check_giving_up(const place *p, const agent_settings *s) {
    err e;
    agent_score score;
    wish all = {0};
    int steps = p->device->host_memory ? (int)s->steps : 1; // questions of a rollout
    stage one = stage_open_on(p, *s, 1), two = stage_open_on(p, *s, 1);
    iterate(&one, 1);
    iterate(&two, 1);
    save(&two, "before.safetensors");
    agent_watch(one.a, goes_on, &all);
    iterate(&one, 1);
    int iteration = all.asked;
    assert_true(iteration > steps);
    support_ok(agent_evaluate(one.a, &score, &e), &e);
    assert_true(all.asked > iteration && !score.stopped);
    agent_watch(one.a, NULL, NULL);
    iterate(&one, 1);
    save(&one, "whole.safetensors");
    const int at[] = {1, (steps + 1) / 2, steps + 1, (iteration + steps) / 2, iteration, iteration + 1};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) give_up(&two, at[i], iteration);
    iterate(&two, 2);
    save(&two, "again.safetensors");
    same_files("whole.safetensors", "again.safetensors");
    stage_close(&two);
    two = continue_from(p, s, 1, "after.safetensors");
    iterate(&two, 2);
    save(&two, "again.safetensors");
    same_files("whole.safetensors", "again.safetensors");
    stage_close(&one);
    stage_close(&two);
}

static void test_an_iteration_can_be_given_up(void **state) {
    (void)state;
    each_case(false, check_giving_up);
}

// Iterations that are over at once are not asked, nor kept for going back.
static void test_short_iterations_are_not_asked(void **state) {
    (void)state;
    agent_settings s = case_of(0);
    s.steps = 2;
    s.batch = s.micro = 16;
    s.epochs = 1;
    wish w = {0};
    stage t = stage_open(&s, 1);
    agent_watch(t.a, goes_on, &w);
    iterate(&t, 1);
    int first = w.asked, most = 0;
    assert_true(first > 0);
    for (int i = 0; i < 20; i++) {
        int before = w.asked;
        iterate(&t, 1);
        most += w.asked == before;
    }
    assert_true(most > 0); // one that the machine held up may be
    stage_close(&t);
}

#ifdef TEST_CUDA

// Recordings of many steps have the bits of launches one by one.
static void check_together(const place *p, const agent_settings *s) {
    place eager = *p;
    eager.card.debug = true;
    stage one = stage_open_on(&eager, *s, 1), many = stage_open_on(p, *s, 1);
    iterate(&one, 2);
    iterate(&many, 2);
    save(&one, "one.safetensors");
    save(&many, "many.safetensors");
    same_files("one.safetensors", "many.safetensors");
    stage_close(&one);
    stage_close(&many);
}

static void test_acts_together_are_the_same_acts(void **state) {
    (void)state;
    each_case(false, check_together);
}

#else

static int plays;

static bool counted_play(queue *q, recording *r, err *e) {
    plays++;
    return cpu_device.play(q, r, e);
}

// A device to which starting a recording is dear: some dozen acts are one recording, and the rest of a rollout single
// ones.
static void test_acts_together_are_the_same_acts(void **state) {
    (void)state;
    device near = cpu_device, far = cpu_device;
    near.play = far.play = counted_play;
    far.host_memory = false;
    place singly_on = {&near, NULL, PRECISION_FP32, 0, {0}}, together_on = {&far, NULL, PRECISION_FP32, 0, {0}};
    for (int k = 0; k < CASES; k++) {
        agent_settings s = case_of(k);
        s.steps = s.steps * 7 / 3; // 74 or 149: a rest of acts is left
        s.envs = 8;
        s.batch = s.micro = s.lstm ? 2 * s.steps : 8;
        stage one = stage_open_on(&singly_on, s, 1), many = stage_open_on(&together_on, s, 1);
        int before = plays;
        iterate(&one, 2);
        int singly = plays - before;
        iterate(&many, 2);
        assert_true(plays - before - singly < singly / 8);
        save(&one, "one.safetensors");
        save(&many, "many.safetensors");
        same_files("one.safetensors", "many.safetensors");
        stage_close(&one);
        stage_close(&many);
    }
}

#endif

// Advantages are normalised over the whole minibatch, so a split moves the last digits alone.
static void test_a_minibatch_may_be_split(void **state) {
    (void)state;
    agent_settings s = scene_cartpole(3), split = s;
    split.micro = 64;
    stage whole = stage_open(&s, 1), parts = stage_open(&split, 1);
    agent_report a = iterate(&whole, 1), b = iterate(&parts, 1);
    assert_true(a.explained_variance == b.explained_variance);
    assert_true(fabs(a.policy_gradient_loss) < 1); // advantages are normalised
    assert_true(fabs(a.value_loss - b.value_loss) < 1e-4 * fabs(a.value_loss));
    assert_true(fabs(a.policy_gradient_loss - b.policy_gradient_loss) < 1e-5);
    assert_true(fabs(a.approx_kl - b.approx_kl) < 1e-5);
    stage_close(&whole);
    stage_close(&parts);
}

// The first moments of the optimizer after one update of one pass: a tenth of the gradient.
static safetensors *moments_of(agent_settings s, int64_t micro, const char *path) {
    err e;
    s.micro = micro;
    stage t = stage_open(&s, 2);
    iterate(&t, 1);
    save(&t, path);
    stage_close(&t);
    safetensors *f = checkpoint_open(path, &e);
    assert_non_null(f);
    return f;
}

// Largest difference of two tensors, as a share of the largest number in them.
static double apart(const safetensors_entry *a, const safetensors_entry *b) {
    double most = 0, differ = 0;
    for (size_t i = 0; i < a->bytes / sizeof(float); i++) {
        double x = (double)((const float *)a->data)[i], y = (double)((const float *)b->data)[i];
        if (fabs(x) > most) most = fabs(x);
        if (fabs(x - y) > differ) differ = fabs(x - y);
    }
    return most > 0 ? differ / most : differ;
}

// Whatever the split, down to single rows or sequences, gradients are the same up to rounding.
static void test_a_split_has_the_same_gradient(void **state) {
    static const int kinds[] = {0, 2, 3, 5, TRADER};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        agent_settings s = case_of(kinds[k]);
        int64_t unit = s.lstm ? s.steps : 1;
        s.epochs = 1;
        s.batch = s.envs * s.steps;
        safetensors *whole = moments_of(s, s.batch, "whole.safetensors");
        for (int64_t micro = s.batch / 2; micro >= unit; micro = micro == unit      ? 0
                                                                 : micro / 4 < unit ? unit
                                                                                    : micro / 4) {
            safetensors *parts = moments_of(s, micro, "parts.safetensors");
            int compared = 0;
            for (int i = 0; i < safetensors_count(whole); i++) {
                const safetensors_entry *a = safetensors_at(whole, i);
                if (strncmp(a->name, "moment1.", 8) != 0) continue;
                const safetensors_entry *b = safetensors_find(parts, a->name);
                if (apart(a, b) > 2e-5) fail_msg("%s in parts of %lld: %g", a->name, (long long)micro, apart(a, b));
                compared++;
            }
            assert_true(compared >= 6);
            safetensors_close(parts);
        }
        safetensors_close(whole);
    }
}

// A target that the first minibatch passes leaves the weights as they are after it.
static void test_the_update_stops_at_the_target(void **state) {
    (void)state;
    agent_settings s = scene_cartpole(3);
    s.batch = s.micro = 32;
    s.target_kl = (ramp){RAMP_CONSTANT, 1e-9, 0};
    stage t = stage_open(&s, 1);
    agent_report r = iterate(&t, 1);
    assert_true(r.kl_stopped);
    assert_int_equal(r.n_updates, 1);
    assert_true(r.grad_norm > 0 && r.grad_norm < 50);
    save(&t, "stopped.safetensors");
    err e;
    safetensors *f = checkpoint_open("stopped.safetensors", &e);
    double clip[CLIP_COUNT];
    memcpy(clip, safetensors_find(f, "state.clip")->data, sizeof clip);
    safetensors_close(f);
    assert_true(clip[CLIP_TAKEN] < (double)(s.envs * s.steps / s.batch)); // the rest of the pass was dropped
    stage_close(&t);
}

static void test_what_contradicts_is_refused(void **state) {
    (void)state;
    err e;
    agent_settings s = scene_cartpole(1);
    s.batch = s.micro = 100;
    assert_false(agent_check(&s, &e));
    assert_non_null(strstr(e.text, "agent.batch_size"));
    s = scene_cartpole(1);
    s.state_noise = true;
    assert_false(agent_check(&s, &e));
    assert_non_null(strstr(e.text, "agent.noise"));
    s = scene_cartpole(1);
    s.micro = 64;
    s.value_bound = 1;
    assert_false(agent_check(&s, &e));
    assert_non_null(strstr(e.text, "agent.entropy_bound"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_same_bits, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(test_an_iteration_can_be_given_up, support_enter, support_leave),
        cmocka_unit_test(test_short_iterations_are_not_asked),
        cmocka_unit_test_setup_teardown(test_acts_together_are_the_same_acts, support_enter, support_leave),
        cmocka_unit_test(test_a_minibatch_may_be_split),
        cmocka_unit_test_setup_teardown(test_a_split_has_the_same_gradient, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(test_the_update_stops_at_the_target, support_enter, support_leave),
        cmocka_unit_test(test_what_contradicts_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
