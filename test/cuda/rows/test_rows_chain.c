// The compiler of row kernels (cuda/rows/rows.h): what is chained to a product, and whose slopes a row kernel does.
// Needs no card.
#include "cuda/rows/rows_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

// Instructions on a product's result are done by the warps that have the result.
static void test_chains_to_a_product(void **state) {
    (void)state;
    list *l = list_new();
    assert_true(rows_add(&l->r, linear(l, &relu, x_at(1, 64), x_at(2, 32), 100)));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 32), x_at(3, 32))));
    assert_true(rows_add(&l->r, dropout(l, x_at(3, 32), x_at(4, 32))));
    assert_true(rows_add(&l->r, linear(l, &plain, x_at(4, 32), x_at(5, 8), 101)));
    rows_end(&l->r);
    assert_int_equal(first_of(l, ROWS_LINEAR)->chain, 2);
    assert_int_equal(instr(l, l->r.made.count - 1)->chain, 0);
    free(l);
}

static void test_chains_backward(void **state) {
    (void)state;
    list *l = list_new();
    assert_true(rows_add(&l->r, linear_back(l, &relu, x_at(1, 32), x_at(2, 16), x_at(3, 32), x_at(4, 16), 10)));
    assert_true(rows_add(&l->r, dropout_back(l, x_at(5, 32), x_at(3, 32))));
    assert_true(rows_add(&l->r, linear_back(l, &relu, x_at(6, 64), x_at(7, 32), x_at(8, 64), x_at(5, 32), 12)));
    assert_true(rows_add(&l->r, linear_back(l, &plain, x_at(9, 16), x_at(6, 64), x_at(13, 16), x_at(8, 64), 14)));
    rows_end(&l->r);
    static const rows_op want[] = {
        ROWS_SLOPE, ROWS_LINEAR_BACK, ROWS_DROPOUT, ROWS_SLOPE, ROWS_LINEAR_BACK, ROWS_LINEAR_BACK};
    static const int chain[] = {0, 2, 0, 0, 0, 0}; // a product ends the chain, and has none of its own here
    assert_int_equal(l->r.made.count, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(instr(l, i)->op, want[i]);
        assert_int_equal(instr(l, i)->chain, chain[i]);
    }
    free(l);
}

// How long the chain of a product of `width` columns is that a dropout of `from` to `to` follows, in so much memory.
static int chain_of(int64_t width, operand from, operand to, int limit, bool wide) {
    list *l = list_new();
    rows_begin(&l->r, table, ROWS, (rows_card){limit, MULTIPROCESSORS, wide});
    assert_true(rows_add(&l->r, linear(l, &plain, x_at(1, 32), x_at(2, width), 100)));
    assert_true(rows_add(&l->r, dropout(l, from, to)));
    rows_end(&l->r);
    int chain = first_of(l, ROWS_LINEAR)->chain;
    free(l);
    return chain;
}

static operand moved(operand o, int bytes) {
    o.data = (char *)o.data + bytes;
    return o;
}

static void test_chains_no_further(void **state) {
    (void)state;
    int tile = ROWS_TILE * rows_ld(32) * 2;
    assert_int_equal(chain_of(32, x_at(2, 32), x_at(3, 32), 3 * tile, true), 1);
    assert_int_equal(chain_of(32, x_at(2, 32), x_at(3, 32), 2 * tile, true), 0); // takes the slot of the operand
    assert_int_equal(chain_of(32, x_at(2, 32), x_at(2, 32), 3 * tile, true), 0); // that of the result
    assert_int_equal(chain_of(32, x_at(4, 32), x_at(3, 32), 3 * tile, true), 0); // is of another tensor
    assert_int_equal(chain_of(32, x_at(2, 32), tensor_at(3, 32, DTYPE_F32), ROOM, true), 1);
    assert_int_equal(chain_of(31, x_at(2, 31), x_at(3, 31), ROOM, true), 0); // half a run
    assert_int_equal(chain_of(32, x_at(2, 32), moved(x_at(3, 32), 4), ROOM, true), 1);
    assert_int_equal(chain_of(32, x_at(2, 32), moved(x_at(3, 32), 2), ROOM, true), 0);
    assert_int_equal(chain_of(256, x_at(2, 256), x_at(3, 256), ROOM, true), 1);
    assert_int_equal(chain_of(256, x_at(2, 256), moved(x_at(3, 256), 4), ROOM, true), 0); // runs of 8 columns
    assert_int_equal(chain_of(256, x_at(2, 256), moved(x_at(3, 256), 4), ROOM, false), 1);
}

// Who reads a product's result twice cannot have both from the same registers.
static void test_chains_one_operand(void **state) {
    (void)state;
    static const axpby_attr plus = {1, 1};
    for (int both = 0; both < 2; both++) {
        list *l = list_new();
        assert_true(rows_add(&l->r, linear(l, &plain, x_at(1, 32), x_at(2, 32), 100)));
        call *sum = call_new(l, OP_axpby, &plus, false, 2);
        sum->in[0] = x_at(2, 32);
        sum->in[1] = x_at(both ? 2 : 4, 32);
        sum->out[0] = x_at(3, 32);
        assert_true(rows_add(&l->r, sum));
        rows_end(&l->r);
        assert_int_equal(first_of(l, ROWS_LINEAR)->chain, !both);
        free(l);
    }
}

// The part of a chain that can be kept is kept.
static void test_chains_the_first_part(void **state) {
    (void)state;
    list *l = list_new();
    assert_true(rows_add(&l->r, linear(l, &plain, x_at(1, 32), x_at(2, 32), 100)));
    assert_true(rows_add(&l->r, dropout(l, x_at(2, 32), x_at(3, 32))));
    assert_true(rows_add(&l->r, dropout(l, x_at(3, 32), x_at(3, 32)))); // where the one before it still reads
    assert_true(rows_add(&l->r, dropout(l, x_at(3, 32), x_at(4, 32))));
    rows_end(&l->r);
    assert_int_equal(first_of(l, ROWS_LINEAR)->chain, 1);
    free(l);
}

// A slope reads its layer's result where that lies: whole runs of it, or none.
static void test_slopes_chain_by_alignment(void **state) {
    (void)state;
    for (int bytes = 0; bytes <= 4; bytes += 2) {
        list *l = list_new();
        operand y = moved(x_at(7, 32), bytes);
        assert_true(rows_add(&l->r, linear_back(l, &relu, x_at(1, 32), x_at(2, 16), x_at(3, 32), x_at(4, 16), 10)));
        assert_true(rows_add(&l->r, linear_back(l, &relu, x_at(6, 64), y, x_at(8, 64), x_at(3, 32), 12)));
        rows_end(&l->r);
        assert_int_equal(first_of(l, ROWS_LINEAR_BACK)->chain, bytes % 4 == 0);
        free(l);
    }
}

// Back from the lowest layer of a block, as in N-BEATS, to the sums and slices before it. The layer goes from x at 1 to
// y at 2, its gradients are at 3 and 4.
static list *block_back(const linear_attr *a) {
    static const axpby_attr minus = {1, -1};
    static const slice_attr low = {0, 24};
    list *l = list_new();
    operand dx = x_at(3, 24);
    dx.add = true;
    assert_true(rows_add(&l->r, linear_back(l, a, x_at(1, 24), x_at(2, 512), dx, x_at(4, 512), 10)));
    call *sum = call_new(l, OP_axpby, &minus, true, 2);
    sum->dout[0] = x_at(3, 24);
    sum->din[0] = x_at(5, 24);
    sum->din[1] = x_at(6, 24);
    assert_true(rows_add(&l->r, sum));
    call *slice = call_new(l, OP_slice, &low, true, 1);
    slice->dout[0] = x_at(6, 24);
    slice->din[0] = x_at(7, 36);
    assert_true(rows_add(&l->r, slice));
    return l;
}

static bool touches(const list *l, operand o) {
    for (int i = 0; i < l->r.claims; i++)
        if (l->r.claim[i].begin == o.data) return true;
    return false;
}

// A layer whose slope was done before the row kernel has no activation any more: its dz is what it is given, which
// stays until the weights' gradients are done, and y is left alone.
static void test_slope_done_before(void **state) {
    (void)state;
    list *own = block_back(&relu), *done = block_back(&plain);
    assert_true(touches(own, x_at(2, 512)));
    assert_false(touches(done, x_at(2, 512)));
    assert_int_equal(done->r.weights, 1);
    assert_ptr_equal(done->r.weight[0], &done->calls[0]);
    assert_true(rows_add(&own->r, dropout(own, x_at(8, 512), x_at(4, 512))));
    assert_false(rows_add(&done->r, dropout(done, x_at(8, 512), x_at(4, 512))));
    free(own);
    free(done);
}

// Its row kernel is the same but for the slope, in whose place dz is loaded.
static void test_slope_done_before_is_a_load(void **state) {
    (void)state;
    list *own = block_back(&relu), *done = block_back(&plain);
    rows_end(&own->r);
    rows_end(&done->r);
    assert_int_equal(own->r.made.body, done->r.made.body);
    const rows_instr *slope = instr(own, 0), *load = instr(done, 0);
    assert_int_equal(slope->op, ROWS_SLOPE);
    assert_ptr_equal(slope->to.data, own->calls[0].scratch);
    assert_int_equal(load->op, ROWS_LOAD);
    assert_int_equal(load->vectors, ROWS_PLAIN);
    assert_ptr_equal(load->a.data, x_at(4, 512).data);
    assert_null(load->to.data);
    for (int i = 1; i < own->r.made.body; i++) {
        assert_int_equal(instr(own, i)->op, instr(done, i)->op);
        assert_ptr_equal(instr(own, i)->to.data, instr(done, i)->to.data);
    }
    free(own);
    free(done);
}

// The slope of a layer with ReLU that the row kernel does not hold, from x to y and with dy for its gradient.
static bool slope_after(list *l, operand y, operand dy) {
    return rows_add_slope(&l->r, linear_back(l, &relu, x_at(500, 64), y, x_at(501, 64), dy, 502));
}

// It is done to the product's results before they are written, in their place; the layer's y is where the row kernel's
// own layer has loaded it, or at home.
static void test_slope_of_a_layer_behind(void **state) {
    (void)state;
    for (int loaded = 0; loaded < 2; loaded++) {
        list *l = list_new();
        operand y = x_at(1, 256), dy = x_at(5, 256);
        if (loaded) assert_true(rows_add(&l->r, linear(l, &plain, y, x_at(2, 3), 100)));
        assert_true(rows_add(&l->r, linear_back(l, &plain, y, x_at(2, 3), dy, x_at(3, 3), 10)));
        assert_true(slope_after(l, y, dy));
        rows_end(&l->r);
        const rows_instr *slope = instr(l, l->r.made.body - 1), *product = slope - 1;
        assert_true(slope->op == ROWS_SLOPE && product->op == ROWS_LINEAR_BACK);
        assert_int_equal(slope->act, ACT_RELU);
        assert_int_equal(product->chain, 1);
        assert_null(product->to.data);
        assert_int_equal(product->to.slot, -1);
        assert_ptr_equal(slope->to.data, dy.data);
        assert_int_equal(slope->to.slot, -1);
        assert_ptr_equal(slope->b.data, y.data);
        assert_int_equal(slope->b.slot >= 0, loaded);
        assert_int_equal(l->r.weights, 1); // the other layer's are not the row kernel's
        assert_int_equal(l->r.packs, 1 + loaded);
        free(l);
    }
}

static void test_slope_behind_dropout(void **state) {
    (void)state;
    list *l = list_new();
    assert_true(rows_add(&l->r, linear_back(l, &plain, x_at(1, 32), x_at(2, 16), x_at(3, 32), x_at(4, 16), 10)));
    assert_true(rows_add(&l->r, dropout_back(l, x_at(5, 32), x_at(3, 32))));
    assert_true(slope_after(l, x_at(6, 32), x_at(5, 32)));
    rows_end(&l->r);
    const rows_instr *product = first_of(l, ROWS_LINEAR_BACK);
    assert_int_equal(product->chain, 2);
    assert_non_null(product[0].to.data);
    assert_null(product[1].to.data);
    assert_non_null(product[2].to.data);
    free(l);
}

// Where lanes have no runs of the columns, the slope is an instruction of its own, and reads what the product wrote.
// A target of an addition must be read: it keeps its place.
static void test_slope_behind_in_place(void **state) {
    (void)state;
    for (int adds = 0; adds < 2; adds++) {
        list *l = list_new();
        int64_t width = adds ? 32 : 31;
        operand dy = x_at(3, width);
        dy.add = adds;
        assert_true(rows_add(&l->r, linear_back(l, &plain, x_at(1, width), x_at(2, 16), dy, x_at(4, 16), 10)));
        assert_true(slope_after(l, x_at(6, width), x_at(3, width)));
        rows_end(&l->r);
        const rows_instr *product = first_of(l, ROWS_LINEAR_BACK), *slope = product + 1;
        assert_int_equal(product->chain, adds);
        assert_ptr_equal(product->to.data, dy.data);
        assert_ptr_equal(slope->a.data, adds ? NULL : dy.data); // of a chain it is in registers
        assert_int_equal(slope->a.slot, product->to.slot);
        assert_ptr_equal(slope->to.data, dy.data);
        assert_int_equal(slope->to.add, ROWS_OVERWRITE);
        assert_int_equal(product->open, 0);
        free(l);
    }
}

static void test_slope_behind_is_refused(void **state) {
    (void)state;
    list *l = list_new();
    operand y = x_at(6, 32), dy = x_at(3, 32);
    assert_false(slope_after(l, y, dy)); // of nothing
    assert_true(rows_add(&l->r, linear_back(l, &plain, x_at(1, 32), x_at(2, 16), dy, x_at(4, 16), 10)));
    int before = l->r.made.count;
    assert_false(slope_after(l, y, x_at(7, 32)));                  // of another tensor
    assert_false(slope_after(l, x_at(6, 16), dy));                 // of another width
    assert_false(slope_after(l, tensor_at(6, 32, DTYPE_F32), dy)); // of another type
    assert_false(slope_after(l, moved(dy, 64), dy));               // with a y that the row kernel writes
    assert_false(
        rows_add_slope(&l->r, linear_back(l, &plain, x_at(500, 64), y, x_at(501, 64), dy, 502))); // without one
    assert_int_equal(l->r.made.count, before);
    assert_true(rows_add(&l->r, dropout_back(l, x_at(8, 32), dy)));
    assert_false(slope_after(l, y, dy)); // of what is not the last
    assert_true(slope_after(l, y, x_at(8, 32)));
    free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains_to_a_product),
        cmocka_unit_test(test_chains_backward),
        cmocka_unit_test(test_chains_no_further),
        cmocka_unit_test(test_chains_one_operand),
        cmocka_unit_test(test_chains_the_first_part),
        cmocka_unit_test(test_slopes_chain_by_alignment),
        cmocka_unit_test(test_slope_done_before),
        cmocka_unit_test(test_slope_done_before_is_a_load),
        cmocka_unit_test(test_slope_of_a_layer_behind),
        cmocka_unit_test(test_slope_behind_dropout),
        cmocka_unit_test(test_slope_behind_in_place),
        cmocka_unit_test(test_slope_behind_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
