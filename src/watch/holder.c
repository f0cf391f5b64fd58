#include "watch/holder.h"

#include "base/network.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// The number in the file, which the process that takes the lock writes; 0: none.
static long process_of(const char *path) {
    long pid = 0;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &pid) != 1) pid = 0;
    if (f) fclose(f);
    return pid;
}

static bool is_alive(long pid) {
    char path[40];
    snprintf(path, sizeof path, "/proc/%ld", pid);
    return pid > 0 && access(path, F_OK) == 0;
}

// Looks for a lock on a file of this number: "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF". Devices are not
// compared, since some file systems show several.
static holder look_for_lock(unsigned long inode) {
    char line[256];
    FILE *f = fopen("/proc/locks", "re");
    if (!f) return HOLDER_UNKNOWN;
    holder found = HOLDER_NONE;
    while (fgets(line, sizeof line, f)) {
        char kind[16];
        unsigned long at = 0;
        if (sscanf(line, "%*s %15s %*s %*s %*s %*[0-9a-f]:%*[0-9a-f]:%lu", kind, &at) == 2 && kind[0] == 'F' &&
            at == inode)
            found = HOLDER_SOME;
    }
    fclose(f);
    return found;
}

holder holder_of(const char *path) {
    struct stat st;
    if (network_of(path) || stat(path, &st) != 0) return HOLDER_UNKNOWN;
    return is_alive(process_of(path)) ? HOLDER_SOME : look_for_lock((unsigned long)st.st_ino);
}

holder holder_look(const char *dir) {
    char *path = run_path(dir, "lock");
    holder found = holder_of(path);
    free(path);
    return found;
}
