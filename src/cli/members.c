#include "cli/members.h"

#include "base/file.h"
#include "run/outline.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONFIG_MOST = 1 << 20 };

int members_of(const char *dir) {
    err unused;
    size_t bytes;
    char *path = run_path(dir, "config.yaml"), *text = file_read(path, CONFIG_MOST, &bytes, &unused);
    char *value = text ? outline_value(text, "train.ensemble") : NULL;
    int n = value ? atoi(value) : 0;
    free(value);
    free(text);
    free(path);
    return n > 1 && n <= MEMBERS_MOST ? n : 0;
}

char *members_dir(const char *dir, int k) {
    char name[32];
    snprintf(name, sizeof name, "member_%d", k);
    return run_path(dir, name);
}
