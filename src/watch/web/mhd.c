#include "watch/web/mhd.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t at; // in mhd_calls
} functions[] = {
#define MHD_ROW(name) {"MHD_" #name, offsetof(mhd_calls, name)},
    MHD_CALLS(MHD_ROW)
#undef MHD_ROW
};

static mhd_calls calls;
static bool is_open;

bool mhd_open(err *e) {
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so"};
    void *library = NULL;
    if (is_open) return true;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_run(e, "the page needs libmicrohttpd: %s; install it (Debian: libmicrohttpd12)", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(library, functions[i].name);
        if (!f) return err_run(e, "libmicrohttpd has no %s; install version 0.9.71 or later", functions[i].name);
        memcpy((char *)&calls + functions[i].at, &f, sizeof f);
    }
    return is_open = true;
}

const mhd_calls *mhd(void) {
    CHECK(is_open, "libmicrohttpd is not open");
    return &calls;
}
