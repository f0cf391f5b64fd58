// The program: finds the command, reads the options, and turns an error into one line and an exit status.
#include "base/clock.h"
#include "base/config_near.h"
#include "base/json.h"
#include "base/stop.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {
#define COMMAND(name) &cli_##name,
#include "cli/commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void on_signal(int number) {
    if (stop_ask()) return;
    signal(number, SIG_DFL);
    raise(number);
}

void cli_watch_signals(void) {
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, was;
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    // nohup has it ignored, so that a terminal that closes ends nothing.
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) sigaction(SIGHUP, &act, NULL);
    signal(SIGPIPE, SIG_IGN); // `train ... | head` ends the printing, not the run
}

bool cli_interrupted(void) {
    return stop_asked();
}

static void print_options(void) {
    printf("\noptions of every command:\n"
           "  --device auto|cuda|cuda:N|cpu\n"
           "                      where to compute (default auto: as run.device says, else the card where there is "
           "one)\n"
           "  --threads N         threads on the CPU (default: one per processor)\n"
           "  --isa NAME          CPU kernels: avx512, avx2 or base (default: the best there is)\n"
           "  --json              one JSON object a line instead of text\n"
           "  -v, -q              say more, say less\n"
           "  --help, --version\n");
}

// Summaries begin in one column; behind longer arguments, on the next line.
static void print_command(const cli_command *c) {
    enum { ROOM = 26 };
    bool fits = strlen(c->arguments) <= ROOM;
    if (!fits) printf("  %-8s %s\n", c->name, c->arguments);
    printf("  %-8s %-*s %s\n", fits ? c->name : "", ROOM, fits ? c->arguments : "", c->summary);
}

static void print_help(void) {
    printf("tradewind trains market models, in memory that is planned before the run.\n\nusage: tradewind COMMAND "
           "[ARGUMENTS] [OPTIONS]\n\n");
    for (int i = 0; i < COMMANDS; i++) print_command(commands[i]);
    print_options();
    printf("\n`tradewind COMMAND --help` says more. Exit status: 0 done, 1 the run failed, 2 the input is wrong.\n");
}

static void print_command_help(const cli_command *c) {
    printf("usage: tradewind %s %s [OPTIONS]\n\n%s\n", c->name, c->arguments, c->summary);
    if (c->details) printf("\n%s", c->details);
    print_options();
    if (c->more) c->more();
}

static bool read_number(const char *option, const char *text, int64_t least, int64_t most, int64_t *value, err *e) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < least || v > most)
        return err_input(
            e, "%s %s: must be an integer from %lld to %lld", option, text, (long long)least, (long long)most);
    *value = v;
    return true;
}

static bool read_flag(cli_options *o, const char *arg) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--json", &o->json}, {"-q", &o->quiet}, {"--quiet", &o->quiet}, {"-v", &o->verbose},
        {"--verbose", &o->verbose}, {"--help", &o->help}, {"-h", &o->help}, {"--no-peer", &o->no_peer}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(arg, flags[i].name) == 0) return *flags[i].flag = true;
    return false;
}

static bool read_value(cli_options *o, const char *name, const char *value, bool *known, err *e) {
    const struct {
        const char *name;
        const char **text;
    } texts[] = {{"--device", &o->device}, {"--isa", &o->isa}, {"--peer", &o->peer}, {"--precision", &o->precision},
        {"--seed", &o->seed}};
    int64_t n = 0;
    *known = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(name, texts[i].name) != 0) continue;
        *texts[i].text = value;
        return true;
    }
    if (strcmp(name, "--threads") == 0) {
        if (!read_number(name, value, 1, 1024, &n, e)) return false;
        o->threads = (int)n;
        return true;
    }
    if (strcmp(name, "--batch") == 0) return read_number(name, value, 1, 10000000, &o->batch, e);
    if (strcmp(name, "--steps") == 0) return read_number(name, value, 1, 1000000, &o->steps, e);
    *known = false;
    return true;
}

// "--name value" or "--name=value".
static bool read_option(cli_options *o, int argc, char **argv, int *i, err *e) {
    char name[64];
    const char *equals = strchr(argv[*i], '='), *value = equals ? equals + 1 : *i + 1 < argc ? argv[*i + 1] : "";
    size_t length = equals ? (size_t)(equals - argv[*i]) : strlen(argv[*i]);
    if (length >= sizeof name) return err_input(e, "%.60s...: unknown option; see --help", argv[*i]);
    memcpy(name, argv[*i], length);
    name[length] = 0;
    bool known;
    if (!equals && *i + 1 >= argc) {
        read_value(o, name, "1", &known, e);
        return known ? err_input(e, "%s needs a value", name) : err_input(e, "%s: unknown option; see --help", name);
    }
    if (!read_value(o, name, value, &known, e)) return false;
    if (!known) return err_input(e, "%s: unknown option; see --help", name);
    if (!equals) ++*i;
    return true;
}

// True if a list of options, separated by spaces, has this one, which may be "--name=value".
static bool listed(const char *list, const char *option) {
    size_t n = strcspn(option, "=");
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, " ");
        if (length == n && strncmp(at, option, n) == 0) return true;
        at += length + strspn(at + length, " ");
    }
    return false;
}

static const char every_option[] = "--device --threads --isa --json --quiet -q --verbose -v --help -h";

// True if the command takes the option: one of every command, or one of its own.
static bool takes(const cli_command *c, const char *option) {
    return listed(every_option, option) || listed(c->options, option);
}

static bool read_own(cli_options *o, const cli_command *c, int argc, char **argv, int *i, err *e) {
    const char *arg = argv[*i], *equals = strchr(arg, '='), *value = NULL;
    if (o->owns == OWN_MOST) return err_input(e, "%.60s: more than %d options", arg, OWN_MOST);
    if (listed(c->flags, arg)) {
        if (equals) return err_input(e, "%.60s: takes no value", arg);
    } else if (equals) {
        value = equals + 1;
    } else {
        bool option = *i + 1 < argc &&
                      (listed(c->values, argv[*i + 1]) || listed(c->flags, argv[*i + 1]) || takes(c, argv[*i + 1]));
        if (*i + 1 >= argc || option)
            return err_input(e, "%s needs a value%s%.60s", arg, option ? "; the next word is the option " : "",
                option ? argv[*i + 1] : "");
        value = argv[++*i];
    }
    if (strcmp(arg, "-o") == 0 && cli_given(o, "-o"))
        return err_input(e, "-o %.200s: -o %.200s is given too; leave one out", value, cli_given(o, "-o"));
    o->own[o->owns++] = (cli_own){arg, value, o->words};
    return true;
}

const char *cli_given(const cli_options *o, const char *name) {
    for (int i = o->owns - 1; i >= 0; i--)
        if (listed(name, o->own[i].name)) return o->own[i].value ? o->own[i].value : "";
    return NULL;
}

static void try_list(nearest *n, const char *list) {
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, " ");
        nearest_try(n, at, at, length);
        at += length + strspn(at + length, " ");
    }
}

static bool unknown(const cli_command *c, const char *option, err *e) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(option, "="), option);
    nearest n = nearest_to(name);
    try_list(&n, every_option);
    try_list(&n, c->options);
    try_list(&n, c->values);
    try_list(&n, c->flags);
    if (n.path)
        return err_input(
            e, "%.60s: not an option of %s; did you mean %.*s?", option, c->name, (int)(n.end - n.path), n.path);
    return err_input(e, "%.60s: not an option of %s; see `tradewind %s --help`", option, c->name, c->name);
}

static bool read_options(int argc, char **argv, const cli_command *c, cli_options *o, err *e) {
    *o = (cli_options){.device = "auto"};
    for (int i = 2; i < argc; i++) {
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (o->words == c->words) return err_input(e, "%s: %s takes no further argument", argv[i], c->name);
            o->word[o->words++] = argv[i];
        } else if (listed(c->values, argv[i]) || listed(c->flags, argv[i])) {
            if (!read_own(o, c, argc, argv, &i, e)) return false;
        } else if (!takes(c, argv[i])) {
            return unknown(c, argv[i], e);
        } else if (!read_flag(o, argv[i]) && !read_option(o, argc, argv, &i, e)) {
            return false;
        }
    }
    return true;
}

static const cli_command *find(const char *name) {
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static int complain(const err *e) {
    fprintf(stderr, "tradewind: %s\n", e->text);
    return e->kind == ERR_INPUT ? 2 : 1;
}

// Everything that is printed without running a command; false where there is a command to run.
static bool only_prints(int argc, char **argv) {
    const char *word = argc < 2 ? "--help" : argv[1];
    if (strcmp(word, "help") == 0 && argc > 2 && find(argv[2])) {
        print_command_help(find(argv[2]));
        return true;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_help();
        return true;
    }
    if (strcmp(word, "--version") != 0) return false;
    printf("tradewind %s\n", TRADEWIND_VERSION);
    return true;
}

static bool no_command(const char *word, err *e) {
    nearest n = nearest_to(word);
    try_list(&n, "help --help --version");
    for (int i = 0; i < COMMANDS; i++) try_list(&n, commands[i]->name);
    if (n.path) return err_input(e, "%.60s: unknown command; did you mean %.*s?", word, (int)(n.end - n.path), n.path);
    return err_input(e, "%.60s: unknown command; `tradewind --help` lists them", word);
}

static bool run_command(int argc, char **argv, double started, err *e) {
    cli_options o;
    const cli_command *c = find(argv[1]);
    if (!c) return no_command(argv[1], e);
    if (!read_options(argc, argv, c, &o, e)) return false;
    o.started = started;
    if (!o.help) return c->run(&o, e);
    print_command_help(c);
    return true;
}

// Where a mapped file is read that someone has cut short meanwhile: nothing is left to go on with but the line.
static void on_lost_file(int number) {
    static const char line[] =
        "tradewind: a file was cut short while it was read, or its disk fails; put it back, then "
        "start again, train with --resume\n";
    ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
    (void)number;
    (void)written;
    _exit(1);
}

// A caller may have closed them: a file of ours that took their number would be written to by every message.
static void open_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) _exit(1);
}

// True where stdout is a pipe that nobody reads any more.
static bool nobody_reads(void) {
    struct pollfd p = {.fd = STDOUT_FILENO};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

int main(int argc, char **argv) {
    double started = clock_seconds();
    err e = {0};
    open_standard_files();
    json_begin();
    signal(SIGXFSZ, SIG_IGN); // a file that is too long is then an error of the write
    signal(SIGBUS, on_lost_file);
    if (!only_prints(argc, argv) && !run_command(argc, argv, started, &e)) return complain(&e);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !nobody_reads()) {
        err_run(&e, "cannot write the output: %s", strerror(errno));
        return complain(&e);
    }
    return argc < 2 ? 2 : 0;
}
