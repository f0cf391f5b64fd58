#include "cli/agent_show.h"

#include "cli/look.h"
#include "cli/show.h"
#include "graph/dtype.h"
#include "run/command.h"
#include "task/agent_lines.h"
#include "task/lines.h"

#include <math.h>
#include <stdlib.h>

static double mb(size_t bytes) {
    return (double)bytes / 1e6;
}

void agent_show(const agent_task *t, const char *bars, FILE *out) {
    const agent_memory *m = &t->memory;
    demand n = agent_task_demand(t);
    char world[LINE_ROOM];
    err e;
    show_device(t->device, t->queue, &t->no_card, out);
    agent_lines_world(t, world, sizeof world);
    fprintf(out, "agent     %s\n", world);
    if (bars) fputs(bars, out);
    if (t->world.open) {
        agent_lines_data(t, world, sizeof world);
        fprintf(out, "data      %s\n", world);
    }
    if (agent_lines_left(t, world, sizeof world)) fprintf(out, "left out  %s\n", world);
    if (agent_lines_idle(t, world, sizeof world)) fprintf(out, "warning   %s\n", world);
    agent_lines_model(t, world, sizeof world);
    fprintf(out, "model     %s\n", world);
    if (t->agent.micro < t->agent.batch) {
        agent_lines_split(t, world, sizeof world);
        fprintf(out, "split     %s\n", world);
    }
    if (t->agent.lstm) fprintf(out, "lstm      %lld units before each net\n", (long long)t->agent.lstm);
    fprintf(out,
        "memory    %.1f MB in one slab: weights %.1f, gradients %.1f, moments %.1f, rollout and environments %.1f, "
        "activations %.1f",
        mb(m->total), mb(m->weights), mb(m->gradients), mb(m->moments), mb(m->states), mb(m->activations));
    if (m->data) fprintf(out, ", data %.1f", mb(m->data));
    fputc('\n', out);
    show_limit(&t->budget, &n, &t->settings, out);
    if (!agent_task_fits(t, &e)) fprintf(out, "          does not fit: %s\n", e.text);
}

json_t *agent_show_memory(const agent_memory *m) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "weights", (json_int_t)m->weights, "gradients",
        (json_int_t)m->gradients, "moments", (json_int_t)m->moments, "states", (json_int_t)m->states, "activations",
        (json_int_t)m->activations, "tables", (json_int_t)m->recordings, "data", (json_int_t)m->data, "slab",
        (json_int_t)m->total);
}

// Events

static bool says_text(const cli_options *o) {
    return !o->json && !o->quiet;
}

static void on_begin(const cli_options *o, const char *bars, progress *bar, const task_event *e) {
    const task_agent_event *b = &e->agent;
    const agent_settings *s = &b->task->agent;
    if (says_text(o)) {
        agent_show(b->task, bars, stdout);
        if (b->earlier) printf("earlier   the run that was in %s is now %s\n", b->dir, b->earlier);
        if (o->verbose) plan_print(b->plan, b->graph, stdout);
        if (b->card) printf("card      %s\n", b->card);
    }
    if (o->json && b->earlier) json_line(stdout, json_pack("{s:s}", "earlier", b->earlier));
    if (!o->quiet) show_agent_keys(b->task, o->json, stdout);
    fflush(stdout);
    progress_init(bar, stderr, "training", (double)(b->iterations * s->envs * s->steps), o->quiet || o->json);
    cli_watch_signals();
}

static void print_iteration_json(const task_iteration_event *i) {
    const agent_report *r = i->report;
    json_t *all =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:b}",
            "iteration", (json_int_t)r->iteration, "time/total_timesteps", (json_int_t)r->total_timesteps,
            "rollout/ep_rew_mean", json_number(r->ep_rew_mean), "rollout/ep_len_mean", json_number(r->ep_len_mean),
            "train/approx_kl", json_number(r->approx_kl), "train/clip_fraction", json_number(r->clip_fraction),
            "train/entropy_loss", json_number(r->entropy_loss), "train/policy_gradient_loss",
            json_number(r->policy_gradient_loss), "train/value_loss", json_number(r->value_loss), "train/loss",
            json_number(r->loss), "train/explained_variance", json_number(r->explained_variance), "train/learning_rate",
            json_number(r->learning_rate), "train/clip_range", json_number(r->clip_range), "train/n_updates",
            (json_int_t)r->n_updates, "train/std", json_number(r->std), "time/fps", json_number(i->fps), "time/rollout",
            json_number(r->rollout), "time/update", json_number(r->update), "kl_stopped", r->kl_stopped);
    if (i->score)
        json_join(all, json_pack("{s:o, s:o, s:o, s:b}", "eval/mean_reward", json_number(i->score->mean),
                           "eval/std_reward", json_number(i->score->deviation), "eval/mean_ep_length",
                           json_number(i->score->length), "best", i->best));
    json_line(stdout, all);
}

static bool on_iteration(const cli_options *o, progress *bar, const task_event *e) {
    const task_iteration_event *i = &e->iteration;
    if (o->json) print_iteration_json(i);
    if (says_text(o) && e->line) {
        progress_done(bar);
        puts(e->line);
        fflush(stdout);
    }
    char reward[32] = "no episode has ended";
    if (!isnan(i->report->ep_rew_mean)) snprintf(reward, sizeof reward, "reward %.4g", i->report->ep_rew_mean);
    if (i->report->total_timesteps < i->total) progress_at(bar, (double)i->report->total_timesteps, "%s", reward);
    return !cli_interrupted();
}

static void print_done_json(const task_agent_done_event *d, const char *resume) {
    json_line(stdout,
        json_pack("{s:I, s:I, s:I, s:o, s:b, s:b, s:s?, s:s?, s:s, s:o, s:o, s:o}", "iterations",
            (json_int_t)d->iterations, "timesteps", (json_int_t)d->timesteps, "best_iteration",
            (json_int_t)d->best_iteration, "mean_reward", json_number(d->best_iteration ? d->best : NAN),
            "stopped_early", d->stopped_early, "interrupted", d->interrupted, "resume", d->interrupted ? resume : NULL,
            "weights", d->best_iteration ? d->weights : NULL, "device", d->task->device->name, "steps_per_s",
            json_number(d->seconds > 0 ? (double)d->steps / d->seconds : NAN), "slab_bytes",
            json_bytes((double)d->slab), "monitor", look_gauges_json(&d->seen)));
}

static void print_done(const task_agent_done_event *d, const char *resume) {
    char steps[32], rate[32];
    term_count(steps, sizeof steps, (double)d->steps);
    term_count(rate, sizeof rate, d->seconds > 0 ? (double)d->steps / d->seconds : 0);
    if (d->monitor) printf("monitor   %s\n", d->monitor);
    if (d->interrupted)
        printf("stopped by a signal after iteration %lld\nresume    %s\n", (long long)d->iterations, resume);
    if (d->was_over && !d->interrupted)
        printf("over      the run had ended after iteration %lld%s\n", (long long)d->iterations,
            d->stopped_early  ? "; a larger train.patience goes on"
            : d->length_fixed ? ""
                              : "; a larger agent.total_timesteps goes on");
    if (d->stopped_early && !d->was_over)
        printf("stopped early: no better evaluation in %lld\n", (long long)d->task->settings.patience);
    if (!d->was_over)
        printf("time      %s steps in %.1f s, evaluations included: %s steps/s\n", steps, d->seconds, rate);
    if (d->best_iteration)
        printf("best      iteration %lld, mean reward %.4g of %lld greedy episode%s\nweights   %s\n",
            (long long)d->best_iteration, d->best, (long long)d->task->agent.tests, term_s(d->task->agent.tests),
            d->weights);
}

static void on_done(const cli_options *o, progress *bar, const task_agent_done_event *d) {
    char *resume = command_resume(d->resume_in);
    progress_done(bar);
    if (o->json) print_done_json(d, resume);
    if (says_text(o)) print_done(d, resume);
    free(resume);
}

// An iteration that takes long moves the bar too.
static bool on_acting(progress *bar, double steps) {
    progress_at(bar, steps, "in an iteration");
    return !cli_interrupted();
}

bool agent_show_event(const cli_options *o, const char *bars, progress *bar, const task_event *e) {
    if (e->kind == TASK_AGENT_BEGIN) on_begin(o, bars, bar, e);
    if (e->kind == TASK_AGENT_DONE) on_done(o, bar, &e->agent_done);
    if (e->kind == TASK_ACTING) return on_acting(bar, e->steps);
    return e->kind != TASK_ITERATION || on_iteration(o, bar, e);
}
