#include "cli/peer.h"

#include <stdint.h>
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

static bool has_torch(err *why) {
    char *argv[] = {"python3", "-c", "import torch", NULL};
    pid_t child;
    FILE *f = start(argv, &child);
    if (f && finish(f, child) == 0) return true;
    return err_run(why, "no PyTorch beside these figures: python3 with torch was not found");
}

bool peer_run(const peer_case *c, void (*on_line)(void *arg, const json_t *line), void *arg, err *why) {
    char threads[16], batch[32], line[4096];
    pid_t child;
    int lines = 0;
    if (access(c->script, R_OK) != 0)
        return err_run(why, "no PyTorch beside these figures: %s was not found; name it with --peer", c->script);
    if (!has_torch(why)) return false;
    snprintf(threads, sizeof threads, "%d", c->threads);
    snprintf(batch, sizeof batch, "%lld", (long long)c->batch);
    char *argv[] = {"python3", (char *)(uintptr_t)c->script, "--device", (char *)(uintptr_t)c->device, "--threads",
        threads, "--batch", batch, (char *)(uintptr_t)c->name, NULL};
    FILE *f = start(argv, &child);
    if (!f) return err_run(why, "cannot start python3");
    while (fgets(line, sizeof line, f)) {
        json_t *object = json_read(line, strlen(line), NULL);
        if (object && json_object_get(object, "samples_per_s")) {
            on_line(arg, object);
            lines++;
        }
        json_decref(object);
    }
    int status = finish(f, child);
    return lines ? true : err_run(why, "the PyTorch peer failed with exit status %d", status);
}
