// Keys that are told: names from elsewhere, and keys without effect, from outside.
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A description as people who come from PyTorch write it.
static const char theirs[] = "data: {synthetic: {bars: 2000}}\nmodel:\n  hidden_size: 4\n  num_layers: 1\n"
                             "learning_rate: 0.01\nnum_epochs: 1\nbatch_size: 64\nuse_amp: false\n"
                             "accumulation_steps: 2\npin_memory: true\ndevice: cpu\nrun: {dir: theirs}\n";
static const char ours[] = "data: {synthetic: {bars: 2000}}\nmodel: {hidden: {fast: 4, slow: 4}, layers: 1}\n"
                           "train: {epochs: 1, batch_size: 64, optimizer: {lr: 0.01}}\nrun: {dir: ours}\n"
                           "gpu_optimization: {use_mixed_precision: false, gradient_accumulation_steps: 2}\n";

static int count_of(const char *path, const char *text) {
    char *all = slurp(path);
    int n = 0;
    for (const char *at = all; (at = strstr(at, text)); at++) n++;
    free(all);
    return n;
}

static void other_names_mean_the_same(void **state) {
    (void)state;
    put_text("theirs.yaml", theirs);
    put_text("ours.yaml", ours);
    assert_int_equal(RUN("train", "theirs.yaml"), 0);
    matches("out", "\nkey +learning_rate: read as train\\.optimizer\\.lr\n");
    matches("out", "\nkey +model\\.hidden_size: read as model\\.hidden\n");
    matches("out", "\nkey +pin_memory: not needed; batches are gathered on the device, [^\n]*\n");
    assert_int_equal(count_of("out", "\nkey "), 9);
    matches("theirs/training_log.txt", "key learning_rate: read as train\\.optimizer\\.lr\n");
    assert_int_equal(RUN("train", "ours.yaml"), 0);
    assert_int_equal(count_of("out", "\nkey "), 0);
    same_bytes("theirs/best.safetensors", "ours/best.safetensors");
    // Descriptions that a run has written have the keys themselves.
    assert_int_equal(RUN("train", "theirs/config.yaml", "--resume"), 0);
    assert_int_equal(count_of("out", "\nkey ") + count_of("out", "unused"), 0);
    assert_int_equal(RUN("plan", "theirs.yaml"), 0);
    assert_int_equal(count_of("out", "\nkey "), 9);
    assert_int_equal(RUN("train", "theirs.yaml", "--json"), 0);
    matches("out", "\\{\"key\":\"num_epochs\",\"unused\":false,\"text\":\"read as train\\.epochs\"\\}\n");
}

static void a_name_on_the_command_line_wins(void **state) {
    (void)state;
    put_text("ours.yaml", ours);
    assert_int_equal(RUN("train", "ours.yaml", "learning_rate=0.02", "hidden_dim=8"), 0);
    matches("ours/config.yaml", "\n    lr: 0\\.02\n");
    matches("ours/config.yaml", "\n  hidden: 8\n");
    matches("out", "\nkey +learning_rate: read as train\\.optimizer\\.lr\n");
    assert_int_equal(RUN("plan", "ours.yaml", "early_stopping=3", "shuffle=true", "optimizer=adam"), 0);
    matches("out", "\nkey +optimizer: read as train\\.optimizer\\.kind\n");
    matches("out", "\nkey +early_stopping: read as train\\.patience\n");
    matches("out", "\nkey +shuffle: always on; ");
}

static void both_names_are_refused(void **state) {
    (void)state;
    put_text("both.yaml", "train: {optimizer: {lr: 0.1}}\nlearning_rate: 0.01\n");
    complains(RUN("train", "both.yaml"),
        "both\\.yaml:2: learning_rate: train\\.optimizer\\.lr is given too; leave one of them out");
    put_text("both.yaml", "model: {hidden: {fast: 3}, hidden_size: 4}\n");
    complains(RUN("train", "both.yaml"), "both\\.yaml:1: model\\.hidden_size: model\\.hidden is given too; .*");
    put_text("wrong.yaml", "train: {optimizer: adam}\n");
    complains(RUN("train", "wrong.yaml"), "wrong\\.yaml:1: train\\.optimizer: must be a section, not adam; name it as "
                                          "train\\.optimizer\\.kind, which is .*adamw.*; train\\.optimizer takes .*");
    put_text("wrong.yaml", "num_layers: many\n");
    complains(RUN("train", "wrong.yaml"), "wrong\\.yaml:1: model\\.layers: must be an integer .*, not many; .*");
}

static void devices_are_named_in_a_description(void **state) {
    (void)state;
    put_text("ours.yaml", ours);
    program_copy(TRADEWIND_BINARY, NULL); // no plug-in beside it
    complains(RUN("train", "ours.yaml", "device=cuda:0"),
        "device=cuda:0: run\\.device: there is no card to use; use auto or cpu");
    assert_int_equal(RUN("train", "ours.yaml", "device=cuda:0", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("evaluate", "ours", "-q"), 0);
    for (size_t i = 0; i < 6; i++) {
        static const char *const wrong[] = {
            "device=cuda:N", "device=cuda:", "device=cuda:-1", "device=cuda:1x", "device=cuda:1000", "device=cuda1"};
        complains(RUN("train", "ours.yaml", wrong[i]),
            "device=cuda[^\n]*: run\\.device: must be auto, cpu, cuda or cuda:N, not cuda[^\n]*");
    }
    program_use(TRADEWIND_BINARY);
}

static void keys_without_effect_are_told_once(void **state) {
    (void)state;
    put_text("ours.yaml", ours);
    assert_int_equal(RUN("train", "ours.yaml", "model.widths=16-8", "data.label.band=0.7", "train.ensemble=2"), 0);
    assert_int_equal(count_of("out", "unused    model.widths: model.kind lstm does not read it\n"), 1);
    assert_int_equal(count_of("out", "unused    data.label.band: is of data.bars, and the data are the synthetic"), 1);
    assert_int_equal(RUN("train", "ours.yaml", "model.widths=16-8", "-q"), 0);
    is_empty("out");
    assert_int_equal(RUN("plan", "ours.yaml", "gpu_optimization.target_utilization=70"), 0);
    matches("out", "unused +gpu_optimization.target_utilization: is read by tradewind tune alone\n");
    assert_int_equal(RUN("tune", "ours.yaml", "model.widths=16-8", "--batches=64", "--seconds=1",
                         "gpu_optimization.target_utilization=70"),
        0);
    assert_int_equal(count_of("out", "unused    model.widths: "), 1);
    assert_int_equal(count_of("out", "target_utilization"), 0);
}

#define ENTERED(test) cmocka_unit_test_setup_teardown(test, support_enter, support_leave)

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        ENTERED(other_names_mean_the_same),
        ENTERED(a_name_on_the_command_line_wins),
        ENTERED(both_names_are_refused),
        ENTERED(devices_are_named_in_a_description),
        ENTERED(keys_without_effect_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
