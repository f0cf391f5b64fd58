#include "cli/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Starts a program with its output on a pipe and its errors discarded.
static FILE *start(char *const argv[], pid_t *child) {
    int ends[2];
    if (pipe(ends) != 0) return NULL;
    *child = fork();
    if (*child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (!freopen("/dev/null", "w", stderr)) _exit(127);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    if (*child > 0) {
        FILE *f = fdopen(ends[0], "r");
        if (f) return f;
    }
    close(ends[0]);
    return NULL;
}

static int finish(FILE *f, pid_t child) {
    int status = 0;
    fclose(f);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 127;
    return WEXITSTATUS(status);
}

bool peer_ready(const char *script, err *why) {
    char *argv[] = {"python3", "-c", "import torch", NULL};
    pid_t child;
    if (access(script, R_OK) != 0)
        return err_run(why, "no PyTorch beside these figures: %s was not found; name it with --peer", script);
    FILE *f = start(argv, &child);
    if (f && finish(f, child) == 0) return true;
    return err_run(why, "no PyTorch beside these figures: python3 with torch was not found");
}

enum { WORDS = 24, NUMBER = 24 };

typedef struct {
    char *argv[WORDS + 1];
    char number[WORDS][NUMBER];
    int count;
} command;

static void add_word(command *c, const char *word) {
    CHECK(c->count < WORDS, "a peer's command of more than %d words", (int)WORDS);
    c->argv[c->count++] = (char *)(uintptr_t)word;
}

// An option that is left out where its value is 0.
static void add_number(command *c, const char *option, int64_t value) {
    if (!value) return;
    add_word(c, option);
    char *text = c->number[c->count % WORDS];
    snprintf(text, NUMBER, "%lld", (long long)value);
    add_word(c, text);
}

static void make_command(command *to, const peer_case *c) {
    bool quick = c->quick && strncmp(c->device, "cuda", 4) == 0;
    *to = (command){0};
    add_word(to, "python3");
    add_word(to, c->script);
    add_word(to, "--device");
    add_word(to, c->device);
    add_number(to, "--threads", c->threads);
    add_number(to, "--batch", c->batch);
    add_number(to, "--hidden", c->hidden);
    add_number(to, "--window", c->window);
    add_number(to, "--layers", c->layers);
    add_number(to, "--steps", quick ? 30 : 0);
    add_number(to, "--warmup", quick ? 5 : 0);
    if (quick) add_word(to, "--way");
    if (quick) add_word(to, "graph");
    add_word(to, c->name);
}

bool peer_run(const peer_case *c, void (*on_line)(void *arg, const json_t *line), void *arg, err *why) {
    char line[4096];
    pid_t child;
    int lines = 0;
    command made;
    make_command(&made, c);
    FILE *f = start(made.argv, &child);
    if (!f) return err_run(why, "cannot start python3");
    while (fgets(line, sizeof line, f)) {
        json_t *object = json_read(line, strlen(line), NULL);
        if (object && !json_object_get(object, "error")) {
            on_line(arg, object);
            lines++;
        }
        json_decref(object);
    }
    int status = finish(f, child);
    return lines ? true : err_run(why, "%s: the PyTorch peer failed with exit status %d", c->name, status);
}
