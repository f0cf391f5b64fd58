#include "run/command.h"

#include "base/err.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In single quotes where a shell would read it otherwise.
static void write_word(const char *word, FILE *out) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=@%+-";
    if (!word[strspn(word, plain)]) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++) fputs(*word == '\'' ? "'\\''" : (const char[]){*word, 0}, out);
    fputc('\'', out);
}

char *command_resume(const char *dir) {
    char *text = NULL, *path = run_path(dir, "config.yaml");
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    NEED(out, "out of memory for a line");
    fputs("tradewind train ", out);
    write_word(path, out);
    fputs(" --resume", out);
    NEED(fclose(out) == 0 && text, "out of memory for a line");
    free(path);
    return text;
}
