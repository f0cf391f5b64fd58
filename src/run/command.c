#include "run/command.h"

#include "base/err.h"
#include "base/text.h"
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

char *command_words(const char *name, const char *const *word, int words, const char *options) {
    text_out t;
    text_open(&t);
    FILE *out = t.out;
    fprintf(out, "tradewind %s", name);
    for (int i = 0; i < words; i++) {
        fputc(' ', out);
        write_word(word[i], out);
    }
    if (*options) fprintf(out, " %s", options);
    char *text = text_close(&t);
    NEED(text, "out of memory for a line");
    return text;
}

char *command_line(const char *name, const char *path, const char *options) {
    return command_words(name, &path, 1, options);
}

char *command_resume(const char *dir) {
    char *path = run_path(dir, "config.yaml"), *text = command_line("train", path, "--resume");
    free(path);
    return text;
}
