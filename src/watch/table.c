#include "watch/table.h"

#include "base/term.h"
#include "watch/markup.h"

#include <math.h>
#include <string.h>

enum { METRICS_MOST = 4 };

// Cells

// A table of the style sheet's class `as`; "": of none.
static void put_head_as(FILE *out, const char *as, const char *caption, const char *const *titles, int count) {
    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"%s\"><caption>", as);
    markup_text(out, caption);
    fputs("</caption><thead><tr>", out);
    for (int i = 0; i < count; i++) {
        fputs("<th scope=\"col\">", out);
        markup_text(out, titles[i]);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
}

static void put_head(FILE *out, const char *caption, const char *const *titles, int count) {
    put_head_as(out, "", caption, titles, count);
}

static void put_end(FILE *out) {
    fputs("</tbody></table></div>\n", out);
}

static void put_words(FILE *out, const char *text) {
    fputs("<td>", out);
    markup_text(out, text ? text : "");
    fputs("</td>", out);
}

static void put_name(FILE *out, const char *text) {
    fputs("<th scope=\"row\">", out);
    markup_text(out, text ? text : "");
    fputs("</th>", out);
}

// Figures that people read: four digits behind the point for small ones, two for percents that are not, thousands for
// large ones.
static void number_text(double v, const char *unit, char *text, size_t room) {
    bool percent = unit && strcmp(unit, "%") == 0 && fabs(v) >= 0.1;
    if (isnan(v))
        snprintf(text, room, "-");
    else if (fabs(v) >= 10000)
        term_count(text, room, v);
    else if (v == floor(v))
        snprintf(text, room, "%.0f", v);
    else
        snprintf(text, room, fabs(v) < 0.001 ? "%.3g" : percent || fabs(v) >= 100 ? "%.2f" : "%.4f", v);
}

static void put_number(FILE *out, double v, const char *unit) {
    char text[48];
    number_text(v, unit, text, sizeof text);
    fprintf(out, "<td class=\"n\">%s</td>", text);
}

static void range_text(double low, double high, const char *unit, char *text, size_t room) {
    char a[48], b[48];
    number_text(low, unit, a, sizeof a);
    number_text(high, unit, b, sizeof b);
    snprintf(text, room, isnan(low) || isnan(high) ? "-" : "%s to %s", a, b);
}

static void put_range(FILE *out, double low, double high, const char *unit) {
    char text[100];
    range_text(low, high, unit, text, sizeof text);
    fprintf(out, "<td class=\"n\">%s</td>", text);
}

// A cell that a narrow page names and puts on a line of its own, or leaves out where there is nothing in it.
static void put_detail(FILE *out, const char *name, const char *text) {
    fprintf(
        out, "<td class=\"n detail%s\" data-name=\"%s\">%s</td>", strcmp(text, "-") == 0 ? " none" : "", name, text);
}

static double number_of(const json_t *from, const char *key) {
    return results_number(json_object_get(from, key));
}

static const char *text_of(const json_t *from, const char *key) {
    return json_string_value(json_object_get(from, key));
}

static void put_interval(FILE *out, const json_t *from, const char *key) {
    const json_t *list = json_object_get(from, key);
    put_range(out, results_number(json_array_get(list, 0)), results_number(json_array_get(list, 1)), NULL);
}

double table_metric(const char *name, double value, const char **unit) {
    static const char *const shares[] = {"return", "hold_return", "drawdown", "hold_drawdown", "exposure"};
    *unit = "";
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (strcmp(shares[i], name) == 0) *unit = "%";
    return **unit ? 100 * value : value;
}

// Scores

static void put_scores(FILE *out, const char *name, const json_t *part) {
    static const char *const titles[] = {
        "metric", "score", "95 % interval", "trivial answer", "its score", "skill", "95 % interval", "verdict"};
    char caption[256], count[32];
    const char *from = text_of(part, "from"), *to = text_of(part, "to");
    term_count(count, sizeof count, number_of(part, "samples"));
    snprintf(caption, sizeof caption, "%.40s: %s samples%s%.40s%s%.40s", name, count, from ? ", " : "",
        from ? from : "", from ? " to " : "", from && to ? to : "");
    put_head(out, caption, titles, (int)(sizeof titles / sizeof *titles));
    json_t *list = json_object_get(part, "scores"), *each;
    size_t i;
    json_array_foreach(list, i, each) {
        fputs("<tr>", out);
        put_name(out, text_of(each, "metric"));
        put_number(out, number_of(each, "score"), NULL);
        put_interval(out, each, "interval");
        put_words(out, text_of(each, "trivial"));
        put_number(out, number_of(each, "trivial_score"), NULL);
        put_number(out, number_of(each, "skill"), NULL);
        put_interval(out, each, "skill_interval");
        put_words(out, text_of(each, "verdict"));
        fputs("</tr>\n", out);
    }
    put_end(out);
}

// Accounts of an agent

static const char *const account_keys[] = {
    "return", "drawdown", "sharpe", "exposure", "trades", "win_rate", "costs", "equity_final"};
enum { ACCOUNT_KEYS = sizeof account_keys / sizeof *account_keys };

static const json_t *statistic_of(const json_t *account, const char *key) {
    const json_t *list = json_object_get(account, "statistics");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *is = text_of(one, "key");
        if (is && strcmp(is, key) == 0) return one;
    }
    return NULL;
}

static void put_account(FILE *out, const json_t *account) {
    const char *symbol = text_of(account, "symbol");
    fputs("<tr>", out);
    put_name(out, symbol && symbol[0] ? symbol : "account");
    for (int i = 0; i < ACCOUNT_KEYS; i++) {
        const json_t *one = statistic_of(account, account_keys[i]);
        put_number(out, number_of(one, "value"), text_of(one, "unit"));
        if (i < 3) put_number(out, number_of(one, "hold"), text_of(one, "unit"));
    }
    fputs("</tr>\n", out);
}

static void put_accounts(FILE *out, const char *name, const json_t *part) {
    static const char *const titles[] = {"account", "return %", "buy and hold", "largest drawdown %", "buy and hold",
        "Sharpe", "buy and hold", "exposure %", "trades", "win rate %", "costs", "final equity"};
    char caption[256], count[32];
    const char *from = text_of(part, "from"), *to = text_of(part, "to");
    term_count(count, sizeof count, number_of(part, "samples"));
    snprintf(caption, sizeof caption, "%.40s: greedy pass over %s bars, %.40s to %.40s", name, count, from ? from : "?",
        to ? to : "?");
    put_head(out, caption, titles, (int)(sizeof titles / sizeof *titles));
    json_t *list = json_object_get(part, "accounts"), *each;
    size_t i;
    json_array_foreach(list, i, each) put_account(out, each);
    put_end(out);
}

void table_scores(const facts *f, FILE *out) {
    static const char *const order[] = {"test", "validation", "train", "all"};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (facts_part(f, order[i]))
            (json_object_get(facts_part(f, order[i]), "accounts") ? put_accounts : put_scores)(
                out, order[i], facts_part(f, order[i]));
}

// Paths

static void put_path(FILE *out, const json_t *path) {
    const json_t *folds = json_object_get(path, "folds");
    char number[32];
    snprintf(number, sizeof number, "%.0f", number_of(path, "number"));
    fputs("<tr>", out);
    put_name(out, number);
    put_number(out, number_of(path, "return"), "%");
    put_number(out, number_of(path, "sharpe"), NULL);
    put_number(out, number_of(path, "drawdown"), "%");
    put_number(out, number_of(path, "trades"), NULL);
    put_number(out, number_of(path, "equity_final"), NULL);
    fputs("<td>", out);
    for (size_t i = 0; i < json_array_size(folds); i++)
        fprintf(out, "%s%.0f", i ? " " : "", results_number(json_array_get(folds, i)));
    fputs("</td></tr>\n", out);
}

static void put_paths(const facts *f, FILE *out) {
    static const char *const titles[] = {
        "path", "return %", "Sharpe", "largest drawdown %", "trades", "final equity", "folds of its groups"};
    json_t *list = results_get(f->doc[RESULTS_BACKTEST], "paths"), *each;
    size_t i;
    if (!json_array_size(list)) return;
    put_head(out, "Paths", titles, (int)(sizeof titles / sizeof *titles));
    json_array_foreach(list, i, each) put_path(out, each);
    put_end(out);
}

// Statistics

static void put_statistic(FILE *out, const json_t *one) {
    const char *label = text_of(one, "label"), *unit = text_of(one, "unit");
    char text[100];
    fputs("<tr>", out);
    put_name(out, label ? label : text_of(one, "key"));
    put_number(out, number_of(one, "value"), unit);
    put_words(out, unit);
    range_text(number_of(one, "low"), number_of(one, "high"), unit, text, sizeof text);
    put_detail(out, "interval", text);
    number_text(number_of(one, "hold"), unit, text, sizeof text);
    put_detail(out, "buy and hold", text);
    fputs("<td class=\"w\">", out);
    markup_text(out, text_of(one, "definition") ? text_of(one, "definition") : "");
    if (text_of(one, "why")) fputs("; none: ", out);
    markup_text(out, text_of(one, "why") ? text_of(one, "why") : "");
    fputs("</td></tr>\n", out);
}

void table_statistics(const facts *f, FILE *out) {
    static const char *const titles[] = {"statistic", "value", "unit", "interval", "buy and hold", "definition"};
    json_t *list = results_get(f->doc[RESULTS_BACKTEST], "statistics"), *each;
    size_t i;
    put_paths(f, out);
    if (!json_array_size(list)) return;
    put_head_as(out, "stack", "Statistics", titles, (int)(sizeof titles / sizeof *titles));
    json_array_foreach(list, i, each) put_statistic(out, each);
    put_end(out);
}

// Folds

// Names of the metrics of the folds, in their order; how many there are.
static int list_metrics(json_t *folds, const char **name) {
    json_t *fold, *value;
    const char *key;
    size_t i;
    int count = 0;
    json_array_foreach(folds, i, fold) json_object_foreach(json_object_get(fold, "metrics"), key, value) {
        int k = 0;
        while (k < count && strcmp(name[k], key) != 0) k++;
        if (k == count && count < METRICS_MOST) name[count++] = key;
    }
    return count;
}

// Days where the span is longer than one: with times beside them the table is too wide for a sheet of paper.
static void put_span(FILE *out, const json_t *fold, const char *key) {
    enum { DAY = sizeof "2020-12-31" - 1 };
    const json_t *list = json_object_get(fold, key);
    const char *from = json_string_value(json_array_get(list, 0)), *to = json_string_value(json_array_get(list, 1));
    bool days = from && to && strncmp(from, to, DAY) != 0;
    const char *end[] = {from ? from : "", to ? to : ""};
    fputs("<td>", out);
    for (int i = 0; i < 2; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.*s", days ? (int)DAY : (int)sizeof text - 1, end[i]);
        fputs(i ? " <span class=\"line\">" : "<span class=\"line\">", out);
        markup_text(out, text);
        fputs(!i && to ? " to</span>" : "</span>", out);
    }
    fputs("</td>", out);
}

// Columns of a metric: the fold's score, that of its trivial answer, and skill against it.
static const char *const columns[] = {"metrics", "trivial", "skill"};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void put_metrics(FILE *out, const json_t *from, const char *const *metric, int metrics) {
    const char *unit;
    for (int k = 0; k < metrics; k++)
        for (int i = 0; i < COLUMNS; i++) {
            double v = table_metric(metric[k], number_of(json_object_get(from, columns[i]), metric[k]), &unit);
            put_number(out, v, unit);
        }
}

static void put_fold(FILE *out, const json_t *fold, const char *const *metric, int metrics) {
    const json_t *samples = json_object_get(fold, "samples");
    const char *status = text_of(fold, "status"), *reason = text_of(fold, "reason");
    char number[32];
    snprintf(number, sizeof number, "%.0f", number_of(fold, "number"));
    fputs("<tr>", out);
    put_name(out, number);
    put_span(out, fold, "train");
    put_span(out, fold, "validation");
    put_span(out, fold, "test");
    put_number(out, results_number(json_array_get(samples, 2)), NULL);
    // Reasons are long, and whoever has one has no scores.
    if (json_object_get(fold, "metrics")) {
        put_metrics(out, fold, metric, metrics);
        fputs("<td>", out);
    } else {
        fprintf(out, "<td colspan=\"%d\">", COLUMNS * metrics + 1);
    }
    markup_text(out, status ? status : "");
    if (reason && *reason) fputs(": ", out);
    markup_text(out, reason ? reason : "");
    fputs("</td></tr>\n", out);
}

// All tests together.
static void put_whole(FILE *out, const json_t *walk, const char *const *metric, int metrics) {
    fputs("<tr>", out);
    put_name(out, "all");
    fputs("<td></td><td></td><td></td>", out);
    put_number(out, number_of(walk, "samples"), NULL);
    put_metrics(out, walk, metric, metrics);
    fputs("<td></td></tr>\n", out);
}

void table_folds(const facts *f, FILE *out) {
    enum { BEFORE = 5 };
    json_t *folds = results_get(f->doc[RESULTS_WALK], "folds"), *each;
    const char *metric[METRICS_MOST];
    char title[METRICS_MOST][48];
    const char *titles[BEFORE + COLUMNS * METRICS_MOST + 1] = {
        "fold", "training", "validation", "test", "test samples"};
    size_t i;
    int n = BEFORE;
    if (!json_array_size(folds)) return;
    int metrics = list_metrics(folds, metric);
    for (int k = 0; k < metrics; k++) {
        const char *unit;
        table_metric(metric[k], 0, &unit);
        snprintf(title[k], sizeof title[k], "%.40s%s%s", metric[k], *unit ? " " : "", unit);
        titles[n++] = title[k];
        titles[n++] = "trivial answer";
        titles[n++] = "skill";
    }
    titles[n++] = "status";
    put_head_as(out, "folds", "Folds", titles, n);
    json_array_foreach(folds, i, each) put_fold(out, each, metric, metrics);
    if (json_object_get(f->doc[RESULTS_WALK], "metrics")) put_whole(out, f->doc[RESULTS_WALK], metric, metrics);
    put_end(out);
}

// Assumptions

void table_assumptions(const facts *f, FILE *out) {
    json_t *list = results_get(f->doc[RESULTS_BACKTEST], "assumptions"), *each;
    size_t i;
    if (!json_array_size(list)) return;
    fputs("<details><summary>Assumptions of the backtest</summary><dl>\n", out);
    json_array_foreach(list, i, each) {
        const char *key = text_of(each, "key"), *text = text_of(each, "text");
        fputs("<dt>", out);
        markup_text(out, key ? key : "");
        fputs("</dt><dd>", out);
        markup_text(out, text ? text : "");
        fputs("</dd>\n", out);
    }
    fputs("</dl></details>\n", out);
}
