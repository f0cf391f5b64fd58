#include "base/config_keys.h"

#include "base/config_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Letter by letter: every key that is read is sought in all rows. A '*' is a part of its own.
const char *row_below(const char *row, const char *path) {
    if (!*path) return row;
    for (;; row++, path++) {
        if (*row == '*') row++, path += part_length(path);
        if (!*path) return !*row ? row : *row == '.' ? row + 1 : NULL;
        if (*row != *path) return NULL;
    }
}

bool row_is_wild(const config_key *k) {
    return strchr(k->path, '*') != NULL;
}

const config_key *config_row(const config_key *keys, size_t count, const char *path) {
    const config_key *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(keys[i].path, path)) return &keys[i];
        const char *rest = row_below(keys[i].path, path);
        if (!found && rest && !*rest && row_is_wild(&keys[i])) found = &keys[i];
    }
    return found;
}

const config_key *row_find(const config *c, const char *path) {
    return config_row(c->keys, c->count, path);
}

bool row_is_section(const config *c, const char *path) {
    const config_key *k = row_find(c, path);
    if (k && k->type == CONFIG_MAP) return true;
    for (size_t i = 0; i < c->count; i++) {
        const char *rest = row_below(c->keys[i].path, path);
        if (rest && *rest) return true;
    }
    return false;
}

const char *choice_next(const char **list, size_t *len) {
    const char *word = *list;
    if (!word || !*word) return NULL;
    *len = strcspn(word, "|");
    *list = word + *len + (word[*len] == '|');
    return word;
}

static size_t choice_count(const char *list) {
    size_t n = 0, len;
    while (choice_next(&list, &len)) n++;
    return n;
}

// True if the choice is this text, or ends in ":N" where the text has a number.
static bool choice_is(const char *word, size_t len, const char *text) {
    enum { DIGITS_MOST = 3 };
    if (len < 2 || memcmp(word + len - 2, ":N", 2) != 0) return len == strlen(text) && !memcmp(word, text, len);
    if (strncmp(word, text, len - 1) != 0) return false;
    size_t digits = strspn(text + len - 1, "0123456789");
    return digits > 0 && digits <= DIGITS_MOST && !text[len - 1 + digits];
}

bool choice_has(const char *list, const char *text) {
    size_t len;
    for (const char *word; (word = choice_next(&list, &len));)
        if (choice_is(word, len, text)) return true;
    return false;
}

static void put_bound(words *w, double v) {
    if (v == floor(v) && fabs(v) < 1e15)
        words_put(w, "%.0f", v);
    else
        words_put(w, "%g", v);
}

static void put_number(words *w, const config_key *k, const char *noun) {
    bool above_zero = k->least > 0 && k->least <= 1e-30;
    words_put(w, "%s", noun);
    if (above_zero) {
        words_put(w, " above 0");
        if (k->most < INFINITY) words_put(w, " and at most ");
    } else if (k->least > -INFINITY && k->most < INFINITY) {
        words_put(w, " from ");
        put_bound(w, k->least);
        words_put(w, " to ");
    } else if (k->least > -INFINITY) {
        words_put(w, " of at least ");
        put_bound(w, k->least);
    } else if (k->most < INFINITY) {
        words_put(w, " of at most ");
    }
    if (k->most < INFINITY) put_bound(w, k->most);
}

void row_put_type(words *w, const config_key *k) {
    size_t own = k->type == CONFIG_BOOL ? 2 : k->type == CONFIG_INT || k->type == CONFIG_REAL ? 1 : 0;
    size_t i = own, n = own + choice_count(k->choices), len;
    if (k->type == CONFIG_MAP) words_put(w, "section");
    if (k->type == CONFIG_TEXT) words_put(w, "text");
    if (k->type == CONFIG_INT) put_number(w, k, "integer");
    if (k->type == CONFIG_REAL) put_number(w, k, "number");
    if (k->type == CONFIG_LIST) words_put(w, "list of words");
    if (k->type == CONFIG_BOOL) {
        words_item(w, 0, n, "true", 4);
        words_item(w, 1, n, "false", 5);
    }
    const char *list = k->type == CONFIG_TEXT || k->type == CONFIG_MAP ? NULL : k->choices;
    for (const char *word; (word = choice_next(&list, &len)); i++) words_item(w, i, n, word, len);
}

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

// Decimal digits and a sign; no leading zeros, which YAML 1.1 reads as octal.
static bool parse_int(const char *text, int64_t *v) {
    const char *from = text + (*text == '-' || *text == '+');
    size_t n = digits(from);
    if (!n || from[n] || (n > 1 && *from == '0')) return false;
    errno = 0;
    long long whole = strtoll(text, NULL, 10);
    if (errno) return false;
    *v = whole;
    return true;
}

static bool parse_real(const char *text, double *v) {
    const char *at = text + (*text == '-' || *text == '+');
    size_t whole = digits(at), part = 0;
    at += whole;
    if (*at == '.') {
        part = digits(++at);
        at += part;
    }
    if (!whole && !part) return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        size_t n = digits(at);
        if (!n) return false;
        at += n;
    }
    if (*at) return false;
    *v = strtod(text, NULL);
    return isfinite(*v);
}

static bool parse_bool(const char *text, bool *v) {
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(text, yes[i]) && strcasecmp(text, no[i])) continue;
        *v = !strcasecmp(text, yes[i]);
        return true;
    }
    return false;
}

static bool in_range(const config_key *k, double v) {
    return v >= k->least && v <= k->most;
}

// True if a scalar may stand for a list of one.
static bool parse_one(const char *text, bool quoted, const char **hint) {
    if (strlen(text) > ITEM_MOST)
        *hint = "a word has at most 255 bytes";
    else if (!quoted && strchr(text, ','))
        *hint = "write it in brackets, or in quotes if it is one word";
    else
        return true;
    return false;
}

bool row_parse(const config_key *k, const char *text, bool quoted, value *v, const char **hint) {
    *v = (value){0};
    if (k->type == CONFIG_TEXT) return true;
    if (k->type == CONFIG_LIST) return parse_one(text, quoted, hint);
    if (choice_has(k->choices, text)) {
        v->word = true;
        return true;
    }
    if (k->type == CONFIG_CHOICE || k->type == CONFIG_MAP) return false;
    if (quoted) {
        const char *ignored;
        if (row_parse(k, text, false, v, &ignored)) *hint = "remove the quotes";
        return false;
    }
    if (k->type == CONFIG_BOOL) return parse_bool(text, &v->b);
    if (k->type == CONFIG_INT && parse_int(text, &v->i)) return in_range(k, (double)v->i);
    if (parse_real(text, &v->r)) {
        if (k->type == CONFIG_REAL) return in_range(k, v->r);
        *hint = text[strcspn(text, ".eE")] ? "write it in digits alone" : "it does not fit, or starts with a 0";
    } else if (digits(text) && text[strspn(text, "0123456789_,'")] == 0) {
        *hint = "write it without separators";
    }
    return false;
}

void row_check(const config_key *keys, size_t at) {
    const config_key *k = &keys[at];
    bool number = k->type == CONFIG_INT || k->type == CONFIG_REAL;
    size_t depth = 0;
    for (const char *p = k->path; *p; p = part_next(p), depth++)
        CHECK(part_length(p) && part_length(p) <= KEY_MOST, "%s: bad path", k->path);
    CHECK(depth && depth <= DEPTH_MOST, "%s: bad path", k->path);
    CHECK(!number || k->least < k->most, "%s: no bounds", k->path);
    CHECK(k->type != CONFIG_CHOICE || choice_count(k->choices), "%s: no choices", k->path);
    CHECK(k->type != CONFIG_LIST || !k->choices, "%s: a list has no choices", k->path);
    for (size_t i = 0; i < at; i++) CHECK(strcmp(keys[i].path, k->path) != 0, "%s: two rows", k->path);
    if (!k->fallback || k->type == CONFIG_MAP || k->type == CONFIG_LIST) return; // whoever reads a list checks it
    value v;
    const char *hint = "";
    CHECK(row_parse(k, k->fallback, false, &v, &hint), "%s: bad fallback %s", k->path, k->fallback);
}
