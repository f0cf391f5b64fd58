#include "cli/switches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "TRADEWIND_CUDA";

static bool read_word(card_switches *s, char *word, err *e) {
    const struct {
        const char *word;
        bool *at;
    } flags[] = {{"debug", &s->debug}, {"fuse=0", &s->no_fuse}, {"head=0", &s->no_head}, {"early=0", &s->no_early},
        {"product=0", &s->no_product}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(word, flags[i].word) == 0) return *flags[i].at = true;
    if (strncmp(word, "blaslt=", 7) == 0 && word[7]) {
        s->blaslt = word + 7;
        return true;
    }
    return err_input(e,
        "%s: unknown word \"%s\"; use debug, fuse=0, head=0, early=0, product=0, blaslt=0 or blaslt=PATH, with commas",
        name, word);
}

bool switches_read(card_switches *s, err *e) {
    static char text[4096];
    const char *value = getenv(name);
    *s = (card_switches){0};
    if (!value) return true;
    if (strlen(value) >= sizeof text) return err_input(e, "%s: longer than %zu characters", name, sizeof text - 1);
    snprintf(text, sizeof text, "%s", value);
    char *rest = NULL;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (!read_word(s, word, e)) return false;
    return true;
}
