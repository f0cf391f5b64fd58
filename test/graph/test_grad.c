// The backward pass: who overwrites a gradient and who adds, who gets none, and what cannot be built.
#include "graph/grad.h"

#include "cpu/cpu.h"
#include "graph/dtype.h"
#include "ops/ops.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { B = 3, I = 2, O = 4 };
static const float x_data[B * I] = {1, 2, -3, 0.5f, 4, -1};

// h = x w', used three times and joined: root = 2 h - 3 h + 5 dropout(h), with a dropout that keeps everything.
typedef struct {
    graph *g;
    tensor x, noise, w, h, use[3], root, seed;
} diamond;

static diamond diamond_build(void) {
    diamond d = {.g = graph_new()};
    graph *g = d.g;
    d.x = graph_constant(g, "x", DTYPE_F32, shape2(B, I), x_data);
    d.noise = op_axpby(g, d.x, TENSOR_NONE, 1, 0);
    d.w = graph_parameter(g, "w", shape2(O, I), (init){INIT_UNIFORM, 1});
    d.h = op_linear(g, d.noise, d.w, TENSOR_NONE, ACT_NONE);
    d.use[0] = op_axpby(g, d.h, TENSOR_NONE, 2, 0);
    d.use[1] = op_axpby(g, d.h, TENSOR_NONE, -3, 0);
    d.use[2] = op_dropout(g, d.h, 0);
    d.root = op_axpby(g, op_axpby(g, d.use[0], d.use[1], 1, 1), d.use[2], 1, 5);
    graph_keep(g, d.root);
    dtype_assign(g, PRECISION_FP32);
    d.seed = grad_build(g, d.root);
    return d;
}

static const node *maker_of(const diamond *d, tensor t) {
    return graph_node(d->g, graph_info(d->g, t)->producer);
}

static void first_overwrites_and_the_rest_add(void **state) {
    (void)state;
    diamond d = diamond_build();
    assert_int_equal(maker_of(&d, d.use[2])->flow[0], FLOW_WRITE); // the last to run forward is the first back
    assert_int_equal(maker_of(&d, d.use[1])->flow[0], FLOW_ADD);
    assert_int_equal(maker_of(&d, d.use[0])->flow[0], FLOW_ADD);
    assert_int_equal(maker_of(&d, d.h)->flow[1], FLOW_WRITE);
    assert_int_equal(graph_info(d.g, graph_gradient(d.g, d.h))->role, ROLE_GRADIENT);
    assert_int_equal(graph_info(d.g, graph_gradient(d.g, d.w))->role, ROLE_PARAMETER_GRADIENT);
    assert_int_equal(graph_gradient(d.g, d.root).id, d.seed.id);
    assert_int_equal(graph_info(d.g, d.seed)->role, ROLE_STATE);
    graph_free(d.g);
}

static void what_reaches_no_parameter_gets_none(void **state) {
    (void)state;
    diamond d = diamond_build();
    assert_int_equal(graph_gradient(d.g, d.x).id, 0);
    assert_int_equal(graph_gradient(d.g, d.noise).id, 0);
    assert_int_equal(maker_of(&d, d.h)->flow[0], FLOW_NONE);
    assert_true(maker_of(&d, d.h)->backward);
    assert_false(maker_of(&d, d.noise)->backward);
    graph_free(d.g);
}

static void what_the_root_does_not_need_gets_none(void **state) {
    (void)state;
    graph *g = graph_new();
    tensor x = graph_constant(g, "x", DTYPE_F32, shape2(B, I), x_data);
    tensor h = op_linear(g, x, graph_parameter(g, "w", shape2(O, I), (init){INIT_ONE, 0}), TENSOR_NONE, ACT_NONE);
    tensor aside = op_axpby(g, h, TENSOR_NONE, 2, 0), root = op_axpby(g, h, TENSOR_NONE, 3, 0);
    tensor later = op_axpby(g, root, TENSOR_NONE, 4, 0);
    dtype_assign(g, PRECISION_FP32);
    grad_build(g, root);
    assert_int_equal(graph_gradient(g, aside).id, 0);
    assert_int_equal(graph_gradient(g, later).id, 0);
    assert_false(graph_node(g, graph_info(g, aside)->producer)->backward);
    assert_false(graph_node(g, graph_info(g, later)->producer)->backward);
    assert_true(graph_gradient(g, h).id != 0);
    graph_free(g);
}

// A parameter used by two nodes: in a step's first micro-batch one overwrites and one adds, later both add.
typedef struct {
    graph *g;
    tensor w, seed;
} shared;

static shared shared_build(void) {
    shared s = {.g = graph_new()};
    tensor x = graph_constant(s.g, "x", DTYPE_F32, shape2(B, I), x_data);
    s.w = graph_parameter(s.g, "w", shape2(O, I), (init){INIT_ONE, 0});
    tensor a = op_linear(s.g, x, s.w, TENSOR_NONE, ACT_NONE);
    tensor b = op_linear(s.g, op_axpby(s.g, x, TENSOR_NONE, 10, 0), s.w, TENSOR_NONE, ACT_NONE);
    tensor root = op_axpby(s.g, a, b, 1, 1);
    dtype_assign(s.g, PRECISION_FP32);
    s.seed = grad_build(s.g, root);
    return s;
}

// The weight's gradient where `factor` times x w' is summed under a cotangent of 1 + its index.
static double gradient_by_hand(int o, int i, double factor) {
    double sum = 0;
    for (int b = 0; b < B; b++) sum += factor * (1 + b * O + o) * (double)x_data[b * I + i];
    return sum;
}

static void play_and_compare(graph *g, tensor w, tensor seed, double factor) {
    err e;
    float up[B * O], got[O * I];
    float nan[O * I];
    for (int i = 0; i < B * O; i++) up[i] = (float)(1 + i);
    for (int i = 0; i < O * I; i++) nan[i] = NAN;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    solo *x = solo_new(&cpu_device, q, g, &(solo_options){.rows = B}, &e);
    support_ok(x != NULL, &e);
    tensor d = graph_gradient(g, w);
    support_ok(solo_write(x, seed, up, &e) && solo_write(x, d, nan, &e), &e);
    for (int times = 1; times <= 3; times++) {
        support_ok(solo_poison(x, 0xFF, true, &e) && solo_play(x, times == 1 ? PASS_FIRST : PASS_NEXT, &e), &e);
        support_ok(solo_read(x, d, got, &e), &e);
        for (int o = 0; o < O; o++)
            for (int i = 0; i < I; i++)
                assert_true(fabs((double)got[o * I + i] - gradient_by_hand(o, i, factor * times)) <= 1e-3);
    }
    solo_free(x);
    cpu_device.close(q);
}

static void values_are_right(void **state) {
    (void)state;
    diamond d = diamond_build();
    play_and_compare(d.g, d.w, d.seed, 2 - 3 + 5);
    graph_free(d.g);
    shared s = shared_build();
    play_and_compare(s.g, s.w, s.seed, 1 + 10);
    graph_free(s.g);
}

// Mistakes of whoever writes a model

static void lose_a_parameter(void) {
    graph *g = graph_new();
    tensor x = graph_constant(g, "x", DTYPE_F32, shape2(B, I), x_data);
    tensor h = op_linear(g, x, graph_parameter(g, "w", shape2(O, I), (init){INIT_ONE, 0}), TENSOR_NONE, ACT_NONE);
    op_linear(g, x, graph_parameter(g, "lost", shape2(O, I), (init){INIT_ONE, 0}), TENSOR_NONE, ACT_NONE);
    grad_build(g, h);
}

static void train_nothing(void) {
    graph *g = graph_new();
    tensor x = graph_constant(g, "x", DTYPE_F32, shape2(B, I), x_data);
    grad_build(g, op_axpby(g, x, TENSOR_NONE, 1, 0));
}

static void name_twice(void) {
    graph *g = graph_new();
    graph_parameter(g, "w", shape1(2), (init){INIT_ONE, 0});
    graph_parameter(g, "w", shape1(3), (init){INIT_ONE, 0});
}

static void add_too_late(void) {
    diamond d = diamond_build();
    graph_parameter(d.g, "late", shape1(2), (init){INIT_ONE, 0});
}

// A loss passes nothing back to its target.
static void train_through_a_target(void) {
    static const float y[B * O], weight[B];
    graph *g = graph_new();
    tensor x = graph_constant(g, "x", DTYPE_F32, shape2(B, I), x_data);
    tensor w = graph_parameter(g, "w", shape2(O, I), (init){INIT_ONE, 0});
    tensor prediction = graph_constant(g, "y", DTYPE_F32, shape2(B, O), y);
    tensor rows = graph_constant(g, "weight", DTYPE_F32, shape1(B), weight);
    grad_build(g, op_mse(g, prediction, op_linear(g, x, w, TENSOR_NONE, ACT_NONE), rows));
}

static void read_an_activation(void) {
    err e;
    diamond d = diamond_build();
    float h[B * O];
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    solo *x = solo_new(&cpu_device, q, d.g, &(solo_options){.rows = B}, &e);
    solo_read(x, d.h, h, &e);
}

static void train_an_inference_graph(void) {
    err e;
    diamond d = diamond_build();
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    solo *x = solo_new(&cpu_device, q, d.g, &(solo_options){.rows = B, .inference = true}, &e);
    solo_play(x, PASS_FIRST, &e);
}

static void mistakes_abort(void **state) {
    (void)state;
    support_aborts(lose_a_parameter, "parameter lost does not reach the loss");
    support_aborts(train_nothing, "depends on no parameter");
    support_aborts(train_through_a_target, "depends on no parameter");
    support_aborts(name_twice, "two parameters named w");
    support_aborts(add_too_late, "parameter late added after a slab was used");
    support_aborts(read_an_activation, "does not outlive a step");
    support_aborts(train_an_inference_graph, "of an inference graph");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_overwrites_and_the_rest_add),
        cmocka_unit_test(what_reaches_no_parameter_gets_none),
        cmocka_unit_test(what_the_root_does_not_need_gets_none),
        cmocka_unit_test(values_are_right),
        cmocka_unit_test(mistakes_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
