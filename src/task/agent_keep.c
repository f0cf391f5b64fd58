#include "task/agent_keep.h"

#include "base/clock.h"
#include "base/term.h"
#include "run/checkpoint.h"
#include "run/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct agent_keeper {
    agent_keeper_options o;
    records *records;
    char *best;
    char *contract, *data; // as files of weights and checkpoints have them; NULL where there are no data
    err failure;
};

// Numbers of a checkpoint that are not the agent's.
enum { EXTRA_BEST_ITERATION, EXTRA_BEST, EXTRA_BAD, EXTRAS };

static const char note_iteration[] = "iteration", note_env[] = "environment";

static void take_contract(agent_keeper *k) {
    if (!k->o.task->world.open) return;
    contract *c = task_contract(&k->o.task->world.task);
    k->contract = contract_text(c);
    k->data = contract_data_text(c);
    contract_free(c);
}

agent_keeper *agent_keeper_new(const agent_keeper_options *o) {
    agent_keeper *k = calloc(1, sizeof *k);
    NEED(k, "out of memory for a keeper");
    k->o = *o;
    k->records = records_new(&(records_options){.run = o->run,
        .settings = &o->task->settings,
        .config = o->config,
        .plan = o->plan,
        .version = o->task->options.version,
        .listener = o->task->options.listener});
    k->best = run_path(run_dir(o->run), "best.safetensors");
    take_contract(k);
    return k;
}

void agent_keeper_free(agent_keeper *k) {
    if (!k) return;
    records_free(k->records);
    free(k->best);
    free(k->contract);
    free(k->data);
    free(k);
}

records *agent_keeper_records(const agent_keeper *k) {
    return k->records;
}

static uint64_t timesteps(const agent_keeper *k) {
    const agent_settings *s = &k->o.task->agent;
    return (uint64_t)(agent_iteration(k->o.agent) * s->envs * s->steps);
}

// "step 10,240, after iteration 40"
static const char *place(const agent_keeper *k, char *text, size_t room) {
    char n[32];
    term_count(n, sizeof n, (double)timesteps(k));
    snprintf(text, room, "step %s, after iteration %lld", n, (long long)agent_iteration(k->o.agent));
    return text;
}

// Saving

// So many notes, of which the last ones are of data.
static int notes_of(const agent_keeper *k, int all, int of_data) {
    return k->contract ? all : all - of_data;
}

static bool save(agent_keeper *k, checkpoint_kind kind, uint64_t number) {
    const safetensors_note notes[] = {{"config", k->o.config}, {"plan", records_plan(k->records)},
        {"version", k->o.task->options.version}, {note_env, agent_task_env(k->o.task)}, {contract_key, k->contract},
        {contract_data_key, k->data}};
    const double extra[EXTRAS] = {(double)k->o.stop->best_epoch, k->o.stop->best, (double)k->o.stop->bad};
    double began = clock_seconds();
    char where[96], *path = checkpoint_path(run_dir(k->o.run), kind, number);
    db_sync(run_db(k->o.run));
    if (!agent_checkpoint(k->o.agent, path, extra, EXTRAS, notes, notes_of(k, 6, 2), &k->failure)) {
        free(path);
        return false;
    }
    records_saved(k->records, path, kind, timesteps(k), place(k, where, sizeof where), clock_seconds() - began);
    return true;
}

static bool save_best(agent_keeper *k) {
    char iteration[32];
    snprintf(iteration, sizeof iteration, "%lld", (long long)k->o.stop->best_epoch);
    const safetensors_note notes[] = {
        {note_iteration, iteration}, {note_env, agent_task_env(k->o.task)}, {contract_key, k->contract}};
    return agent_save(k->o.agent, k->best, notes, notes_of(k, 3, 1), &k->failure);
}

// Rows

// Metrics under the names that Stable-Baselines3 has for them; those that an iteration has not are left out.
static void write_row(agent_keeper *k, const agent_ended *i) {
    const agent_report *r = i->report;
    double mean = i->score ? i->score->mean : NAN, length = i->score ? i->score->length : NAN;
    double deviation = i->score ? i->score->deviation : NAN;
    const db_metric all[] = {{"", "rollout/ep_rew_mean", r->ep_rew_mean}, {"", "rollout/ep_len_mean", r->ep_len_mean},
        {"", "train/approx_kl", r->approx_kl}, {"", "train/clip_fraction", r->clip_fraction},
        {"", "train/entropy_loss", r->entropy_loss}, {"", "train/policy_gradient_loss", r->policy_gradient_loss},
        {"", "train/value_loss", r->value_loss}, {"", "train/loss", r->loss},
        {"", "train/explained_variance", r->explained_variance}, {"", "train/learning_rate", r->learning_rate},
        {"", "train/clip_range", r->clip_range}, {"", "train/ent_coef", r->entropy_coefficient},
        {"", "train/grad_norm", r->grad_norm}, {"", "train/skipped", (double)r->skipped},
        {"", "train/n_updates", (double)r->n_updates}, {"", "train/std", r->std}, {"", "time/fps", i->fps},
        {"", "time/rollout", r->rollout}, {"", "time/update", r->update},
        {"", "time/total_timesteps", (double)r->total_timesteps}, {"", "eval/mean_reward", mean},
        {"", "eval/std_reward", deviation}, {"", "eval/mean_ep_length", length}};
    db_metric given[sizeof all / sizeof *all];
    int count = 0;
    for (size_t m = 0; m < sizeof all / sizeof *all; m++)
        if (!isnan(all[m].value)) given[count++] = all[m];
    db_epoch_row row = {r->iteration, (uint64_t)r->total_timesteps, r->seconds, r->fps, i->best, NULL};
    db_epoch(run_db(k->o.run), &row, given, count);
    records_warn(k->records);
}

bool agent_keeper_iteration(agent_keeper *k, const agent_ended *i) {
    int64_t iteration = i->report->iteration;
    write_row(k, i);
    if (k->failure.kind != ERR_NONE) return false;
    if (i->best && (!agent_keep(k->o.agent, &k->failure) || !save_best(k))) return false;
    if (i->best)
        records_best(k->records, timesteps(k), "iteration", iteration, "mean_reward", i->score ? i->score->mean : NAN);
    bool due = records_due(k->records);
    // The last one first: a run that is killed behind it has ended, and what ended is not saved again.
    if (i->last && !save(k, CHECKPOINT_LAST, 0)) return false;
    if (i->last) records_ended(k->records);
    if (iteration % k->o.task->settings.checkpoint_every == 0) return save(k, CHECKPOINT_EPOCH, (uint64_t)iteration);
    return !due || i->last || save(k, CHECKPOINT_STEP, timesteps(k));
}

bool agent_keeper_leave(agent_keeper *k) {
    if (k->failure.kind != ERR_NONE || !save(k, CHECKPOINT_LAST, 0)) return false;
    records_stop(k->records);
    return true;
}

// True where the file of the best weights is of the best iteration.
static bool has_best(const agent_keeper *k) {
    err unused;
    safetensors *f = weights_open(k->best, &unused);
    const char *iteration = f ? safetensors_metadata(f, note_iteration) : NULL;
    bool has = iteration && strtoll(iteration, NULL, 10) == k->o.stop->best_epoch;
    safetensors_close(f);
    return has;
}

bool agent_keeper_conclude(agent_keeper *k, bool stopped, bool early) {
    if (k->failure.kind != ERR_NONE) return false;
    if (k->o.stop->best_epoch && !has_best(k) && (!agent_back(k->o.agent, &k->failure) || !save_best(k))) return false;
    records_conclude(k->records, stopped, early);
    return true;
}

// Resuming

// A run has no fewer steps than it has taken.
static bool has_steps_left(const agent_keeper *k, const char *path, err *e) {
    char done[32], asked[32];
    if (agent_iteration(k->o.agent) <= agent_iterations(k->o.agent)) return true;
    term_count(done, sizeof done, (double)timesteps(k));
    term_count(asked, sizeof asked, (double)k->o.task->agent.total);
    return config_fail(k->o.task->config, "agent.total_timesteps", e,
        "%s are asked for, and %s stands at step %s; give as many or more, or begin another run", asked, path, done);
}

bool agent_keeper_resume(agent_keeper *k, err *e) {
    char *path, where[96];
    double extra[EXTRAS];
    safetensors *s = records_find(k->records, NULL, NULL, &path, e);
    if (!s) return false;
    bool ok = agent_restore(k->o.agent, s, path, extra, EXTRAS, e);
    safetensors_close(s);
    ok = ok && has_steps_left(k, path, e);
    if (!ok) {
        free(path);
        return false;
    }
    k->o.stop->best_epoch = (int64_t)extra[EXTRA_BEST_ITERATION];
    k->o.stop->best = extra[EXTRA_BEST];
    k->o.stop->bad = (int64_t)extra[EXTRA_BAD];
    records_resume(
        k->records, path, timesteps(k), agent_iteration(k->o.agent) + 1, false, place(k, where, sizeof where));
    return true;
}

const err *agent_keeper_failure(const agent_keeper *k) {
    return &k->failure;
}

const char *agent_keeper_best(const agent_keeper *k) {
    return k->best;
}
