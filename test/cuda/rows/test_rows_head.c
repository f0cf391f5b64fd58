// Which row kernels are heads (cuda/rows/rows_head.h), that a kernel of their own runs. Needs no card.
#include "cuda/rows/rows_head.h"
#include "cuda/rows/rows_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

// Where tensors lie. The gradient of the layer's input is that of dropout's result, where there is one.
enum { Y = 1, X, Z, DZ, DX, DY, LOSS = 30, COUNTS = 40, WEIGHTS = 900, SCRATCH = 50, BELOW = 60 };

typedef struct {
    int64_t width, classes;
    dtype type;
    bool few; // rows
    bool drops, slopes, counts, counts_first;
    bool bent;    // the head's own layer has an activation
    bool other;   // the loss is of other scores
    bool adds;    // to the gradient of y
    bool redraws; // dropout on the way back is that of another node
    bool keeps;   // what the layer gives back before dropout does is wanted
    bool ends;    // nobody reads what the layer read and the gradient of its result after the row kernel
    int moved;    // bytes that y lies beside a multiple of 16
} head_case;

static operand at(const head_case *k, uintptr_t megabyte, int64_t width) {
    return tensor_at(megabyte, width, k->type);
}

static operand y_of(const head_case *k) {
    operand y = at(k, Y, k->width);
    y.data = (char *)y.data + k->moved;
    return y;
}

static void add_forward(list *l, const head_case *k) {
    static const linear_attr tanh = {ACT_TANH};
    operand x = k->drops ? at(k, X, k->width) : y_of(k), z = at(k, Z, k->classes);
    operand scores = k->other ? at(k, 9, k->classes) : z;
    if (k->drops) assert_true(rows_add(&l->r, dropout(l, y_of(k), x)));
    assert_true(rows_add(&l->r, linear(l, k->bent ? &tanh : &plain, x, z, WEIGHTS)));
    if (k->counts_first) assert_true(rows_add(&l->r, confusion(l, z, COUNTS)));
    assert_true(rows_add(&l->r, cross_entropy(l, scores, LOSS)));
    if (k->counts) assert_true(rows_add(&l->r, confusion(l, z, COUNTS)));
}

static void add_backward(list *l, const head_case *k) {
    operand x = k->drops ? at(k, X, k->width) : y_of(k), z = at(k, Z, k->classes), dz = at(k, DZ, k->classes);
    operand dy = at(k, DY, k->width), dx = k->drops ? at(k, DX, k->width) : dy;
    dy.add = dx.add = k->adds;
    if (k->drops) dx.add = false;
    assert_true(rows_add(&l->r, cross_entropy_back(l, z, dz)));
    assert_true(rows_add(&l->r, linear_back(l, &plain, x, z, dx, dz, SCRATCH)));
    call *drop = k->drops ? dropout_back(l, dy, dx) : NULL;
    if (drop) drop->node = k->redraws;
    if (drop) assert_true(rows_add(&l->r, drop));
    call *below = linear_back(l, &relu, at(k, BELOW, 512), y_of(k), at(k, BELOW + 1, 512), dy, BELOW + 2);
    if (k->slopes) assert_true(rows_add_slope(&l->r, below));
    rows_over(&l->r, &dx, k->drops && !k->keeps);
    rows_over(&l->r, &dy, false);
    rows_over(&l->r, &x, k->ends);
    rows_over(&l->r, &dz, k->ends);
}

static list *list_of(const head_case *k) {
    list *l = list_new();
    if (!k->few) l->r.made.tiles = 2; // as where rows are many
    add_forward(l, k);
    add_backward(l, k);
    rows_end(&l->r);
    return l;
}

static bool is_head(head_case k) {
    list *l = list_of(&k);
    bool is = l->r.made.head;
    assert_int_equal(l->r.packs, is ? 0 : 2);
    free(l);
    return is;
}

static const head_case usual = {.width = 256, .classes = 3, .type = DTYPE_BF16, .slopes = true, .counts = true};

static void test_is_a_head(void **state) {
    (void)state;
    head_case k = usual;
    assert_true(is_head(k));
    k.counts = false;
    assert_true(is_head(k));
    k.counts_first = true;
    assert_true(is_head(k));
    k.drops = true;
    assert_true(is_head(k));
    k.slopes = false;
    assert_true(is_head(k));
    k = usual;
    k.slopes = false;
    assert_true(is_head(k));
    for (int64_t classes = 1; classes <= 4; classes++) {
        k = usual;
        k.counts = false; // counts are of three classes here
        k.classes = classes;
        k.width = 56 + 8 * classes;
        k.type = DTYPE_F16;
        assert_true(is_head(k));
    }
}

static void test_is_no_head(void **state) {
    (void)state;
    head_case k = usual;
    k.width = 264;
    assert_false(is_head(k));
    k.width = 60;
    assert_false(is_head(k));
    k.width = 100;
    assert_false(is_head(k));
    k = usual;
    k.counts = false;
    k.classes = 5;
    assert_false(is_head(k));
    k = usual;
    k.type = DTYPE_F32;
    assert_false(is_head(k));
    k = usual;
    k.few = true;
    assert_false(is_head(k));
    k = usual;
    k.slopes = false;
    k.bent = true;
    assert_false(is_head(k));
    k = usual;
    k.other = true;
    assert_false(is_head(k));
    k = usual;
    k.moved = 8;
    assert_false(is_head(k));
    k = usual;
    k.drops = k.keeps = true;
    assert_false(is_head(k));
    k = usual;
    k.drops = k.redraws = true;
    assert_false(is_head(k));
    k = usual;
    k.slopes = false;
    k.adds = true;
    assert_false(is_head(k));
}

static void *megabyte(uintptr_t n) {
    return (void *)(n << 20);
}

static void test_tells_the_kernel(void **state) {
    (void)state;
    head_case k = usual;
    k.drops = true;
    list *l = list_of(&k);
    rows_head h = rows_head_of(&l->r.made);
    assert_ptr_equal(h.y, megabyte(Y));
    assert_ptr_equal(h.x, megabyte(X));
    assert_ptr_equal(h.dz, megabyte(DZ));
    assert_ptr_equal(h.dx, megabyte(DY));
    assert_ptr_equal(h.weights, megabyte(WEIGHTS));
    assert_ptr_equal(h.loss_parts, megabyte(LOSS + 1));
    assert_ptr_equal(h.confusion, megabyte(COUNTS));
    assert_ptr_equal(h.sums, megabyte(SCRATCH));
    assert_true(h.drop && h.slope);
    assert_int_equal(h.width, 256);
    assert_int_equal(h.classes, 3);
    assert_int_equal(h.rows, ROWS);
    assert_float_equal(h.smoothing, 0.125f, 0);
    assert_float_equal(h.scale, 2, 0);
    free(l);
    l = list_of(&usual);
    h = rows_head_of(&l->r.made);
    assert_ptr_equal(h.y, megabyte(Y));
    assert_ptr_equal(h.x, NULL);
    assert_false(h.drop);
    free(l);
}

// With sums of gradients, what only these would have read does not come home.
static void test_sums_gradients(void **state) {
    (void)state;
    head_case k = usual;
    k.drops = k.ends = true;
    list *l = list_of(&k);
    rows_head h = rows_head_of(&l->r.made);
    assert_ptr_equal(h.sums, megabyte(SCRATCH));
    assert_null(h.x);
    assert_null(h.dz);
    assert_true(h.drop);
    free(l);
    assert_int_equal(rows_head_scratch(16384, 256, 3), 256 * (3 * 257 + 256) * sizeof(float));
    assert_int_equal(rows_head_scratch(16385, 64, 4), 257 * (4 * 65 + 64) * sizeof(float));
    assert_int_equal(rows_head_scratch(1000, 256, 3), 0);
    assert_int_equal(rows_head_scratch(64 * ROWS_HEAD_PARTS + 1, 256, 3), 0);
    assert_int_equal(rows_head_scratch(16384, 264, 3), 0);
    assert_int_equal(rows_head_scratch(16384, 256, 5), 0);
}

// Nothing is summed for a layer whose weights have no gradient; nor where the one below, which has joined, has one.
static void test_sums_nothing_of_what_is_frozen(void **state) {
    (void)state;
    for (int joined = 0; joined < 2; joined++) {
        list *l = list_new();
        operand dy = x_at(DY, 256);
        l->r.made.tiles = 2;
        add_forward(l, &usual);
        assert_true(rows_add(&l->r, cross_entropy_back(l, x_at(Z, 3), x_at(DZ, 3))));
        call *back = linear_back(l, &plain, x_at(Y, 256), x_at(Z, 3), dy, x_at(DZ, 3), SCRATCH);
        back->din[1].data = NULL;
        assert_true(rows_add(&l->r, back));
        call *below = linear_back(l, &relu, x_at(BELOW, 196), x_at(Y, 256), (operand){0}, dy, BELOW + 2);
        below->in[1].data = megabyte(WEIGHTS + 1);
        if (joined) assert_true(rows_add(&l->r, below));
        rows_over(&l->r, &dy, joined);
        rows_end(&l->r);
        assert_int_equal(l->r.weights, joined);
        assert_true(l->r.made.head);
        assert_null(rows_head_of(&l->r.made).sums);
        free(l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_a_head),
        cmocka_unit_test(test_is_no_head),
        cmocka_unit_test(test_tells_the_kernel),
        cmocka_unit_test(test_sums_gradients),
        cmocka_unit_test(test_sums_nothing_of_what_is_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
