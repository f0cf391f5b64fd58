// The compiler of row kernels (cuda/rows/rows.h): what it joins, where it cuts, and how it uses shared memory. Needs
// no card.
#include "cuda/rows/rows_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static linear_attr gelu = {ACT_GELU};
static advance_attr after = {true};

static call *mse(list *l, operand forecast, operand target, uintptr_t sum) {
    call *c = cross_entropy(l, forecast, sum);
    c->op = OP_mse;
    c->inputs = 3;
    c->in[1] = target;
    return c;
}

static call *mse_back(list *l, operand forecast, operand target, operand gradient) {
    call *c = cross_entropy_back(l, forecast, gradient);
    c->op = OP_mse;
    c->inputs = 3;
    c->in[1] = target;
    return c;
}

static call *tally(list *l, operand loss, operand totals, bool first) {
    call *c = call_new(l, OP_tally, NULL, false, 1);
    c->in[0] = loss;
    c->out[0] = totals;
    c->first = first;
    return c;
}

static void test_layers_stay_in_shared_memory(void **state) {
    (void)state;
    list *l = list_new();
    call *first = linear(l, &relu, tensor_at(1, 64, DTYPE_F32), x_at(2, 32), 100);
    first->reserve = (void *)(uintptr_t)(50 << 20); // planned, but not for what this layer would keep
    assert_true(rows_add(&l->r, first));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 32), x_at(3, 32))));
    assert_true(rows_add(&l->r, linear(l, &plain, x_at(3, 32), x_at(4, 3), 101)));
    rows_end(&l->r);
    static const rows_op want[] = {ROWS_LOAD, ROWS_LINEAR, ROWS_DROPOUT, ROWS_LINEAR};
    assert_int_equal(l->r.made.count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(instr(l, i)->op, want[i]);
    // The vector is converted as it is loaded; everything else is read from the slot it was written to.
    assert_int_equal(instr(l, 0)->to.slot_type, DTYPE_BF16);
    assert_int_equal(instr(l, 0)->a.slot, -1);
    assert_int_equal(instr(l, 1)->a.slot, instr(l, 0)->to.slot);
    assert_int_equal(instr(l, 2)->a.slot, instr(l, 1)->to.slot);
    assert_int_equal(instr(l, 3)->a.slot, instr(l, 2)->to.slot);
    assert_int_equal(l->r.made.low, DTYPE_BF16);
    for (int i = 1; i < 4; i++) assert_non_null(instr(l, i)->to.data);
    free(l);
}

static void test_cuts_at_overlaps(void **state) {
    (void)state;
    list *l = list_new();
    operand beside = x_at(2, 32);
    beside.data = (char *)beside.data + 64;
    assert_true(rows_add(&l->r, dropout(l, x_at(1, 32), x_at(2, 32))));
    int before = l->r.made.count;
    assert_false(rows_add(&l->r, dropout(l, x_at(2, 32), beside))); // half of what it reads
    assert_false(
        rows_add(&l->r, dropout(l, x_at(2, 32), x_at(1, 16)))); // another tensor where the first one's input is
    assert_false(rows_add(&l->r, dropout(l, x_at(2, 32), tensor_at(1, 16, DTYPE_F32))));
    assert_int_equal(l->r.made.count, before);                          // and nothing was left behind
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 32), x_at(1, 32)))); // the same rows, in order within a block
    assert_false(rows_add(&l->r, linear(l, &plain, x_at(1, 32), x_at(5, 8), 2))); // weights that the row kernel writes
    free(l);
}

// x and dz are read after the row kernel: nothing may take their place, not even a tensor of the same size.
static void test_holds_what_weights_need(void **state) {
    (void)state;
    list *l = list_new();
    call *c = linear_back(l, &relu, x_at(1, 32), x_at(2, 16), x_at(3, 32), x_at(4, 16), 10);
    assert_true(rows_add(&l->r, c));
    assert_int_equal(l->r.weights, 1);
    assert_ptr_equal(l->r.weight[0], c);
    assert_false(rows_add(&l->r, dropout(l, x_at(3, 32), x_at(1, 32))));
    assert_false(rows_add(&l->r, dropout(l, x_at(3, 16), x_at(10, 16))));
    assert_true(rows_add(&l->r, dropout(l, x_at(4, 16), x_at(2, 16)))); // y is done with
    // The same weights again: their gradient is added to, in a launch of its own.
    assert_false(rows_add(&l->r, linear_back(l, &relu, x_at(11, 32), x_at(12, 16), x_at(13, 32), x_at(14, 16), 10)));
    free(l);
}

static void test_gives_up_the_oldest_slot(void **state) {
    (void)state;
    list *l = list_new();
    int tile = ROWS_TILE * rows_ld(64) * 2;
    rows_begin(&l->r, table, ROWS, (rows_card){3 * tile, MULTIPROCESSORS, true});
    for (uintptr_t i = 1; i < 5; i++) assert_true(rows_add(&l->r, dropout(l, x_at(i, 64), x_at(i + 1, 64))));
    assert_true(l->r.made.room <= 3 * tile);
    // The newest are there, the first has lost its slot and comes from its home.
    assert_true(rows_add(&l->r, dropout(l, x_at(5, 64), x_at(6, 64))));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 64), x_at(7, 64))));
    rows_end(&l->r);
    assert_true(instr(l, 4)->a.slot >= 0);
    assert_int_equal(instr(l, 5)->a.slot, -1);
    for (int i = 0; i < l->r.made.count; i++) {
        assert_true(instr(l, i)->to.slot < 0 || instr(l, i)->a.slot != instr(l, i)->to.slot);
        assert_non_null(instr(l, i)->to.data);
    }
    free(l);
}

// A slot that an instruction reads does not make room for what it writes.
static void test_keeps_the_slot_in_use(void **state) {
    (void)state;
    list *l = list_new();
    rows_begin(&l->r, table, ROWS, (rows_card){ROWS_TILE * rows_ld(64) * 2, MULTIPROCESSORS, true});
    assert_true(rows_add(&l->r, dropout(l, x_at(1, 64), x_at(2, 64))));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 64), x_at(3, 64))));
    assert_int_equal(instr(l, 0)->to.slot, 0);
    assert_int_equal(instr(l, 1)->a.slot, 0);
    assert_int_equal(instr(l, 1)->to.slot, -1);
    free(l);
}

// Blocks take two tiles where single ones would be more than the card runs at once.
static void test_takes_one_tile_of_few(void **state) {
    (void)state;
    assert_int_equal(rows_tiles(1), 1);
    assert_int_equal(rows_tiles(264 * ROWS_TILE), 1);
    assert_int_equal(rows_tiles(264 * ROWS_TILE + 1), 2);
}

static void test_refuses(void **state) {
    (void)state;
    list *l = list_new();
    call *c = linear(l, &gelu, x_at(1, 32), x_at(2, 16), 100);
    c->reserve = (void *)(uintptr_t)(50 << 20);
    assert_false(rows_add(&l->r, c)); // keeps z
    assert_false(rows_add(&l->r, linear_back(l, &gelu, x_at(1, 32), x_at(2, 16), x_at(3, 32), x_at(4, 16), 10)));
    assert_false(rows_add(&l->r, linear(l, &plain, x_at(1, 2048), x_at(2, 512), 100))); // wide weights
    assert_false(rows_add(&l->r, linear(l, &plain, x_at(1, 6000), x_at(2, 16), 100)));  // no room for x
    call *other = dropout(l, x_at(1, 32), x_at(2, 32));
    other->in[0].shape.dim[0]++;
    assert_false(rows_add(&l->r, other)); // other rows
    assert_true(rows_add(&l->r, dropout(l, x_at(1, 32), x_at(2, 32))));
    assert_false(rows_add(&l->r, dropout(l, tensor_at(3, 32, DTYPE_F16), tensor_at(4, 32, DTYPE_F16))));
    call *last = call_new(l, OP_advance, &after, false, 0);
    last->outputs = 0;
    assert_true(rows_add(&l->r, last));
    assert_false(rows_add(&l->r, dropout(l, x_at(2, 32), x_at(3, 32)))); // the step record has moved on
    free(l);
}

// The nth cell's row is n * inverse / 2^31 for every cell of a block.
static void assert_cells(const rows_instr *i, uint32_t cells) {
    assert_int_equal(i->cells, cells);
    for (uint64_t n = 0; n < 2 * ROWS_TILE * (uint64_t)cells; n++) assert_int_equal(n * i->inverse >> 31, n / cells);
}

// Everything that a block needs to know of columns is worked out once, here.
static void test_lays_columns_out(void **state) {
    (void)state;
    list *l = list_new();
    operand odd = x_at(5, 32), part = x_at(7, 8);
    slice_attr middle = {12, 20};
    odd.data = (char *)odd.data + 2;
    assert_true(rows_add(&l->r, dropout(l, tensor_at(1, 96, DTYPE_F32), x_at(2, 96))));
    assert_true(rows_add(&l->r, dropout(l, x_at(3, 30), x_at(4, 30))));
    assert_true(rows_add(&l->r, dropout(l, odd, x_at(6, 32))));
    call *c = call_new(l, OP_slice, &middle, true, 1);
    c->dout[0] = part;
    c->din[0] = x_at(8, 64);
    assert_true(rows_add(&l->r, c));
    assert_true(rows_add(&l->r, dropout(l, x_at(9, 1), x_at(10, 1))));
    assert_true(rows_add(&l->r, dropout(l, x_at(11, ROWS_WIDTH), x_at(12, ROWS_WIDTH))));
    assert_false(rows_add(&l->r, dropout(l, x_at(13, ROWS_WIDTH + 1), x_at(14, ROWS_WIDTH + 1))));
    rows_end(&l->r);
    static const bool words[] = {true, false, false, true, false, false};
    static const uint32_t cells[] = {24, 30, 32, 16, 1, ROWS_WIDTH};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(instr(l, i)->vectors, words[i]);
        assert_cells(instr(l, i), cells[i]);
    }
    assert_int_equal(instr(l, 0)->a.home_row, 96 * 4);
    assert_int_equal(instr(l, 0)->to.home_row, 96 * 2);
    assert_int_equal(instr(l, 0)->to.slot_row, rows_ld(96) * 2);
    assert_int_equal(instr(l, 3)->a.column, -12);
    free(l);
}

static void test_ends_where_it_is_full(void **state) {
    (void)state;
    list *l = list_new();
    static call c;
    static operand in, out;
    c = *dropout(l, x_at(1, 8), x_at(2, 8));
    c.in = &in;
    c.out = &out;
    int n = 0;
    for (;; n++) {
        in = x_at((uintptr_t)n + 1, 8);
        out = x_at((uintptr_t)n + 2, 8);
        if (!rows_add(&l->r, &c)) break;
    }
    assert_int_equal(n, ROWS_MOST);
    rows_end(&l->r);
    assert_int_equal(l->r.made.count, ROWS_MOST);
    assert_true(sizeof(row_kernel) <= 5 * 1024); // shared memory of every block
    free(l);
}

static void assert_beside(const list *l, int i, rows_op op, int warp, int open) {
    assert_int_equal(instr(l, i)->op, op);
    assert_int_equal(instr(l, i)->warp, warp);
    assert_int_equal(instr(l, i)->open, open);
}

// Losses, metrics and their gradients run side by side, those of another head apart from the first one's.
static void test_losses_run_side_by_side(void **state) {
    (void)state;
    list *l = list_new();
    operand scores = x_at(1, CLASSES), other = x_at(3, CLASSES);
    assert_true(rows_add(&l->r, confusion(l, scores, 20)));
    assert_true(rows_add(&l->r, cross_entropy(l, scores, 30)));
    assert_true(rows_add(&l->r, cross_entropy_back(l, scores, x_at(2, CLASSES))));
    assert_true(rows_add(&l->r, mse(l, other, x_at(5, CLASSES), 32)));
    assert_true(rows_add(&l->r, mse_back(l, other, x_at(5, CLASSES), scores))); // which nothing beside it reads
    assert_true(rows_add(&l->r, dropout(l, scores, x_at(6, CLASSES))));
    rows_end(&l->r);
    assert_int_equal(l->r.made.body, 6);
    assert_beside(l, 0, ROWS_CONFUSION, 0, 1);
    assert_beside(l, 1, ROWS_CROSS_ENTROPY, 1, 1);
    assert_beside(l, 2, ROWS_CROSS_ENTROPY_BACK, 2, 0);
    assert_beside(l, 3, ROWS_POINTWISE, 0, 1);
    assert_beside(l, 4, ROWS_POINTWISE_BACK, 1, 0);
    assert_beside(l, 5, ROWS_DROPOUT, 0, 0);
    free(l);
}

// A gradient waits that is written where something beside it reads: its home, or a slot that it has been given.
static void test_gradients_wait_for_readers(void **state) {
    (void)state;
    list *l = list_new();
    operand scores = x_at(1, CLASSES), target = x_at(5, CLASSES);
    assert_true(rows_add(&l->r, confusion(l, scores, 20)));
    assert_true(rows_add(&l->r, cross_entropy(l, scores, 30)));
    assert_true(rows_add(&l->r, cross_entropy_back(l, scores, scores)));
    assert_true(rows_add(&l->r, mse(l, x_at(3, CLASSES), target, 32)));
    assert_true(rows_add(&l->r, mse_back(l, x_at(3, CLASSES), target, target)));
    rows_end(&l->r);
    assert_beside(l, 0, ROWS_CONFUSION, 0, 1);
    assert_beside(l, 1, ROWS_CROSS_ENTROPY, 1, 0);
    assert_beside(l, 2, ROWS_CROSS_ENTROPY_BACK, 0, 0);
    assert_beside(l, 3, ROWS_POINTWISE, 0, 0);
    assert_beside(l, 4, ROWS_POINTWISE_BACK, 0, 0);
    free(l);
}

static void test_gradients_wait_for_slots(void **state) {
    (void)state;
    int tile = ROWS_TILE * rows_ld(CLASSES) * 2;
    for (int tiles = 2; tiles <= 3; tiles++) {
        list *l = list_new();
        rows_begin(&l->r, table, ROWS, (rows_card){tiles * tile, MULTIPROCESSORS, true});
        assert_true(rows_add(&l->r, dropout(l, x_at(1, CLASSES), x_at(2, CLASSES))));
        assert_true(rows_add(&l->r, dropout(l, x_at(3, CLASSES), x_at(4, CLASSES))));
        assert_true(rows_add(&l->r, confusion(l, x_at(2, CLASSES), 20)));
        assert_true(rows_add(&l->r, cross_entropy(l, x_at(4, CLASSES), 30)));
        assert_true(rows_add(&l->r, cross_entropy_back(l, x_at(4, CLASSES), x_at(5, CLASSES))));
        rows_end(&l->r);
        assert_int_equal(instr(l, 4)->to.slot == instr(l, 2)->a.slot, tiles == 2);
        assert_beside(l, 2, ROWS_CONFUSION, 0, 1);
        assert_beside(l, 3, ROWS_CROSS_ENTROPY, 1, tiles == 3);
        assert_beside(l, 4, ROWS_CROSS_ENTROPY_BACK, tiles == 3 ? 2 : 0, 0);
        free(l);
    }
}

static void test_warps_run_out(void **state) {
    (void)state;
    enum { METRICS = 11, TOGETHER = 8 };
    list *l = list_new();
    for (int i = 0; i < METRICS; i++) assert_true(rows_add(&l->r, confusion(l, x_at(1, CLASSES), 20 + (uintptr_t)i)));
    assert_true(rows_add(&l->r, dropout(l, x_at(1, CLASSES), x_at(2, CLASSES))));
    rows_end(&l->r);
    for (int i = 0; i < METRICS; i++)
        assert_beside(l, i, ROWS_CONFUSION, i % TOGETHER, i % TOGETHER != TOGETHER - 1 && i != METRICS - 1);
    free(l);
}

static call *joined(list *l, int op, const void *attr, operand a, operand b, operand to) {
    call *c = call_new(l, op, attr, false, b.data ? 2 : 1);
    c->in[0] = a;
    c->in[1] = b;
    c->out[0] = to;
    return c;
}

// No barrier stands between instructions of which every thread reads what it has written itself; one does where cells
// are shared out in another way, or a slot is given to a tile of another width. The slices
// are read where they come from, and what the layer has no part in stands before it.
static void test_threads_keep_to_their_cells(void **state) {
    (void)state;
    static const slice_attr front = {0, 60}, back = {60, 72};
    static const axpby_attr minus = {1, -1}, plus = {1, 1};
    operand none_such = {.data = NULL};
    list *l = list_new();
    assert_true(rows_add(&l->r, joined(l, OP_slice, &front, x_at(1, 72), none_such, x_at(2, 60))));
    assert_true(rows_add(&l->r, joined(l, OP_slice, &back, x_at(1, 72), none_such, x_at(3, 12))));
    assert_true(rows_add(&l->r, joined(l, OP_axpby, &minus, x_at(4, 60), x_at(2, 60), x_at(5, 60))));
    assert_true(rows_add(&l->r, joined(l, OP_axpby, &plus, x_at(6, 12), x_at(3, 12), x_at(7, 12))));
    assert_true(rows_add(&l->r, linear(l, &relu, x_at(5, 60), x_at(8, 32), 100)));
    assert_true(rows_add(&l->r, dropout(l, x_at(8, 32), x_at(9, 32))));
    assert_true(rows_add(&l->r, joined(l, OP_concat, NULL, x_at(5, 60), x_at(7, 12), x_at(10, 72))));
    assert_true(rows_add(&l->r, dropout(l, x_at(10, 72), x_at(11, 72))));
    rows_end(&l->r);
    static const int open[] = {1, 1, 1, 1, 1, 0, 0, 0, 0};
    assert_int_equal(l->r.made.body, 9);
    for (int i = 0; i < 9; i++) assert_int_equal(instr(l, i)->open, open[i]);
    free(l);
}

static void test_slots_of_another_width_wait(void **state) {
    (void)state;
    int tile = ROWS_TILE * rows_ld(64) * 2;
    list *l = list_new();
    rows_begin(&l->r, table, ROWS, (rows_card){tile, MULTIPROCESSORS, true});
    assert_true(rows_add(&l->r, dropout(l, x_at(1, 64), x_at(2, 64))));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 64), x_at(2, 64)))); // the same cells of the same slot
    assert_true(rows_add(&l->r, dropout(l, x_at(5, 32), x_at(6, 32)))); // others of it
    assert_true(rows_add(&l->r, dropout(l, x_at(6, 32), x_at(7, 32))));
    rows_end(&l->r);
    assert_int_equal(instr(l, 0)->to.slot, instr(l, 2)->to.slot);
    assert_int_equal(instr(l, 0)->open, 1);
    assert_int_equal(instr(l, 1)->open, 0);
    free(l);
}

// The joint between two blocks of an N-BEATS: only loading and two layers are left of it. What goes into the sum and
// what is left of the input are results of the first layer's lanes, the latter also as the second one's operand.
static void test_folds_a_joint(void **state) {
    (void)state;
    static const slice_attr front = {0, 60}, back = {60, 72};
    static const axpby_attr minus = {1, -1}, plus = {1, 1};
    operand none_such = {.data = NULL}, theta = x_at(2, 72), fore = x_at(3, 12), part = x_at(4, 60);
    operand rest = tensor_at(5, 60, DTYPE_F32), next = tensor_at(6, 60, DTYPE_F32), sum = x_at(7, 12),
            all = x_at(8, 12);
    for (int over = 0; over < 2; over++) {
        list *l = list_new();
        assert_true(rows_add(&l->r, linear(l, &plain, x_at(1, 512), theta, 100)));
        assert_true(rows_add(&l->r, joined(l, OP_slice, &back, theta, none_such, fore)));
        assert_true(rows_add(&l->r, joined(l, OP_axpby, &plus, sum, fore, all)));
        assert_true(rows_add(&l->r, joined(l, OP_slice, &front, theta, none_such, part)));
        assert_true(rows_add(&l->r, joined(l, OP_axpby, &minus, rest, part, next)));
        assert_true(rows_add(&l->r, linear(l, &relu, next, x_at(9, 512), 101)));
        for (int i = 0; i < l->count; i++) rows_over(&l->r, &l->calls[i].out[0], over && i != 2 && i < 4);
        rows_end(&l->r);
        assert_int_equal(l->r.made.body, over ? 5 : 7);
        const rows_instr *first = first_of(l, ROWS_LINEAR), *last = instr(l, l->r.made.body - 1);
        assert_int_equal(first->chain, over ? 2 : 4);
        assert_int_equal(first->to.data == NULL, over);
        assert_int_equal(first->to.slot, -1);
        const rows_instr *added = first_of(l, ROWS_AXPBY), *left = last - 1;
        assert_int_equal(added->takes, ROWS_OF_PRODUCT | ROWS_AS_SECOND | ROWS_EARLY);
        assert_int_equal(added->a.column, 60);
        assert_ptr_equal(added->b.data, sum.data);
        assert_int_equal(left->op, ROWS_AXPBY);
        assert_int_equal(left->to.slot_type, DTYPE_BF16);
        assert_int_equal(left->to.slot, last->a.slot);
        assert_ptr_equal(left->to.data, next.data);
        assert_int_equal(last->to.slot, -1);
        free(l);
    }
}

// Rows that the gradients of weights read come home, whether or not anybody else reads them.
static void test_keeps_what_weights_read(void **state) {
    (void)state;
    list *l = list_new();
    operand dz = x_at(10, 16), dx = x_at(3, 32);
    assert_true(rows_add(&l->r, linear_back(l, &relu, x_at(1, 32), x_at(2, 16), dx, x_at(4, 16), 10)));
    assert_true(rows_add(&l->r, dropout_back(l, x_at(5, 32), dx)));
    rows_over(&l->r, &dz, true);
    rows_over(&l->r, &dx, true);
    rows_end(&l->r);
    assert_ptr_equal(first_of(l, ROWS_SLOPE)->to.data, dz.data);
    assert_null(first_of(l, ROWS_LINEAR_BACK)->to.data);
    assert_non_null(first_of(l, ROWS_DROPOUT)->to.data);
    free(l);
}

// Rows that one call has finished with and another still wants come home.
static void test_keeps_what_somebody_wants(void **state) {
    (void)state;
    list *l = list_new();
    operand dx = x_at(3, 32);
    assert_true(rows_add(&l->r, linear_back(l, &relu, x_at(1, 32), x_at(2, 16), dx, x_at(4, 16), 10)));
    assert_true(rows_add(&l->r, dropout_back(l, x_at(5, 32), dx)));
    rows_over(&l->r, &dx, true);
    rows_over(&l->r, &dx, false);
    rows_end(&l->r);
    assert_ptr_equal(first_of(l, ROWS_LINEAR_BACK)->to.data, dx.data);
    free(l);
}

// A loss is added and tallied behind the row kernel; each loss has one tally.
static void test_tally_joins_its_loss(void **state) {
    (void)state;
    list *l = list_new();
    operand totals = {.data = (void *)(uintptr_t)(60 << 20), .type = DTYPE_F64, .shape = shape1(TALLY_COUNT)},
            more = {.data = (void *)(uintptr_t)(61 << 20), .type = DTYPE_F64, .shape = shape1(TALLY_COUNT)};
    assert_false(rows_add(&l->r, tally(l, floats_at(30, 2), totals, true))); // of no loss that is here
    assert_true(rows_add(&l->r, cross_entropy(l, x_at(1, CLASSES), 30)));
    assert_true(rows_add(&l->r, mse(l, x_at(3, CLASSES), x_at(5, CLASSES), 40)));
    assert_false(rows_add(&l->r, tally(l, floats_at(50, 2), totals, true)));
    assert_true(rows_add(&l->r, tally(l, floats_at(40, 2), totals, true)));
    assert_false(rows_add(&l->r, tally(l, floats_at(40, 2), more, true)));
    assert_true(rows_add(&l->r, tally(l, floats_at(30, 2), more, false)));
    rows_end(&l->r);
    assert_int_equal(l->r.made.body, 2);
    assert_int_equal(l->r.made.count, 4);
    const rows_instr *entropy = instr(l, 2), *squares = instr(l, 3);
    assert_true(entropy->op == ROWS_LOSS_ADD && squares->op == ROWS_LOSS_ADD);
    assert_ptr_equal(entropy->p[0], more.data);
    assert_ptr_equal(squares->p[0], totals.data);
    assert_int_equal(entropy->flag, false);
    assert_int_equal(squares->flag, true);
    assert_ptr_equal(entropy->a.data, instr(l, 0)->to.data);
    assert_int_equal(entropy->n, rows_blocks(ROWS));
    free(l);
}

// Packs

static size_t up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

// A pack of K terms and N columns, of which `group` are a warp's, begins where the one before it ends.
static size_t assert_pack(const list *l, int i, int K, int N, bool wide, size_t begins) {
    const rows_pack *p = &l->r.pack[i];
    size_t columns = up((size_t)N, wide ? 32 : 8), bytes = up((size_t)K, 16) * columns * 2;
    assert_int_equal(p->K, K);
    assert_int_equal(p->N, N);
    assert_int_equal(p->wide, wide);
    assert_int_equal(p->offset, begins);
    assert_int_equal(p->offset % 256, 0);
    assert_int_equal(rows_columns(p), wide ? 32 : 8);
    assert_int_equal(rows_pack_bytes(p, DTYPE_BF16), bytes);
    assert_int_equal(rows_pack_bytes(p, DTYPE_F32), 2 * bytes);
    assert_int_equal(rows_pack_room(p, DTYPE_BF16), bytes + (p->bias ? up(columns * sizeof(float), 256) : 0));
    assert_int_equal(instr(l, p->instr)->flag, wide);
    return begins + rows_pack_room(p, DTYPE_BF16);
}

static const rows_pack *assert_placed(const list *l, int i, char *at) {
    const rows_pack *p = &l->r.pack[i];
    const rows_instr *to = instr(l, p->instr);
    assert_int_equal(to->op, p->back ? ROWS_LINEAR_BACK : ROWS_LINEAR);
    assert_ptr_equal(to->p[0], at + p->offset);
    assert_ptr_equal(to->p[1], p->bias ? at + p->offset + rows_pack_bytes(p, DTYPE_BF16) : NULL);
    return p;
}

static void test_packs_weights(void **state) {
    (void)state;
    list *l = list_new();
    call *biased = linear(l, &plain, x_at(1, 40), x_at(2, 21), 100);
    biased->in[2] = floats_at(101, 21);
    assert_true(rows_add(&l->r, biased));
    assert_true(rows_add(&l->r, linear(l, &relu, x_at(2, 21), x_at(3, 264), 102)));
    call *back = linear_back(l, &relu, x_at(2, 21), x_at(3, 264), x_at(4, 21), x_at(5, 264), 10);
    back->in[2] = floats_at(103, 264); // a bias has no part in what goes back
    assert_true(rows_add(&l->r, back));
    call *first = linear_back(l, &plain, x_at(1, 40), x_at(2, 21), (operand){0}, x_at(4, 21), 14);
    assert_true(rows_add(&l->r, first)); // nor has a layer of data a product
    rows_end(&l->r);
    assert_int_equal(l->r.packs, 3);
    size_t end = assert_pack(l, 0, 40, 21, false, 0);
    end = assert_pack(l, 1, 21, 264, true, end);
    end = assert_pack(l, 2, 264, 21, false, end);
    assert_int_equal(l->r.packed, end);
    char *at = (char *)(uintptr_t)(400 << 20);
    rows_place(&l->r, at);
    assert_ptr_equal(assert_placed(l, 0, at)->weights, biased->in[1].data);
    assert_ptr_equal(l->r.pack[0].bias, biased->in[2].data);
    assert_null(assert_placed(l, 1, at)->bias);
    assert_true(assert_placed(l, 2, at)->back);
    assert_ptr_equal(l->r.pack[2].weights, back->in[1].data);
    free(l);
}

// A product of a block that is alone on its multiprocessor loads the weights of the next one, behind all tiles, where
// there is room.
static void test_products_load_weights(void **state) {
    (void)state;
    for (int room = 0; room < 2; room++) {
        list *l = list_new();
        int tiles = 2 * ROWS_TILE * rows_ld(32) * 2, weights = 32 * 256 * 2;
        rows_begin(&l->r, table, ROWS, (rows_card){tiles + weights - !room, MULTIPROCESSORS, true});
        assert_true(rows_add(&l->r, linear(l, &plain, x_at(1, 32), x_at(2, 32), 100)));
        assert_true(rows_add(&l->r, linear(l, &plain, x_at(2, 32), x_at(3, 256), 101)));
        rows_end(&l->r);
        const rows_instr *first = instr(l, l->r.pack[0].instr), *second = instr(l, l->r.pack[1].instr);
        assert_int_equal(first->n, room ? second - first : 0);
        assert_int_equal(first->b.slot, -1);
        assert_int_equal(second->b.slot, room ? tiles : -1);
        assert_int_equal(second->cells, room ? rows_pack_bytes(&l->r.pack[1], DTYPE_BF16) / 16 : 0);
        assert_true(l->r.made.room <= l->r.limit);
        free(l);
    }
}

// A load's copy has landed by the next barrier only: a slope that reads it does not share the load's stretch.
static void test_loads_are_waited_for(void **state) {
    (void)state;
    list *l = list_new();
    operand d = x_at(4, 64);
    assert_true(rows_add(&l->r, linear_back(l, &plain, x_at(1, 64), x_at(2, 64), x_at(3, 64), d, 10)));
    assert_true(rows_add(&l->r, linear_back(l, &relu, x_at(5, 64), d, x_at(6, 64), x_at(7, 64), 20)));
    rows_end(&l->r);
    const rows_instr *load = instr(l, 0), *slope = instr(l, 1);
    assert_int_equal(load->op, ROWS_LOAD);
    assert_int_equal(load->vectors, ROWS_PLAIN);
    assert_int_equal(slope->op, ROWS_SLOPE);
    assert_int_equal(slope->b.slot, load->to.slot);
    assert_false(load->open);
    free(l);
}

// Products are wide by their columns, forward and back, on cards that have the memory.
static void test_packs_are_wide_by_columns(void **state) {
    (void)state;
    static const struct {
        int64_t width;
        bool wide;
    } cases[] = {{248, false}, {256, true}, {260, false}, {264, true}, {512, true}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        list *l = list_new();
        int64_t width = cases[i / 2].width;
        bool allowed = i % 2, wide = allowed && cases[i / 2].wide;
        rows_begin(&l->r, table, ROWS, (rows_card){ROOM, MULTIPROCESSORS, allowed});
        assert_true(rows_add(&l->r, linear(l, &plain, x_at(1, 30), x_at(2, width), 100)));
        assert_true(
            rows_add(&l->r, linear_back(l, &plain, x_at(2, width), x_at(3, 5), x_at(4, width), x_at(5, 5), 10)));
        rows_end(&l->r);
        size_t end = assert_pack(l, 0, 30, (int)width, wide, 0);
        assert_pack(l, 1, 5, (int)width, wide, end);
        assert_int_equal(l->r.made.wide, wide);
        free(l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_stay_in_shared_memory),
        cmocka_unit_test(test_cuts_at_overlaps),
        cmocka_unit_test(test_holds_what_weights_need),
        cmocka_unit_test(test_gives_up_the_oldest_slot),
        cmocka_unit_test(test_keeps_the_slot_in_use),
        cmocka_unit_test(test_takes_one_tile_of_few),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_lays_columns_out),
        cmocka_unit_test(test_ends_where_it_is_full),
        cmocka_unit_test(test_losses_run_side_by_side),
        cmocka_unit_test(test_gradients_wait_for_readers),
        cmocka_unit_test(test_gradients_wait_for_slots),
        cmocka_unit_test(test_warps_run_out),
        cmocka_unit_test(test_threads_keep_to_their_cells),
        cmocka_unit_test(test_slots_of_another_width_wait),
        cmocka_unit_test(test_folds_a_joint),
        cmocka_unit_test(test_keeps_what_weights_read),
        cmocka_unit_test(test_keeps_what_somebody_wants),
        cmocka_unit_test(test_tally_joins_its_loss),
        cmocka_unit_test(test_packs_weights),
        cmocka_unit_test(test_products_load_weights),
        cmocka_unit_test(test_loads_are_waited_for),
        cmocka_unit_test(test_packs_are_wide_by_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
