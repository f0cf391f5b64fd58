// Findings of tuning are given back for the case they were measured on and for nothing else; a file that is damaged,
// foreign or half known is never trusted and never a crash; and what is given back is used only where it is one of the
// planner's ways and fits.
#include "base/file.h"
#include "cpu/cpu.h"
#include "graph/identity.h"
#include "support.h"
#include "train/wisdom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MLP  "model.kind=mlp model.widths=16 data.windows.fast=8 data.windows.slow=4 "
#define CARD "cuda, A card, sm_90, driver 550.1, CUDA 12.4"

static const wisdom_entry three[] = {
    {.batch = 512, .micro = 512, .parts = 1, .threads = 7, .samples_per_s = 1e5},
    {.batch = 4096,
        .micro = 1024,
        .parts = 4,
        .again = 2,
        .host = true,
        .precision = PRECISION_BF16,
        .products = PRODUCTS_LIBRARY,
        .samples_per_s = 1.25e6,
        .noise_scale = 300.5},
    {.batch = 10000000, .micro = 1, .parts = 10000000, .precision = PRECISION_TF32, .samples_per_s = 3},
};

static int enter(void **state) {
    int rc = support_enter(state);
    setenv("TRADEWIND_WISDOM", "a/b", 1);
    return rc;
}

static wisdom_key key_of(const rig *r, const char *version, const char *device) {
    wisdom_key k;
    device_identity i;
    identity_read(&i, device);
    wisdom_key_make(&k, &(wisdom_about){.version = version,
                            .device = &i,
                            .card = strncmp(device, "cpu", 3) != 0,
                            .described = &r->settings,
                            .model = &r->model,
                            .data = r->data,
                            .split = &r->split,
                            .window = r->window});
    return k;
}

// The key of a description on a device.
static wisdom_key key_for(const char *keys, const char *version, const char *device) {
    rig r;
    rig_open(&r, &cpu_device, 1, keys);
    wisdom_key k = key_of(&r, version, device);
    rig_close(&r);
    return k;
}

static void same_entry(const wisdom_entry *a, const wisdom_entry *b) {
    assert_int_equal(a->batch, b->batch);
    assert_int_equal(a->micro, b->micro);
    assert_int_equal(a->parts, b->parts);
    assert_int_equal(a->again, b->again);
    assert_int_equal(a->host, b->host);
    assert_int_equal(a->precision, b->precision);
    assert_int_equal(a->products, b->products);
    assert_int_equal(a->threads, b->threads);
    assert_true(a->samples_per_s == b->samples_per_s && a->noise_scale == b->noise_scale);
}

static void keep(const wisdom_key *k) {
    err e = {0};
    support_ok(wisdom_keep(k, three, 3, 1, &e), &e);
}

static char *path_of(const wisdom_key *k) {
    err e = {0};
    char *path = wisdom_path(k, &e);
    support_ok(path != NULL, &e);
    return path;
}

static void refuses(const wisdom_key *k, const char *words) {
    wisdom_answer a = wisdom_find(k, 0);
    assert_int_equal(a.state, WISDOM_REFUSED);
    if (!strstr(a.line, words) || !strstr(a.line, "run tradewind tune again")) fail_msg("says %s", a.line);
}

static void has_none(const wisdom_key *k) {
    wisdom_answer a = wisdom_find(k, 0);
    assert_int_equal(a.state, WISDOM_NONE);
    assert_string_equal(a.line, "");
}

static void gives_back_what_was_kept(void **state) {
    (void)state;
    wisdom_key k = key_for(MLP, "1.2", CARD);
    has_none(&k);
    keep(&k);
    for (int i = 0; i < 3; i++) {
        wisdom_answer a = wisdom_find(&k, three[i].batch);
        assert_int_equal(a.state, WISDOM_FOUND);
        assert_int_equal(a.winner, i == 1);
        assert_int_equal(strlen(a.when), 10);
        same_entry(&a.entry, &three[i]);
    }
    wisdom_answer best = wisdom_find(&k, 0);
    assert_int_equal(best.state, WISDOM_FOUND);
    same_entry(&best.entry, &three[1]);
    assert_int_equal(wisdom_find(&k, 1024).state, WISDOM_NONE);
    err e = {0};
    support_ok(wisdom_keep(&k, three, 1, 0, &e), &e);
    best = wisdom_find(&k, 0);
    same_entry(&best.entry, &three[0]);
    assert_int_equal(wisdom_find(&k, 4096).state, WISDOM_NONE);
}

static void lists_all_of_it(void **state) {
    (void)state;
    wisdom_entry list[WISDOM_ENTRIES_MOST];
    char when[16];
    wisdom_key k = key_for(MLP, "1.2", CARD), other = key_for(MLP, "1.3", CARD);
    assert_int_equal(wisdom_list(&k, list, when), 0);
    keep(&k);
    assert_int_equal(wisdom_list(&k, list, when), 3);
    for (int i = 0; i < 3; i++) same_entry(&list[i], &three[i]);
    assert_int_equal(strlen(when), 10);
    assert_int_equal(wisdom_list(&other, list, when), 0);
}

static wisdom_entry whole(int64_t batch, double rate) {
    return (wisdom_entry){.batch = batch, .micro = batch, .parts = 1, .samples_per_s = rate};
}

// Other sizes stay, of one size the faster figure, as long as the machine is the same.
static void joins_what_agrees(void **state) {
    (void)state;
    wisdom_entry list[WISDOM_ENTRIES_MOST] = {whole(256, 100), whole(512, 200)};
    wisdom_entry earlier[] = {whole(512, 209), whole(1024, 400), whole(256, 96)};
    int n = 2;
    assert_true(wisdom_join(list, &n, earlier, 3));
    assert_int_equal(n, 3);
    assert_true(list[0].samples_per_s == 100 && list[1].samples_per_s == 209 && list[2].samples_per_s == 400);
    earlier[0].samples_per_s = 222;
    assert_false(wisdom_join(list, &n, earlier, 3));
    earlier[0].samples_per_s = 190;
    assert_false(wisdom_join(list, &n, earlier, 3));
    assert_true(n == 3 && list[1].samples_per_s == 209);
    earlier[0].samples_per_s = 300;
    earlier[0].products = PRODUCTS_LIBRARY; // not the same
    assert_true(wisdom_join(list, &n, earlier, 3));
    assert_true(n == 3 && list[1].samples_per_s == 300 && list[1].products == PRODUCTS_LIBRARY);
    wisdom_entry many[WISDOM_ENTRIES_MOST];
    for (int i = 0; i < WISDOM_ENTRIES_MOST; i++) many[i] = whole(2000 + i, 1);
    assert_false(wisdom_join(list, &n, many, WISDOM_ENTRIES_MOST - 2));
    assert_int_equal(n, 3);
    assert_true(wisdom_join(list, &n, many, WISDOM_ENTRIES_MOST - 3));
    assert_int_equal(n, WISDOM_ENTRIES_MOST);
}

// As many blocks as a description may have.
static void keeps_the_deepest_model(void **state) {
    (void)state;
    err e = {0};
    wisdom_key k = key_for(MLP, "1.2", CARD);
    wisdom_entry deep = {.batch = 512, .micro = 512, .parts = 1, .again = MODEL_SEGMENTS_MOST, .samples_per_s = 1};
    support_ok(wisdom_keep(&k, &deep, 1, 0, &e), &e);
    wisdom_answer a = wisdom_find(&k, 0);
    assert_int_equal(a.state, WISDOM_FOUND);
    same_entry(&a.entry, &deep);
}

// Things that a user may have several of lie in files of their own; the batch and its split are asked for, not part of
// it.
static void tells_what_it_is_of(void **state) {
    (void)state;
    static const char *const others[] = {"model.widths=17", "model.kind=lstm", "data.windows.fast=9", "model.dropout=0",
        "train.loss=focal", "train.optimizer.kind=sgd", "gpu_optimization.use_mixed_precision=false",
        "gpu_optimization.recompute=off", "data.residency=host", "gpu_optimization.max_memory_gb=2",
        "gpu_optimization.memory_fraction=0.5", "gpu_optimization.products=own", "gpu_optimization.products=library",
        "gpu_optimization.max_host_memory_gb=3"};
    static const char *const same[] = {"train.batch_size=64", "train.batch_size=auto", "train.seed=5", "train.epochs=3",
        "gpu_optimization.gradient_accumulation_steps=3", "gpu_optimization.dynamic_batch_sizing=true",
        "train.optimizer.lr=0.1", "run.dir=elsewhere", "gpu_optimization.target_utilization=50", "model.dropout=0.2",
        "model.heads=4", "gpu_optimization.products=auto", "model.blocks=9", "model.hidden.fast=64", "model.head=0"};
    char keys[256];
    wisdom_key k = key_for(MLP, "1.2", CARD);
    keep(&k);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(keys, sizeof keys, "%s%s", MLP, others[i]);
        wisdom_key other = key_for(keys, "1.2", CARD);
        has_none(&other);
    }
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        snprintf(keys, sizeof keys, "%s%s", MLP, same[i]);
        wisdom_key other = key_for(keys, "1.2", CARD);
        assert_int_equal(wisdom_find(&other, 0).state, WISDOM_FOUND);
    }
    k = key_for(MLP, "1.2", "cuda, Another card, sm_90, driver 550.1, CUDA 12.4");
    has_none(&k);
    k = key_for(MLP, "1.2", "cpu, avx2, 2 threads");
    has_none(&k);
}

// On the CPU nothing that is said of a card counts.
static void knows_what_is_of_a_card(void **state) {
    (void)state;
    static const char *const same[] = {
        "gpu_optimization.max_memory_gb=2", "gpu_optimization.memory_fraction=0.5", "gpu_optimization.products=own"};
    char keys[256];
    wisdom_key k = key_for(MLP, "1.2", "cpu, avx2, 2 threads");
    keep(&k);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        snprintf(keys, sizeof keys, "%s%s", MLP, same[i]);
        k = key_for(keys, "1.2", "cpu, avx2, 2 threads");
        assert_int_equal(wisdom_find(&k, 0).state, WISDOM_FOUND);
    }
    snprintf(keys, sizeof keys, "%s%s", MLP, "gpu_optimization.max_host_memory_gb=3");
    k = key_for(keys, "1.2", "cpu, avx2, 2 threads");
    has_none(&k);
}

// Every shape of a kind of model is told from every other.
static void tells_models_apart(void **state) {
    (void)state;
    static const char *const each[] = {"model.kind=lstm", "model.kind=lstm model.layers=2",
        "model.kind=lstm model.hidden.slow=8", "model.kind=lstm model.projection=16", "model.kind=lstm model.head=0",
        "model.kind=transformer", "model.kind=transformer model.heads=4", "model.kind=transformer model.ff=64",
        "model.kind=transformer model.causal=true", "model.kind=transformer model.pooling=last",
        "model.kind=transformer model.activation=gelu", "model.kind=nbeats", "model.kind=nbeats model.width=64",
        "model.kind=nbeats model.blocks=2", "model.kind=nbeats model.stacks=generic,generic",
        "model.kind=nbeats model.horizon=5", "model.kind=nbeats model.head=8", "model.kind=mlp",
        "model.kind=mlp model.activation=tanh", "model.kind=mlp model.widths=512-256-1",
        "model.kind=mlp data.windows.slow=3"};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        wisdom_key k = key_for(each[i], "1.2", CARD);
        has_none(&k);
        keep(&k);
    }
}

static void names_what_differs(void **state) {
    (void)state;
    wisdom_key k = key_for(MLP, "1.2", CARD), other = key_for(MLP, "1.3", CARD);
    keep(&k);
    refuses(&other, "tuned by another build; run tradewind tune again");
    other = key_for(MLP, "1.2", "cuda, A card, sm_90, driver 560.9, CUDA 12.6");
    refuses(&other, "another driver: driver 550.1, CUDA 12.4, now driver 560.9, CUDA 12.6;");
    other = key_for(MLP "data.synthetic.bars=2010", "1.2", CARD); // a set that has grown by a day
    assert_int_equal(wisdom_find(&other, 0).state, WISDOM_FOUND);
    other = key_for(MLP "data.synthetic.bars=9000", "1.2", CARD);
    refuses(&other, "another number of samples: ");
    keep(&other);
    refuses(&k, "another number of samples: ");
}

// A file under the name of another key, as a copy or a clash of names would leave it.
static void is_not_fooled_by_a_name(void **state) {
    (void)state;
    wisdom_key k = key_for(MLP, "1.2", CARD),
               other = key_for(MLP, "1.2", "cuda, B card, sm_75, driver 550.1, CUDA 12.4");
    keep(&k);
    char *from = path_of(&k), *to = path_of(&other);
    assert_int_equal(rename(from, to), 0);
    refuses(&other, "another device: cuda, A card, sm_90, now cuda, B card, sm_75;");
    free(from);
    free(to);
}

static void file_names_can_be_read(void **state) {
    (void)state;
    wisdom_key k = key_for(MLP, "1.2", CARD);
    char *path = path_of(&k);
    assert_memory_equal(path, "a/b/mlp-cuda-A-card-sm-90-", 26);
    assert_int_equal(strlen(path), 26 + 16 + 5);
    free(path);
    k = key_for(MLP, "1.2", "cuda, ../../etc/\xff\n\x01passwd, sm_90");
    keep(&k);
    path = path_of(&k);
    assert_null(strstr(path, ".."));
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(wisdom_find(&k, 0).state, WISDOM_FOUND);
    free(path);
}

// Where files are

static void looks_where_it_is_told(void **state) {
    char *cwd = *state, cache[512];
    wisdom_key k = key_for(MLP, "1.2", CARD);
    setenv("HOME", cwd, 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("TRADEWIND_WISDOM");
    keep(&k);
    assert_int_equal(access(".cache/tradewind/wisdom", F_OK), 0);
    assert_int_equal(wisdom_find(&k, 0).state, WISDOM_FOUND);
    snprintf(cache, sizeof cache, "%s/cache", cwd);
    setenv("XDG_CACHE_HOME", cache, 1);
    has_none(&k);
    keep(&k);
    assert_int_equal(access("cache/tradewind/wisdom", F_OK), 0);
    setenv("TRADEWIND_WISDOM", "own", 1);
    has_none(&k);
    keep(&k);
    assert_int_equal(access("own", F_OK), 0);
    unsetenv("TRADEWIND_WISDOM");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    err e = {0};
    has_none(&k);
    assert_false(wisdom_keep(&k, three, 3, 1, &e));
    assert_non_null(strstr(e.text, "TRADEWIND_WISDOM"));
}

static void says_what_cannot_be_used(void **state) {
    (void)state;
    err e = {0};
    wisdom_key k = key_for(MLP, "1.2", CARD);
    char *path = path_of(&k);
    support_ok(file_make_dirs(path, &e), &e);
    wisdom_answer a = wisdom_find(&k, 0);
    assert_int_equal(a.state, WISDOM_NONE);
    assert_non_null(strstr(a.line, path));
    assert_false(wisdom_keep(&k, three, 3, 1, &e));
    free(path);
    support_put("flat", "x", 1);
    setenv("TRADEWIND_WISDOM", "flat", 1);
    has_none(&k);
    assert_false(wisdom_keep(&k, three, 3, 1, &e));
}

// Damage

static bool trusts(const wisdom_key *k, const char *text, size_t bytes) {
    wisdom_answer a = wisdom_read(text, bytes, "file.json", k, 0);
    assert_null(strpbrk(a.line, "\n\r\t"));
    if (a.state == WISDOM_NONE) assert_memory_equal(a.line, "file.json: is damaged or not of tradewind tune", 46);
    if (a.state != WISDOM_FOUND) return false;
    assert_true(a.entry.batch == a.entry.micro * a.entry.parts && a.entry.batch > 0);
    return true;
}

static char *kept_text(const wisdom_key *k, size_t *bytes) {
    err e = {0};
    keep(k);
    char *path = path_of(k), *text = file_read(path, 1 << 20, bytes, &e);
    support_ok(text != NULL, &e);
    free(path);
    return text;
}

// The same as an earlier program would have written it, so that a change is not seen by the sum already.
static char *kept_text_unsummed(const wisdom_key *k) {
    size_t bytes;
    char *text = kept_text(k, &bytes), *at = strstr(text, "  \"sum\": "), *end = at ? strchr(at, '\n') : NULL;
    assert_non_null(end);
    memmove(at, end + 1, strlen(end + 1) + 1);
    return text;
}

// Any one bit: what is not refused is what was kept.
static void a_flipped_bit_is_found(void **state) {
    (void)state;
    size_t bytes;
    int passed = 0;
    wisdom_key k = key_for(MLP, "1.2", CARD);
    char *text = kept_text(&k, &bytes);
    wisdom_answer was = wisdom_find(&k, 0);
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        wisdom_answer a = wisdom_read(text, bytes, "file.json", &k, 0);
        text[bit / 8] ^= (char)(1 << bit % 8);
        if (a.state != WISDOM_FOUND) assert_true(a.line[0]);
        if (a.state != WISDOM_FOUND) continue;
        same_entry(&a.entry, &was.entry);
        assert_true(a.winner && strcmp(a.when, was.when) == 0);
        passed++;
    }
    assert_true(passed < 64); // the name of the sum, and spaces
    free(text);
}

static void survives_any_cut(void **state) {
    (void)state;
    size_t bytes;
    wisdom_key k = key_for(MLP, "1.2", CARD);
    char *text = kept_text(&k, &bytes);
    assert_true(trusts(&k, text, bytes));
    for (size_t i = 0; i + 2 < bytes; i++) assert_false(trusts(&k, text, i));
    dice d = {.seed = 1};
    for (int i = 0; i < 5000; i++) {
        char was[3];
        size_t at[3];
        for (int n = 0; n < 3; n++) {
            at[n] = (size_t)dice_below(&d, bytes);
            was[n] = text[at[n]];
            text[at[n]] = (char)dice_below(&d, 256);
        }
        trusts(&k, text, bytes);
        for (int n = 2; n >= 0; n--) text[at[n]] = was[n];
    }
    assert_true(trusts(&k, text, bytes));
    free(text);
}

// The text with one piece of it replaced.
static char *changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    char *out = NULL;
    assert_non_null(at);
    assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    return out;
}

static void takes_no_odd_values(void **state) {
    (void)state;
    static const char *const odd[][2] = {{"\"tradewind wisdom\"", "\"something\""},
        {"\"format\": 1", "\"format\": \"1\""}, {"\"when\": \"20", "\"when\": \"xx"},
        {"\"when\": \"20", "\"when\": \"1020"}, {"\"winner\": 4096", "\"winner\": 7"},
        {"\"micro_batch\": 1024", "\"micro_batch\": 1023"}, {"\"micro_batch\": 1024", "\"micro_batch\": -1024"},
        {"\"accumulation\": 4", "\"accumulation\": 0"},
        {"\"accumulation\": 4", "\"accumulation\": 4611686018427387904"}, {"\"batch\": 4096", "\"batch\": 0"},
        {"\"batch\": 4096", "\"batch\": 512"}, {"\"again\": 2", "\"again\": -1"},
        {"\"again\": 2", "\"again\": 4294967298"}, {"\"again\": 2", "\"again\": 2.5"}, {"\"again\": 2", "\"more\": 2"},
        {"\"bf16\"", "\"fp64\""}, {"\"bf16\"", "null"}, {"\"residency\": \"host\"", "\"residency\": \"moon\""},
        {"\"library\"", "\"moon\""}, {"\"library\"", "2"}, {"\"threads\": 7", "\"threads\": -1"},
        {"\"threads\": 7", "\"threads\": 4294967303"}, {"\"threads\": 7", "\"threads\": \"7\""},
        {"\"samples_per_s\": 1250000.0", "\"samples_per_s\": 0"},
        {"\"samples_per_s\": 1250000.0", "\"samples_per_s\": \"9\""}, {"\"noise_scale\": 300.5", "\"noise_scale\": -1"},
        {"\"key\": {", "\"key\": [], \"was\": {"}, {"\"entries\": [", "\"entries\": [[], "},
        {"\"entries\": [", "\"entries\": [], \"were\": ["}};
    wisdom_key k = key_for(MLP, "1.2", CARD);
    char *text = kept_text_unsummed(&k);
    assert_true(trusts(&k, text, strlen(text)));
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char *now = changed(text, odd[i][0], odd[i][1]);
        if (trusts(&k, now, strlen(now))) fail_msg("takes %s", odd[i][1]);
        free(now);
    }
    assert_false(trusts(&k, "[]", 2));
    assert_false(trusts(&k, "{}", 2));
    assert_false(trusts(&k, "", 0));
    free(text);
}

// Whatever else has changed in it.
static void a_newer_format_is_told(void **state) {
    (void)state;
    static const char newer[] = "{\"kind\": \"tradewind wisdom\", \"format\": 2}";
    wisdom_key k = key_for(MLP, "1.2", CARD);
    wisdom_answer a = wisdom_read(newer, strlen(newer), "a.json", &k, 0);
    assert_int_equal(a.state, WISDOM_NONE);
    assert_string_equal(
        a.line, "a.json: was written by a newer tradewind (format 2, this program reads up to 1); update");
}

// A file of a tuning that measured neither products nor threads.
static void an_entry_can_lack_products_and_threads(void **state) {
    (void)state;
    wisdom_key k = key_for(MLP, "1.2", CARD);
    char *text = kept_text_unsummed(&k), *one = changed(text, "\"products\": \"library\",", ""),
         *now = changed(one, "\"threads\": 7,", "");
    for (int i = 0; i < 2; i++) {
        wisdom_answer a = wisdom_read(now, strlen(now), "file.json", &k, three[i].batch);
        assert_int_equal(a.state, WISDOM_FOUND);
        assert_int_equal(a.entry.products, PRODUCTS_AUTO);
        assert_int_equal(a.entry.threads, 0);
    }
    free(now);
    free(one);
    free(text);
}

static void a_key_cannot_lack_a_field(void **state) {
    (void)state;
    wisdom_key k = key_for(MLP, "1.2", CARD);
    char *text = kept_text_unsummed(&k), *now = changed(text, "\"optimizer\"", "\"optimiser\"");
    wisdom_answer a = wisdom_read(now, strlen(now), "file.json", &k, 0);
    assert_int_equal(a.state, WISDOM_REFUSED);
    assert_non_null(strstr(a.line, "another optimizer: not given, now adamw"));
    free(now);
    free(text);
}

// Whoever reads while others write finds one whole file or another.
static void writers_do_not_mix(void **state) {
    (void)state;
    enum { WRITERS = 4, TIMES = 25 };
    wisdom_key k = key_for(MLP, "1.2", CARD);
    keep(&k);
    pid_t child[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i]) continue;
        bool ok = true;
        for (int n = 0; ok && n < TIMES; n++) ok = wisdom_keep(&k, three, 1 + (i + n) % 3, 0, NULL);
        _exit(ok ? 0 : 1);
    }
    for (int i = 0; i < 200; i++) {
        wisdom_answer a = wisdom_find(&k, 512);
        assert_int_equal(a.state, WISDOM_FOUND);
        same_entry(&a.entry, &three[0]);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
}

// Use

typedef struct {
    rig r;
    job far;
    chooser c;
} stage;

static device own_memory;

static void stage_open(stage *s, const char *keys) {
    own_memory = cpu_device;
    own_memory.host_memory = false;
    rig_open(&s->r, &cpu_device, 1, keys);
    settings host = s->r.settings;
    host.residency = RESIDENCY_HOST;
    job_init(&s->far, s->r.data, &s->r.split, &host, &s->r.model, s->r.window, s->r.scaler, PRECISION_FP32);
    s->c = (chooser){.near = &s->r.job,
        .far = &s->far,
        .settings = &s->r.settings,
        .split = &s->r.split,
        .device = &own_memory,
        .queue = s->r.queue};
}

static void stage_close(stage *s) {
    job_done(&s->far);
    rig_close(&s->r);
}

#define DEEP                                                                                                           \
    "model.kind=nbeats model.blocks=8 model.width=16 data.windows.fast=8 data.windows.slow=4 train.batch_size=1024 "
#define OPEN "gpu_optimization.dynamic_batch_sizing=true"

static const budget plenty = {.counted = true, .free = (size_t)1 << 40, .slab = (size_t)1 << 40};

// True if a way of four micro-batches is taken; otherwise the reason holds `words`.
static void judges(const char *keys, int again, bool host, const budget *b, const char *words) {
    stage s;
    way to;
    char why[160] = "";
    stage_open(&s, keys);
    wisdom_entry w = {.batch = 1024, .micro = 256, .parts = 4, .again = again, .host = host, .samples_per_s = 1};
    if (words && strstr(words, "near")) s.c.far = NULL;
    bool ok = wisdom_suits(&w, &s.c, b, &to, why, sizeof why);
    if (ok != !words) fail_msg("%s: %s", keys, ok ? "taken" : why);
    if (ok) assert_true(to.batch == 256 && to.parts == 4 && to.again == again && to.host == host && to.seconds > 0);
    if (words && !strstr(words, "near") && !strstr(why, words)) fail_msg("%s: says %s", keys, why);
    stage_close(&s);
}

static void takes_only_what_is_open(void **state) {
    (void)state;
    budget none = plenty;
    none.free = none.slab = 1000;
    judges(DEEP OPEN, 0, false, &plenty, NULL);
    judges(DEEP OPEN, 3, true, &plenty, NULL);
    judges(DEEP "gpu_optimization.gradient_accumulation_steps=auto", 0, false, &plenty, NULL);
    judges(DEEP, 0, false, &plenty, "1 micro-batches");
    judges(DEEP OPEN " train.batch_size=2048", 0, false, &plenty, "2048 samples");
    judges(DEEP OPEN, 1000, false, &plenty, "so many layers or blocks");
    judges(DEEP OPEN " gpu_optimization.recompute=off", 3, false, &plenty, "gpu_optimization.recompute");
    judges(DEEP OPEN " gpu_optimization.recompute=3", 3, false, &plenty, NULL);
    judges(DEEP OPEN, 0, true, &plenty, "near only");
    judges(DEEP OPEN, 0, false, &none, "does not fit");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(gives_back_what_was_kept),
        TEST(lists_all_of_it),
        TEST(joins_what_agrees),
        TEST(keeps_the_deepest_model),
        TEST(tells_what_it_is_of),
        TEST(knows_what_is_of_a_card),
        TEST(tells_models_apart),
        TEST(names_what_differs),
        TEST(is_not_fooled_by_a_name),
        TEST(file_names_can_be_read),
        TEST(looks_where_it_is_told),
        TEST(says_what_cannot_be_used),
        TEST(a_flipped_bit_is_found),
        TEST(survives_any_cut),
        TEST(takes_no_odd_values),
        TEST(a_newer_format_is_told),
        TEST(an_entry_can_lack_products_and_threads),
        TEST(a_key_cannot_lack_a_field),
        TEST(writers_do_not_mix),
        TEST(takes_only_what_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
