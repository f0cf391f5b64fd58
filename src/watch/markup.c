#include "watch/markup.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

static const char unknown[] = "\xEF\xBF\xBD", ellipsis[] = "\xE2\x80\xA6";

// Bytes of the character at `at`; 0 where it is no UTF-8, too long a form, a surrogate or beyond U+10FFFF.
static int length_of(const unsigned char *at) {
    int n = *at < 0x80                  ? 1
            : *at >= 0xC2 && *at < 0xE0 ? 2
            : *at >= 0xE0 && *at < 0xF0 ? 3
            : *at >= 0xF0 && *at < 0xF5 ? 4
                                        : 0;
    for (int i = 1; i < n; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    bool bad = (*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F) || (*at == 0xF0 && at[1] < 0x90) ||
               (*at == 0xF4 && at[1] > 0x8F);
    return bad && n > 2 ? 0 : n;
}

static bool is_control(unsigned char c) {
    return (c < ' ' && c != '\n' && c != '\t') || c == 0x7F;
}

static const char *entity(unsigned char c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    }
    return is_control(c) ? unknown : NULL;
}

static int characters_of(const unsigned char *at) {
    int count = 0;
    for (; *at; count++) {
        int n = length_of(at);
        at += n ? n : 1;
    }
    return count;
}

void markup_short(FILE *out, const char *text, int most) {
    const unsigned char *at = (const unsigned char *)text;
    bool cut = characters_of(at) > most;
    for (int left = cut ? most - 1 : most; *at && left > 0; left--) {
        int n = length_of(at);
        const char *instead = n == 1 ? entity(*at) : n ? NULL : unknown;
        if (instead)
            fputs(instead, out);
        else
            fwrite(at, 1, (size_t)n, out);
        at += n ? n : 1;
    }
    if (cut) fputs(ellipsis, out);
}

void markup_text(FILE *out, const char *text) {
    markup_short(out, text, INT_MAX);
}
