// The report of a directory: every figure that can exist, texts of files as text, what is missing by name.
#include "watch/report.h"

#include "cli/program.h"
#include "run/db.h"
#include "run/results.h"
#include "support.h"
#include "task/output.h"
#include "watch/figure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool may_replace(const char *path, err *e) {
    return output_may_replace(path, OUTPUT_REPORT, NULL, 0, e);
}

static json_t *report(const char *dir, const char *page) {
    err e = {0};
    json_t *summary = report_make(&(report_options){dir, page, may_replace}, &e);
    support_ok(summary != NULL, &e);
    return summary;
}

// A run of five epochs whose third was the best, with samples of a card.
static void put_run(void) {
    assert_int_equal(mkdir("made", 0777), 0);
    put_text("made/config.yaml", "data:\n  set: <b>gold</b>.npz\nmodel:\n  kind: lstm\ntrain:\n  metric: mcc\n");
    put_text("made/plan.yaml", "device: cpu & co\n");
    db *d = db_open("made/run.db");
    db_run(d, "0.1", "", "");
    for (int64_t i = 1; i <= 5; i++) {
        const db_metric metrics[] = {{"train", "loss", 1.0 / (double)i}, {"validation", "loss", 2.0 / (double)i},
            {"train", "mcc", 0.1 * (double)i}, {"validation", "mcc", i == 3 ? 0.5 : 0.2}};
        db_epoch_row row = {
            i, (uint64_t)(10 * i), 0.5, 100, i == 1 || i == 3, i == 3 ? "[[7,3],[2,8]]" : "[[1,1],[1,1]]"};
        db_epoch(d, &row, metrics, 4);
        db_steps(d, &(db_steps_row){.step = (uint64_t)(10 * i), .loss_min = 0.5, .loss_mean = 1, .loss_max = 1.5});
        db_sample(d, &(db_sample_row){.time = 1000.0 + 30 * (double)i,
                         .memory_process = 1e9,
                         .memory_others = 2e9,
                         .memory_total = 8e9,
                         .utilisation = 80,
                         .memory_used = -1});
    }
    db_status(d, "done", "");
    db_close(d);
}

static void put_evaluation(void) {
    put_text("made/evaluation.json",
        "{\"version\":1,\"parts\":{\"test\":{\"samples\":20,\"epoch\":2,\"from\":\"2024-01-02\",\"to\":\"2024-02-03\","
        "\"metrics\":{\"mcc\":0.25,\"loss\":null},\"scores\":[{\"metric\":\"mcc\",\"score\":0.25,\"interval\":[0.1,0.4]"
        ","
        "\"trivial\":\"majority\",\"trivial_score\":0,\"skill\":0.25,\"skill_interval\":null,\"verdict\":\"better\"}],"
        "\"classes\":[\"<i>DOWN\",\"UP\"],\"confusion\":[[9,1],[4,6]],\"calibration\":[{\"class\":\"UP\",\"bins\":["
        "{\"low\":0,\"high\":0.1,\"count\":5,\"mean\":0.05,\"share\":0.2},{\"low\":0.1,\"high\":0.2,\"count\":0,"
        "\"mean\":null,\"share\":null}]}]},\"validation\":{\"samples\":30,\"epoch\":3,\"metrics\":{\"mcc\":0.5},"
        "\"classes\":[\"DOWN\",\"UP\"],\"importance\":[{\"stream\":\"fast\",\"column\":\"rsi_14 \\\"&<script>\","
        "\"metric\":\"mcc\",\"drop\":0.125},{\"stream\":\"fast\",\"column\":\"low\",\"metric\":\"mcc\",\"drop\":-0.01}]"
        "}}}");
}

static void put_backtest(const char *dir) {
    char path[64];
    snprintf(path, sizeof path, "%s/backtest.json", dir);
    put_text(path,
        "{\"version\":1,\"assumptions\":[{\"key\":\"account.spread\",\"text\":\"<script>x</script>\"}],\"statistics\":["
        "{\"key\":\"sharpe\",\"label\":\"Sharpe\",\"unit\":\"\",\"value\":1.25,\"definition\":\"mean / deviation\","
        "\"low\":0.5,\"high\":2,\"hold\":0.75},{\"key\":\"breakeven_cost\",\"unit\":\"%\",\"value\":0.00234}],"
        "\"equity\":{\"time\":[1700000000,1702000000,1704000000],"
        "\"equity\":[100,null,110],\"drawdown\":[0,0.1,0],\"hold\":[100,90,95]},\"monthly\":[{\"month\":\"2023-11\","
        "\"return\":0.031},{\"month\":\"bad\",\"return\":1},{\"month\":\"2024-01\",\"return\":-0.123}],\"trades\":["
        "{\"side\":1,\"entry_time\":1700000000,\"exit_time\":1702000000,\"entry\":10,\"exit\":12,\"result\":2},"
        "{\"side\":-1,\"entry_time\":1702000000,\"exit_time\":null,\"entry\":12,\"exit\":null,\"result\":null}],"
        "\"price\":{\"time\":[1700000000,1702000000,1704000000],\"close\":[10,12,11]}}");
}

static void has(const char *path, const char *text) {
    if (!file_holds(path, text)) fail_msg("%s has no %s", path, text);
}

static void lacks(const char *path, const char *text) {
    if (file_holds(path, text)) fail_msg("%s has %s", path, text);
}

// A page asks for nothing: no address but the name of SVG's own language, no script, nothing to load.
static void asks_for_nothing(const char *path) {
    static const char *const loads[] = {"<script", "<link", "<img", "<iframe", "@import", "url(", "src=", "href="};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) lacks(path, loads[i]);
    char *text = slurp(path);
    for (const char *at = text; (at = strstr(at, "://")); at++)
        assert_int_equal(strncmp(at, "://www.w3.org/2000/svg\"", 23), 0);
    free(text);
}

static void all_figures_are_drawn(void **state) {
    (void)state;
    put_run();
    put_evaluation();
    put_backtest("made");
    json_t *s = report("made", NULL);
    const figure *g;
    size_t drawn = 0;
    for (int n = 0; (g = figure_at(n)); n++) {
        char path[128], id[64];
        if (strcmp(g->name, "paths") == 0 || g->of == FIGURE_OF_AGENTS) continue; // of walks or agents alone
        drawn++;
        snprintf(path, sizeof path, "made/report/%s.svg", g->name);
        has(path, "</svg>");
        asks_for_nothing(path);
        snprintf(id, sizeof id, "<figure class=\"%s\" id=\"%s\">", g->wide ? "wide" : "", g->name);
        has("made/report.html", id);
    }
    assert_int_equal(json_array_size(json_object_get(s, "figures")), drawn);
    assert_int_equal(json_array_size(json_object_get(s, "missing")), 0);
    assert_true(json_number_value(results_get(s, "validation.mcc")) == 0.5);
    assert_true(json_number_value(results_get(s, "backtest.sharpe.value")) == 1.25);
    assert_string_equal(json_string_value(results_get(s, "report")), "made/report.html");
    json_decref(s);
    asks_for_nothing("made/report.html");
    has("made/report/loss.svg", "best epoch 3: 0.6667");
    has("made/report/metric.svg", "best epoch 3: 0.5");
    has("made/report/confusion.svg", "15 of 20 answers are right");
    has("made/report/monthly.svg", ">-12</text>");
    has("made/report/equity.svg", "2023-11-14 to 2023-12-31 UTC");
    has("made/report/memory.svg", "at most 0.93 GB of 7.5 GB");
    has("made/report/utilisation.svg", "80 percent in the mean");
    has("made/report.html", "scores of test are of epoch 2, the best epoch is 3 now; evaluate again");
}

static void texts_of_files_stay_texts(void **state) {
    (void)state;
    put_run();
    put_evaluation();
    put_backtest("made");
    json_decref(report("made", NULL));
    has("made/report.html", "set: &lt;b&gt;gold&lt;/b&gt;.npz");
    has("made/report.html", "cpu &amp; co");
    has("made/report.html", "&lt;i&gt;DOWN");
    has("made/report.html", "&lt;script&gt;x&lt;/script&gt;");
    // On a phone a statistic is a line, with what it has beside its value below.
    has("made/report.html",
        "<td class=\"n\">1.2500</td><td></td><td class=\"n detail\" data-name=\"interval\">0.5000 to 2"
        "</td><td class=\"n detail\" data-name=\"buy and hold\">0.7500</td>");
    has("made/report.html", "<td class=\"n\">0.0023</td><td>%</td><td class=\"n detail none\"");
    has("made/report/importance.svg", "fast rsi_14 &quot;&amp;&lt;scri");
    lacks("made/report.html", "<i>");
    lacks("made/report.html", "<b>gold");
}

static const json_t *lack(const json_t *s, const char *title) {
    const json_t *missing = json_object_get(s, "missing");
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const json_t *one = json_array_get(missing, i), *titles = json_object_get(one, "figures");
        for (size_t k = 0; k < json_array_size(titles); k++)
            if (strcmp(json_string_value(json_array_get(titles, k)), title) == 0) return one;
    }
    fail_msg("%s is not missing", title);
    return NULL;
}

static void missing_parts_are_named(void **state) {
    (void)state;
    put_run();
    json_t *s = report("made", NULL);
    assert_string_equal(
        json_string_value(json_object_get(lack(s, "Calibration"), "command")), "tradewind evaluate made");
    assert_string_equal(json_string_value(json_object_get(lack(s, "Importance of columns"), "command")),
        "tradewind evaluate made --importance");
    const json_t *backtest = lack(s, "Equity and drawdown");
    assert_string_equal(json_string_value(json_object_get(backtest, "command")), "tradewind backtest made");
    assert_ptr_equal(lack(s, "Trades on the price"), backtest);
    json_decref(s);
    has("made/report.html", "<code>tradewind evaluate made --importance</code>");
    has("made/report/confusion.svg", "validation, best epoch: 15 of 20"); // run.db has that one
    assert_int_equal(access("made/report/calibration.svg", F_OK), -1);
}

// Damage in one file costs its figures alone, and is told.
static void damage_is_told(void **state) {
    (void)state;
    put_run();
    put_evaluation();
    put_text("made/backtest.json", "{\"version\":1,\"equity\":[]}");
    json_t *s = report("made", NULL);
    const char *note = json_string_value(json_array_get(json_object_get(s, "notes"), 0));
    assert_non_null(strstr(note, "made/backtest.json: equity: is no object; the file is damaged"));
    lack(s, "Equity and drawdown");
    json_decref(s);
    put_text(
        "made/run.db", "no database at all, but a text of some length, longer than a header of a file of SQLite has");
    s = report("made", NULL);
    assert_int_equal(json_array_size(json_object_get(s, "notes")), 2);
    lack(s, "Learning curve: loss");
    json_decref(s);
}

// Draws everything there is; how many figures.
static int draw_all(void) {
    facts f;
    err e = {0};
    const figure *g;
    int drawn = 0;
    support_ok(facts_open(&f, "made", &e), &e);
    for (int i = 0; (g = figure_at(i)); i++) {
        svg s;
        if ((g->applies && !g->applies(&f)) || !g->has(&f)) continue;
        svg_open(&s, g->name, FIGURE_NARROW, FIGURE_HEIGHT, g->title);
        g->draw(&f, &s);
        char *text = svg_inline(&s);
        assert_true(s.height > 0 && s.height < 4000);
        free(text);
        svg_close(&s);
        drawn++;
    }
    facts_close(&f);
    return drawn;
}

// Numbers, lists and names that nobody meant: whatever is read is drawn, without an end to memory or time.
static void odd_documents_are_drawn(void **state) {
    (void)state;
    enum { ROUNDS = 100 };
    static const char *const files[] = {"made/evaluation.json", "made/backtest.json"};
    static const char bytes[] = "0123456789-.eE,[]{}\"n";
    dice d = {.seed = 8};
    int drawn = 0;
    put_run();
    for (int round = 0; round < ROUNDS; round++) {
        put_evaluation();
        put_backtest("made");
        char *text = slurp(files[round % 2]);
        size_t n = strlen(text);
        for (uint64_t i = 0, hits = 1 + dice_below(&d, 4); i < hits; i++) {
            size_t at = dice_below(&d, n);
            bool digit = text[at] >= '0' && text[at] <= '9';
            text[at] = bytes[dice_below(&d, digit ? 14 : sizeof bytes - 1)];
        }
        put_text(files[round % 2], text);
        free(text);
        drawn += draw_all();
    }
    assert_true(drawn > ROUNDS * 5);
}

static void forecasts_have_coverage(void **state) {
    (void)state;
    put_run();
    json_decref(report("made", NULL));
    has("made/report/confusion.svg", "</svg>");
    put_text("made/evaluation.json", "{\"version\":1,\"parts\":{\"test\":{\"samples\":5,\"metrics\":{\"mae\":1},"
                                     "\"coverage\":[{\"level\":0.1,\"share\":0.2},{\"level\":0.9,\"share\":0.8}]}}}");
    json_decref(report("made", NULL));
    has("made/report/calibration.svg", "Share of targets below each forecast quantile");
    lacks("made/report.html", "id=\"confusion\"");
    assert_int_equal(access("made/report/confusion.svg", F_OK), -1); // of the report before
    lacks("made/report.html", "Confusion matrix");
}

static void walks_have_their_folds(void **state) {
    (void)state;
    assert_int_equal(mkdir("walk", 0777), 0);
    put_text("walk/walk.json",
        "{\"version\":1,\"scheme\":\"rolling\",\"folds\":[{\"number\":1,\"train\":[\"2020-01-01\",\"2021-01-01\"],"
        "\"samples\":[9,8,7],\"metrics\":{\"mcc\":0.125},\"status\":\"done\"},{\"number\":2,\"status\":\"failed\","
        "\"reason\":\"<no> UP\"}],\"samples\":7,\"metrics\":{\"mcc\":0.5,\"return\":0.25}}");
    json_t *s = report("walk", NULL);
    assert_true(
        json_number_value(results_get(s, "walk.done")) == 1 && json_number_value(results_get(s, "walk.folds")) == 2);
    json_decref(s);
    has("walk/report.html",
        "<td><span class=\"line\">2020-01-01 to</span> <span class=\"line\">2021-01-01</span></td>");
    has("walk/report.html", "<th scope=\"row\">all</th><td></td><td></td><td></td><td class=\"n\">7</td>"
                            "<td class=\"n\">0.5000</td>");
    // A phone shows folds without the spans of training and validation, so that scores are in sight.
    has("walk/report.html", "<table class=\"folds\"><caption>Folds</caption>");
    has("walk/report.html", ".folds tr>:nth-child(2),.folds tr>:nth-child(3){display:none}");
    has("walk/report.html", "<b>25 %</b><span class=\"dim\">all tests: return</span>"); // one way for shares
    char *page = slurp("walk/report.html");
    const char *missing = strstr(page, "<h2>Missing</h2>");
    assert_true(missing && !strstr(missing + 1, "<h2>")); // it comes last
    free(page);
    has("walk/report.html", "<td class=\"n\">0.1250</td>");
    has("walk/report.html", "<td colspan=\"4\">failed: &lt;no&gt; UP</td></tr>"); // over the columns of its scores
}

// Paths, calibration and importance of a walk.
static void walks_are_drawn_over_all_folds(void **state) {
    (void)state;
    assert_int_equal(mkdir("walk", 0777), 0);
    put_text("walk/walk.json",
        "{\"version\":1,\"scheme\":\"cpcv\",\"folds\":[{\"number\":1,\"samples\":[9,8,7],\"metrics\":{\"mcc\":0.125},"
        "\"trivial\":{\"mcc\":0.0625},\"skill\":{\"mcc\":0.03125},\"status\":\"done\"}],\"metrics\":{\"mcc\":0.5},"
        "\"classes\":[\"DOWN\",\"UP\"],\"confusion\":[[9,1],[4,6]],\"calibration\":[{\"class\":\"UP\",\"bins\":["
        "{\"low\":0,\"high\":0.1,\"count\":5,\"mean\":0.05,\"share\":0.2}]}],\"importance\":[{\"stream\":\"fast\","
        "\"column\":\"rsi_14\",\"metric\":\"mcc\",\"drop\":0.125,\"low\":0,\"high\":0.25,\"folds\":2}]}");
    put_text("walk/backtest.json",
        "{\"version\":1,\"assumptions\":[],\"statistics\":[],\"paths\":[{\"number\":1,\"folds\":[3,14],\"sharpe\":0."
        "375,"
        "\"time\":[1700000000,1702000000],\"equity\":[100,110]},{\"number\":2,\"folds\":[5],\"sharpe\":null,"
        "\"time\":[1700000000],\"equity\":[100]}]}");
    json_decref(report("walk", NULL));
    has("walk/report/paths.svg",
        "Equity after costs of 2 paths, 2023-11-14 to 2023-12-08 UTC: they end between 100.00 and 110.00.");
    has("walk/report/calibration.svg", "tests of all folds");
    has("walk/report/importance.svg", "loss of validation mcc, mean over the folds");
    has("walk/report.html", "<td>3 14</td>");
    has("walk/report.html", "<td class=\"n\">0.3750</td>");
    has("walk/report.html", "<td class=\"n\">0.0625</td><td class=\"n\">0.0312</td>"); // trivial answer and skill
    lacks("walk/report.html", "Equity and drawdown");
}

static void refuses(const char *dir, const char *page, const char *why) {
    err e = {0};
    assert_null(report_make(&(report_options){dir, page, may_replace}, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, why)) fail_msg("%s", e.text);
}

// A page goes where it is asked to, over earlier pages and nothing else; refused, nothing at all is written.
static void other_files_are_never_replaced(void **state) {
    (void)state;
    put_run();
    refuses("made", "there/page.html", "there is no directory there; make it, or name another place");
    assert_int_equal(mkdir("there", 0777), 0);
    json_decref(report("made", "there/page.html"));
    has("there/page/loss.svg", "</svg>");
    assert_int_equal(access("made/report.html", F_OK), -1);
    json_decref(report("made", "there/page.html"));
    put_text("mine.html", "<html>mine</html>");
    refuses("made", "mine.html", "mine.html: is there and is not a page or figure of report");
    assert_int_equal(access("mine", F_OK), -1);
    put_text("there/page/loss.svg", "<svg>mine</svg>");
    refuses("made", "there/page.html", "loss.svg: is there and is not a page");
    refuses("made", "page.txt", "must end in .html");
    refuses("made", ".html", "must end in .html");
    refuses("there", NULL, "there: is neither a run's directory");
    has("mine.html", "<html>mine</html>");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(all_figures_are_drawn),
        TEST(texts_of_files_stay_texts),
        TEST(missing_parts_are_named),
        TEST(damage_is_told),
        TEST(odd_documents_are_drawn),
        TEST(forecasts_have_coverage),
        TEST(walks_have_their_folds),
        TEST(walks_are_drawn_over_all_folds),
        TEST(other_files_are_never_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
