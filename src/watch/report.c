#include "watch/report.h"

#include "base/file.h"
#include "base/text.h"
#include "run/run.h"
#include "watch/page.h"
#include "watch/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIGURES_MOST = 32 };

typedef struct {
    char *page, *dir; // paths of the page and of the figures
    page_figure figure[FIGURES_MOST];
    char *file[FIGURES_MOST]; // the text of each as a file
    char *path[FIGURES_MOST];
    int figures;
} work;

// Paths

static bool name_files(work *w, const report_options *o, err *e) {
    static const char ending[] = ".html";
    const size_t n = sizeof ending - 1;
    w->page = o->page ? strdup(o->page) : run_path(o->dir, "report.html");
    NEED(w->page, "out of memory for a path");
    size_t length = strlen(w->page);
    if (length <= n || strcmp(w->page + length - n, ending) != 0 || w->page[length - n - 1] == '/')
        return err_input(e, "-o %s: must end in .html", w->page);
    w->dir = strndup(w->page, length - n);
    NEED(w->dir, "out of memory for a path");
    return true;
}

// Figures

static char *draw(const facts *f, const figure *g, int width, char **file) {
    svg s;
    svg_open(&s, g->name, width, FIGURE_HEIGHT, g->title);
    g->draw(f, &s);
    char *text = svg_inline(&s);
    if (file) *file = svg_file(&s);
    svg_close(&s);
    return text;
}

static bool is_drawn(const facts *f, const figure *g) {
    return figure_applies(g, f) && g->has(f);
}

static char *path_of(const work *w, const figure *g) {
    char name[64];
    snprintf(name, sizeof name, "%s.svg", g->name);
    return run_path(w->dir, name);
}

static void draw_all(work *w, const facts *f) {
    const figure *g;
    for (int i = 0; (g = figure_at(i)); i++) {
        if (!is_drawn(f, g)) continue;
        CHECK(w->figures < FIGURES_MOST, "more than %d figures", FIGURES_MOST);
        int k = w->figures++;
        w->path[k] = path_of(w, g);
        w->figure[k] = (page_figure){.of = g, .narrow = draw(f, g, FIGURE_NARROW, g->wide ? NULL : &w->file[k])};
        if (g->wide) w->figure[k].wide = draw(f, g, FIGURE_WIDE, &w->file[k]);
    }
}

// Files

static bool may_write(const work *w, const report_options *o, err *e) {
    bool ok = o->may_replace(w->page, e);
    for (int i = 0; ok && i < w->figures; i++) ok = o->may_replace(w->path[i], e);
    return ok;
}

// The folder of figures is made; one for the page, most likely misspelled, is not.
static bool has_place(const work *w, err *e) {
    struct stat st;
    const char *slash = strrchr(w->page, '/');
    char *dir = slash ? strndup(w->page, slash > w->page ? (size_t)(slash - w->page) : 1) : strdup(".");
    NEED(dir, "out of memory for a path");
    bool is = stat(dir, &st) == 0 && S_ISDIR(st.st_mode);
    if (!is) err_input(e, "-o %s: there is no directory %s; make it, or name another place", w->page, dir);
    free(dir);
    return is;
}

static bool put(const char *path, const char *text, err *e) {
    file_writer f;
    bool ok =
        file_writer_open(&f, path, e) && file_writer_write(&f, text, strlen(text), e) && file_writer_commit(&f, e);
    file_writer_abandon(&f);
    return ok;
}

static bool write_page(const work *w, const facts *f, const json_t *summary, err *e) {
    text_out t;
    text_open(&t);
    page_write(&(page){f, summary, w->figure, w->figures}, t.out);
    char *text = text_close(&t);
    NEED(text, "out of memory for a page");
    bool ok = put(w->page, text, e);
    free(text);
    return ok;
}

// Figures of an earlier report that this one has not: they would be taken for its own.
static void remove_others(const work *w, const facts *f, const report_options *o) {
    const figure *g;
    err unused;
    for (int i = 0; (g = figure_at(i)); i++) {
        char *path = path_of(w, g);
        if (!is_drawn(f, g) && access(path, F_OK) == 0 && o->may_replace(path, &unused)) unlink(path);
        free(path);
    }
}

// The page comes last: whoever sees it finds its figures.
static bool write_all(const work *w, const facts *f, const json_t *summary, err *e) {
    bool ok = has_place(w, e) && file_make_dirs(w->dir, e);
    for (int i = 0; ok && i < w->figures; i++) ok = put(w->path[i], w->file[i], e);
    return ok && write_page(w, f, summary, e);
}

static void add_paths(json_t *summary, const work *w) {
    json_t *page = json_string(w->page), *dir = json_string(w->dir);
    json_object_set_new(summary, "report", page ? page : json_null());
    json_object_set_new(summary, "directory", dir ? dir : json_null());
}

static void work_done(work *w) {
    for (int i = 0; i < w->figures; i++) {
        free(w->figure[i].narrow);
        free(w->figure[i].wide);
        free(w->file[i]);
        free(w->path[i]);
    }
    free(w->page);
    free(w->dir);
}

json_t *report_make(const report_options *o, err *e) {
    facts *f = calloc(1, sizeof *f);
    work w = {0};
    json_t *summary = NULL;
    NEED(f, "out of memory for a report");
    bool ok = name_files(&w, o, e) && facts_open(f, o->dir, e);
    if (ok) {
        summary = summary_make(f);
        draw_all(&w, f);
        ok = may_write(&w, o, e) && write_all(&w, f, summary, e);
        if (ok) remove_others(&w, f, o);
        if (ok) add_paths(summary, &w);
        facts_close(f);
    }
    work_done(&w);
    free(f);
    if (ok) return summary;
    json_decref(summary);
    return NULL;
}
