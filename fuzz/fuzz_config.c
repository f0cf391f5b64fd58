// Any bytes as a run description and an override: no crash, messages of one line, and what the check accepts is written
// so that it reads back, passes the check and is written the same. The first line is the override, the rest is the
// file.
#include "base/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const config_key keys[] = {
    {"whole", CONFIG_INT, "auto", 0, 100, "auto", "an integer", 0},
    {"part", CONFIG_REAL, "0.5", 1e-30, INFINITY, NULL, "a number", 0},
    {"flag", CONFIG_BOOL, "true", 0, 0, "bf16|fp16", "a switch", 0},
    {"text", CONFIG_TEXT, "", 0, 0, NULL, "a text", 0},
    {"kind", CONFIG_CHOICE, "mlp", 0, 0, "mlp|lstm", "a choice", 0},
    {"list", CONFIG_LIST, "a, 'b, c'", 0, 0, NULL, "a list", 0},
    {"both", CONFIG_LIST, NULL, 0, 0, NULL, "a list, or keys", 0},
    {"both.*", CONFIG_TEXT, NULL, 0, 0, NULL, "a text", 0},
    {"any.list.*", CONFIG_LIST, NULL, 0, 0, NULL, "a list", 0},
    {"any.whole.*", CONFIG_INT, NULL, -INFINITY, INFINITY, NULL, "an integer", 0},
    {"there", CONFIG_MAP, NULL, 0, 0, NULL, "a section", 0},
    {"there.list", CONFIG_LIST, "[]", 0, 0, NULL, "a list", 0},
    {"always", CONFIG_MAP, "{}", 0, 0, NULL, "a section", 0},
};

enum { COUNT = sizeof keys / sizeof *keys };

static void check_message(const err *e) {
    CHECK(e->kind == ERR_INPUT, "a refusal that blames nobody: %s", e->text);
    CHECK(*e->text && !strpbrk(e->text, "\n\r\t"), "a message of several lines: %s", e->text);
}

static char *written(const config *c, size_t *bytes) {
    char *text = NULL;
    FILE *f = open_memstream(&text, bytes);
    CHECK(f && config_write(c, f) && !fclose(f), "not written");
    return text;
}

static void compare_list(const config *a, const config *b, const char *path) {
    size_t count = config_items(a, path);
    CHECK(config_items(b, path) == count, "%s has another length", path);
    for (size_t i = 0; i < count; i++)
        CHECK(!strcmp(config_item(a, path, i), config_item(b, path, i)), "%s differs at %zu", path, i);
}

static void compare(const config *a, const config *b) {
    static const char *const lists[] = {"list", "both", "there.list"};
    static const char *const texts[] = {"text", "kind"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK(!strcmp(config_text(a, texts[i]), config_text(b, texts[i])), "%s differs", texts[i]);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) compare_list(a, b, lists[i]);
    CHECK(config_real(a, "part") == config_real(b, "part"), "part differs");
    CHECK(config_is(a, "whole", "auto") == config_is(b, "whole", "auto"), "whole differs");
    size_t count = config_count(a, "any.list");
    CHECK(config_count(b, "any.list") == count, "any.list has other keys");
    for (size_t i = 0; i < count; i++) {
        char path[128];
        snprintf(path, sizeof path, "any.list.%s", config_child(a, "any.list", i));
        compare_list(a, b, path);
    }
}

static void round_trip(const config *c) {
    err e = {0};
    size_t bytes, bytes_again;
    char *text = written(c, &bytes);
    if (bytes > 1 << 20) goto done; // escapes made it longer than a file may be
    config *again = config_read("again", text, bytes, keys, COUNT, &e);
    CHECK(again && config_check(again, &e), "what was written is refused: %s", e.text);
    compare(c, again);
    char *text_again = written(again, &bytes_again);
    CHECK(bytes == bytes_again && !memcmp(text, text_again, bytes), "written otherwise the second time");
    free(text_again);
    config_free(again);
done:
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t line = end ? (size_t)(end - data) : size;
    char *assignment = strndup((const char *)data, line);
    CHECK(assignment, "out of memory");
    err e = {0};
    const char *file = (const char *)data + (end ? line + 1 : line);
    config *c = config_read("file", file, size - (size_t)(file - (const char *)data), keys, COUNT, &e);
    if (!c) check_message(&e);
    if (c && *assignment && !config_override(c, assignment, &e)) check_message(&e);
    if (c && config_check(c, &e))
        round_trip(c);
    else
        check_message(&e);
    config_free(c);
    free(assignment);
    return 0;
}
