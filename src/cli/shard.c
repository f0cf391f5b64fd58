#include "cli/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS_MOST = 100000 };

// A number of the environment; `otherwise` where there is none.
static int number_of(const char *name, int otherwise) {
    const char *text = getenv(name);
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;
    return text && *text && !*end && n >= 0 && n <= INT32_MAX ? (int)n : otherwise;
}

static bool is_within(const walk_options *w) {
    return w->shards >= 1 && w->shards <= SHARDS_MOST && w->shard >= 1 && w->shard <= w->shards;
}

// Numbers of an array lie at equal steps: others cannot be told apart by one of them.
static bool read_slurm(int at, int count, walk_options *w, err *e) {
    int first = number_of("SLURM_ARRAY_TASK_MIN", 0), step = number_of("SLURM_ARRAY_TASK_STEP", 1);
    int tasks = number_of("SLURM_ARRAY_TASK_COUNT", 0);
    if (step < 1) step = 1;
    int last = number_of("SLURM_ARRAY_TASK_MAX", first + (tasks - 1) * step);
    w->shards = tasks;
    w->shard = (at - first) / step + 1;
    bool even = (at - first) % step == 0 && (int64_t)first + (int64_t)(tasks - 1) * step == last;
    if (!tasks)
        return err_input(e,
            "--shard auto: SLURM_ARRAY_TASK_ID is %d, but SLURM_ARRAY_TASK_COUNT is no number; give --shard I/N", at);
    if (count && count != tasks)
        return err_input(e, "--shard auto/%d: the Slurm array has %d tasks; submit %d, such as --array=1-%d", count,
            tasks, count, count);
    return (even && is_within(w)) || err_input(e, "--shard auto: the numbers of the Slurm array are no run such as 0-3 "
                                                  "or 0-6:2; submit one, or give --shard I/N");
}

static bool read_kubernetes(int at, int count, walk_options *w, err *e) {
    w->shards = count ? count : number_of("JOB_COMPLETIONS", 0);
    w->shard = at + 1;
    if (!w->shards)
        return err_input(e,
            "--shard auto: JOB_COMPLETION_INDEX is %d, but Kubernetes does not tell of how many; give --shard auto/N, "
            "or "
            "set JOB_COMPLETIONS to the job's completions",
            at);
    return is_within(w) ||
           err_input(e, "--shard auto: JOB_COMPLETION_INDEX is %d, which is not below %d", at, w->shards);
}

static bool read_auto(int count, walk_options *w, err *e) {
    int slurm = number_of("SLURM_ARRAY_TASK_ID", -1), kubernetes = number_of("JOB_COMPLETION_INDEX", -1);
    if (slurm >= 0) return read_slurm(slurm, count, w, e);
    if (kubernetes >= 0) return read_kubernetes(kubernetes, count, w, e);
    return err_input(e, "--shard auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set, so that this is no "
                        "task of an array; "
                        "give --shard I/N, such as 1/4");
}

bool shard_read(const char *text, walk_options *w, err *e) {
    char rest;
    int count;
    if (strcmp(text, "auto") == 0) return read_auto(0, w, e);
    if (sscanf(text, "auto/%d%c", &count, &rest) == 1 && count >= 1 && count <= SHARDS_MOST)
        return read_auto(count, w, e);
    if (sscanf(text, "%d/%d%c", &w->shard, &w->shards, &rest) == 2 && is_within(w)) return true;
    return err_input(e, "--shard %.40s: must be such as 1/4, the first of four, auto, or auto/4", text);
}
