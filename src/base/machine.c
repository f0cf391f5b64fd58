#include "base/machine.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, TEXT_ROOM = 8192 };

// The beginning of a small file as text.
static bool read_text(const char *path, char *text, size_t room) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

// The number behind a word at the beginning of a line, or -1.
static double number_behind(const char *text, const char *word) {
    size_t n = strlen(word);
    double v;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, n) == 0) return sscanf(line + n, "%lf", &v) == 1 ? v : -1;
    }
    return -1;
}

// Names that a version of cgroups has for its directory, its files, and file pages that were not used of late.
typedef struct {
    const char *dir, *own; // and what stands before this process's own path in /proc/self/cgroup
    const char *limit, *used, *idle;
} cgroups;

static const cgroups versions[] = {
    {"/sys/fs/cgroup", "0::", "memory.max", "memory.current", "inactive_file "},
    {"/sys/fs/cgroup/memory", ":memory:", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

// A file of a directory, whose number is given; or -1, as where there is no limit: "max".
static double number_in(const char *dir, const char *name) {
    char path[PATH_ROOM + 64], text[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return read_text(path, text, sizeof text) ? number_behind(text, "") : -1;
}

// A group counts where less is left in it than around it.
static void look_at_group(const cgroups *v, const char *dir, machine_memory *m) {
    char path[PATH_ROOM + 64], text[TEXT_ROOM];
    double limit = number_in(dir, v->limit), used = number_in(dir, v->used);
    if (limit < 0 || used < 0) return;
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    double idle = read_text(path, text, sizeof text) ? number_behind(text, v->idle) : -1;
    if (idle > 0) used = idle < used ? used - idle : 0;
    double left = limit > used ? limit - used : 0;
    if (m->available >= 0 && left >= m->available) return;
    m->total = limit;
    m->used = used;
    m->available = left;
}

// The process's own group and all around it. In a container the path may be one of outside: then only what the
// container sees as the outermost is there.
static void look_at_groups(const cgroups *v, const char *root, machine_memory *m) {
    char dir[PATH_ROOM], text[TEXT_ROOM], *own = NULL;
    snprintf(dir, sizeof dir, "%s/proc/self/cgroup", root);
    if (read_text(dir, text, sizeof text)) own = strstr(text, v->own);
    if (own) own[strcspn(own, "\n")] = 0;
    snprintf(dir, sizeof dir, "%s%s%s", root, v->dir, own ? own + strlen(v->own) : "");
    for (size_t least = strlen(root) + strlen(v->dir); strlen(dir) >= least;) {
        look_at_group(v, dir, m);
        *strrchr(dir, '/') = 0;
    }
}

machine_memory machine_look(const char *root) {
    machine_memory m = {-1, -1, -1, -1, -1};
    char path[PATH_ROOM], text[TEXT_ROOM];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_text(path, text, sizeof text)) {
        double total = number_behind(text, "MemTotal:"), left = number_behind(text, "MemAvailable:");
        if (total > 0) m.total = 1024 * total;
        if (left >= 0) m.available = 1024 * left;
        if (total > 0 && left >= 0) m.used = 1024 * (total - left);
    }
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) look_at_groups(&versions[i], root, &m);
    snprintf(path, sizeof path, "%s/proc/self/status", root);
    if (read_text(path, text, sizeof text)) {
        double own = number_behind(text, "RssAnon:"), most = number_behind(text, "VmHWM:");
        if (own >= 0) m.anonymous = 1024 * own;
        if (most >= 0) m.most = 1024 * most;
    }
    return m;
}
