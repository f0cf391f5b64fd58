// A warp is a coroutine. Its lanes go through a function in strands, each with a place and a mask: where a branch parts
// them, the strand that is furthest behind goes on, and strands that come to one place are one again. A warp gives way
// at a barrier of its block, and where it polls memory; all others then run. Blocks run one after another, unless all
// warps of those that have begun poll: then the next one begins, as blocks of a card that meet are there together.
#include "card/grid.h"

#include "card/hopper.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

// TOGETHER: blocks that a card has at a time, at most.
enum { STACK = 128 << 10, BARRIERS = 16, ROUNDS = 1 << 20, TOGETHER = 132 * 16 };

typedef struct {
    warp w; // first
    ucontext_t context;
    void *stack;
    int number; // in its block
    uint32_t alive;
    bool ended, polls;
    int waits; // the barrier's number, -1: none
    unsigned turn;
} fiber;

struct block {
    extent3 at;
    uint8_t *shared;
    fiber *fibers;
    int count, alive;
    struct {
        int arrived, wanted; // 0: all warps that are alive
        unsigned turn;
    } barrier[BARRIERS];
};

// One grid at a time: the runtime's lock is held.
static const grid_call *call_now;
static ucontext_t main_context;
static fiber *running;
static grid_end end_now;

static int64_t threads_of(const grid_call *c) {
    return (int64_t)c->block.x * c->block.y * c->block.z;
}

static fiber *fiber_of(warp *w) {
    return (fiber *)w;
}

static void give_way(void) {
    swapcontext(&running->context, &main_context);
}

void grid_fault(warp *w, grid_end end, int lane, const char *what) {
    const fiber *f = fiber_of(w);
    const extent3 *b = &w->block->at;
    fprintf(stderr, "card: %s: %s; block %u,%u,%u thread %d, PTX line %d, %s\n", call_now->f->name, what, b->x, b->y,
        b->z, f->number * WARP + lane, w->at->line, w->at->name);
    end_now = end;
    running->ended = true;
    give_way(); // for good
}

// Memory

static size_t shared_bytes(const grid_call *c) {
    return SHARED_DYNAMIC + c->shared;
}

static bool in_shared(const grid_call *c, int64_t at, int64_t bytes) {
    if (at < 0) return false;
    return at + bytes <= c->f->shared_bytes || (at >= SHARED_DYNAMIC && at + bytes <= (int64_t)shared_bytes(c));
}

bool grid_in_shared(const warp *w, int64_t at, int64_t bytes) {
    (void)w;
    return in_shared(call_now, at, bytes);
}

int64_t grid_base(warp *w, int space, int lane) {
    const frame *f = w->now;
    switch (space) {
    case SPACE_SHARED: return (int64_t)(uintptr_t)w->block->shared;
    case SPACE_LOCAL: return (int64_t)(uintptr_t)(f->local + lane * f->f->local_bytes);
    case SPACE_PARAM: return (int64_t)(uintptr_t)call_now->args;
    case SPACE_LANE_PARAM: return (int64_t)(uintptr_t)(f->lanes + lane * f->f->lane_bytes);
    default: return 0;
    }
}

static bool in_symbols(const module *m, uintptr_t at, int64_t bytes) {
    for (int i = 0; i < m->symbol_count; i++) {
        const symbol *s = &m->symbols[i];
        if (s->space == SPACE_GLOBAL && at >= (uintptr_t)s->at && at + (size_t)bytes <= (uintptr_t)(s->at + s->bytes))
            return true;
    }
    return false;
}

static bool in_local(const warp *w, uintptr_t at, int64_t bytes, int lane) {
    for (const frame *f = w->now; f; f = f->up) {
        uintptr_t own = (uintptr_t)(f->local + lane * f->f->local_bytes);
        if (at >= own && at + (size_t)bytes <= own + (size_t)f->f->local_bytes) return true;
    }
    return false;
}

static bool in_frames(const warp *w, uintptr_t at, int64_t bytes) {
    for (const frame *f = w->now; f; f = f->up) {
        uintptr_t local = (uintptr_t)f->local, lanes = (uintptr_t)f->lanes;
        if (at >= local && at + (size_t)bytes <= local + (size_t)(WARP * f->f->local_bytes)) return true;
        if (at >= lanes && at + (size_t)bytes <= lanes + (size_t)(WARP * f->f->lane_bytes)) return true;
    }
    return false;
}

static bool may_touch(warp *w, int space, uintptr_t at, int64_t bytes) {
    const grid_call *c = call_now;
    if (c->owns((const void *)at, (size_t)bytes) || in_symbols(c->f->of, at, bytes)) return true;
    if (space == SPACE_GLOBAL) return false;
    int64_t in_block = (int64_t)(at - (uintptr_t)w->block->shared);
    uintptr_t args = (uintptr_t)c->args;
    return in_shared(c, in_block, bytes) || in_frames(w, at, bytes) ||
           (at >= args && at + (size_t)bytes <= args + (size_t)c->f->args_bytes);
}

void *grid_reach(warp *w, const insn *i, int lane, int address) {
    int64_t at = i->imm, bytes = (int64_t)i->size * i->count;
    if (i->op[address] >= 0) {
        const uint8_t *row = w->now->rows + (size_t)i->op[address] * ROW;
        at += i->bytes[address] == 8 ? ((const int64_t *)row)[lane] : (int64_t)((const uint32_t *)row)[lane];
    }
    if (at % bytes) grid_fault(w, GRID_MISALIGNED, lane, "a misaligned address");
    bool good = true;
    if (i->space == SPACE_SHARED) {
        at &= UINT32_MAX;
        good = in_shared(call_now, at, bytes);
    } else if (i->space == SPACE_LOCAL) { // perhaps a caller's
        good = in_local(w, (uintptr_t)(grid_base(w, SPACE_LOCAL, lane) + at), bytes, lane);
    } else if (i->space == SPACE_PARAM || i->space == SPACE_LANE_PARAM) {
        const function *f = w->now->f;
        good = at >= 0 && at + bytes <= (i->space == SPACE_PARAM ? f->args_bytes : f->lane_bytes);
    } else {
        good = may_touch(w, i->space, (uintptr_t)at, bytes);
    }
    if (!good) {
        char what[96];
        snprintf(what, sizeof what, "%d bytes at %#llx of space %d are not its own", (int)bytes, (unsigned long long)at,
            i->space);
        grid_fault(w, GRID_BAD_ADDRESS, lane, what);
    }
    return (void *)(uintptr_t)(grid_base(w, i->space, lane) + at);
}

// Frames

static void fill_row(uint8_t *row, uint64_t value, int bytes) {
    for (int l = 0; l < WARP; l++) {
        if (bytes == 8)
            ((uint64_t *)row)[l] = value;
        else
            ((uint32_t *)row)[l] = (uint32_t)value;
    }
}

static void fill_special(const fiber *f, uint8_t *row, int which) {
    const extent3 *at = &f->w.block->at, *size = &call_now->block, *all = &call_now->grid;
    uint32_t one[SPECIALS] = {0, 0, 0, size->x, size->y, size->z, at->x, at->y, at->z, all->x, all->y, all->z, 0};
    for (unsigned l = 0; l < WARP; l++) {
        unsigned t = (unsigned)f->number * WARP + l;
        uint32_t v = one[which];
        if (which == TID_X) v = t % size->x;
        if (which == TID_Y) v = t / size->x % size->y;
        if (which == TID_Z) v = t / size->x / size->y;
        if (which == LANE_ID) v = l;
        ((uint32_t *)row)[l] = v;
    }
}

static frame *frame_make(const function *f) {
    size_t rows = ((size_t)f->rows * ROW + 63) / 64 * 64, lanes = (size_t)(WARP * f->lane_bytes),
           local = (size_t)(WARP * f->local_bytes), head = (sizeof(frame) + 63) / 64 * 64;
    uint8_t *memory = aligned_alloc(64, (head + rows + lanes + local + 63) / 64 * 64);
    frame *n = (frame *)memory;
    *n = (frame){.f = f, .rows = memory + head};
    n->lanes = n->rows + rows;
    n->local = n->lanes + lanes;
    for (int i = 0; i < f->constant_count; i++)
        fill_row(n->rows + (size_t)f->constants[i].row * ROW, f->constants[i].value, f->constants[i].bytes);
    return n;
}

// Frames of a function are kept for its next call: nobody writes the constants.
static void frame_push(warp *w, const function *f) {
    frame *n = *f->idle;
    if (n)
        *f->idle = n->up;
    else
        n = frame_make(f);
    n->up = w->now;
    memset(n->local, 0xFF, (size_t)(WARP * f->local_bytes)); // what is read before it is written shows as NaN
    for (int i = 0; i < f->special_count; i++)
        fill_special(fiber_of(w), n->rows + (size_t)f->special[i].row * ROW, f->special[i].which);
    w->now = n;
}

static void frame_pop(warp *w) {
    frame *f = w->now;
    w->now = f->up;
    f->up = *f->f->idle;
    *f->f->idle = f;
}

// Barriers

static void release_barrier(block *b, int number) {
    if (b->barrier[number].arrived == 0) return;
    b->barrier[number].arrived = 0;
    b->barrier[number].turn++;
}

static void wait_at_barrier(warp *w, const insn *i) {
    const uint8_t *rows = w->now->rows;
    block *b = w->block;
    int lane = __builtin_ctz(w->live), number = (int)((const uint32_t *)(rows + (size_t)i->op[0] * ROW))[lane],
        wanted = 0;
    if (i->count > 1) wanted = (int)((const uint32_t *)(rows + (size_t)i->op[1] * ROW))[lane];
    if (number < 0 || number >= BARRIERS || wanted % WARP ||
        (b->barrier[number].arrived && b->barrier[number].wanted != wanted / WARP))
        grid_fault(w, GRID_TRAP, lane, "no such barrier, or one that others meet at in another number");
    b->barrier[number].wanted = wanted / WARP;
    if (++b->barrier[number].arrived >= (wanted ? wanted / WARP : b->alive)) {
        release_barrier(b, number);
        return;
    }
    fiber *f = fiber_of(w);
    f->waits = number;
    f->turn = b->barrier[number].turn;
    give_way();
    f->waits = -1;
}

// Strands

typedef struct {
    int at;
    uint32_t mask;
    bool blocked; // waits for other lanes
} strand;

typedef struct {
    strand now, other[WARP];
    int count;
    int meet; // the place of the one furthest behind that is not blocked; INT_MAX: there is none
} strands;

static void find_meet(strands *s) {
    s->meet = INT_MAX;
    for (int k = 0; k < s->count; k++)
        if (!s->other[k].blocked && s->other[k].at < s->meet) s->meet = s->other[k].at;
}

static void put_aside(strands *s, int at, uint32_t mask, bool blocked) {
    s->other[s->count++] = (strand){at, mask, blocked};
    find_meet(s);
}

// Joins others that are at the present place.
static void join_here(strands *s) {
    for (int k = s->count - 1; k >= 0; k--) {
        if (s->other[k].at != s->now.at) continue;
        s->now.mask |= s->other[k].mask;
        s->other[k] = s->other[--s->count];
    }
    find_meet(s);
}

// Goes on with the one furthest behind; false if none can.
static bool take_up(strands *s) {
    int best = -1;
    for (int k = 0; k < s->count; k++)
        if (!s->other[k].blocked && (best < 0 || s->other[k].at < s->other[best].at)) best = k;
    if (best < 0) return false;
    s->now = s->other[best];
    s->other[best] = s->other[--s->count];
    join_here(s);
    return true;
}

static uint32_t guarded(const frame *f, const insn *i, uint32_t mask) {
    if (i->guard < 0) return mask;
    uint32_t p = *(const uint32_t *)(f->rows + (size_t)i->guard * ROW);
    return mask & (i->guard_not ? ~p : p);
}

static void branch(strands *s, const insn *i, uint32_t active) {
    if (active == s->now.mask) {
        s->now.at = i->target;
        return;
    }
    s->now.at++;
    if (!active) return;
    s->now.mask &= ~active;
    put_aside(s, i->target, active, false);
}

static void run_function(warp *w, uint32_t mask);

static void call_function(warp *w, const insn *i, uint32_t active) {
    const function *f = i->callee;
    frame *from = w->now, *to;
    frame_push(w, f);
    to = w->now;
    int64_t here = from->f->lane_bytes, there = f->lane_bytes;
    for (int l = 0; l < WARP; l++)
        for (int k = 0; active >> l & 1 && k < i->arg_count; k++)
            memcpy(to->lanes + l * there + f->params[k].at, from->lanes + l * here + i->args[k],
                (size_t)f->params[k].bytes);
    run_function(w, active);
    for (int l = 0; l < WARP; l++)
        if (active >> l & 1 && i->result >= 0)
            memcpy(from->lanes + l * here + i->result, to->lanes + l * there + f->result.at, (size_t)f->result.bytes);
    frame_pop(w);
}

// True if all lanes are here that an instruction is for. Otherwise those that are wait, and others go on.
static bool all_here(warp *w, strands *s, const insn *i) {
    uint32_t wanted = w->live;
    join_here(s);
    if (i->kind == CONVERGENT && i->target >= 0) {
        const uint32_t *named = (const uint32_t *)(w->now->rows + (size_t)i->target * ROW);
        uint32_t first = named[__builtin_ctz(s->now.mask)];
        for (int l = 0; l < WARP; l++)
            if (s->now.mask >> l & 1 && (named[l] != first || !(first >> l & 1)))
                grid_fault(w, GRID_STUCK, l, "a lane names other lanes, or not itself");
        wanted &= first;
    }
    if ((s->now.mask & wanted) == wanted) {
        if (guarded(w->now, i, s->now.mask) != s->now.mask)
            grid_fault(w, GRID_STUCK, 0, "a guard leaves out lanes that others wait for");
        return true;
    }
    put_aside(s, s->now.at, s->now.mask, true);
    if (!take_up(s)) grid_fault(w, GRID_STUCK, 0, "lanes wait for others that do not come");
    return false;
}

static bool leave(warp *w, strands *s, uint32_t active) {
    if (!w->now->up) w->live &= ~active;
    s->now.mask &= ~active;
    s->now.at++;
    if (s->now.mask) return true;
    for (int k = 0; k < s->count; k++) s->other[k].blocked = false; // fewer lanes are waited for now
    return take_up(s);
}

// Carries out one instruction; false when all lanes have returned.
static bool step(warp *w, strands *s) {
    const insn *i = &w->now->f->code[s->now.at];
    uint32_t active = guarded(w->now, i, s->now.mask);
    w->at = i;
    switch (i->kind) {
    case BRANCH: branch(s, i, active); return true;
    case RETURN: return leave(w, s, active);
    case CALL:
        if (active) call_function(w, i, active);
        break;
    case BARRIER:
        if (!all_here(w, s, i)) return true;
        wait_at_barrier(w, i);
        break;
    case CONVERGENT:
        if (!all_here(w, s, i)) return true;
        i->run(w, i, s->now.mask);
        break;
    case POLL:
        i->run(w, i, active);
        fiber_of(w)->polls = true;
        give_way();
        break;
    case TRAP:
        if (active) grid_fault(w, GRID_TRAP, __builtin_ctz(active), "a trap");
        break;
    default:
        if (active) i->run(w, i, active);
    }
    s->now.at++;
    return true;
}

static void run_function(warp *w, uint32_t mask) {
    strands s = {.now = {0, mask, false}, .meet = INT_MAX};
    do {
        if (s.now.at < s.meet) continue;
        if (s.now.at > s.meet) {
            put_aside(&s, s.now.at, s.now.mask, false);
            take_up(&s);
        } else {
            join_here(&s);
        }
    } while (step(w, &s));
}

// Blocks

static void begin_fiber(void) {
    fiber *f = running;
    f->w.live = f->alive;
    frame_push(&f->w, call_now->f);
    run_function(&f->w, f->alive);
    frame_pop(&f->w);
    free(f->w.copies);
    block *b = f->w.block;
    f->ended = true;
    b->alive--;
    for (int i = 0; i < BARRIERS; i++)
        if (!b->barrier[i].wanted && b->barrier[i].arrived >= b->alive) release_barrier(b, i);
    give_way();
}

static void *stacks[1 << 12];
static int stack_count;

static void block_begin(block *b, int64_t number) {
    const grid_call *c = call_now;
    int64_t threads = threads_of(c);
    *b = (block){.count = (int)((threads + WARP - 1) / WARP)};
    b->at = (extent3){(unsigned)(number % c->grid.x), (unsigned)(number / c->grid.x % c->grid.y),
        (unsigned)(number / c->grid.x / c->grid.y)};
    b->alive = b->count;
    b->shared = aligned_alloc(1024, (shared_bytes(c) + 1023) / 1024 * 1024);
    memset(b->shared, 0xFF, shared_bytes(c));
    b->fibers = calloc((size_t)b->count, sizeof *b->fibers);
    for (int i = 0; i < b->count; i++) {
        fiber *f = &b->fibers[i];
        int64_t lanes = threads - (int64_t)i * WARP;
        f->number = i;
        f->waits = -1;
        f->w.block = b;
        f->alive = lanes >= WARP ? UINT32_MAX : (1u << lanes) - 1;
        f->stack = stack_count ? stacks[--stack_count] : malloc(STACK);
        getcontext(&f->context);
        f->context.uc_stack.ss_sp = f->stack;
        f->context.uc_stack.ss_size = STACK;
        makecontext(&f->context, begin_fiber, 0);
    }
}

static void block_end(block *b) {
    if (hopper_left(b->shared)) {
        fprintf(stderr, "card: %s: a block ends before bricks that it asked for are there\n", call_now->f->name);
        end_now = GRID_TRAP;
    }
    for (int i = 0; i < b->count; i++) {
        if (stack_count < (int)(sizeof stacks / sizeof *stacks))
            stacks[stack_count++] = b->fibers[i].stack;
        else
            free(b->fibers[i].stack);
    }
    free(b->fibers);
    free(b->shared);
}

// Resumes each warp that can go on, in the order of the grid's turn, and counts them. Returns the number of those that
// went further than a poll.
static int block_turn(block *b, bool backwards, int *resumed) {
    int went = 0;
    for (int k = 0; k < b->count && end_now == GRID_DONE; k++) {
        fiber *f = &b->fibers[backwards ? b->count - 1 - k : k];
        if (f->ended || (f->waits >= 0 && b->barrier[f->waits].turn == f->turn)) continue;
        f->polls = false;
        ++*resumed;
        running = f;
        swapcontext(&main_context, &f->context);
        went += !f->polls;
    }
    return went;
}

bool grid_goes_backwards(void) {
    const char *order = getenv("TRADEWIND_CARD_ORDER");
    return order && strcmp(order, "backwards") == 0;
}

int grid_warp_number(const warp *w) {
    return ((const fiber *)w)->number;
}

grid_end grid_run(const grid_call *c) {
    int64_t total = (int64_t)c->grid.x * c->grid.y * c->grid.z, begun = 0, first = 0;
    bool backwards = grid_goes_backwards();
    block *blocks = calloc((size_t)total, sizeof *blocks);
    int idle = 0;
    call_now = c;
    end_now = GRID_DONE;
    while (first < total && end_now == GRID_DONE) {
        int went = 0, resumed = 0;
        if (first == begun) block_begin(&blocks[begun], backwards ? total - 1 - begun : begun), begun++;
        for (int64_t k = first; k < begun; k++)
            if (blocks[k].alive) went += block_turn(&blocks[k], backwards, &resumed);
        while (first < begun && !blocks[first].alive) block_end(&blocks[first++]);
        idle = went ? 0 : idle + 1;
        if (went || end_now != GRID_DONE) continue;
        if (resumed && begun < total && begun - first < TOGETHER) {
            block_begin(&blocks[begun], backwards ? total - 1 - begun : begun), begun++;
        } else if (!resumed || idle > ROUNDS) {
            fprintf(stderr, "card: %s: its warps wait for each other for ever\n", c->f->name);
            end_now = GRID_STUCK;
        }
    }
    free(blocks);
    return end_now;
}
