// Failures of the world: disks that fill up, places that cannot be written, files that are damaged or changed,
// data and losses that are no numbers. Each ends with one line that says what to do, and nothing that was saved is
// lost.
//
// A full disk is made in two ways: with a limit on a file's size, and with a small file system of its own where this
// process may mount one.
#include "base/file.h"
#include "cli/program.h"
#include "data/npz.h"
#include "data/walk.h"
#include "run/checkpoint.h"
#include "run/same.h"
#include "support.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

// Five kilobytes of weights and eighteen of a checkpoint; every epoch is better than the one before it.
static void put_description(void) {
    put_text("run.yaml", "data: {synthetic: {bars: 2000}, windows: {fast: 4, slow: 2}}\n"
                         "model: {kind: mlp, widths: 8}\n"
                         "train: {epochs: 4, patience: 20, batch_size: 128, checkpoint_every: 1, metric: loss}\n"
                         "run: {dir: made}\n");
}

enum { ROOM_FOR_LOG = 4096, ROOM_FOR_BEST = 8192, ROOM_FOR_CHECKPOINT = 20480 };

// A run of files that are no longer than `bytes`.
static int run_limited(rlim_t bytes, const char *const *arguments) {
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, old.rlim_max}), 0);
    pid_t child = program_start("out", arguments);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    return program_finish(child);
}
#define LIMITED(bytes, ...) run_limited(bytes, (const char *const[]){__VA_ARGS__, NULL})

// The run ended with this status, and the last line on stderr matches; those before it are warnings.
static void fails(int status, int expected, const char *pattern) {
    char whole[512];
    if (status != expected) matches("err", "a status that was expected");
    snprintf(whole, sizeof whole, "^(tradewind: (warning|some lines)[^\n]*\n)*tradewind: %s\n$", pattern);
    matches("err", whole);
}

static int files_in(const char *dir, const char *ending) {
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *f; (f = readdir(d));) {
        size_t length = strlen(f->d_name), end = strlen(ending);
        n += f->d_name[0] != '.' && length >= end && !strcmp(f->d_name + length - end, ending);
    }
    closedir(d);
    return n;
}

static void never(void *arg, const char *why) {
    (void)arg;
    fail_msg("%s", why);
}

// Every checkpoint is whole, and nothing is left unfinished; the steps of the newest.
static uint64_t all_are_whole(const char *dir) {
    err e;
    char *path;
    safetensors *s = checkpoint_newest(dir, never, NULL, &path, &e);
    support_ok(s != NULL, &e);
    uint64_t step = checkpoint_step(s);
    safetensors_close(s);
    free(path);
    assert_int_equal(files_in(dir, ".tmp"), 0);
    return step;
}

// Full disks

static void check_full(rlim_t room, const char *unwritten) {
    char pattern[300];
    assert_int_equal(system("rm -rf made"), 0);
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=2", "-q"), 0);
    uint64_t step = all_are_whole("made");
    snprintf(pattern, sizeof pattern,
        "made/%s: cannot be written: File too large; [^\n;]*; --resume goes on from made/[a-z_2]+\\.safetensors, step "
        "%llu",
        unwritten, (unsigned long long)step);
    fails(LIMITED(room, "train", "run.yaml", "--resume"), 1, pattern);
    matches("made/training_log.txt", unwritten);
    assert_int_equal(all_are_whole("made"), step);
    assert_int_equal(RUN("train", "run.yaml", "--resume"), 0);
    same_runs("whole", "made");
}

static void a_full_disk_keeps_what_was_saved(void **state) {
    (void)state;
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=whole", "-q"), 0);
    check_full(ROOM_FOR_LOG, "best\\.safetensors");
    check_full(ROOM_FOR_BEST, "checkpoint_epoch_3\\.safetensors");
    fails(LIMITED(1000, "train", "run.yaml", "run.dir=new"), 1, "new/config\\.yaml: cannot be written: [^\n]*");
}

// Numbers are lost, weights are not: the run is no failure, and says what is missing.
static void a_full_database_stops_nothing(void **state) {
    (void)state;
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=whole", "-q"), 0);
    assert_int_equal(LIMITED(ROOM_FOR_CHECKPOINT, "train", "run.yaml"), 0);
    matches("err", "^tradewind: warning: made/run\\.db: [^\n]*; numbers of the run are missing in it\n$");
    matches("made/training_log.txt", "warning: made/run\\.db: ");
    same_files("whole/last.safetensors", "made/last.safetensors");
    same_files("whole/best.safetensors", "made/best.safetensors");
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "made/run\\.db: is (empty|not the database of a run)[^\n]*\n");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "train.epochs=5"), 0);
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "made +done +mlp +5 ");
}

static bool tell_kernel(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fputs(text, f);
    return fclose(f) == 0;
}

// Mounts of this process are its own from now on. Who is not root needs users of its own for that, with itself as one.
static bool leave_others(void) {
    char user[32], group[32];
    snprintf(user, sizeof user, "%u %u 1", geteuid(), geteuid());
    snprintf(group, sizeof group, "%u %u 1", getegid(), getegid());
    if (!unshare(CLONE_NEWNS)) return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return false;
    return tell_kernel("/proc/self/uid_map", user) && tell_kernel("/proc/self/setgroups", "deny") &&
           tell_kernel("/proc/self/gid_map", group);
}

// A file system of the test's own, on the directory `disk`, that nobody else sees; false where that is not allowed.
static bool mount_disk(const char *size) {
    char options[64];
    snprintf(options, sizeof options, "size=%s", size);
    assert_int_equal(mkdir("disk", 0777), 0);
    if (!leave_others() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) return false;
    return !mount("tmpfs", "disk", "tmpfs", 0, options);
}

static void remount_disk(unsigned long flags, const char *options) {
    assert_int_equal(mount(NULL, "disk", NULL, MS_REMOUNT | flags, options), 0);
}

static int leave_disk(void **state) {
    umount2("disk", MNT_DETACH);
    return support_leave(state);
}

static void fill_disk(void) {
    assert_int_equal(system("dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null; test -s disk/fill"), 0);
}

// Checkpoints until there is no more room; once there is, the run goes on to the same bits.
static void a_disk_fills_up(void **state) {
    (void)state;
    put_description();
    if (!mount_disk("256k")) skip();
    static const char *const keys[] = {
        "train", "run.yaml", "train.epochs=20", "train.keep_checkpoints=0", "run.dir=whole", NULL};
    assert_int_equal(program_finish(program_start("out", keys)), 0);
    fails(RUN("train", "run.yaml", "train.epochs=20", "train.keep_checkpoints=0", "run.dir=disk/made"), 1,
        "disk/made/[a-z_0-9]+\\.safetensors: cannot be written: No space left on device; free some space; --resume "
        "goes on from disk/made/checkpoint_epoch_[0-9]+\\.safetensors, step [0-9]+");
    all_are_whole("disk/made");
    remount_disk(0, "size=4m");
    assert_int_equal(RUN("train", "disk/made/config.yaml", "--resume"), 0);
    same_runs("whole", "disk/made");
}

// Starts that fail cost nothing of the run that was there.
static void a_start_on_a_full_disk_costs_nothing(void **state) {
    (void)state;
    put_description();
    if (!mount_disk("1m")) skip();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=disk/made"), 0);
    fill_disk();
    for (int i = 0; i < 3; i++) assert_int_equal(RUN("train", "run.yaml", "run.dir=disk/made"), 1);
    all_are_whole("disk/made.1");
    assert_int_equal(unlink("disk/fill"), 0);
    assert_int_equal(RUN("train", "disk/made.1/config.yaml", "--resume", "train.epochs=5"), 0);
    matches(
        "out", "^resume +changed: [^\n]*\nresume +from disk/made\\.1/[a-z_0-9]+\\.safetensors: step 40, after epoch 4");
}

// Import and predict leave the file that was there as it is.
static void check_output(rlim_t room, const char *why, const char *dir) {
    char set[64], csv[64], npz[64], pattern[256];
    snprintf(set, sizeof set, "%s/set.npz", dir);
    snprintf(csv, sizeof csv, "%s/p.csv", dir);
    snprintf(npz, sizeof npz, "%s/p.npz", dir);
    put_text("out", ""), put_text("err", "");
    int before = files_in(dir, "");
    const char *const *runs[] = {(const char *const[]){"import", "bars.csv", "-o", set, NULL},
        (const char *const[]){"predict", "made", "--part=all", "-o", csv, NULL},
        (const char *const[]){"predict", "made", "--part=all", "-o", npz, NULL}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        snprintf(pattern, sizeof pattern, "%s/[a-z]+\\.(npz|csv): cannot be written: %s[^\n]*", dir, why);
        fails(room ? run_limited(room, runs[i]) : program_finish(program_start("out", runs[i])), 1, pattern);
        assert_int_equal(files_in(dir, ""), before);
    }
}

static void import_and_predict_leave_nothing_behind(void **state) {
    (void)state;
    put_description();
    walk_put("bars.csv", 1500, 300, 1);
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    check_output(ROOM_FOR_LOG, "File too large; raise the limit", ".");
    put_text("set.npz", "");
    put_text("p.csv", "sample,prediction,p_0,p_1\n");
    check_output(ROOM_FOR_LOG, "File too large; raise the limit", ".");
    is_empty("set.npz");
    matches("p.csv", "^sample,prediction,p_0,p_1\n$");
    if (!mount_disk("64k")) skip();
    fill_disk();
    check_output(0, "No space left on device; free some space", "disk");
}

// Places

static void places_that_cannot_be_written_are_told(void **state) {
    (void)state;
    put_description();
    walk_put("bars.csv", 1500, 300, 1);
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    complains(
        RUN("train", "run.yaml", "run.dir=run.yaml/made"), "run\\.yaml: is not a directory; [^\n]*choose another");
    complains(RUN("train", "run.yaml", "run.dir=run.yaml/made", "--resume"), "run\\.yaml/made: there is no run to .*");
    complains(RUN("import", "bars.csv", "-o", "run.yaml/s.npz"),
        "run\\.yaml/s\\.npz: cannot be written: Not a directory; check the path");
    complains(RUN("predict", "made", "-o", "run.yaml/p.csv"),
        "run\\.yaml/p\\.csv: cannot be written: Not a directory; check the path");
    complains(RUN("predict", "made", "-o", "none/p.csv"), "none/p\\.csv: cannot be written: No such [^\n]*; check .*");
    mkdir("busy", 0777);
    mkdir("busy/lock", 0777);
    complains(
        RUN("train", "run.yaml", "run.dir=busy"), "busy/lock: cannot be written: Is a directory; choose another place");
    if (!mount_disk("1m")) skip();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=disk/made", "-q"), 0);
    remount_disk(MS_RDONLY, "size=1m");
    complains(RUN("train", "run.yaml", "run.dir=disk/new"), "disk/new: cannot make the directory: Read-only .*");
    complains(RUN("train", "run.yaml", "run.dir=disk/made", "--resume", "train.epochs=5"),
        "disk/made/lock: cannot be written: Read-only file system; choose another place");
    complains(RUN("import", "bars.csv", "-o", "disk/s.npz"), "disk/s\\.npz: cannot be written: Read-only .*");
    complains(RUN("predict", "made", "-o", "disk/p.csv"), "disk/p\\.csv: cannot be written: Read-only .*");
    assert_int_equal(RUN("evaluate", "disk/made"), 0);
}

// Damage

typedef struct {
    char *data;
    size_t bytes;
} content;

static content content_of(const char *path) {
    err e = {0};
    content c;
    c.data = file_read(path, 1 << 20, &c.bytes, &e);
    support_ok(c.data != NULL, &e);
    return c;
}

// The run is put back to its two epochs with one damaged checkpoint, which is named and passed over.
static void passes_over(const char *data, size_t bytes, const char *why) {
    char pattern[300];
    assert_int_equal(system("rm -rf made && cp -r two made"), 0);
    support_put("made/checkpoint_epoch_2.safetensors", data, bytes);
    if (RUN("train", "run.yaml", "--resume", "train.epochs=3")) is_empty("err");
    snprintf(pattern, sizeof pattern,
        "^resume +passed over: made/checkpoint_epoch_2\\.safetensors: %s[^\n]*\nresume +changed: [^\n]*\nresume +from "
        "made/last\\.safetensors: step 20, after epoch 2\n",
        why);
    matches("out", pattern);
    same_runs("whole", "made");
}

static void damaged_checkpoints_are_passed_over(void **state) {
    (void)state;
    dice d = {.seed = 5};
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=whole", "train.epochs=3", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=two", "train.epochs=2", "-q"), 0);
    content c = content_of("two/checkpoint_epoch_2.safetensors");
    const size_t cuts[] = {0, 1, 7, 8, 9, 4096, c.bytes / 2, c.bytes - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) passes_over(c.data, cuts[i], "");
    for (int i = 0; i < 8; i++) {
        size_t at = i < 2 ? (size_t)i * (c.bytes - 1) : dice_below(&d, c.bytes);
        char old = c.data[at];
        c.data[at] = (char)(old ^ (1 << dice_below(&d, 8)));
        passes_over(c.data, c.bytes, "");
        c.data[at] = old;
    }
    c.data[c.bytes - 1] ^= 1;
    passes_over(c.data, c.bytes, "its sum does not fit its bytes; the file is damaged");
    free(c.data);
    assert_int_equal(system("cd made && for f in [lc]*.safetensors; do echo cut >$f; done"), 0);
    assert_int_equal(RUN("train", "run.yaml", "--resume"), 2);
    matches("err", "^tradewind: made: has no whole checkpoint to go on from; leave --resume out to begin anew\n$");
}

// Data

static void put_set(const char *bars) {
    assert_int_equal(RUN("import", bars, "-o", "set.npz", "-q"), 0);
}

#define SET "train", "run.yaml", "data.set=set.npz"

// A dataset that was cut short or made anew of other bars while the run lay still.
static void changed_data_are_refused(void **state) {
    (void)state;
    put_description();
    walk_put("bars.csv", 1500, 300, 1);
    put_set("bars.csv");
    assert_int_equal(RUN(SET, "-q"), 0);
    assert_int_equal(RUN(SET, "run.dir=whole", "train.epochs=5", "-q"), 0);
    content c = content_of("set.npz");
    const size_t cuts[] = {0, 100, c.bytes / 2, c.bytes - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        support_put("set.npz", c.data, cuts[i]);
        complains(RUN(SET, "--resume", "train.epochs=5"), ".*set\\.npz: [^\n]*(copied whole\\?|is not an \\.npz; .*)");
    }
    free(c.data);
    assert_int_equal(unlink("set.npz"), 0);
    // The same labels, since the closes are the same; other features.
    assert_int_equal(system("awk -F, 'NR > 1 {$3 = $3 * 1.0001} {print}' OFS=, bars.csv >other.csv"), 0);
    put_set("other.csv");
    complains(RUN(SET, "--resume", "train.epochs=5"),
        "made/[a-z_4]+\\.safetensors: was made of other data: set\\.npz has changed since the run began: its sum "
        "differs; go on with the file as it was, or begin a new run");
    assert_int_equal(system("head -n 1400 bars.csv >short.csv"), 0);
    put_set("short.csv");
    complains(RUN(SET, "--resume", "train.epochs=5"),
        ".*: was made of other data: [^\n]*short\\.csv has 1,399 bars, had 1,500; .*");
    assert_int_equal(unlink("set.npz"), 0);
    complains(RUN(SET, "--resume", "train.epochs=5"), ".*set\\.npz: cannot be read: No such file [^\n]*; check .*");
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "\n\\./made +done ");
    // Put back, by the same import, the run goes on.
    put_set("bars.csv");
    assert_int_equal(RUN(SET, "--resume", "train.epochs=5"), 0);
    same_runs("whole", "made");
}

// While it is read, too: what was saved is whole.
static void a_set_that_is_cut_short_in_use_is_told(void **state) {
    (void)state;
    put_description();
    walk_put("bars.csv", 1500, 300, 1);
    put_set("bars.csv");
    const char *train[] = {SET, "train.epochs=100000", "train.patience=100000", "train.checkpoint_every=5", "-q", NULL};
    pid_t child = program_start("out", train);
    double until = support_seconds() + 60;
    while (!file_holds("made/training_log.txt", "checkpoint_epoch_5") && support_seconds() < until) usleep(10000);
    assert_int_equal(truncate("set.npz", 1000), 0);
    fails(
        program_finish(child), 1, "a file was cut short while it was read[^\n]*; put it back, then start again[^\n]*");
    all_are_whole("made");
}

// Row 700 with one of its fields another.
static void put_bad_bars(int field, const char *value) {
    char command[256];
    snprintf(
        command, sizeof command, "awk -F, 'NR == 700 {$%d = \"%s\"} {print}' OFS=, bars.csv >bad.csv", field, value);
    assert_int_equal(system(command), 0);
}

static void bars_that_are_no_numbers_are_told(void **state) {
    (void)state;
    static const struct {
        int field;
        const char *value, *pattern;
    } rows[] = {{5, "nan", "close is missing .*; fill it or remove the row"},
        {5, "inf", "close 'inf' is not a finite number; correct or remove the row"},
        {2, "-inf", "open '-inf' is not a finite number; correct or remove the row"},
        {6, "1e999", "volume '1e999' is not a finite number; correct or remove the row"},
        {1, "nan", "time 'nan' is not a time; .*"}};
    put_description();
    walk_put("bars.csv", 1500, 300, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char pattern[200];
        put_bad_bars(rows[i].field, rows[i].value);
        snprintf(pattern, sizeof pattern, "bad\\.csv:700: %s", rows[i].pattern);
        complains(RUN("import", "bad.csv", "-o", "set.npz"), pattern);
        snprintf(pattern, sizeof pattern, ".*bad\\.csv:700: %s", rows[i].pattern);
        complains(RUN("train", "run.yaml", "data.bars.fast=bad.csv"), pattern);
    }
    assert_int_equal(access("set.npz", F_OK) & access("made", F_OK), -1);
}

static void panels_that_are_no_numbers_are_told(void **state) {
    (void)state;
    put_text("p.csv", "V1,V2,V3,V4,V5,V6\nA,1,2,3,4,5\nB,1,2,inf,4,5\n");
    complains(
        RUN("import", "p.csv", "-o", "s.npz", "--horizon", "2"), "p\\.csv:3: column 4, \"inf\", is not a number;.*");
    put_text("p.csv", "V1,V2,V3,V4,V5,V6\nA,1,2,3,nan,5\nB,1,2,3,4,5\n");
    complains(RUN("import", "p.csv", "-o", "s.npz", "--horizon", "2"), "p\\.csv:2: column 5 is empty and a value .*");
    assert_int_equal(access("s.npz", F_OK), -1);
}

enum { SAMPLES = 300, T = 5, C = 3, V = 2 };

typedef struct {
    float x[SAMPLES][T][C], vector[SAMPLES][V], label[SAMPLES];
} windows_file;

static windows_file *put_windows(windows_file *w) {
    npz_writer z;
    err e = {0};
    bool ok = npz_writer_open(&z, "windows.npz", &e) &&
              npz_writer_array(&z, "x_fast", NPY_F32, 3, (int64_t[]){SAMPLES, T, C}, w->x, &e) &&
              npz_writer_array(&z, "x_strategy", NPY_F32, 2, (int64_t[]){SAMPLES, V}, w->vector, &e) &&
              npz_writer_array(&z, "labels", NPY_F32, 1, (int64_t[]){SAMPLES}, w->label, &e);
    support_ok(ok && npz_writer_commit(&z, &e), &e);
    return w;
}

// `at` is set to `value`, the file is refused by import and by train, and `at` is put back.
static void refuses_windows(windows_file *w, float *at, float value, const char *what) {
    float old = *at;
    char pattern[200];
    *at = value;
    put_windows(w);
    snprintf(pattern, sizeof pattern, "windows\\.npz: %s", what);
    complains(RUN("import", "windows.npz", "-o", "set.npz"), pattern);
    snprintf(pattern, sizeof pattern, ".*windows\\.npz: %s", what);
    complains(RUN("train", "run.yaml", "data.set=windows.npz"), pattern);
    *at = old;
}

static void windows_that_are_no_numbers_are_told(void **state) {
    (void)state;
    static windows_file w;
    dice d = {.seed = 3};
    for (size_t i = 0; i < sizeof w.x / sizeof(float); i++) (&w.x[0][0][0])[i] = dice_unit(&d);
    for (int i = 0; i < SAMPLES; i++) w.label[i] = (float)(i % 3);
    put_description();
    refuses_windows(
        &w, &w.x[123][4][2], NAN, "x_fast\\[123, 4, 2\\] is not a finite number of f32; clean the data first");
    refuses_windows(&w, &w.x[0][0][0], -INFINITY, "x_fast\\[0, 0, 0\\] is not a finite number .*");
    refuses_windows(&w, &w.vector[77][1], INFINITY, "x_strategy\\[77, 1\\] is not a finite number .*");
    refuses_windows(&w, &w.label[5], NAN, "element 5 of labels is not a whole number .*");
    refuses_windows(&w, &w.label[5], 0.5f, "element 5 of labels is not a whole number .*");
    refuses_windows(&w, &w.label[5], 1e30f, "element 5 of labels is not a whole number that fits .*");
    for (int i = 0; i < SAMPLES; i++) w.label[i] = (float)i;
    refuses_windows(&w, &w.label[5], 5, "labels has too many different values; labels are 2 to 64 classes");
    assert_int_equal(access("set.npz", F_OK) & access("made", F_OK), -1);
}

// Losses

// The best weights are those of a run that ended with the best epoch.
static void a_loss_that_runs_away_is_told(void **state) {
    (void)state;
    char epochs[64];
    long long last = 0, best = 0;
    put_description();
#define WILD "train", "run.yaml", "train.optimizer.kind=sgd", "train.clip_norm=0", "model.widths=64"
    int status = RUN(WILD, "train.optimizer.lr=3", "train.epochs=50", "train.patience=50");
    fails(status, 1,
        "the loss is not finite any more: epoch [0-9]+ had no step with a finite gradient; made/best\\.safetensors "
        "holds epoch [0-9]+; lower train\\.optimizer\\.lr");
    char *text = slurp("err"), *said = strstr(text, "epoch ");
    assert_int_equal(
        sscanf(said, "epoch %lld had no step with a finite gradient; %*s holds epoch %lld", &last, &best), 2);
    free(text);
    assert_true(best >= 1 && best < last);
    matches("made/training_log.txt", "ended: the loss is not finite any more");
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "made +failed ");
    snprintf(epochs, sizeof epochs, "train.epochs=%lld", best);
    assert_int_equal(RUN(WILD, "train.optimizer.lr=3", epochs, "run.dir=whole", "-q"), 0);
    same_files("whole/best.safetensors", "made/best.safetensors");
    fails(RUN(WILD, "train.optimizer.lr=100", "run.dir=none"), 1,
        "the validation loss was not finite in any epoch; no weights were kept; lower train\\.optimizer\\.lr");
    assert_int_equal(access("none/best.safetensors", F_OK), -1);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name)      cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, leave_disk)
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_keeps_what_was_saved),
        TEST(a_full_database_stops_nothing),
        DISK_TEST(a_disk_fills_up),
        DISK_TEST(a_start_on_a_full_disk_costs_nothing),
        DISK_TEST(import_and_predict_leave_nothing_behind),
        DISK_TEST(places_that_cannot_be_written_are_told),
        TEST(damaged_checkpoints_are_passed_over),
        TEST(changed_data_are_refused),
        TEST(a_set_that_is_cut_short_in_use_is_told),
        TEST(bars_that_are_no_numbers_are_told),
        TEST(panels_that_are_no_numbers_are_told),
        TEST(windows_that_are_no_numbers_are_told),
        TEST(a_loss_that_runs_away_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
