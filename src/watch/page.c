#include "watch/page.h"

#include "base/term.h"
#include "watch/axis.h"
#include "watch/markup.h"
#include "watch/table.h"

#include <math.h>
#include <string.h>

static const char style[] =
    "*{box-sizing:border-box}\n"
    "html{color-scheme:light dark;-webkit-text-size-adjust:100%}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\n"
    "main{max-width:1240px;margin:0 auto;padding:20px 16px 48px}\n"
    "h1{font-size:1.6rem;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}\n"
    "h2{font-size:1.2rem;margin:36px 0 12px;border-bottom:1px solid var(--grid);padding-bottom:4px}\n"
    "h3{font-size:1rem;margin:0 0 4px}p{margin:6px 0}.dim{color:var(--dim)}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;margin:20px 0}\n"
    ".card{border:1px solid var(--grid);border-radius:8px;padding:10px 12px}.card b{display:block;font-size:1.3rem;"
    "overflow-wrap:anywhere}\n"
    ".figures{display:grid;grid-template-columns:minmax(0,1fr);gap:20px}\n"
    "figure{margin:0;border:1px solid var(--grid);border-radius:8px;padding:12px;min-width:0}\n"
    "figure svg{display:block;width:100%;height:auto;margin:0 auto}.for-narrow "
    "svg{max-width:540px}figcaption{color:var(--dim);font-size:.85rem;margin-top:4px}\n"
    "@media (max-width:480px){main{padding:14px 12px 32px}figure{padding:8px}}\n"
    ".for-wide{display:none!important}\n"
    "@media (min-width:900px){.figures{grid-template-columns:repeat(2,minmax(0,1fr))}.wide{grid-column:1/-1}"
    ".wide .for-wide{display:block!important}.wide .for-narrow{display:none!important}}\n"
    ".scroll{overflow-x:auto;margin:12px 0}table{border-collapse:collapse;font-size:.9rem;min-width:100%}\n"
    "caption{text-align:left;font-weight:600;padding-bottom:6px}"
    "th,td{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid var(--grid);vertical-align:top}\n"
    "td.w{min-width:240px}.line{white-space:nowrap}td.n{font-variant-numeric:tabular-nums;white-space:nowrap}thead "
    "th{color:var(--dim);font-weight:500}\n"
    "tbody th{font-weight:500}code,pre{font:.85rem/1.45 ui-monospace,Menlo,Consolas,monospace}\n"
    "code{overflow-wrap:anywhere}pre{overflow-x:auto;border:1px solid var(--grid);border-radius:8px;padding:12px}\n"
    "details{margin:14px 0}summary{cursor:pointer;font-weight:600}dl{margin:8px 0}dt{font-weight:500;margin-top:6px}"
    "dd{margin:0 0 0 16px;color:var(--dim)}li{margin:4px 0}\n"
    "@media screen and (max-width:640px){.stack,.stack caption,.stack tbody{display:block}.stack thead{display:none}\n"
    ".stack tr{display:grid;grid-template-columns:1fr auto auto;column-gap:8px;padding:6px 0;border-bottom:1px solid "
    "var(--grid)}.stack th,.stack td{border:0;padding:0}.stack .w,.stack .detail{grid-column:1/-1;min-width:0}\n"
    ".stack .w{color:var(--dim);font-size:.82rem}.stack .none{display:none}"
    ".stack .detail::before{content:attr(data-name) \" \";color:var(--dim)}\n"
    ".folds tr>:nth-child(2),.folds tr>:nth-child(3){display:none}}\n" // training, validation
    "@media print{main{max-width:none;padding:0}figure,.card,tr{break-inside:avoid}h2{break-after:avoid}"
    ".scroll{overflow:visible}table{font-size:.72rem}th,td{padding-right:6px}.figures{grid-"
    "template-columns:repeat(2,minmax(0,1fr));gap:10px}"
    ".wide{grid-column:1/-1}.wide .for-wide{display:block!important}.wide .for-narrow{display:none!important}}\n";

static const char *last_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

// The head

static void put_head(const facts *f, FILE *out) {
    fputs("<!doctype html>\n" RESULTS_REPORT_MARK "\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src "
          "'unsafe-inline'\">\n<title>",
        out);
    markup_text(out, last_of(f->dir));
    fprintf(out, " - tradewind report</title>\n<style>\n%s%s</style></head><body><main>\n", svg_style, style);
}

static void put_title(const facts *f, FILE *out) {
    char from[32], to[32];
    fputs("<header><h1>", out);
    markup_text(out, last_of(f->dir));
    fputs("</h1>\n<p class=\"dim\">", out);
    const char *scheme = json_string_value(results_get(f->doc[RESULTS_WALK], "scheme"));
    const char *const words[] = {
        f->is_run ? "run" : "walk", f->status, scheme ? scheme : "", f->model, f->data, f->device};
    for (size_t i = 0, shown = 0; i < sizeof words / sizeof *words; i++) {
        if (!*words[i]) continue;
        fputs(shown++ ? ", " : "", out);
        markup_text(out, words[i]);
    }
    if (f->has_sum) {
        fprintf(out, "; %s to %s UTC, by tradewind ", axis_moment(f->sum.started, true, from, sizeof from),
            axis_moment(f->sum.changed, true, to, sizeof to));
        markup_text(out, f->sum.version);
    }
    fputs("</p></header>\n", out);
}

// Cards

static void put_card(FILE *out, const char *label, double value, const char *unit) {
    char text[48];
    if (isnan(value)) return;
    if (value == floor(value) || fabs(value) >= 10000)
        term_count(text, sizeof text, value);
    else
        snprintf(text, sizeof text, "%.4g", value);
    fprintf(out, "<div class=\"card\"><b>%s", text);
    if (unit && *unit) fputc(' ', out);
    markup_short(out, unit ? unit : "", 12);
    fputs("</b><span class=\"dim\">", out);
    markup_text(out, label);
    fputs("</span></div>\n", out);
}

// Metrics of an object, a card each.
static void put_metrics(FILE *out, const char *part, json_t *metrics) {
    char label[96];
    const char *key;
    json_t *value;
    json_object_foreach(metrics, key, value) {
        const char *unit;
        double v = table_metric(key, results_number(value), &unit);
        snprintf(label, sizeof label, "%.40s %.40s", part, key);
        for (char *c = label; (c = strchr(c, '_'));) *c = ' ';
        put_card(out, label, v, unit);
    }
}

static void put_cards(const page *p, FILE *out) {
    enum { STATISTICS_SHOWN = 6 };
    const facts *f = p->facts;
    json_t *each;
    const char *key;
    int shown = 0;
    fputs("<div class=\"cards\">\n", out);
    bool agent = f->agent[0] != 0;
    if (f->has_sum && f->sum.epochs) put_card(out, agent ? "iterations" : "epochs", (double)f->sum.epochs, NULL);
    if (f->has_sum && f->sum.best_epoch)
        put_card(out, agent ? "best iteration" : "best epoch", (double)f->sum.best_epoch, NULL);
    if (agent) put_card(out, "mean reward", facts_best(f, "", "eval/mean_reward"), NULL);
    put_metrics(out, "validation", json_object_get(p->summary, "validation"));
    if (f->part && strcmp(f->part_name, "validation") != 0)
        put_metrics(out, f->part_name, json_object_get(f->part, "metrics"));
    json_object_foreach(json_object_get(p->summary, "backtest"), key, each) {
        if (shown++ == STATISTICS_SHOWN) break;
        put_card(out, json_string_value(json_object_get(each, "label")), results_number(json_object_get(each, "value")),
            json_string_value(json_object_get(each, "unit")));
    }
    put_metrics(out, "all tests:", results_get(f->doc[RESULTS_WALK], "metrics"));
    fputs("</div>\n", out);
}

// Notes, and figures that are missing

static void put_lack(const json_t *one, FILE *out) {
    const json_t *titles = json_object_get(one, "figures");
    const char *why = json_string_value(json_object_get(one, "why"));
    const char *command = json_string_value(json_object_get(one, "command"));
    fputs("<li>", out);
    for (size_t i = 0; i < json_array_size(titles); i++) {
        fputs(i ? "; " : "", out);
        markup_text(out, json_string_value(json_array_get(titles, i)));
    }
    fputs(": ", out);
    if (why) markup_text(out, why);
    if (command) fputs("<code>", out);
    if (command) markup_text(out, command);
    fputs(command ? "</code></li>\n" : "</li>\n", out);
}

static void put_notes(const json_t *summary, FILE *out) {
    json_t *notes = json_object_get(summary, "notes"), *each;
    size_t i;
    json_array_foreach(notes, i, each) {
        fputs("<p><strong>Note:</strong> ", out);
        markup_text(out, json_string_value(each));
        fputs("</p>\n", out);
    }
}

static void put_missing(const json_t *summary, FILE *out) {
    json_t *missing = json_object_get(summary, "missing"), *each;
    size_t i;
    if (!json_array_size(missing)) return;
    fputs("<section><h2>Missing</h2>\n<ul>\n", out);
    json_array_foreach(missing, i, each) put_lack(each, out);
    fputs("</ul></section>\n", out);
}

// Figures

static void put_figure(const page_figure *g, FILE *out) {
    fprintf(out, "<figure class=\"%s\" id=\"%s\"><h3>", g->wide ? "wide" : "", g->of->name);
    markup_text(out, g->of->title);
    fputs("</h3>\n<div class=\"for-narrow\">", out);
    fputs(g->narrow, out);
    fputs("</div>\n", out);
    if (g->wide) fprintf(out, "<div class=\"for-wide\">%s</div>\n", g->wide);
    if (g->of->note) {
        fputs("<figcaption>", out);
        markup_text(out, g->of->note);
        fputs("</figcaption>", out);
    }
    fputs("</figure>\n", out);
}

static bool has_figures(const page *p, const char *section) {
    for (int i = 0; i < p->figures; i++)
        if (strcmp(p->figure[i].of->section, section) == 0) return true;
    return false;
}

static void put_figures(const page *p, const char *section, FILE *out) {
    if (!has_figures(p, section)) return;
    fputs("<div class=\"figures\">\n", out);
    for (int i = 0; i < p->figures; i++)
        if (strcmp(p->figure[i].of->section, section) == 0) put_figure(&p->figure[i], out);
    fputs("</div>\n", out);
}

// A section: a table that is short before the figures, one that is long behind them.
typedef struct {
    const char *name;
    void (*table)(const facts *f, FILE *out); // NULL: none
    bool has_table, is_long;
} section;

static void put_section(const page *p, const section *s, FILE *out) {
    if (!has_figures(p, s->name) && !s->has_table) return;
    fprintf(out, "<section><h2>%s</h2>\n", s->name);
    if (s->table && !s->is_long) s->table(p->facts, out);
    put_figures(p, s->name, out);
    if (s->table && s->is_long) s->table(p->facts, out);
    fputs("</section>\n", out);
}

static void put_text(const char *title, const char *text, FILE *out) {
    if (!text) return;
    fprintf(out, "<details><summary>%s</summary><pre tabindex=\"0\">", title);
    markup_text(out, text);
    fputs("</pre></details>\n", out);
}

void page_write(const page *p, FILE *out) {
    const facts *f = p->facts;
    put_head(f, out);
    put_title(f, out);
    put_cards(p, out);
    put_notes(p->summary, out);
    const section sections[] = {{"Walk", table_folds, f->doc[RESULTS_WALK] != NULL, false},
        {"Backtest", table_statistics, f->doc[RESULTS_BACKTEST] != NULL, true},
        {"Answers", table_scores, f->part != NULL, false}, {"Training", NULL, false, false},
        {"Machine", NULL, false, false}};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) put_section(p, &sections[i], out);
    fputs("<section><h2>Description</h2>\n", out);
    table_assumptions(f, out);
    put_text(
        f->is_run ? "Description of the run (config.yaml)" : "Description of the walk (config.yaml)", f->config, out);
    put_text("Plan (plan.yaml)", f->plan, out);
    fputs("</section>\n", out);
    put_missing(p->summary, out);
    fputs("</main></body></html>\n", out);
}
