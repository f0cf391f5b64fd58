// The program from outside where memory is planned and where it computes on a card: what it chooses and why, and every
// trouble that a card can have, which a plug-in of the test shows (fake_card.c). Limits are in test_cli_limit.c.
#include "base/json.h"
#include "cli/on_card.h"
#include "cli/program.h"
#include "run/safetensors.h"
#include "support.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// Plans

// The choice and why, the memory, the picture, the bounds, the alternatives.
static void plan_says_what_and_why(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("plan", "run.yaml", "--device=cpu", "train.batch_size=2048", SPLIT_OPEN), 0);
    matches("out", "\nchosen\n  data +[^\n]*\n  split +1 x 2048 rows: [^\n]*\n  recompute +none of 2 layers: [^\n]*\n  "
                   "time +1\\.00 times");
    matches("out", "\nmemory, MB\n  base +[0-9.]+\n  weights +[0-9.]+\n  gradients ");
    matches("out", "\n= slab +[0-9.]+\n[^=]*= total +[0-9.]+\n  limit +none\n");
    matches("out", "(\n +[0-9.]+ [AGRS.]+){16}\n +MB f+b+e?\n +\\^ the most alive\n");
    matches("out", "\nlargest +[0-9,]+ rows in one micro-batch, nothing recomputed; [0-9,]+ with ");
    matches("out", "\nsmallest +a limit of [0-9.]+ GB works: ");
    matches("out", "\n +2048 +1 +0  device +[0-9.]+ +1\\.00  chosen\n");
    assert_int_equal(
        RUN("plan", "run.yaml", "--device=cpu", HOST_LIMIT "0.035", SPLIT_OPEN, "train.batch_size=2048", "--json"), 0);
    json_t *v = last_line(), *c = json_object_get(v, "choice"), *picture = json_object_get(v, "picture");
    double parts = json_number_value(json_object_get(c, "accumulation"));
    assert_true(parts > 1 && parts * json_number_value(json_object_get(c, "micro_batch")) == 2048);
    assert_true(json_is_true(json_object_get(v, "fits")));
    assert_true(json_number_value(json_object_get(json_object_get(v, "memory"), "total")) <= 0.035 * 0x1p30);
    assert_int_equal(json_array_size(json_object_get(picture, "rows")), 16);
    assert_true(json_array_size(json_object_get(v, "alternatives")) > 1);
    assert_int_equal(json_array_size(json_object_get(v, "why")), 4);
    // The base of this process is part of it, and a sanitizer's memory is in that.
    assert_true(json_number_value(json_object_get(v, "smallest_limit_gb")) <= (support_sanitized() ? 0.05 : 0.035));
    assert_true(json_number_value(json_object_get(v, "largest_batch")) > 0);
    json_decref(v);
}

// A card that is not here, and no plug-in: the CPU's kernels stand in, and that is said.
static void plan_takes_a_card_that_is_not_here(void **state) {
    (void)state;
    enter(NULL);
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory", "8GB", "--arch", "sm_86"), 0);
    matches("out", "^device +a card of 8\\.00 GB, sm_86, that is not here \\(an estimate[^\n]*\\)\n");
    matches("out", " parameters, bf16\n");
    matches("out", "\n  base +550\\.0\n");
    assert_int_equal(
        RUN("plan", "run.yaml", "--device-memory=700MB", "--arch=sm_75", SPLIT_OPEN, "train.batch_size=65536"), 0);
    matches("out", " parameters, fp16 ");
    assert_false(file_holds("out", "does not fit:"));
    complains(RUN("plan", "run.yaml", "--device-memory", "8"), "--device-memory 8: must be a size [^\n]*");
    complains(RUN("plan", "run.yaml", "--device-memory", "-8GB"), "--device-memory -8GB: must be a size [^\n]*");
    complains(
        RUN("plan", "run.yaml", "--device-memory", "8GB", "--arch", "86"), "--arch 86: must be sm_75 or newer[^\n]*");
    complains(RUN("plan", "run.yaml", "--arch", "sm_86"), "--arch is of a card that is not here; [^\n]*");
    complains(RUN("train", "run.yaml", "--device-memory", "8GB"), "--device-memory: not an option of train; [^\n]*");
}

// Where the plug-in has no machine code for a card, its PTX decides what is planned.
static void plan_takes_what_the_build_has(void **state) {
    (void)state;
    static const struct {
        const char *built, *arch, *device, *precision;
    } cases[] = {
        {"90a-real:75-virtual", "sm_86", "sm_86, kernels from compute_75 PTX, that is not here", "fp16"},
        {"90a-real:75-virtual", "sm_90", "sm_90, that is not here", "bf16"},
        {"90a-real:75-virtual", NULL, "sm_90, that is not here", "bf16"},
        {"86-real:75-virtual", "sm_86", "sm_86, that is not here", "bf16"},
        {"86-real:75-virtual", "sm_89", "sm_89, that is not here", "bf16"},
        {"86-real:75-virtual", "sm_80", "sm_80, kernels from compute_75 PTX, that is not here", "fp16"},
        {"75-real:90-virtual", "sm_120", "sm_120, kernels from compute_90 PTX, that is not here", "bf16"},
        {"75-real:90-virtual", "sm_75", "sm_75, that is not here", "fp16"},
    };
    enter(FAKE_CARD_THIS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char device[128], precision[32];
        setenv("FAKE_BUILT", cases[i].built, 1);
        const char *option = cases[i].arch ? "--arch" : "--seed", *arch = cases[i].arch ? cases[i].arch : "1";
        assert_int_equal(RUN("plan", "run.yaml", "--device-memory", "8GB", option, arch), 0);
        snprintf(device, sizeof device, "^device +a card of 8\\.00 GB, %s ", cases[i].device);
        matches("out", device);
        snprintf(precision, sizeof precision, " parameters, %s", cases[i].precision);
        matches("out", precision);
    }
    setenv("FAKE_BUILT", "86-real", 1);
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory", "8GB", "--arch", "sm_90"), 1);
    matches("err", "^tradewind: the plug-in has no kernels for sm_90; it was built for sm_86 [^\n]*\n$");
}

// A card by its number: what runs there is that card, its memory is the limit's, and a number that is not there is an
// error that names the cards.
static void a_card_is_named_by_its_number(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARDS", "3", 1);
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", "--device", "cuda:1"), 0);
    matches("out", "^device +cuda, a second one, sm_86, [0-9.]+ of 8\\.0 GB free");
    matches("made/plan.yaml", "^device: cuda, a second one, sm_86\n");
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", "run.device=cuda:1"), 0);
    matches("out", "^device +cuda, a second one, ");
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", "run.device=cuda:1", "--device=cuda:0"), 0);
    matches("out", "^device +cuda, a card of the test, ");
    complains(RUN("train", "run.yaml", "--device=cuda:1", LIMIT "9"), "[^\n]*the card has 8\\.00 GB; [^\n]*");
    complains(RUN("train", "run.yaml", "--device", "cuda:3"),
        "there is no card cuda:3; use one of cuda:0 \\(a card of the test\\), cuda:1 \\(a second one\\), "
        "cuda:2 \\(an old one\\)");
    complains(RUN("train", "run.yaml", "run.device=cuda:7"), "there is no card cuda:7; use one of cuda:0 [^\n]*");
    setenv("FAKE_CARDS", "1", 1);
    complains(RUN("doctor", "--device", "cuda:1"), "there is no card cuda:1; use cuda:0 \\(a card of the test\\)");
    complains(RUN("doctor", "--device", "cuda:x"), "--device cuda:x: unknown device; use cuda, cuda:N, cpu or auto");
    setenv("FAKE_CARD", "blind", 1);
    assert_int_equal(RUN("doctor", "--device", "cuda:1"), 1);
    matches("err", "^tradewind: no NVIDIA driver was found\n$");
}

// The plug-in's architectures, the driver that it needs, and the cards, each with the kernels that it gets, also where
// none can be opened: the CPU's rates are measured here, as the stand-in's take minutes.
static void doctor_names_cards(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "debug", 1);
    setenv("FAKE_CARDS", "3", 1);
    setenv("FAKE_BUILT", "90a-real:75-virtual", 1);
    setenv("CUDA_CACHE_PATH", "kept/here", 1);
    unsetenv("CUDA_CACHE_DISABLE");
    assert_int_equal(RUN("doctor"), 0);
    matches("out", "\ncard +the card was not asked for debug\n"
                   "plug-in +built for sm_90a, and for others from PTX of compute_75; needs a driver that serves CUDA "
                   "13\\.0\ncards +cuda:0 a card of the test, 16\\.0 GB\n +cuda:1 a second one, sm_86, 8\\.0 GB: "
                   "kernels from compute_75 PTX; [^\n]*\n +cuda:2 an old one, sm_61, 8\\.0 GB: too old; sm_75 [^\n]*\n"
                   "PTX +the driver keeps what it compiles in kept/here\n$");
    setenv("CUDA_CACHE_PATH", "run.yaml/here", 1);
    assert_int_equal(RUN("doctor", "--json"), 0);
    json_t *v = last_line(), *all = json_object_get(v, "cards");
    assert_int_equal(json_array_size(all), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(all, 1), "arch")), 86);
    assert_string_equal(json_string_value(json_object_get(v, "needs_cuda")), "13.0");
    assert_string_equal(json_string_value(json_object_get(v, "ptx")),
        "compiled at every start, as run.yaml/here cannot be written; name a folder in CUDA_CACHE_PATH");
    json_decref(v);
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    assert_int_equal(RUN("doctor"), 0);
    matches("out", "\nPTX +compiled at every start, as CUDA_CACHE_DISABLE is set\n$");
    unsetenv("CUDA_CACHE_DISABLE");
    unsetenv("CUDA_CACHE_PATH");
    setenv("FAKE_BUILT", "86-real", 1);
    assert_int_equal(RUN("doctor"), 0);
    assert_false(file_holds("out", "\nPTX"));
    setenv("FAKE_BUILT", "90a-real:75-virtual", 1);
    setenv("FAKE_CARD", "blind", 1);
    assert_int_equal(RUN("doctor"), 0);
    matches("out", "\ncard +no NVIDIA driver was found\nplug-in +built for sm_90a, [^\n]*\n$");
}

// Memory that fp16 reserves for the precision that it would give way to: a figure and a line of its own, unless it is
// declined.
static void fallback_of_fp16_is_shown_and_declined(void **state) {
    static const char fp16[] = "gpu_optimization.use_mixed_precision=fp16",
                      declined[] = "gpu_optimization.fp16_fallback=false";
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_BUILT", "75-real:80-real", 1);
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory=8GB", "--arch=sm_75", fp16, "--json"), 0);
    json_t *with = last_line(), *m = json_object_get(with, "memory");
    double more = json_number_value(json_object_get(m, "fallback"));
    assert_string_equal(json_string_value(json_object_get(with, "fallback")), "fp32");
    assert_true(more > 0);
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory=8GB", "--arch=sm_75", fp16, declined, "--json"), 0);
    json_t *without = last_line();
    assert_true(json_is_null(json_object_get(without, "fallback")));
    assert_null(json_object_get(json_object_get(without, "memory"), "fallback"));
    assert_true(json_number_value(json_object_get(with, "slab_bytes")) - more ==
                json_number_value(json_object_get(without, "slab_bytes")));
    json_decref(with);
    json_decref(without);
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory=8GB", "--arch=sm_75", fp16), 0);
    matches("out", "\n  fallback  fp32 should fp16 overflow, which takes [0-9.]+ MB more ");
    matches("out", "\n  more for fp16's fallback +[0-9.]*[1-9]\n");
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory=8GB", "--arch=sm_75", fp16, declined), 0);
    matches("out", "\n  fallback  none: gpu_optimization.fp16_fallback says so\n");
    assert_false(file_holds("out", "more for fp16's fallback"));
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory=8GB", declined), 0);
    matches("out", "gpu_optimization\\.fp16_fallback: is of fp16, ");
    // In bf16 it takes no more, which is shown too.
    assert_int_equal(RUN("plan", "run.yaml", "--device-memory=8GB", "--arch=sm_80", fp16), 0);
    matches("out", "\n  more for fp16's fallback +0\\.0\n");
}

// The wrong values of what the planner chooses by.
static void choices_are_checked(void **state) {
    (void)state;
    static const char *const wrong[] = {"gradient_accumulation_steps=0", "gradient_accumulation_steps=some",
        "dynamic_batch_sizing=perhaps", "recompute=-1", "recompute=all", "recompute=7", "max_host_memory_gb=0",
        "max_host_memory_gb=-2", "max_host_memory_gb=much", "max_host_memory_gb=999999"};
    put_small_run();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char word[100];
        snprintf(word, sizeof word, "gpu_optimization.%s", wrong[i]);
        complains(RUN("train", "run.yaml", "--device=cpu", word), "gpu_optimization\\.[^\n]*");
    }
}

// A run keeps its split where it goes on, whatever the limit; the rest of the plan may change.
static void a_split_goes_on(void **state) {
    (void)state;
#define SPLIT "run.yaml", "--device=cpu", SPLIT_OPEN, "train.batch_size=1024"
    put_small_run();
    assert_int_equal(RUN("train", SPLIT, HOST_LIMIT "0.035", "train.epochs=1"), 0);
    char *plan = slurp("made/plan.yaml");
    assert_null(strstr(plan, "accumulation: 1\n"));
    assert_int_equal(RUN("plan", SPLIT), 0);
    matches("out", "\n  split +1 x 1024 rows: the whole batch fits\n");
    assert_int_equal(RUN("plan", SPLIT, "--resume"), 0);
    matches("out", "\n  split +([2-9]|[1-9][0-9]+) x [0-9]+ rows: the run that goes on has it\n");
    complains(RUN("plan", SPLIT, "--resume", "run.dir=none"), "none: there is no run to resume; leave --resume out");
    assert_int_equal(RUN("train", SPLIT, "train.epochs=2", "gpu_optimization.recompute=1", "--resume"), 0);
    char *now = slurp("made/plan.yaml"), *was = strstr(plan, "micro_batch"), *again = strstr(plan, "again");
    assert_true(was && again && strncmp(was, strstr(now, "micro_batch"), (size_t)(again - was)) == 0);
    matches("made/plan.yaml", "\nagain: 1\nresidency: device\n");
    matches("out", "planned: again is 1, was 0");
    assert_int_equal(RUN("train", SPLIT, "train.epochs=3", HOST_LIMIT "0.001", "--resume"), 1);
    matches(
        "err", "^tradewind: the plan needs [0-9.]+ MB, [^\n]* set gpu_optimization\\.max_host_memory_gb to [^\n]*\n$");
    assert_int_equal(RUN("train", SPLIT, "train.epochs=1"), 0);
    matches("made/plan.yaml", "\naccumulation: 1\n");
    free(plan);
    free(now);
}

// Cards

// --device cuda ends with status 1 and one line.
static void refuses(const char *pattern) {
    char whole[256];
    snprintf(whole, sizeof whole, "^tradewind: [^\n]*%s[^\n]*\n$", pattern);
    assert_int_equal(RUN("train", "run.yaml", "--device", "cuda"), 1);
    matches("err", whole);
    assert_int_equal(access("made/best.safetensors", F_OK), -1);
    assert_int_equal(RUN("doctor", "--device", "cuda"), 1);
    matches("err", whole);
}

// --device auto trains on the CPU and says why.
static void stands_in(const char *pattern) {
    char line[256];
    snprintf(line, sizeof line, "\n +no card: [^\n]*%s[^\n]*\n", pattern);
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1"), 0);
    matches("out", "^device +cpu");
    matches("out", line);
    is_empty("err");
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", "--json"), 0);
    matches("out", "\"device\":\"cpu\",\"no_card\":\"");
    matches("out", pattern);
    assert_int_equal(RUN("doctor"), 0);
    matches("out", "\ndevice +cpu");
}

static void no_plugin_is_told(void **state) {
    (void)state;
    enter(NULL);
    refuses("tradewind-cuda\\.so is not beside the program");
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1"), 0);
    matches("out", "^device +cpu");
}

static void a_plugin_of_another_build_is_told(void **state) {
    (void)state;
    enter(FAKE_CARD_OTHER);
    refuses("tradewind-cuda\\.so is of another build");
    stands_in("is of another build");
}

// As libraries of a card's maker do where they get no memory.
static void a_plugin_that_crashes_is_told(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "crashes", 1);
    assert_int_equal(RUN("train", "run.yaml"), 1);
    matches("err", "^tradewind: a plug-in's library crashed as it was loaded; is memory short\\?\n$");
    is_empty("out");
}

static void a_plugin_that_is_none_is_told(void **state) {
    (void)state;
    put_small_run();
    enter("run.yaml");
    refuses("tradewind-cuda\\.so cannot be loaded");
    stands_in("cannot be loaded");
}

static void no_driver_is_told(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "blind", 1);
    refuses("no NVIDIA driver");
    stands_in("no NVIDIA driver");
}

// TRADEWIND_CUDA reaches the queue of the card; a word that is none is the user's mistake.
static void switches_reach_the_card(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "debug", 1);
    refuses("not asked for debug");
    setenv("TRADEWIND_CUDA", "early=0,debug", 1);
    assert_int_equal(RUN("train", "run.yaml", "--device=cuda", "train.epochs=1"), 0);
    setenv("TRADEWIND_CUDA", "early=0,fast", 1);
    complains(RUN("train", "run.yaml", "--device=cuda"), "TRADEWIND_CUDA: unknown word \"fast\"; use [^\n]*");
    unsetenv("TRADEWIND_CUDA");
}

// Others hold the card: the CPU stands in where the choice is open. A plan that is larger than the card is refused.
static void a_full_card_is_told(void **state) {
    (void)state;
    static const char pattern[] = "^tradewind: the plan needs [0-9.]+ MB and cuda has 0\\.0 MB available; [^\n]*\n$";
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "full", 1);
    assert_int_equal(RUN("train", "run.yaml", "--device=cuda"), 1);
    matches("err", pattern);
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1"), 0);
    matches("out", "^device +cpu[^\n]*\n +no card: the plan needs ");
    // The CPU has no fp16: what is in the way is the card.
    assert_int_equal(RUN("train", "run.yaml", "gpu_optimization.use_mixed_precision=fp16"), 1);
    matches("err", pattern);
    setenv("FAKE_CARD", "small", 1);
    assert_int_equal(RUN("train", "run.yaml"), 1);
    matches("err", pattern);
}

// Data that a card has no room for stay on the host, unless told otherwise; small ones go to the card.
static void a_tight_card_leaves_data_on_the_host(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "tight", 1);
    assert_int_equal(RUN("plan", "run.yaml"), 0);
    matches("out", "^device +cuda, a card of the test, [0-9.]+ of 16.0 GB free(; products by the test)?\n");
    assert_false(file_holds("out", "loader"));
    assert_int_equal(RUN("train", "run.yaml", "data.synthetic.bars=30000", "train.epochs=1"), 0);
    matches("out", "^device +cuda, a card of the test, [0-9.]+ of 16.0 GB free(; products by the test)?\n");
    matches("out", "\nloader +[0-9]+ threads? on the host, 4 batches ahead, [0-9.]+ MB pinned\n");
    matches("out", "\nothers    hold [0-9.]+ of the card's 1099511\\.6 MB, so that the slab may have 8\\.4 MB\n");
    matches("made/training_log.txt", " others hold [0-9.]+ of the card's 1099511\\.6 MB, so that ");
    assert_int_equal(
        RUN("train", "run.yaml", "data.synthetic.bars=30000", "data.residency=device", "--device=cuda"), 1);
    matches("err", "^tradewind: the plan needs [^\n]*\n$");
}

static void a_wrong_limit_is_told(void **state) {
    (void)state;
    static const char *const wrong[] = {LIMIT "0", LIMIT "-3", LIMIT "much", LIMIT "2000", LIMIT, HOST_LIMIT "0",
        HOST_LIMIT "-1", HOST_LIMIT "all", HOST_LIMIT "1000000", "gpu_optimization.memory_fraction=x",
        "gpu_optimization.memory_fraction=0", "gpu_optimization.memory_fraction=1.5",
        "gpu_optimization.memory_fraction=80"};
    enter(FAKE_CARD_THIS);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(RUN("train", "run.yaml", wrong[i]), 2);
        matches("err", "^tradewind: [^\n]*gpu_optimization\\.m[^\n]*\n$");
    }
    assert_int_equal(RUN("train", "run.yaml", LIMIT "2000"), 2);
    matches("err", "the card has 1024\\.00 GB");
    // A little more than the card has is all of it.
    complains(RUN("train", "run.yaml", LIMIT "1056"), "[^\n]*the card has 1024\\.00 GB; [^\n]*");
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", LIMIT "1054"), 0);
    matches("out", "\nnote +gpu_optimization\\.max_memory_gb: 1054\\.00 GB is more than the card has; all of its "
                   "1024\\.00 GB are the limit\n");
    matches("out", "\nlimit +1099511\\.6 MB \\(1024\\.00 GB\\)");
    matches(
        "made/training_log.txt", " note gpu_optimization\\.max_memory_gb: 1054\\.00 GB is more than the card has; ");
    assert_int_equal(RUN("plan", "run.yaml", LIMIT "1024"), 0);
    assert_false(file_holds("out", "more than the card has"));
    assert_int_equal(RUN("train", "run.yaml", HOST_LIMIT "1000000"), 2);
    matches("err", "gpu_optimization\\.max_host_memory_gb[^\n]* the machine has [0-9.]+ GB; ");
    assert_int_equal(RUN("train", "run.yaml", LIMIT "1", "gpu_optimization.memory_fraction=0.5"), 2);
    matches("err", "leave one of them out");
}

static void a_card_counts_its_memory(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", "-v"), 0);
    matches(
        "out", "\ncard +base 2\\.0 MB and slab [0-9.]+ MB are [0-9.]+ MB, by which the card's use grew to 7\\.0 MB");
    matches("out", "\nstart +first step done after [0-9.]+ s: ");
    matches("out", "\nhost +[0-9.]+ MB at most\n");
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", "--json"), 0);
    matches("out", "\"base_bytes\":2000000,\"monitor_bytes\":[0-9]+,\"monitor_counts\":\"card\"");
}

static int times_in(const char *path, const char *text) {
    char *all = slurp(path);
    int n = 0;
    for (const char *at = all; (at = strstr(at, text)); at++) n++;
    free(all);
    return n;
}

// Others take the card while a run goes on: told once, on the terminal, in the log and in run.db; and what the monitor
// saw is summed up.
static void a_filling_card_is_told(void **state) {
    (void)state;
#define FULL "memory: 98 % of the card's 1000\\.0 MB are in use; this process holds 80\\.0 MB, 2 others 900\\.0 MB\n"
#define SEEN                                                                                                           \
    "[0-9]+ samples; memory at most 80\\.0 MB by this process, 980\\.0 of 1000\\.0 MB by all; "                        \
    "utilisation [0-9]+ %, at most 90 %; at most 61 C; 250 W, at most 250 W\n"
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "filling", 1);
    assert_int_equal(RUN("train", "run.yaml", "gpu_optimization.monitoring_interval=0.02",
                         "on_event.command=cat >>told", "on_event.events=[memory]"),
        0);
    matches(
        "told", "^\\{\"event\":\"memory\",[^{}]*\"text\":\"memory: 98 % of the card's [^{}]*\"step\":[0-9]+\\}\n*$");
    matches("out", "\nwarning   " FULL);
    matches("out", "\nmonitor   " SEEN);
    assert_int_equal(times_in("out", "warning "), 1);
    matches("made/training_log.txt", " warning: " FULL);
    matches("made/training_log.txt", " monitor: " SEEN);
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "\nmonitor   " SEEN);
    assert_int_equal(RUN("inspect", "made", "--json"), 0);
    matches(
        "out", "\"monitor\":\\{\"samples\":[0-9]+,\"process_peak_bytes\":80000000,\"others_peak_bytes\":900000000,");
    assert_int_equal(RUN("train", "run.yaml", "--json"), 0);
    matches("out", "(^|\n)\\{\"warning\":\"memory: 98 %[^\n]*\\}\n");
    matches("out", "\"temperature_peak\":61\\.0,\"power_mean\":250\\.0,\"power_peak\":250\\.0\\}\\}\n$");
    setenv("FAKE_CARD", "", 1);
    assert_int_equal(RUN("train", "run.yaml", LIMIT "0.08"), 0);
    matches("out", "\nwarning   memory: 93 % of the limit of 85\\.9 MB are in use; this process holds 80\\.0 MB, ");
    assert_int_equal(times_in("out", "warning "), 1);
    assert_int_equal(RUN("train", "run.yaml", "gpu_optimization.memory_monitoring=false"), 0);
    assert_int_equal(times_in("out", "\nmonitor "), 0);
    assert_int_equal(RUN("inspect", "made", "--json"), 0);
    matches("out", "\"monitor\":null,");
    // Epochs that are shorter than the interval tell of the newest sample.
    assert_int_equal(RUN("train", "run.yaml", "gpu_optimization.monitoring_interval=60", "train.epochs=3"), 0);
    matches("made/training_log.txt", "epoch +3 [^\n]*  memory 80 MB  utilisation [0-9]+ %\n");
    setenv("FAKE_CARD", "unseen", 1);
    assert_int_equal(RUN("train", "run.yaml"), 0);
    assert_int_equal(RUN("inspect", "made"), 0);
    assert_int_equal(times_in("out", "\nmonitor "), 0);
}

// On the CPU the system shows what this process and others take. A run that goes on may watch otherwise.
static void the_cpu_is_watched(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu"), 0);
    matches(
        "out", "\nmonitor   [0-9]+ samples; memory at most [0-9.]+ MB by this process, [0-9.]+ of [0-9.]+ MB by all");
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "\nmonitor   [0-9]+ samples; memory at most ");
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "--resume", "train.epochs=3",
                         "gpu_optimization.memory_monitoring=false"),
        0);
    complains(RUN("train", "run.yaml", "gpu_optimization.monitoring_interval=0"), ".*monitoring_interval=0: .*from .*");
}

// All tensors of two checkpoints but the times.
static void same_state(const char *a, const char *b) {
    err e = {0};
    safetensors *x = safetensors_open(a, &e), *y = safetensors_open(b, &e);
    support_ok(x && y, &e);
    assert_int_equal(safetensors_count(x), safetensors_count(y));
    for (int i = 0; i < safetensors_count(x); i++) {
        const safetensors_entry *s = safetensors_at(x, i), *t = safetensors_find(y, s->name);
        if (strcmp(s->name, "trainer.values") == 0) continue;
        if (!t || s->bytes != t->bytes || memcmp(s->data, t->data, s->bytes) != 0) fail_msg("%s differs", s->name);
    }
    safetensors_close(x);
    safetensors_close(y);
}

// A card plays several steps at once; only whole ones are saved, and any of them will do.
static void a_card_goes_on_exactly(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
#define SAVED "run.yaml", "train.checkpoint_minutes=1e-9", "train.keep_checkpoints=0", "train.batch_size=4"
    assert_int_equal(RUN("train", SAVED, "run.dir=whole"), 0);
    matches("out", "^device +cuda, a card of the test, [0-9.]+ of 16.0 GB free(; products by the test)?\n");
    assert_int_equal(RUN("train", SAVED, "run.dir=made"), 0);
    same_state("whole/last.safetensors", "made/last.safetensors");
    int gone = system("cd made && rm last.safetensors best.safetensors && ls checkpoint_step_* | sort -t_ -k3n | "
                      "tail -n +4 | xargs rm");
    assert_int_equal(gone, 0);
    assert_int_equal(RUN("train", SAVED, "run.dir=made", "--resume"), 0);
    matches("out", "^resume +from made/checkpoint_step_[0-9]+\\.safetensors: step [0-9]+, in epoch 1 after ");
    same_state("whole/last.safetensors", "made/last.safetensors");
    same_bytes("whole/best.safetensors", "made/best.safetensors");
}

// A driver that was updated is told, and the run goes on.
static void a_newer_driver_goes_on(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_DRIVER", "550.1", 1);
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1"), 0);
    matches("made/plan.yaml", "^device: cuda, a card of the test, driver 550\\.1\n");
    setenv("FAKE_DRIVER", "560.9", 1);
    assert_int_equal(RUN("train", "run.yaml", "--resume"), 0);
    matches("out", "^resume +changed: train.epochs is 2, was 1\nresume +planned: device has driver 560\\.9, had driver "
                   "550\\.1\n");
    matches("made/plan.yaml", "^device: cuda, a card of the test, driver 560\\.9\n");
}

// Weights to start from are tried out before the first member begins: what the card has opened by then is no part of
// the plan.
static void members_begin_from_weights(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=1", "run.dir=first"), 0);
    assert_int_equal(
        RUN("train", "run.yaml", "train.epochs=1", "train.ensemble=2", "train.init_from=first/best.safetensors"), 0);
    matches("out", "\nensemble +made: 2 members");
    matches("made/member_2/plan.yaml", "^device: cuda, a card of the test\n");
}

static int number_in_db(const char *path, const char *query) {
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &st, NULL), SQLITE_OK);
    int n = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

// fp16 gives way to fp32: on the terminal, in the log, in run.db; and a run that goes on behind that, and who uses it,
// computes in fp32 from the start.
static void an_overflow_is_told(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "overflows", 1);
#define HALF SAVED, "gpu_optimization.use_mixed_precision=fp16", "train.epochs=3"
#define CHANGE                                                                                                         \
    "step [0-9]+, epoch [12]: fp16 overflowed in the last [0-9]+ steps, which changed nothing; going on in fp32\n"
    assert_int_equal(RUN("train", HALF, "run.dir=whole"), 0);
    matches("out", "\nmodel [^\n]*, fp16 \\(fp32 should that overflow\\)\n");
    matches("out", "\nprecision " CHANGE);
    matches("out", "\nepoch +3 [^\n]* steps? skipped \\(not finite\\)\n");
    matches("whole/training_log.txt", CHANGE);
    assert_int_equal(RUN("inspect", "whole"), 0);
    matches("out", "\nskipped +[0-9]+ steps, whose gradient was not finite\nprecision " CHANGE);
    assert_int_equal(RUN("inspect", "whole", "--json"), 0);
    matches("out", "\"precision_changed\":\"step ");
    assert_int_equal(RUN("evaluate", "whole", "--device", "cuda"), 0);
    assert_int_equal(RUN("train", HALF, "run.dir=made", "--json"), 0);
    matches("out", "\"precision\":\"fp32\",\"instead_of\":\"fp16\",\"step\":");
    same_state("whole/last.safetensors", "made/last.safetensors");
    assert_int_equal(system("cd made && rm last.safetensors"), 0);
    assert_int_equal(system("cd made && ls checkpoint_step_* | sort -t_ -k3n | tail -n 1 | xargs rm"), 0);
    assert_int_equal(RUN("train", HALF, "run.dir=made", "--resume"), 0);
    matches("out", "\nresume +in fp32, to which fp16 gave way\n");
    same_state("whole/last.safetensors", "made/last.safetensors");
    same_bytes("whole/best.safetensors", "made/best.safetensors");
    // From the step of the change itself, before it: the change comes again and is kept once.
    int left = system("cd whole && n=$(sed -n 's/.* step \\([0-9]*\\), epoch.*overflowed.*/\\1/p' training_log.txt) && "
                      "test -f checkpoint_step_$n.safetensors && mv checkpoint_step_$n.safetensors kept && "
                      "rm last.safetensors checkpoint_* && mv kept checkpoint_step_$n.safetensors");
    assert_int_equal(left, 0);
    assert_int_equal(RUN("train", HALF, "run.dir=whole", "--resume"), 0);
    matches("out", "\nprecision " CHANGE);
    assert_int_equal(number_in_db("whole/run.db", "SELECT count(*) FROM events WHERE kind = 'precision'"), 1);
    same_state("whole/last.safetensors", "made/last.safetensors");
    // The limit is for both precisions: it is looked at again when the other one's steps are recorded, here and where
    // the run goes on behind that.
    setenv("FAKE_CARD", "swelling", 1);
    assert_int_equal(RUN("train", HALF, "run.dir=over", LIMIT "0.5"), 1);
    matches("over/training_log.txt", CHANGE);
    matches(
        "err", "^tradewind: recorded, the steps take a base of 1073\\.7 MB [^\n]*_gb to 1\\.[0-9]+ or more; [^\n]*\n$");
    assert_int_equal(RUN("train", HALF, "run.dir=made", "--resume", "train.epochs=4", LIMIT "0.5"), 1);
    matches("err", "^tradewind: recorded, the steps take a base of 1073\\.7 MB [^\n]*\n$");
}

// A run that a later version has written to is left alone.
static void a_newer_run_is_refused(void **state) {
    (void)state;
#define NEWER "made/run\\.db: was written by a newer tradewind \\(format 9, this program reads up to 2\\); update"
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    number_in_db("made/run.db", "PRAGMA user_version = 9");
    complains(RUN("train", "run.yaml", "--resume", "train.epochs=3"), NEWER);
    complains(RUN("inspect", "made"), NEWER);
    assert_int_equal(number_in_db("made/run.db", "PRAGMA user_version"), 9);
}

// The best weights so far stay, whole, and the line says so.
static void a_lost_card_is_told(void **state) {
    (void)state;
    err e = {0};
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "lost", 1);
    assert_int_equal(RUN("train", "run.yaml"), 1);
    matches("err", "^tradewind: the card was lost [^\n]*; made/best\\.safetensors holds epoch 1\n$");
    matches("made/training_log.txt", "ended: the card was lost");
    safetensors *f = safetensors_open("made/best.safetensors", &e);
    support_ok(f != NULL, &e);
    safetensors_close(f);
    setenv("FAKE_CARD", "lost early", 1);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=early"), 1);
    matches("err", "^tradewind: the card was lost [^\n]*; no weights were saved yet\n$");
    assert_int_equal(access("early/best.safetensors", F_OK), -1);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name)      cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
#define CARD_TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, leave_copy)
    const struct CMUnitTest tests[] = {
        TEST(plan_says_what_and_why),
        CARD_TEST(plan_takes_a_card_that_is_not_here),
        CARD_TEST(plan_takes_what_the_build_has),
        CARD_TEST(a_card_is_named_by_its_number),
        CARD_TEST(doctor_names_cards),
        CARD_TEST(fallback_of_fp16_is_shown_and_declined),
        TEST(choices_are_checked),
        TEST(a_split_goes_on),
        CARD_TEST(no_plugin_is_told),
        CARD_TEST(a_plugin_of_another_build_is_told),
        CARD_TEST(a_plugin_that_is_none_is_told),
        CARD_TEST(a_plugin_that_crashes_is_told),
        CARD_TEST(no_driver_is_told),
        CARD_TEST(switches_reach_the_card),
        CARD_TEST(a_full_card_is_told),
        CARD_TEST(a_tight_card_leaves_data_on_the_host),
        CARD_TEST(a_wrong_limit_is_told),
        CARD_TEST(a_card_counts_its_memory),
        CARD_TEST(a_filling_card_is_told),
        TEST(the_cpu_is_watched),
        CARD_TEST(a_card_goes_on_exactly),
        CARD_TEST(a_newer_driver_goes_on),
        CARD_TEST(members_begin_from_weights),
        CARD_TEST(an_overflow_is_told),
        TEST(a_newer_run_is_refused),
        CARD_TEST(a_lost_card_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
