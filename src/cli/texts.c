#include "cli/texts.h"

#include <stdlib.h>
#include <string.h>

static char *finish(FILE *f, char **text, bool ok, err *e) {
    ok = fclose(f) == 0 && ok;
    if (ok) return *text;
    free(*text);
    err_run(e, "out of memory for the description");
    return NULL;
}

static FILE *start(char **text, size_t *bytes, err *e) {
    FILE *f = open_memstream(text, bytes);
    if (!f) err_run(e, "out of memory for the description");
    return f;
}

char *texts_config(const setup *s, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = start(&text, &bytes, e);
    return f ? finish(f, &text, config_write(s->config, f), e) : NULL;
}
