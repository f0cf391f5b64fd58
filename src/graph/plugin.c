#include "graph/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

// The folder that the program lies in.
static bool program_folder(char *path, size_t room) {
    ssize_t n = readlink("/proc/self/exe", path, room - 1);
    if (n <= 0) return false;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    return slash != NULL;
}

static bool find_beside(const char *name, char *path, size_t room) {
    static const char *const places[] = {"", "/lib", "/../lib/tradewind"};
    char folder[PATH_ROOM];
    if (!program_folder(folder, sizeof folder)) return false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, room, "%s%s/%s", folder, places[i], name);
        if (n > 0 && (size_t)n < room && access(path, R_OK) == 0) return true;
    }
    return false;
}

// Libraries of a card's maker run as they are loaded, and read what they did not get where memory is short.
static void on_crash(int number) {
    static const char line[] = "tradewind: a plug-in's library crashed as it was loaded; is memory short?\n";
    ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
    (void)number;
    (void)written;
    _exit(1);
}

static void *load(const char *path) {
    struct sigaction act = {.sa_handler = on_crash}, was;
    sigaction(SIGSEGV, &act, &was);
    errno = 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int code = errno;
    sigaction(SIGSEGV, &was, NULL);
    NEED(library || code != ENOMEM, "out of memory to load %s", path);
    return library;
}

const device *plugin_open(const char *name, bool *found, err *e) {
    char path[PATH_ROOM + 64];
    *found = find_beside(name, path, sizeof path);
    if (!*found) {
        err_run(e, "%s was not found beside the program", name);
        return NULL;
    }
    void *library = load(path);
    if (!library) {
        err_run(e, "%s cannot be loaded: %s", name, dlerror());
        return NULL;
    }
    plugin_entry *entry;
    void *symbol = dlsym(library, PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    const plugin *p = symbol ? entry() : NULL;
    if (p && p->hash && strcmp(p->hash, PLUGIN_HASH) == 0) return p->device;
    dlclose(library);
    err_run(e, "%s is of another build than the program; build both again", name);
    return NULL;
}
