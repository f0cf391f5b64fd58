#include "cli/cards.h"

#include "base/json.h"
#include "graph/arch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CARDS_MOST = 16, TEXT_ROOM = 128, PATH_ROOM = 4096, CACHE_ROOM = PATH_ROOM + 128 };

static int look(const device *plugin, device_identity list[CARDS_MOST]) {
    int count = plugin->cards ? plugin->cards(list, CARDS_MOST) : 0;
    return count < CARDS_MOST ? count : CARDS_MOST;
}

// Where a card's kernels come from; empty where they are machine code, or nobody knows.
static void kernels_text(const device *plugin, const device_identity *i, char text[TEXT_ROOM]) {
    arch_kernels k = arch_kernels_of(plugin->built, i->arch);
    text[0] = 0;
    if (i->arch && i->arch < ARCH_LEAST)
        snprintf(text, TEXT_ROOM, "too old; sm_%d (Turing) or newer is needed", ARCH_LEAST);
    else if (!plugin->built || !i->arch || (k.arch && !k.ptx))
        return;
    else if (k.ptx)
        snprintf(
            text, TEXT_ROOM, "kernels from compute_%d PTX; `make` on this machine builds them for the card", k.arch);
    else
        snprintf(text, TEXT_ROOM, "no kernels; `make` on this machine builds them for the card");
}

// True if a folder can be made there or is there, and files in it.
static bool can_be_written(char *path) {
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path) return access(slash ? "/" : ".", W_OK) == 0;
        *slash = 0;
    }
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode) && access(path, W_OK) == 0;
}

// Where the driver keeps what it compiles from PTX, or why it compiles at every start.
static void cache_text(char *text, size_t room) {
    const char *off = getenv("CUDA_CACHE_DISABLE"), *home = getenv("HOME"), *given = getenv("CUDA_CACHE_PATH");
    char path[PATH_ROOM], tried[PATH_ROOM];
    snprintf(path, sizeof path, "%s%s", given ? given : home ? home : "", given ? "" : "/.nv/ComputeCache");
    snprintf(tried, sizeof tried, "%s", path);
    if (off && strcmp(off, "0") != 0)
        snprintf(text, room, "compiled at every start, as CUDA_CACHE_DISABLE is set");
    else if (can_be_written(tried))
        snprintf(text, room, "the driver keeps what it compiles in %s", path);
    else
        snprintf(
            text, room, "compiled at every start, as %s cannot be written; name a folder in CUDA_CACHE_PATH", path);
}

static void print_card(const device *plugin, const device_identity *i, int number, FILE *out) {
    char kernels[TEXT_ROOM];
    kernels_text(plugin, i, kernels);
    fprintf(out, "%-10s cuda:%d %s", number ? "" : "cards", number, i->card);
    if (i->arch) fprintf(out, ", sm_%d", i->arch);
    fprintf(out, ", %.1f GB%s%s\n", (double)i->total / 0x1p30, kernels[0] ? ": " : "", kernels);
}

// False where no card's kernels come from PTX.
static bool ptx_text(const device *plugin, const device_identity *list, int count, char *text, size_t room) {
    bool ptx = false;
    for (int i = 0; i < count; i++)
        ptx |= list[i].arch >= ARCH_LEAST && arch_kernels_of(plugin->built, list[i].arch).ptx;
    if (ptx) cache_text(text, room);
    return ptx;
}

void cards_print(const device *plugin, FILE *out) {
    device_identity list[CARDS_MOST];
    char built[TEXT_ROOM], cache[CACHE_ROOM];
    if (!plugin) return;
    if (plugin->built) {
        arch_text(plugin->built, built, sizeof built);
        fprintf(out, "plug-in    built for %s; needs a driver that serves CUDA %d.%d\n", built, plugin->needs / 1000,
            plugin->needs % 1000 / 10);
    }
    int count = look(plugin, list);
    for (int i = 0; i < count; i++) print_card(plugin, &list[i], i, out);
    if (ptx_text(plugin, list, count, cache, sizeof cache)) fprintf(out, "PTX        %s\n", cache);
}

void cards_json(const device *plugin, json_t *to) {
    device_identity list[CARDS_MOST];
    char text[TEXT_ROOM], cache[CACHE_ROOM];
    if (!plugin) return;
    if (plugin->built) {
        arch_text(plugin->built, text, sizeof text);
        json_object_set_new(to, "built_for", json_string(text));
        snprintf(text, sizeof text, "%d.%d", plugin->needs / 1000, plugin->needs % 1000 / 10);
        json_object_set_new(to, "needs_cuda", json_string(text));
    }
    json_t *all = json_array();
    int count = look(plugin, list);
    for (int i = 0; i < count; i++) {
        kernels_text(plugin, &list[i], text);
        json_array_append_new(
            all, json_pack("{s:i, s:s, s:i, s:o, s:s?}", "number", i, "name", list[i].card, "arch", list[i].arch,
                     "memory_gb", json_number((double)list[i].total / 0x1p30), "note", text[0] ? text : NULL));
    }
    json_object_set_new(to, "cards", all);
    if (ptx_text(plugin, list, count, cache, sizeof cache)) json_object_set_new(to, "ptx", json_string(cache));
}
