// Tuned choices, from the command line: `batch_size: auto` takes the winner, a batch that is given its own way,
// nothing that the description fixes is changed; what is not for this build or machine is refused with a line; and a
// run that has begun never asks again.
#include "base/pool.h"
#include "cli/program.h"
#include "cpu/cpu.h"
#include "run/outline.h"
#include "support.h"
#include "train/wisdom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB    "data.windows.fast=8 data.windows.slow=4 model.kind=mlp model.widths=16 "
#define ON_CPU "run.yaml", "--device=cpu", "--threads=1"
#define AUTO   "train.batch_size=auto"
#define OPEN   "gpu_optimization.dynamic_batch_sizing=true"

static const char description[] = "data: {synthetic: {bars: 2000}, windows: {fast: 8, slow: 4}}\n"
                                  "model: {kind: mlp, widths: 16}\n"
                                  "train: {epochs: 2}\n"
                                  "run: {dir: made}\n";

static int enter(void **state) {
    int rc = support_enter(state);
    setenv("TRADEWIND_WISDOM", "wisdom", 1);
    program_use(TRADEWIND_BINARY);
    put_text("run.yaml", description);
    return rc;
}

// As the program names itself.
static const char *version(char *text, size_t room) {
    assert_int_equal(RUN("--version"), 0);
    char *all = slurp("out");
    assert_int_equal(sscanf(all, "tradewind %31s", text), 1);
    assert_true(strlen(text) < room);
    free(all);
    return text;
}

// As fake_card.c has it.
static const device_identity card = {.name = "cuda", .card = "a card of the test"};

// Keeps what tune would keep for the description with further keys, on the CPU or a named device.
static void keep_for(
    const char *more, const char *of, const device_identity *device, const wisdom_entry *list, int count) {
    char keys[256], *rest = NULL;
    device_identity cpu;
    wisdom_key k;
    err e = {0};
    rig r;
    // Further keys may be ones that the CPU cannot follow.
    rig_open(&r, &cpu_device, 1, JOB);
    snprintf(keys, sizeof keys, "%s", more);
    for (char *word = strtok_r(keys, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        support_ok(config_override(r.config, word, &e), &e);
    support_ok(config_check(r.config, &e) && settings_read(r.config, &r.described, &e), &e);
    r.device->identify(r.queue, &cpu);
    wisdom_key_make(&k, &(wisdom_about){.version = of,
                            .device = device ? device : &cpu,
                            .card = device != NULL,
                            .described = &r.described,
                            .model = &r.model,
                            .data = r.data,
                            .split = &r.split,
                            .window = r.window});
    support_ok(wisdom_keep(&k, list, count, count - 1, &e), &e);
    rig_close(&r);
}

// 256 in two parts is the winner; 64 is known too.
static void keep_as(const char *of) {
    static const wisdom_entry list[] = {{.batch = 64, .micro = 64, .parts = 1, .samples_per_s = 3000},
        {.batch = 256, .micro = 128, .parts = 2, .samples_per_s = 1.214e6, .noise_scale = 100}};
    keep_for("", of, NULL, list, 2);
}

static void keep(void) {
    char text[32];
    keep_as(version(text, sizeof text));
}

static void plan_has(const char *path, const char *value) {
    char *text = slurp("made/plan.yaml"), *is = outline_value(text, path);
    if (!value && is) fail_msg("%s is %s", path, is);
    if (value && (!is || strcmp(is, value) != 0)) fail_msg("%s is %s, not %s", path, is ? is : "nothing", value);
    free(is);
    free(text);
}

static void auto_takes_the_winner(void **state) {
    (void)state;
    keep();
    assert_int_equal(RUN("train", ON_CPU, AUTO), 0);
    matches("out", "batch +256 samples a step, in 2 micro-batches\n"
                   "tuned +20[0-9-]{8}: 2 x 128 rows, 1.21 M samples/s then\n");
    matches("made/training_log.txt", "tuned 20[0-9-]{8}: 2 x 128 rows, 1.21 M samples/s then");
    matches("made/config.yaml", "batch_size: 256\n");
    matches("made/config.yaml", "gradient_accumulation_steps: auto\n");
    plan_has("micro_batch", "128");
    plan_has("accumulation", "2");
    char *text = slurp("made/plan.yaml");
    assert_non_null(strstr(text, "\ntuned: 20"));
    free(text);
}

static void plan_says_where_it_comes_from(void **state) {
    (void)state;
    keep();
    assert_int_equal(RUN("plan", ON_CPU, AUTO), 0);
    matches("out",
        "chosen\n  tuned +20[0-9-]{8}: 2 x 128 rows, 1.21 M samples/s then\n(.*\n)?  split +2 x 128 rows: tuned\n");
    matches("out", " 128 +2 +0 .* chosen\n");
    assert_int_equal(RUN("plan", ON_CPU, AUTO, "--json"), 0);
    matches("out", "\"tuned\":\\{\"when\":\"20[0-9-]{8}\",\"batch\":256,\"micro_batch\":128,\"accumulation\":2,"
                   "\"precision\":\"fp32\",\"products\":\"auto\",\"threads\":0,\"samples_per_s\":1214000.0,\"noise_"
                   "scale\":100.0,\"winner\":true,\"used\":true\\}");
    assert_int_equal((int)number("batch"), 128);
    assert_int_equal(RUN("plan", ON_CPU, AUTO, "model.widths=17", "--json"), 0);
    matches("out", "\"tuned\":null");
    matches("out", "\"why\":\\[\"tuned     nothing for this model, data and device [(]cpu, [^)]+ threads?[)]; run "
                   "tradewind tune; until then 512");
}

static void a_given_batch_keeps_its_size(void **state) {
    (void)state;
    keep();
    assert_int_equal(RUN("plan", ON_CPU, OPEN, "train.batch_size=256"), 0);
    matches("out", "batch +256 samples a step, in 2 micro-batches\ntuned +20[0-9-]{8}: 2 x 128 rows, ");
    assert_int_equal(
        RUN("plan", ON_CPU, "train.batch_size=32", "gpu_optimization.gradient_accumulation_steps=2", OPEN), 0);
    matches("out", "batch +64 samples a step\ntuned +20[0-9-]{8}: 1 x 64 rows, 3,000 samples/s then\n");
    assert_int_equal(RUN("plan", ON_CPU, "train.batch_size=100"), 0);
    matches("out", "batch +100 samples a step\nmemory ");
    assert_int_equal(RUN("plan", ON_CPU, "train.batch_size=128", "gpu_optimization.gradient_accumulation_steps=2"), 0);
    matches("out", "batch +256 samples a step, in 2 micro-batches\ntuned +20[0-9-]{8}: 2 x 128 rows, ");
}

static void what_is_fixed_stays(void **state) {
    (void)state;
    keep();
    assert_int_equal(RUN("train", ON_CPU, "train.batch_size=256"), 0);
    matches("out", "batch +256 samples a step\n"
                   "tuned +20[0-9-]{8}: 2 x 128 rows, but the description fixes 1 x 256; set gpu_optimization.dynamic");
    plan_has("accumulation", "1");
    plan_has("tuned", NULL);
}

static void without_wisdom_it_is_512(void **state) {
    (void)state;
    assert_int_equal(RUN("train", ON_CPU, AUTO), 0);
    matches("out", "batch +512 samples a step\n"
                   "tuned +nothing for this model, data and device [(]cpu, [^)]+ threads?[)]; run tradewind tune; "
                   "until then 512 samples a step\n");
    matches("made/config.yaml", "batch_size: 512\n");
    plan_has("tuned", NULL);
    assert_int_equal(RUN("train", ON_CPU, "-q"), 0);
    is_empty("out");
    is_empty("err");
}

static void another_build_is_refused(void **state) {
    (void)state;
    keep_as("0.0.0");
    assert_int_equal(RUN("plan", ON_CPU, AUTO), 0);
    matches("out", "batch +512 samples a step\n"
                   "tuned +tuned by another build; run tradewind tune again; until then 512 samples a step\n");
    assert_int_equal(RUN("plan", ON_CPU, "train.batch_size=256", OPEN), 0);
    matches("out", "batch +256 samples a step\ntuned +tuned by another build; run tradewind tune again\n");
    keep();
    assert_int_equal(RUN("plan", ON_CPU, AUTO, "data.synthetic.bars=9000"), 0);
    matches("out",
        "tuned +tuned for another number of samples: [0-9]+ or more for training.*, now .*; run tradewind tune again");
}

static void a_damaged_file_is_as_none(void **state) {
    (void)state;
    keep();
    assert_int_equal(system("for f in wisdom/*.json; do echo '{\"kind\":' >$f; done"), 0);
    assert_int_equal(RUN("train", ON_CPU, AUTO), 0);
    matches("out", "tuned +wisdom/mlp-cpu-.*.json: is damaged or not of tradewind tune, and not used; run that again; "
                   "until then 512 samples a step\n");
    is_empty("err");
}

// The split does not fit into so little, so that the planner's stands.
static void what_does_not_fit_is_not_used(void **state) {
    (void)state;
    static const wisdom_entry one = {.batch = 65536, .micro = 65536, .parts = 1, .samples_per_s = 1e6};
    char limit[80], of[32];
    assert_int_equal(RUN("plan", ON_CPU, "train.batch_size=16384", "--json"), 0);
    json_t *v = last_line();
    double total = json_number_value(json_object_get(json_object_get(v, "memory"), "total"));
    json_decref(v);
    snprintf(limit, sizeof limit, "gpu_optimization.max_host_memory_gb=%.4f", total / 0x1p30 + 0.02);
    keep_for(limit, version(of, sizeof of), NULL, &one, 1);
    assert_int_equal(RUN("train", ON_CPU, AUTO, limit), 0);
    matches("out", "batch +65,536 samples a step, in [0-9]+ micro-batches");
    matches("out", "tuned +20[0-9-]{8}: 1 x 65536 rows, but it does not fit into the memory now; the planner chose\n");
    matches("made/config.yaml", "batch_size: 65536\n");
}

// Neither a file that is gone nor another one changes what a run has.
static void resuming_asks_nobody(void **state) {
    (void)state;
    keep();
    assert_int_equal(RUN("train", ON_CPU, AUTO, "run.dir=whole", "train.epochs=3"), 0);
    assert_int_equal(RUN("train", ON_CPU, AUTO), 0);
    keep_as("0.0.0");
    assert_int_equal(RUN("train", ON_CPU, AUTO, "--resume", "train.epochs=3"), 0);
    matches(
        "out", "batch +256 samples a step, in 2 micro-batches\ntuned +20[0-9-]{8}: 2 x 128 rows, as the run has it\n");
    same_bytes("made/best.safetensors", "whole/best.safetensors");
    assert_int_equal(system("rm -r wisdom"), 0);
    assert_int_equal(RUN("train", "made/config.yaml", "--device=cpu", "--resume", "train.epochs=4"), 0);
    plan_has("accumulation", "2");
    complains(RUN("train", ON_CPU, "train.batch_size=64", "--resume"),
        "made/last.safetensors: was made under another "
        "description: .*train.batch_size is 64, was 256.*");
    assert_int_equal(RUN("train", ON_CPU, AUTO), 0);
    keep();
    assert_int_equal(RUN("train", ON_CPU, AUTO, "--resume", "train.epochs=3"), 0);
    matches("out", "batch +512 samples a step\nmemory ");
}

static void trained_runs_are_used_without_it(void **state) {
    (void)state;
    keep();
    assert_int_equal(RUN("train", ON_CPU, AUTO), 0);
    assert_int_equal(system("rm -r wisdom"), 0);
    assert_int_equal(RUN("evaluate", "made", "--device=cpu"), 0);
    matches("out", "accuracy");
    assert_int_equal(RUN("predict", "made", "--device=cpu", "-o", "p.npz"), 0);
    assert_int_equal(RUN("evaluate", "made", "--device=cpu", AUTO), 0);
}

static void members_are_alike(void **state) {
    (void)state;
    keep();
    assert_int_equal(RUN("train", ON_CPU, AUTO, "train.ensemble=2"), 0);
    matches("made/config.yaml", "batch_size: 256\n");
    matches("made/member_1/config.yaml", "batch_size: 256\n");
    matches("made/member_2/config.yaml", "batch_size: 256\n");
    assert_int_equal(system("rm -r wisdom"), 0);
    assert_int_equal(RUN("train", ON_CPU, AUTO, "train.ensemble=3", "--resume"), 0);
    matches("out", "member +1 of 3, seed 1: trained already\nmember +2 of 3, seed 2: trained already\n");
    matches("made/member_3/config.yaml", "batch_size: 256\n");
    matches("made/member_3/plan.yaml", "micro_batch: 128\naccumulation: 2\n");
    assert_int_equal(RUN("evaluate", "made", "--device=cpu"), 0);
}

// A copy of the program beside a card that has fp16, in which nothing is finite, and what was tuned there.
static void enter_card(void) {
    static const wisdom_entry one = {
        .batch = 256, .micro = 64, .parts = 4, .host = true, .precision = PRECISION_FP32, .samples_per_s = 5e5};
    char of[32];
    program_copy(TRADEWIND_BINARY, FAKE_CARD_THIS);
    setenv("FAKE_CARD", "overflows", 1);
    keep_for("", version(of, sizeof of), &card, &one, 1);
}

static int leave_card(void **state) {
    unsetenv("FAKE_CARD");
    return support_leave(state);
}

// Place and precision are taken too, and stay the run's.
static void place_and_precision_are_taken(void **state) {
    (void)state;
    enter_card();
    assert_int_equal(RUN("train", "run.yaml", "--device=cuda", AUTO), 0);
    matches("out", "model +mlp, [0-9,]+ parameters, fp32\n");
    matches("out", "tuned +20[0-9-]{8}: 4 x 64 rows, 500,000 samples/s then\n");
    plan_has("precision", "fp32");
    plan_has("residency", "host");
    assert_int_equal(system("rm -r wisdom"), 0);
    assert_int_equal(RUN("train", "run.yaml", "--device=cuda", AUTO, "--resume", "train.epochs=3"), 0);
    matches("out", "tuned +20[0-9-]{8}: 4 x 64 rows, as the run has it\n");
    plan_has("precision", "fp32");
    plan_has("residency", "host");
    assert_int_equal(RUN("evaluate", "made", "--device=cuda"), 0);
    assert_int_equal(RUN("evaluate", "made", "--device=cpu"), 0);
    // A place that is fixed now is not the one that was tuned; the precision stays, then and later.
    const char *const more[] = {"data.residency=device", "data.residency=auto"};
    for (int i = 0; i < 2; i++) {
        const char *epochs = i ? "train.epochs=5" : "train.epochs=4";
        assert_int_equal(RUN("train", "run.yaml", "--device=cuda", AUTO, "--resume", epochs, more[i]), 0);
        plan_has("precision", "fp32");
        plan_has("accumulation", "4");
        plan_has("residency", "device");
    }
}

// The longest lines have a driver's own words in them.
static void a_long_line_is_shown_whole(void **state) {
    (void)state;
    static const wisdom_entry one = {.batch = 256, .micro = 64, .parts = 4, .samples_per_s = 5e5};
    char of[32];
    device_identity old = card;
    enter_card();
    assert_int_equal(system("rm -r wisdom"), 0);
    snprintf(old.driver, sizeof old.driver, "%075d", 0);
    keep_for("", version(of, sizeof of), &old, &one, 1);
    assert_int_equal(RUN("plan", "run.yaml", "--device=cuda", AUTO), 0);
    matches("out",
        "chosen\n  tuned +tuned for another driver: driver 0+, now none; run tradewind tune again; until then "
        "512 samples a step\n");
}

static void what_is_fixed_of_them_stays(void **state) {
    (void)state;
    enter_card();
    assert_int_equal(RUN("plan", "run.yaml", "--device=cuda", "train.batch_size=256", OPEN, "--json"), 0);
    matches("out", "\"residency\":\"host\".*\"precision\":\"fp32\",\"tuned\":\\{");
    assert_int_equal(RUN("plan", "run.yaml", "--device=cuda", AUTO, "data.residency=device", "--json"), 0);
    matches("out", "\"residency\":\"device\".*\"precision\":\"fp16\",\"tuned\":null");
    assert_int_equal(
        RUN("plan", "run.yaml", "--device=cuda", AUTO, "gpu_optimization.use_mixed_precision=fp16", "--json"), 0);
    matches("out", "\"precision\":\"fp16\",\"tuned\":null");
}

#define PICKY "run.yaml", "--device=cuda", AUTO, "gpu_optimization.use_mixed_precision=tf32"

// Few samples: recordings of few steps, which a slow machine measures in time.
#define FEW PICKY, "data.synthetic.bars=1000"

static void enter_picky(void) {
    program_copy(TRADEWIND_BINARY, FAKE_CARD_THIS);
    setenv("FAKE_CARD", "picky", 1);
}

// The library's products, which are the faster ones there, are found, kept, taken, and stay the run's.
static void products_are_tuned_and_stay_the_runs(void **state) {
    (void)state;
    enter_picky();
    assert_int_equal(RUN("tune", FEW, "--batches=128", support_sanitized() ? "--seconds=30" : "--seconds=10"), 0);
    matches("out", "\nproducts  auto [0-9,]+ samples/s, own not measured \\(the same as auto here\\), library [0-9,]+ "
                   "samples/s: library taken, "
                   "[0-9]+ % faster\nkept ");
    matches("out", " 128 +1 x 128 +0 +tf32 ");
    assert_int_equal(RUN("train", FEW), 0);
    matches("out", "tuned +20[0-9-]{8}: 1 x 128 rows, products: library, [0-9,.M ]+ samples/s then\n");
    plan_has("products", "library");
    assert_int_equal(RUN("plan", FEW, "--json"), 0);
    matches("out", "\"products  library: tuned\"");
    matches("out", "\"products\":\"library\",\"precision\":\"tf32\",\"tuned\":\\{.*\"products\":\"library\"");
    double slab = number("slab_bytes"); // the library's memory is in the plan
    assert_int_equal(RUN("plan", FEW, "gpu_optimization.products=own", "train.batch_size=128", "--json"), 0);
    assert_true(slab > number("slab_bytes") + 2e6);
    matches("made/config.yaml", "products: auto\n");
    assert_int_equal(system("sed -i '/\"sum\":/d; s/\"library\"/\"own\"/' wisdom/*.json"), 0);
    assert_int_equal(RUN("train", FEW, "--resume", "train.epochs=3"), 0);
    matches("out", "tuned +20[0-9-]{8}: 1 x 128 rows, products: library, as the run has it\n");
    plan_has("products", "library");
    assert_int_equal(RUN("train", FEW, "run.dir=other"), 0);
    matches("other/plan.yaml", "\nproducts: own\n");
    assert_int_equal(system("rm -r wisdom"), 0);
    assert_int_equal(RUN("train", FEW, "--resume", "train.epochs=4"), 0);
    plan_has("products", "library");
    assert_int_equal(RUN("evaluate", "made", "--device=cuda"), 0);
    assert_int_equal(RUN("evaluate", "made", "--device=cpu", "gpu_optimization.use_mixed_precision=true"), 0);
    complains(RUN("train", FEW, "--resume", "gpu_optimization.products=own"),
        "made/last.safetensors: was made under another description: .*products is own, was auto.*");
}

static void products_that_are_given_stay(void **state) {
    (void)state;
    enter_picky();
    assert_int_equal(RUN("tune", FEW, "--batches=128", "--seconds=2", "gpu_optimization.products=own", "--json"), 0);
    matches("out", "\"products\":\"own\",\"threads\":0\\},\"trials\":\\[\\]");
    assert_int_equal(RUN("train", FEW, "gpu_optimization.products=own"), 0);
    matches("out", "tuned +20[0-9-]{8}: 1 x 128 rows, [0-9,]+ samples/s then\n");
    plan_has("products", "own");
    assert_int_equal(RUN("train", FEW), 0);
    matches("out", "tuned +nothing for this model");
    plan_has("products", NULL);
    complains(RUN("plan", FEW, "gpu_optimization.products=mine"), ".*products.*auto, own or library.*");
    assert_int_equal(RUN("train", ON_CPU, "gpu_optimization.products=library"), 0);
    is_empty("err");
    plan_has("products", NULL);
}

// Where the tuned way has no room the rule computes the products.
static void products_go_with_their_way(void **state) {
    (void)state;
    static const wisdom_entry one = {.batch = 65536,
        .micro = 65536,
        .parts = 1,
        .precision = PRECISION_TF32,
        .products = PRODUCTS_LIBRARY,
        .samples_per_s = 1e6};
    char of[32];
    enter_picky();
    keep_for("gpu_optimization.use_mixed_precision=tf32", version(of, sizeof of), &card, &one, 1);
    assert_int_equal(RUN("plan", PICKY, "--json"), 0);
    matches("out", "\"products\":\"library\",\"precision\":\"tf32\"");
    assert_int_equal(RUN("plan", PICKY, "data.residency=host", "--json"), 0);
    matches("out", "\"products\":\"auto\",\"precision\":\"tf32\",\"tuned\":null");
    setenv("FAKE_CARD", "picky and tight", 1);
    assert_int_equal(RUN("plan", PICKY, "--json"), 0);
    matches("out", "\"why\":\\[\"tuned     20[0-9-]{8}: 1 x 65536 rows, but it does not fit into the memory now");
    matches("out", "\"products\":\"auto\",\"precision\":\"tf32\"");
}

// Fewer threads than processors are taken where the user names none, and change no bit.
static void threads_are_taken(void **state) {
    (void)state;
    enum { THREADS = 1 };
    static const wisdom_entry one = {.batch = 256, .micro = 256, .parts = 1, .threads = THREADS, .samples_per_s = 1e4};
    char of[32];
    device_identity cpu;
    err e = {0};
    if (pool_processors() < 2) skip();
    queue *all = cpu_device.open(&(queue_options){0}, &e);
    support_ok(all != NULL, &e);
    cpu_device.identify(all, &cpu);
    cpu_device.close(all);
    keep_for("", version(of, sizeof of), &cpu, &one, 1);
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", AUTO), 0);
    matches("out", "device +cpu, [a-z0-9]+, 1 thread\n");
    matches("out", "tuned +20[0-9-]{8}: 1 x 256 rows, 1 thread, 10,000 samples/s then\n");
    plan_has("threads", "1");
    assert_int_equal(system("rm -r wisdom"), 0);
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", AUTO, "--resume", "train.epochs=3"), 0);
    matches("out", "device +cpu, [a-z0-9]+, 1 thread\n");
    plan_has("threads", "1");
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "--threads=2", AUTO, "--resume", "train.epochs=4"), 0);
    matches("out", "device +cpu, [a-z0-9]+, 2 threads\n");
    plan_has("threads", NULL);
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "--threads=2", "train.batch_size=256",
                         "gpu_optimization.gradient_accumulation_steps=auto", "train.epochs=4", "run.dir=whole"),
        0);
    same_bytes("made/best.safetensors", "whole/best.safetensors");
}

// A size that was tuned before, and is better, stays; and everything is replaced where the machine is another.
static void tuning_a_little_keeps_the_rest(void **state) {
    (void)state;
    wisdom_entry list[] = {{.batch = 1024, .micro = 512, .parts = 2, .samples_per_s = 1e9},
        {.batch = 64, .micro = 64, .parts = 1, .samples_per_s = 1}};
    char of[32];
    keep_for("", version(of, sizeof of), NULL, list, 1);
    assert_int_equal(RUN("tune", ON_CPU, "--batches=64", "--seconds=1"), 0);
    matches("out", "\nwinner +64: .*\nkept +beside what was tuned on 20[0-9-]{8}; of both 1,024 is the winner, with "
                   "1,000,000,000 samples/s\n");
    assert_int_equal(RUN("plan", ON_CPU, AUTO), 0);
    matches("out", "tuned +20[0-9-]{8}: 2 x 512 rows, ");
    assert_int_equal(RUN("plan", ON_CPU, "train.batch_size=64"), 0);
    matches("out", "tuned +20[0-9-]{8}: 1 x 64 rows, ");
    keep_for("", of, NULL, list, 2);
    assert_int_equal(RUN("tune", ON_CPU, "--batches=64", "--seconds=1", "--json"), 0);
    matches("out", "\"kept_batch\":64,");
    keep_for("", of, NULL, list, 2);
    assert_int_equal(RUN("tune", ON_CPU, "--batches=64", "--seconds=1"), 0);
    matches("out", "\nreplaced +what was tuned on 20[0-9-]{8}, whose rates are off by more than 5 % now\n");
    assert_int_equal(RUN("plan", ON_CPU, AUTO), 0);
    matches("out", "tuned +20[0-9-]{8}: 1 x 64 rows, ");
    assert_int_equal(RUN("plan", ON_CPU, "train.batch_size=1024", OPEN), 0);
    matches("out", "batch +1,024 samples a step\nmemory ");
}

// The scale that was measured then still keeps the larger batch from being the winner, unless there is one of now.
static void an_earlier_noise_scale_counts(void **state) {
    (void)state;
    wisdom_entry list[] = {{.batch = 512, .micro = 512, .parts = 1, .samples_per_s = 5e8, .noise_scale = 300},
        {.batch = 1536, .micro = 1536, .parts = 1, .samples_per_s = 1e9, .noise_scale = 300}};
    char of[32];
    keep_for("", version(of, sizeof of), NULL, list, 2);
    assert_int_equal(RUN("tune", ON_CPU, "--batches=64", "--seconds=1", "--json"), 0);
    json_t *line = last_line();
    double scale = json_number_value(json_object_get(line, "noise_scale"));
    if (!(scale > 0 && json_integer_value(json_object_get(line, "noise_steps")) >= 100)) scale = 300;
    assert_int_equal(json_integer_value(json_object_get(line, "kept_batch")), scale <= 64    ? 64
                                                                              : scale <= 512 ? 512
                                                                                             : 1536);
    json_decref(line);
}

static void auto_is_the_whole_step(void **state) {
    (void)state;
    complains(RUN("plan", ON_CPU, AUTO, "gpu_optimization.gradient_accumulation_steps=4"),
        ".*gradient_accumulation_steps: train.batch_size: auto is the whole step's; leave this out, or say auto");
    complains(RUN("plan", ON_CPU, "gpu_optimization.target_utilization=0"), ".*target_utilization.*1.*100.*");
    complains(RUN("plan", ON_CPU, "gpu_optimization.target_utilization=101"), ".*target_utilization.*1.*100.*");
}

#define TEST(fn)    cmocka_unit_test_setup_teardown(fn, enter, support_leave)
#define ON_CARD(fn) cmocka_unit_test_setup_teardown(fn, enter, leave_card)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(auto_takes_the_winner),
        TEST(plan_says_where_it_comes_from),
        TEST(a_given_batch_keeps_its_size),
        TEST(what_is_fixed_stays),
        TEST(without_wisdom_it_is_512),
        TEST(another_build_is_refused),
        TEST(a_damaged_file_is_as_none),
        TEST(what_does_not_fit_is_not_used),
        TEST(resuming_asks_nobody),
        TEST(trained_runs_are_used_without_it),
        TEST(members_are_alike),
        ON_CARD(place_and_precision_are_taken),
        ON_CARD(a_long_line_is_shown_whole),
        ON_CARD(what_is_fixed_of_them_stays),
        ON_CARD(products_are_tuned_and_stay_the_runs),
        ON_CARD(products_that_are_given_stay),
        ON_CARD(products_go_with_their_way),
        TEST(threads_are_taken),
        TEST(tuning_a_little_keeps_the_rest),
        TEST(an_earlier_noise_scale_counts),
        TEST(auto_is_the_whole_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
