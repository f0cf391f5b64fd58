// The compiler of row programs (cuda/rows.h): what it joins, where it cuts, and how it uses shared memory. Needs no
// card.
#include "cuda/rows.h"

#include "ops/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 40, CALLS = 24, OPERANDS = 8, ROOM = 100 * 1024 };

static size_t some_scratch(const call *c) {
    (void)c;
    return 4096;
}

static const kernel none, scratched = {NULL, NULL, some_scratch, NULL};
static const kernel *table[OP_COUNT];

// A list of calls over made-up addresses, which nobody reads: [ROWS, width] tensors in one stretch of memory.
typedef struct {
    call calls[CALLS];
    operand operands[CALLS][4 * OPERANDS];
    int count;
    rows_compiler r;
} list;

static linear_attr plain = {ACT_NONE}, relu = {ACT_RELU}, gelu = {ACT_GELU};
static dropout_attr half = {0.5f};
static advance_attr after = {true};
static struct step record;

static list *list_new(void) {
    for (int i = 0; i < OP_COUNT; i++) table[i] = i == OP_linear || i == OP_cross_entropy ? &scratched : &none;
    list *l = calloc(1, sizeof *l);
    assert_non_null(l);
    rows_begin(&l->r, table, ROWS, ROOM, true);
    return l;
}

// Tensors are named by where they lie: every address is a megabyte from the next.
static operand tensor_at(uintptr_t megabyte, int64_t width, dtype type) {
    return (operand){.data = (void *)(megabyte << 20), .type = type, .shape = shape2(ROWS, width)};
}

static operand x_at(uintptr_t megabyte, int64_t width) {
    return tensor_at(megabyte, width, DTYPE_BF16);
}

static call *call_new(list *l, int op, const void *attr, bool backward, int inputs) {
    assert_true(l->count < CALLS);
    operand *o = l->operands[l->count];
    call *c = &l->calls[l->count++];
    *c = (call){.op = op,
        .attr = attr,
        .backward = backward,
        .training = true,
        .inputs = inputs,
        .outputs = 1,
        .in = o,
        .din = o + OPERANDS,
        .out = o + 2 * OPERANDS,
        .dout = o + 3 * OPERANDS,
        .batch = ROWS,
        .step = &record,
        .step_written = &record};
    return c;
}

static call *linear(list *l, const linear_attr *a, operand x, operand y, uintptr_t weights) {
    call *c = call_new(l, OP_linear, a, false, 3);
    c->in[0] = x;
    c->out[0] = y;
    c->in[1] = (operand){.data = (void *)(weights << 20), .shape = shape2(operand_width(&y), operand_width(&x))};
    return c;
}

// Backward of the layer from x to y with gradients dx and dy; scratch and the weights' gradient lie at `scratch`.
static call *linear_back(
    list *l, const linear_attr *a, operand x, operand y, operand dx, operand dy, uintptr_t scratch) {
    call *c = linear(l, a, x, y, 900);
    c->backward = true;
    c->din[0] = dx;
    c->dout[0] = dy;
    c->scratch = (void *)(scratch << 20);
    c->din[1] = c->in[1];
    c->din[1].data = (void *)((scratch << 20) + (1 << 19));
    return c;
}

static call *dropout(list *l, operand x, operand y) {
    call *c = call_new(l, OP_dropout, &half, false, 1);
    c->in[0] = x;
    c->out[0] = y;
    return c;
}

static const rows_instr *instr(const list *l, int i) {
    return &l->r.program.code[i];
}

static void test_layers_stay_in_shared_memory(void **state) {
    (void)state;
    list *l = list_new();
    assert_true(rows_add(&l->r, linear(l, &relu, tensor_at(1, 64, DTYPE_F32), x_at(2, 32), 100)));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 32), x_at(3, 32))));
    assert_true(rows_add(&l->r, linear(l, &plain, x_at(3, 32), x_at(4, 3), 101)));
    rows_end(&l->r);
    static const rows_op want[] = {ROWS_LOAD, ROWS_LINEAR, ROWS_DROPOUT, ROWS_LINEAR};
    assert_int_equal(l->r.program.count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(instr(l, i)->op, want[i]);
    // The vector is converted as it is loaded; everything else is read from the slot it was written to.
    assert_int_equal(instr(l, 0)->to.slot_type, DTYPE_BF16);
    assert_int_equal(instr(l, 0)->a.slot, -1);
    assert_int_equal(instr(l, 1)->a.slot, instr(l, 0)->to.slot);
    assert_int_equal(instr(l, 2)->a.slot, instr(l, 1)->to.slot);
    assert_int_equal(instr(l, 3)->a.slot, instr(l, 2)->to.slot);
    assert_int_equal(l->r.program.low, DTYPE_BF16);
    for (int i = 1; i < 4; i++) assert_non_null(instr(l, i)->to.data);
    free(l);
}

static void test_cuts_at_overlaps(void **state) {
    (void)state;
    list *l = list_new();
    operand beside = x_at(2, 32);
    beside.data = (char *)beside.data + 64;
    assert_true(rows_add(&l->r, dropout(l, x_at(1, 32), x_at(2, 32))));
    int before = l->r.program.count;
    assert_false(rows_add(&l->r, dropout(l, x_at(2, 32), beside))); // half of what it reads
    assert_false(
        rows_add(&l->r, dropout(l, x_at(2, 32), x_at(1, 16)))); // another tensor where the first one's input is
    assert_false(rows_add(&l->r, dropout(l, x_at(2, 32), tensor_at(1, 16, DTYPE_F32))));
    assert_int_equal(l->r.program.count, before);                       // and nothing was left behind
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 32), x_at(1, 32)))); // the same rows, in order within a block
    assert_false(rows_add(&l->r, linear(l, &plain, x_at(1, 32), x_at(5, 8), 2))); // weights that the program writes
    free(l);
}

// x and dz are read after the program: nothing may take their place, not even a tensor of the same size.
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
    rows_begin(&l->r, table, ROWS, 3 * tile, true);
    for (uintptr_t i = 1; i < 5; i++) assert_true(rows_add(&l->r, dropout(l, x_at(i, 64), x_at(i + 1, 64))));
    assert_true(l->r.program.room <= 3 * tile);
    // The newest are there, the first has lost its slot and comes from its home.
    assert_true(rows_add(&l->r, dropout(l, x_at(5, 64), x_at(6, 64))));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 64), x_at(7, 64))));
    rows_end(&l->r);
    assert_true(instr(l, 4)->a.slot >= 0);
    assert_int_equal(instr(l, 5)->a.slot, -1);
    for (int i = 0; i < l->r.program.count; i++) assert_true(instr(l, i)->a.slot != instr(l, i)->to.slot);
    free(l);
}

static void test_refuses(void **state) {
    (void)state;
    list *l = list_new();
    call *c = linear(l, &gelu, x_at(1, 32), x_at(2, 16), 100);
    c->reserve = (void *)(uintptr_t)(50 << 20);
    assert_false(rows_add(&l->r, c));                                                   // keeps z
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
    assert_int_equal(l->r.program.count, ROWS_MOST);
    assert_true(sizeof(rows_program) <= 5 * 1024); // shared memory of every block
    free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_stay_in_shared_memory),
        cmocka_unit_test(test_cuts_at_overlaps),
        cmocka_unit_test(test_holds_what_weights_need),
        cmocka_unit_test(test_gives_up_the_oldest_slot),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_lays_columns_out),
        cmocka_unit_test(test_ends_where_it_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
