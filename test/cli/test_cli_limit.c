// The program under limits of memory, on a card of the test: the limit that is named works and a little less does not,
// and members of an ensemble are split alike.
//
// Runs in: test-long
#include "cli/on_card.h"
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int parts_in(const char *path) {
    static const char key[] = "accumulation: ";
    char *text = slurp(path), *at = strstr(text, key);
    int parts = at ? atoi(at + sizeof key - 1) : 0;
    free(text);
    return parts;
}

// The members of an ensemble are split alike, whatever is free when each begins.
static void members_are_split_alike(void **state) {
    (void)state;
    enter(FAKE_CARD_THIS);
    setenv("FAKE_CARD", "emptying", 1);
#define PAIR "run.yaml", "data.synthetic.bars=30000", "train.batch_size=8192", "train.epochs=1", "train.ensemble=2"
    assert_int_equal(RUN("train", PAIR, SPLIT_OPEN), 0);
    int parts = parts_in("made/member_1/plan.yaml");
    assert_true(parts > 1);
    assert_int_equal(parts_in("made/member_2/plan.yaml"), parts);
    // One that is added later too.
    setenv("FAKE_CARD", "", 1);
    assert_int_equal(RUN("train", PAIR, "train.ensemble=3", SPLIT_OPEN, "--resume"), 0);
    assert_int_equal(parts_in("made/member_3/plan.yaml"), parts);
    // Without a split the first finds no room on the card; the second, which would, does not compute elsewhere.
    setenv("FAKE_CARD", "emptying", 1);
    assert_int_equal(RUN("train", PAIR), 1);
    matches("err",
        "(^|\n)tradewind: member 2 has another plan than the others: device is cuda, a card [^\n]*, was cpu[^\n]*\n$");
}

// The limit counts base and slab. Data leave the card before the plan is refused, which names the limit that would do.
static void a_limit_is_kept(void **state) {
    (void)state;
#define MARKET "run.yaml", "data.synthetic.bars=100000", "train.batch_size=1000"
    enter(FAKE_CARD_THIS);
    assert_int_equal(RUN("plan", MARKET, LIMIT "0.2"), 0);
    matches("out", ", on the card\n");
    matches("out",
        "\nlimit +214\\.7 MB \\(0\\.20 GB\\); base 2\\.0 MB, slab [0-9.]+ MB and 25\\.[0-9] MB beside them are ");
    // The total is said as the table has it.
    char *shown = slurp("out"), *sum = strstr(shown, " beside them are "), *total = strstr(shown, "\n= total ");
    assert_true(sum && total && atof(sum + 17) > 0 && atof(sum + 17) == atof(total + 9));
    free(shown);
    assert_false(file_holds("out", "staging"));
    assert_int_equal(RUN("plan", MARKET, LIMIT "0.08"), 0);
    matches("out", ", streamed from the host\n");
    matches("out", "\nmemory [^\n]*, staging [0-9.]+\nlimit +85\\.9 MB");
    assert_int_equal(RUN("plan", MARKET, LIMIT "0.08", "--json"), 0);
    matches("out", "\"residency\":\"host\",\"staging_bytes\":[1-9][0-9]*,\"ring_bytes\":[1-9][0-9]*,");
    matches("out", "\"base_bytes\":2000000,\"limit_bytes\":85899345[^0-9]");
    assert_int_equal(RUN("train", MARKET, LIMIT "0.001"), 1);
    matches("err",
        "^tradewind: the plan needs [0-9.]+ MB, a base of 2\\.0 MB and 25\\.[0-9] MB beside them, and the limit is "
        "1\\.1 MB; set "
        "gpu_optimization\\.max_memory_gb to [0-9.]+ or more\n$");
    char least[64], less[64], inference[64], *told = slurp("err");
    double enough = atof(strstr(told, "_gb to ") + 7);
    free(told);
    snprintf(least, sizeof least, LIMIT "%.2f", enough);
    snprintf(less, sizeof less, LIMIT "%.2f", enough - 0.02); // a hundredth leaves room for the base
    assert_int_equal(RUN("train", MARKET, "train.steps=2", least), 0);
    assert_int_equal(RUN("train", MARKET, "train.steps=2", less), 1);
    matches("err", " or more, [^\n]*or use a smaller train.batch_size or smaller windows\n$");
    // With the split open less is enough, and what is named works too.
    assert_int_equal(RUN("train", MARKET, SPLIT_OPEN, LIMIT "0.001"), 1);
    told = slurp("err");
    double open_split = atof(strstr(told, "_gb to ") + 7);
    free(told);
    assert_true(open_split < enough);
    snprintf(least, sizeof least, LIMIT "%.2f", open_split);
    snprintf(less, sizeof less, LIMIT "%.2f", open_split - 0.02);
    assert_int_equal(RUN("train", MARKET, SPLIT_OPEN, "train.steps=2", least), 0);
    matches("out", "\nbatch +1,000 samples a step, in [0-9]+ micro-batches");
    assert_int_equal(RUN("evaluate", "made", "--part=validation"), 0);
    // Inference needs less than any training, and the limit that it names works.
    assert_int_equal(RUN("evaluate", "made", "--part=validation", LIMIT "0.001"), 1);
    told = slurp("err");
    double used = atof(strstr(told, "_gb to ") + 7);
    free(told);
    assert_true(used < open_split);
    snprintf(inference, sizeof inference, LIMIT "%.2f", used);
    assert_int_equal(RUN("evaluate", "made", "--part=validation", inference), 0);
    assert_int_equal(RUN("predict", "made", "--part=validation", "-o", "p.csv", inference), 0);
    assert_int_equal(RUN("train", MARKET, SPLIT_OPEN, "train.steps=2", less), 1);
    assert_int_equal(
        RUN("train", MARKET, "train.steps=2", LIMIT "0.08", HOST_LIMIT "0.001", "gpu_optimization.recompute=off"), 1);
    matches(
        "err", "^tradewind: batches and copies on the host need [^\n]* set gpu_optimization\\.max_host_memory_gb to ");
    assert_int_equal(RUN("train", MARKET, "train.steps=2", LIMIT "0.2", "data.residency=device"), 0);
    assert_int_equal(RUN("train", MARKET, LIMIT "0.08", "gpu_optimization.recompute=off", "data.residency=device"), 1);
    assert_int_equal(RUN("plan", MARKET, "gpu_optimization.memory_fraction=0.5"), 0);
    matches("out", "\nlimit +549755\\.8 MB \\(512\\.00 GB\\); base");
    setenv("FAKE_CARD", "swollen", 1);
    assert_int_equal(RUN("train", MARKET, "train.steps=2", LIMIT "0.5"), 1);
    matches("err", "^tradewind: recorded, the steps take a base of 1073\\.7 MB [^\n]*_gb to 1\\.[0-9]+ or more\n$");
    setenv("FAKE_CARD", "unseen", 1);
    assert_int_equal(RUN("train", MARKET, "train.steps=2", LIMIT "0.5"), 1);
    matches("err", "^tradewind: the card's monitor [^\n]* was not found, so no limit can be held;[^\n]*\n$");
    assert_int_equal(RUN("train", MARKET, "train.steps=2"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(members_are_split_alike, support_enter, leave_copy),
        cmocka_unit_test_setup_teardown(a_limit_is_kept, support_enter, leave_copy),
    };
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
