// The terminal view without a terminal: curves, and whole screens of runs, compared cell by cell.
#include "watch/screen.h"

#include "support.h"
#include "watch/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *text_of(const cells *g) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    cells_write(g, out);
    fclose(out);
    return text;
}

static void text_stays_in_its_place(void **state) {
    (void)state;
    cells g;
    cells_init(&g, 3, 10, false);
    assert_int_equal(cells_text(&g, 0, 2, 5, STYLE_PLAIN, "caf\u00e9 au lait"), 5);
    assert_int_equal(cells_text(&g, 1, 0, 10, STYLE_PLAIN, "\u91d1\u91d1x"), 5); // two columns each
    assert_int_equal(cells_text(&g, 2, 0, 10, STYLE_PLAIN,
                         "a\tb\xff\xc0\x80"
                         "c\x1b[2J"),
        10);
    cells_text(&g, 2, 9, 5, STYLE_PLAIN, "|over the edge");
    cells_text(&g, 7, 0, 5, STYLE_PLAIN, "outside");
    char *text = text_of(&g);
    assert_string_equal(text, "  caf\u00e9\n\u91d1\u91d1x\na?b???c?[|\n");
    free(text);
    cells_done(&g);
    cells_init(&g, 1, 10, true);
    cells_text(&g, 0, 0, 10, STYLE_PLAIN, "caf\u00e9");
    text = text_of(&g);
    assert_string_equal(text, "caf?\n");
    free(text);
    cells_done(&g);
}

static void a_curve_in_braille(void **state) {
    (void)state;
    trace *t = trace_new();
    for (int i = 0; i <= 20; i++) trace_add(t, i, i * i, i * i, i * i);
    cells g;
    cells_init(&g, 5, 29, false);
    plot_draw(&g, (area){0, 0, 5, 29}, &(plot){.line = {t, NULL}, .x = "epoch"});
    char *text = text_of(&g);
    assert_string_equal(text, "     400                  ⣀⡴⠋\n"
                              "                       ⣀⡴⠋⠁\n"
                              "                  ⢀⣠⠤⠖⠋⠁\n"
                              "       0 ⣀⣀⣀⣠⠤⠤⠴⠒⠚⠉\n"
                              "         0           epoch 20\n");
    free(text);
    cells_done(&g);
    trace_free(t);
}

// One value among a million that is far from the others is on the screen, at every zoom that has it.
static void every_extreme_is_drawn(void **state) {
    (void)state;
    trace *t = trace_new();
    for (int i = 0; i < 1000000; i++) {
        double v = i == 900001 ? 100 : 1;
        trace_add(t, i, v, v, v);
    }
    for (int zoom = 0; zoom < 4; zoom++) {
        cells g;
        cells_init(&g, 6, 40, true);
        plot_draw(&g, (area){0, 0, 6, 40}, &(plot){.line = {t, NULL}, .zoom = zoom, .x = "step"});
        int top = 0;
        for (int i = 9; i < 40; i++) top += g.cell[i].rune == '*';
        assert_int_equal(top, 1);
        cells_done(&g);
    }
    trace_free(t);
}

static void odd_curves_are_drawn_or_told(void **state) {
    (void)state;
    trace *t = trace_new();
    cells g;
    cells_init(&g, 5, 40, false);
    plot p = {.line = {t, NULL}, .x = "epoch"};
    plot_draw(&g, (area){0, 0, 5, 40}, &p);
    char *text = text_of(&g);
    assert_non_null(strstr(text, "nothing to draw yet"));
    free(text);
    trace_add(t, 1, 0, 0, 0); // a single value of 0, with a logarithm
    p.logarithm = true;
    plot_draw(&g, (area){0, 0, 5, 40}, &p);
    trace_add(t, 1, 1e300, 1e300, 1e300); // nothing between
    plot_draw(&g, (area){0, 0, 5, 40}, &p);
    trace_add(t, INFINITY, 1, 1, 1);
    trace_add(t, 3, -1e300, 0, 1e300);
    for (int zoom = 0; zoom <= SCREEN_ZOOM_MOST; zoom++) {
        p.zoom = zoom;
        plot_draw(&g, (area){0, 0, 5, 40}, &p);
    }
    plot_draw(&g, (area){0, 0, 1, 3}, &p);
    cells_done(&g);
    trace_free(t);
}

// Screens

static const char description[] = "model:\n  kind: lstm\ntrain:\n  epochs: 4\n  metric: mcc\n  patience: 4\n"
                                  "gpu_optimization:\n  max_memory_gb: 2\n";
static const char plan_text[] = "device: cuda, Some Card\nprecision: bf16\nmicro_batch: 256\naccumulation: 2\n"
                                "residency: device\nparameters: 26403\nsamples:\n  all: 1000\n  train: 700 from 0\n";

static db *begin(void) {
    mkdir("run", 0777);
    db *d = db_open("run/run.db");
    db_run(d, "0.1", description, plan_text);
    for (int i = 1; i <= 2; i++) {
        const db_metric m[] = {{"train", "loss", 1.0 / i}, {"validation", "loss", 1.1 / i},
            {"validation", "mcc", 0.2 * i}, {"", "steps_skipped", 3}};
        db_epoch(d, &(db_epoch_row){i, (uint64_t)(2 * i), 10, 70, true, "[[8,1],[2,9]]"}, m, 4);
    }
    for (int i = 1; i <= 5; i++) db_steps(d, &(db_steps_row){(uint64_t)i, i / 2 + 1, 350, 1, 0.5, 0.6, 0.7, 1.5, 1e-3});
    db_sample(d, &(db_sample_row){.time = 1,
                     .memory_used = 3e9,
                     .memory_total = 16e9,
                     .memory_process = 1e9,
                     .memory_others = 2e9,
                     .memory_most = -1,
                     .processes = 1,
                     .utilisation = 30,
                     .temperature = 61,
                     .power = 70,
                     .clock = 1500,
                     .memory_clock = 5000});
    db_event(d, 4, "checkpoint", "made/it\x1b[31m");
    db_sync(d);
    return d;
}

typedef struct {
    tail *t;
    tail_cursor c;
    story *s;
} seen;

static seen see(const char *dir) {
    seen r = {.t = tail_open(dir), .s = story_new()};
    for (int i = 0; i < 200; i++) {
        tail_poll(r.t);
        story_take(r.s, r.t, &r.c);
        if (tail_at(r.t)->state == TAIL_READY && r.c.life) break;
        if (tail_at(r.t)->state == TAIL_ABSENT) break;
        usleep(10000);
    }
    return r;
}

static char *screen_of(const seen *r, int rows, int columns, screen_view v) {
    cells g;
    v.runs = v.runs ? v.runs : 1;
    v.now = tail_at(r->t)->run.started + 65;
    cells_init(&g, rows, columns, true);
    screen_draw(&g, r->s, r->t, &v);
    char *text = text_of(&g);
    cells_done(&g);
    return text;
}

static void leave(seen *r) {
    tail_close(r->t);
    story_free(r->s);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no \"%s\" in\n%s", part, text);
}

static void a_screen_shows_a_run(void **state) {
    (void)state;
    db *d = begin();
    seen r = see("run");
    char *text = screen_of(&r, 24, 80, (screen_view){0});
    has(text, "run ");
    has(text, "running for 1:05");
    has(text, "lstm  26,403 parameters  cuda, Some Card  bf16  batch 512");
    has(text, "epoch 3 of 4");
    has(text, "62 %  70 samples/s  ETA 0:15");
    has(text, "mcc            0.4     0.4");
    has(text, "val. loss     0.55    0.55");
    has(text, "best: epoch 2");
    has(text, "1000 of 2147 MB limit, all 3000");
    has(text, "30 %  61 C  70 W  1500 MHz/5000");
    has(text, "poor  3 of 5 steps skipped");
    has(text, "the model is too small for it");
    has(text, "checkpoint made/it?[31m");
    has(text, "q quit");
    free(text);
    // Verdicts break at spaces, and one is there on a small screen too.
    text = screen_of(&r, 24, 60, (screen_view){0});
    has(text, "\n poor  3 of 5 steps skipped: gradients were not finite; try\n       bf16, or a lower rate\n");
    free(text);
    text = screen_of(&r, 10, 80, (screen_view){0});
    has(text, "\n poor  ");
    free(text);
    // Its curves, one by one, and the help.
    int curves = screen_curves(r.s);
    assert_true(curves >= 5);
    for (int i = 0; i < curves; i++) {
        char name[64];
        text = screen_of(&r, 24, 80, (screen_view){.curve = i, .zoom = i % 3, .logarithm = i % 2, .large = i % 2});
        if (i) has(text, screen_curve_name(r.s, i, name, sizeof name));
        free(text);
    }
    text = screen_of(&r, 24, 80, (screen_view){.help = true});
    has(text, "quit; the run goes on");
    free(text);
    db_status(d, "failed", "the disk is full");
    db_close(d);
    for (int i = 0; i < 100 && strcmp(tail_at(r.t)->status, "failed") != 0; i++) {
        tail_poll(r.t);
        usleep(10000);
    }
    text = screen_of(&r, 24, 80, (screen_view){0});
    has(text, "failed: the disk is full");
    free(text);
    // The directory goes: what was seen stays, and the reason.
    rename("run", "other");
    tail_poll(r.t);
    text = screen_of(&r, 24, 80, (screen_view){0});
    has(text, "gone: the directory is no longer there");
    has(text, "best: epoch 2");
    free(text);
    leave(&r);
}

// Whatever the size, nothing is drawn beside the screen; sanitizers look.
static void screens_of_all_sizes(void **state) {
    (void)state;
    db *d = begin();
    seen r = see("run");
    for (int rows = 1; rows < 60; rows += 3)
        for (int columns = 1; columns < 240; columns += 7)
            free(screen_of(&r, rows, columns, (screen_view){.runs = 12, .run = 3}));
    char *text = screen_of(&r, 5, 30, (screen_view){0});
    has(text, "40 columns, 8 rows at least");
    free(text);
    leave(&r);
    db_close(d);
}

static void a_run_that_has_not_begun(void **state) {
    (void)state;
    seen r = see("nowhere");
    char *text = screen_of(&r, 24, 80, (screen_view){0});
    has(text, "waiting: no run has begun");
    free(text);
    leave(&r);
}

static void the_eta_of_an_agent_is_of_its_steps(void **state) {
    (void)state;
    mkdir("run", 0777);
    db *d = db_open("run/run.db");
    db_run(d, "0.1", "agent:\n  env: cartpole\n  total_timesteps: 1000\n", "device: cpu, avx2\nparameters: 9\n");
    const db_metric m[] = {
        {"", "rollout/ep_rew_mean", 21}, {"", "eval/mean_reward", 30}, {"", "train/approx_kl", 0.01}};
    db_epoch(d, &(db_epoch_row){1, 256, 2, 128, true, NULL}, m, 3);
    db_sync(d);
    seen r = see("run");
    char *text = screen_of(&r, 24, 80, (screen_view){0});
    has(text, "cartpole  9 parameters");
    has(text, "iteration 1");
    has(text, "25 %  128 steps/s  ETA 0:06");
    has(text, "mean reward");
    has(text, "evaluation      30      30");
    free(text);
    leave(&r);
    db_close(d);
}

static void numbers_keep_their_exponent(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(cells_number(text, 7239000, 4, 7), "7.2e+06");
    assert_string_equal(cells_number(text, 5.424e-5, 4, 7), "5.4e-05");
    assert_string_equal(cells_number(text, -0.016023, 4, 7), "-0.016");
    assert_string_equal(cells_number(text, 0.4716, 4, 7), "0.4716");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_keep_their_exponent),
        cmocka_unit_test(text_stays_in_its_place),
        cmocka_unit_test(a_curve_in_braille),
        cmocka_unit_test(every_extreme_is_drawn),
        cmocka_unit_test(odd_curves_are_drawn_or_told),
        cmocka_unit_test_setup_teardown(a_screen_shows_a_run, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(screens_of_all_sizes, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_run_that_has_not_begun, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(the_eta_of_an_agent_is_of_its_steps, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
