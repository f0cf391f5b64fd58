#include "train/slow_card.h"

#include "cpu/cpu.h"

#include <string.h>

enum { WORK_MOST = 1 << 14 };

// A recording to play, or bytes to copy.
typedef struct {
    recording *play;
    int lane;
    void *to;
    const void *from;
    size_t bytes;
} work;

static work list[WORK_MOST];
static int listed, done;     // of the list
static int left_at[LANES];   // how much of the list was there when the next lane was fed: all that may read this one
static int fed_at[LANES];    // how much of it has to be done for a lane's last feed
static int last_fed, behind; // the lane of the last feed
static bool early;

static bool do_until(queue *q, int end, err *e) {
    bool ok = true;
    for (; ok && done < end; done++) {
        work *w = &list[done];
        if (w->play)
            ok = cpu_device.play(q, w->play, e);
        else
            memcpy(w->to, w->from, w->bytes);
    }
    return ok;
}

static bool catch_up(queue *q, err *e) {
    bool ok = do_until(q, listed, e);
    listed = done = 0;
    memset(left_at, 0, sizeof left_at);
    memset(fed_at, 0, sizeof fed_at);
    return ok;
}

static void add(work w) {
    CHECK(listed < WORK_MOST, "more than %d plays and feeds without a wait", WORK_MOST);
    list[listed++] = w;
}

static bool play(queue *q, recording *r, err *e) {
    (void)q;
    (void)e;
    add((work){.play = r});
    return true;
}

static bool feed(queue *q, int lane, void *to, const void *from, size_t bytes, err *e) {
    left_at[last_fed] = listed;
    last_fed = lane;
    if (early) {
        if (!do_until(q, left_at[lane], e)) return false;
        behind += done < listed;
        memcpy(to, from, bytes);
        return true;
    }
    add((work){.lane = lane, .to = to, .from = from, .bytes = bytes});
    fed_at[lane] = listed;
    behind++;
    return true;
}

static bool fed(queue *q, int lane, err *e) {
    return do_until(q, fed_at[lane], e);
}

static bool move(queue *q, void *to, const void *from, size_t bytes, err *e) {
    return catch_up(q, e) && cpu_device.write(q, to, from, bytes, e);
}

static bool fill(queue *q, void *to, int byte, size_t bytes, err *e) {
    return catch_up(q, e) && cpu_device.fill(q, to, byte, bytes, e);
}

static void forget(queue *q, recording *r) {
    err unused;
    catch_up(q, &unused);
    cpu_device.forget(q, r);
}

static const device *make(device *d, bool is_early) {
    *d = cpu_device;
    d->host_memory = false;
    d->play = play;
    d->feed = feed;
    d->fed = fed;
    d->write = d->read = move;
    d->fill = fill;
    d->forget = forget;
    d->sync = catch_up;
    early = is_early;
    listed = done = last_fed = behind = 0;
    memset(left_at, 0, sizeof left_at);
    memset(fed_at, 0, sizeof fed_at);
    return d;
}

const device *slow_card_late(void) {
    static device d;
    return make(&d, false);
}

const device *slow_card_early(void) {
    static device d;
    return make(&d, true);
}

int slow_card_behind(void) {
    int n = behind;
    behind = 0;
    return n;
}
