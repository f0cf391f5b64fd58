#include "cli/watch_web.h"

#include "base/json.h"
#include "watch/board.h"
#include "watch/csv.h"
#include "watch/web/assets.h"
#include "watch/web/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HOSTS_MOST = 16 };

const char watch_web_help[] =
    "  --web PORT          serve a page with curves, memory, settings and events of the runs below DIR, live; 0 takes "
    "any port.\n"
    "                      Its address is printed. /metrics is for Prometheus, /api/runs for programs\n"
    "  --bind ADDRESS      listen there instead of 127.0.0.1; the address then has a token, without which nothing is "
    "shown.\n"
    "                      The connection is not encrypted: an SSH tunnel is the safer way\n"
    "  --host NAME         answer to this name too, as behind a proxy; may be given again\n"
    "  --csv TABLE         print a table of the run's run.db as CSV: epochs, metrics, steps, samples, events, run\n"
    "  --tensorboard       write an event file of TensorBoard beside the run's run.db, and go on until the run ends\n";

bool watch_web_asked(const cli_options *o) {
    return cli_given(o, "--web") || cli_given(o, "--csv") || cli_given(o, "--bind") || cli_given(o, "--host") ||
           cli_given(o, "--tensorboard");
}

static bool read_port(const char *text, int *port, err *e) {
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 0 || n > 65535) return err_input(e, "--web %.40s: must be a port, 0 to 65535", text);
    *port = (int)n;
    return true;
}

static void print_start(const cli_options *o, const char *dir, const char *url) {
    if (o->json)
        json_line(stdout, json_pack("{s:s, s:s}", "directory", dir, "url", url));
    else
        printf("watching  %s\npage      %s\n", dir, url);
    if (!o->json && !o->quiet) puts("          Ctrl-C ends it; runs go on");
    fflush(stdout);
    if (!assets_whole)
        fputs("tradewind: this build has no page, as its charts come from npm: install npm and build again; /api/runs, "
              "/events and /metrics are there\n",
            stderr);
}

static bool serve(const cli_options *o, const char *dir, err *e) {
    static const long pause = (long)(SERVER_TICK * 1e9);
    const char *hosts[HOSTS_MOST + 1] = {NULL};
    server_options s = {.dir = dir, .bind = cli_given(o, "--bind"), .hosts = hosts, .version = TRADEWIND_VERSION};
    for (int i = 0, n = 0; i < o->owns && n < HOSTS_MOST; i++)
        if (strncmp(o->own[i].name, "--host", 6) == 0) hosts[n++] = o->own[i].value;
    if (!cli_given(o, "--web")) return err_input(e, "--bind and --host belong to --web PORT; add it");
    if (!read_port(cli_given(o, "--web"), &s.port, e)) return false;
    server *server = server_start(&s, e);
    if (!server) return false;
    print_start(o, dir, server_url(server));
    cli_watch_signals();
    while (!cli_interrupted()) {
        server_tick(server);
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    }
    server_stop(server);
    return true;
}

// A table that cannot be had whole is not begun: it goes to a file without a name first.
static bool print_table(const char *dir, const char *table, err *e) {
    char block[65536];
    FILE *rows = tmpfile();
    if (!rows) return err_run(e, "no place for a table; set TMPDIR");
    bool ok = csv_write(dir, table, rows, e);
    rewind(rows);
    for (size_t n; ok && (n = fread(block, 1, sizeof block, rows)) > 0;) fwrite(block, 1, n, stdout);
    fclose(rows);
    return ok;
}

// Follows the run in a process of its own, which is why `train` has no such option: nothing here can slow it.
static bool write_events(const cli_options *o, const char *dir, err *e) {
    static const struct timespec pause = {.tv_nsec = 500000000};
    bool running = true, ok = true;
    board *b = board_open(dir, e);
    if (!b) return false;
    cli_watch_signals();
    for (bool first = true; ok && running && !cli_interrupted(); first = false) {
        if (!first) nanosleep(&pause, NULL);
        ok = board_go_on(b, &running, e);
        if (ok && first && !o->json && !o->quiet)
            printf("events    %s%s\n", board_path(b), running ? "; Ctrl-C ends it, the run goes on" : "");
        fflush(stdout);
    }
    if (ok && o->json)
        json_line(stdout, json_pack("{s:s, s:I}", "events", board_path(b), "values", (json_int_t)board_values(b)));
    else if (ok && !o->quiet)
        printf("values    %lld\n", (long long)board_values(b));
    board_close(b);
    return ok;
}

bool watch_web(const cli_options *o, err *e) {
    const char *dir = o->words ? o->word[0] : "runs", *table = cli_given(o, "--csv");
    if (o->words > 1) return err_input(e, "%s: one directory is enough; runs below it are shown", o->word[1]);
    if (cli_given(o, "--tensorboard")) return write_events(o, dir, e);
    return table ? print_table(dir, table, e) : serve(o, dir, e);
}
