#include "cuda/device/schedule.cuh"

#include <stdio.h>
#include <stdlib.h>

// The first streams are for what others wait for, the last for what only the end of the step does: of those the card
// runs what the others leave room for.
enum { FORE = 3, STREAMS = 8 };

struct slot {
    int stream;
    int depth;          // groups in the longest row of such that must follow each other up to this one
    int after[STREAMS]; // the last group on each stream that this one is ordered behind, itself on its own; -1: none
    cudaEvent_t done;
};

// True if group a likely ends behind group b: it is deeper, or later of the same depth.
static bool is_behind(const slot *slots, int a, int b) {
    return slots[a].depth != slots[b].depth ? slots[a].depth > slots[b].depth : a > b;
}

// The stream for a group, of the kind it belongs to: one whose last group it must follow, the one likely to end last;
// else an unused one; else the one idle longest.
static int choose_stream(const slot *slots, const int need[STREAMS], const int last[STREAMS], bool aside) {
    int first = aside ? FORE : 0, end = aside ? STREAMS : FORE, best = -1, idle = first;
    for (int s = first; s < end; s++) {
        bool follows = need[s] >= 0 && need[s] == last[s];
        if (follows && (best < 0 || is_behind(slots, last[s], last[best]))) best = s;
        if (last[s] < last[idle]) idle = s;
    }
    return best >= 0 ? best : idle;
}

static void find_needs(const group *groups, const slot *slots, int i, int need[STREAMS]) {
    for (int s = 0; s < STREAMS; s++) need[s] = -1;
    for (int j = i - 1; j >= 0; j--)
        if (j > need[slots[j].stream] && group_conflicts(&groups[i], &groups[j])) need[slots[j].stream] = j;
}

static void merge(slot *to, const slot *from) {
    for (int s = 0; s < STREAMS; s++)
        if (from->after[s] > to->after[s]) to->after[s] = from->after[s];
}

// The stream of the latest group that is needed and not followed already, or -1: what that one follows need not be
// waited for again.
static int latest(const int need[STREAMS], const slot *me) {
    int best = -1;
    for (int s = 0; s < STREAMS; s++)
        if (need[s] > me->after[s] && (best < 0 || need[s] > need[best])) best = s;
    return best;
}

// A missing stream or event would be a missing dependency: the recording then fails.
static void note(queue *q, cudaError_t status) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    if (!q->failed[0])
        snprintf(q->failed, sizeof q->failed, "cuda: putting calls side by side: %s", cudaGetErrorString(status));
}

// Makes group i wait for what it needs and does not follow already, then launches it.
static void launch(queue *q, cudaStream_t *streams, const group *groups, slot *slots, int i, const int need[STREAMS],
    int last[STREAMS]) {
    slot *me = &slots[i];
    me->stream = choose_stream(slots, need, last, group_is_aside(&groups[i]));
    me->depth = 1;
    for (int s = 0; s < STREAMS; s++)
        if (need[s] >= 0 && slots[need[s]].depth >= me->depth) me->depth = slots[need[s]].depth + 1;
    for (int s = 0; s < STREAMS; s++) me->after[s] = -1;
    if (last[me->stream] >= 0) merge(me, &slots[last[me->stream]]);
    for (int s; (s = latest(need, me)) >= 0;) {
        note(q, cudaStreamWaitEvent(streams[me->stream], slots[need[s]].done, 0));
        merge(me, &slots[need[s]]);
    }
    q->stream = streams[me->stream];
    group_launch(&groups[i]);
    note(q, cudaEventRecord(me->done, q->stream));
    me->after[me->stream] = last[me->stream] = i;
}

void side_by_side(queue *q, const group *groups, int count) {
    cudaStream_t streams[STREAMS] = {q->stream};
    cudaEvent_t start;
    int last[STREAMS], low = 0, high = 0;
    slot *slots = (slot *)calloc((size_t)count, sizeof *slots);
    NEED(slots, "out of memory for a schedule of %d groups", count);
    for (int s = 0; s < STREAMS; s++) last[s] = -1;
    note(q, cudaDeviceGetStreamPriorityRange(&low, &high));
    note(q, cudaEventCreateWithFlags(&start, cudaEventDisableTiming));
    note(q, cudaEventRecord(start, q->stream));
    for (int s = 1; s < STREAMS; s++) {
        note(q, cudaStreamCreateWithPriority(&streams[s], cudaStreamNonBlocking, s < FORE ? high : low));
        note(q, cudaStreamWaitEvent(streams[s], start, 0));
    }
    for (int i = 0; i < count; i++) {
        int need[STREAMS];
        note(q, cudaEventCreateWithFlags(&slots[i].done, cudaEventDisableTiming));
        find_needs(groups, slots, i, need);
        launch(q, streams, groups, slots, i, need, last);
    }
    q->stream = streams[0];
    for (int s = 1; s < STREAMS; s++) {
        note(q, cudaEventRecord(start, streams[s]));
        note(q, cudaStreamWaitEvent(streams[0], start, 0));
        cudaStreamDestroy(streams[s]);
    }
    for (int i = 0; i < count; i++) cudaEventDestroy(slots[i].done);
    cudaEventDestroy(start);
    free(slots);
}
