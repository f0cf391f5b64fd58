#include "cuda/schedule.cuh"

#include <stdlib.h>

enum { STREAMS = 4, RANGES_MOST = 80 };

struct range {
    const char *begin, *end;
    bool written;
};

struct ranges {
    range r[RANGES_MOST];
    int count;
};

static void range_add(ranges *to, const void *at, size_t bytes, bool written) {
    if (!at || !bytes) return;
    CHECK(to->count < RANGES_MOST, "a call with more than %d pieces of memory", (int)RANGES_MOST);
    to->r[to->count++] = range{(const char *)at, (const char *)at + bytes, written};
}

static void operands_add(ranges *to, const operand *o, int count, bool written) {
    for (int i = 0; i < count; i++)
        range_add(to, o[i].data, (size_t)operand_count(&o[i]) * dtype_bytes(o[i].type), written);
}

// All that a call may touch. An operator without results changes its inputs: an optimizer, or `advance`, which moves the
// step record on.
static ranges ranges_of(const call *c, const kernel *k) {
    ranges all = {};
    operands_add(&all, c->in, c->inputs, c->outputs == 0);
    operands_add(&all, c->out, c->outputs, !c->backward);
    if (c->backward) {
        operands_add(&all, c->dout, c->outputs, false);
        operands_add(&all, c->din, c->inputs, true);
    }
    range_add(&all, c->step, sizeof(step), c->outputs == 0 && c->inputs == 0);
    if (c->scratch && k->scratch) range_add(&all, c->scratch, k->scratch(c), true);
    if (c->reserve && k->reserve) range_add(&all, c->reserve, k->reserve(c), !c->backward);
    return all;
}

static bool conflict(const ranges *a, const ranges *b) {
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++)
            if ((a->r[i].written || b->r[j].written) && a->r[i].begin < b->r[j].end && b->r[j].begin < a->r[i].end)
                return true;
    return false;
}

struct slot {
    int stream;
    int after[STREAMS]; // the last call on each stream that this one is ordered behind, itself on its own; -1: none
    cudaEvent_t done;
};

// The stream whose last call is the latest that call i must follow; else an unused one; else the one idle longest.
static int choose_stream(const int need[STREAMS], const int last[STREAMS]) {
    int best = -1, idle = 0;
    for (int s = 0; s < STREAMS; s++) {
        if (need[s] >= 0 && need[s] == last[s] && (best < 0 || last[s] > last[best])) best = s;
        if (last[s] < last[idle]) idle = s;
    }
    return best >= 0 ? best : idle;
}

static void find_needs(const ranges *all, const slot *slots, int i, int need[STREAMS]) {
    for (int s = 0; s < STREAMS; s++) need[s] = -1;
    for (int j = i - 1; j >= 0; j--)
        if (j > need[slots[j].stream] && conflict(&all[i], &all[j])) need[slots[j].stream] = j;
}

static void merge(slot *to, const slot *from) {
    for (int s = 0; s < STREAMS; s++)
        if (from->after[s] > to->after[s]) to->after[s] = from->after[s];
}

// Makes call i wait for what it needs and does not follow already, then launches it.
static void launch(queue *q, cudaStream_t *streams, const call *calls, const kernel *const *table, slot *slots, int i,
    const int need[STREAMS], int last[STREAMS]) {
    slot *me = &slots[i];
    me->stream = choose_stream(need, last);
    for (int s = 0; s < STREAMS; s++) me->after[s] = -1;
    if (last[me->stream] >= 0) merge(me, &slots[last[me->stream]]);
    for (int s = 0; s < STREAMS; s++) {
        if (need[s] <= me->after[s]) continue;
        cudaStreamWaitEvent(streams[me->stream], slots[need[s]].done, 0);
        merge(me, &slots[need[s]]);
    }
    const kernel *k = table[calls[i].op];
    q->stream = streams[me->stream];
    calls[i].backward ? k->backward(&calls[i]) : k->forward(&calls[i]);
    cudaEventRecord(me->done, q->stream);
    me->after[me->stream] = last[me->stream] = i;
}

void side_by_side(queue *q, const call *calls, int count, const kernel *const *table) {
    cudaStream_t streams[STREAMS] = {q->stream};
    cudaEvent_t start;
    int last[STREAMS] = {-1, -1, -1, -1};
    slot *slots = (slot *)calloc((size_t)count, sizeof *slots);
    ranges *all = (ranges *)calloc((size_t)count, sizeof *all);
    CHECK(slots && all, "out of memory for a schedule of %d calls", count);
    cudaEventCreateWithFlags(&start, cudaEventDisableTiming);
    cudaEventRecord(start, q->stream);
    for (int s = 1; s < STREAMS; s++) {
        cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking);
        cudaStreamWaitEvent(streams[s], start, 0);
    }
    for (int i = 0; i < count; i++) {
        int need[STREAMS];
        cudaEventCreateWithFlags(&slots[i].done, cudaEventDisableTiming);
        all[i] = ranges_of(&calls[i], table[calls[i].op]);
        find_needs(all, slots, i, need);
        launch(q, streams, calls, table, slots, i, need, last);
    }
    q->stream = streams[0];
    for (int s = 1; s < STREAMS; s++) {
        cudaEventRecord(start, streams[s]);
        cudaStreamWaitEvent(streams[0], start, 0);
        cudaStreamDestroy(streams[s]);
    }
    for (int i = 0; i < count; i++) cudaEventDestroy(slots[i].done);
    cudaEventDestroy(start);
    free(slots);
    free(all);
}
