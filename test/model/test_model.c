// Models: parameters with PyTorch's names, shapes and initial ranges.
#include "model/model.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tensor input(graph *g, shape s) {
    return graph_constant(g, "x", DTYPE_F32, s, NULL);
}

static const model_data one = {.streams = 1, .stream = {"fast"}, .classes = 3, .quantiles = 1};
static const model_data two = {.streams = 2, .stream = {"fast", "slow"}, .classes = 3, .quantiles = 1};

// The reference model: windows 50x15 and 20x8, a vector of 64.
static model_spec reference(graph *g) {
    model_spec s = support_model("", &two);
    s.stream[0].x = input(g, shape3(BATCH, 50, 15));
    s.stream[1].x = input(g, shape3(BATCH, 20, 8));
    s.vector = input(g, shape2(BATCH, 64));
    return s;
}

static void has_parameter(const graph *g, const char *name, shape s, double fan) {
    tensor t = graph_parameter_named(g, name);
    if (!t.id) fail_msg("no parameter %s", name);
    const tensor_info *p = graph_info(g, t);
    assert_true(shape_equal(p->shape, s));
    assert_int_equal(p->init.kind, INIT_UNIFORM);
    assert_true(fabs((double)p->init.bound - 1 / sqrt(fan)) < 1e-7);
}

static void lstm_is_the_reference(void **state) {
    (void)state;
    graph *g = graph_new();
    model_spec s = reference(g);
    tensor logits = model_build(g, &s);
    assert_true(shape_equal(graph_info(g, logits)->shape, shape2(BATCH, 3)));
    assert_int_equal(graph_parameter_values(g), 26403);
    assert_int_equal(graph_parameters(g), 8 + 8 + 2 + 4);
    has_parameter(g, "fast.weight_ih_l0", shape2(128, 15), 32);
    has_parameter(g, "fast.weight_hh_l0_reverse", shape2(128, 32), 32);
    has_parameter(g, "slow.bias_ih_l0", shape1(64), 16);
    has_parameter(g, "slow.bias_hh_l0_reverse", shape1(64), 16);
    has_parameter(g, "strat.0.weight", shape2(32, 64), 64);
    has_parameter(g, "strat.0.bias", shape1(32), 64);
    has_parameter(g, "head.0.weight", shape2(64, 128), 128);
    has_parameter(g, "head.3.weight", shape2(3, 64), 64);
    has_parameter(g, "head.3.bias", shape1(3), 64);
    graph_free(g);
}

static void lstm_may_be_deep_and_lack_a_vector(void **state) {
    (void)state;
    graph *g = graph_new();
    model_spec s = support_model("model.layers=3", &one);
    s.stream[0].x = input(g, shape3(BATCH, 50, 15));
    model_build(g, &s);
    has_parameter(g, "fast.weight_ih_l2_reverse", shape2(128, 64), 32);
    has_parameter(g, "head.0.weight", shape2(64, 64), 64);
    assert_int_equal(graph_parameter_named(g, "strat.0.weight").id, 0);
    graph_free(g);
}

static void mlp_is_numbered_as_a_sequence(void **state) {
    (void)state;
    for (int dropout = 0; dropout < 2; dropout++) {
        graph *g = graph_new();
        model_spec s =
            support_model(dropout ? "model.kind=mlp model.dropout=0.2" : "model.kind=mlp model.dropout=0", &one);
        s.stream[0].x = input(g, shape2(BATCH, 30));
        s.vector = input(g, shape2(BATCH, 34));
        tensor logits = model_build(g, &s);
        assert_true(shape_equal(graph_info(g, logits)->shape, shape2(BATCH, 3)));
        has_parameter(g, "net.0.weight", shape2(512, 64), 64);
        has_parameter(g, dropout ? "net.3.weight" : "net.2.weight", shape2(256, 512), 512);
        has_parameter(g, dropout ? "net.6.bias" : "net.4.bias", shape1(3), 256);
        assert_int_equal(graph_parameters(g), 6);
        graph_free(g);
    }
}

static void begins_as(const graph *g, const char *name, shape s, init_kind kind, double bound) {
    tensor t = graph_parameter_named(g, name);
    if (!t.id) fail_msg("no parameter %s", name);
    const tensor_info *p = graph_info(g, t);
    assert_true(shape_equal(p->shape, s));
    assert_int_equal(p->init.kind, kind);
    assert_true(fabs((double)p->init.bound - bound) < 1e-7);
}

// The timed case: width 128, 8 heads, 3 layers, 512 between, windows 50x15: 0.60 M parameters.
static void transformer_is_pytorchs(void **state) {
    (void)state;
    graph *g = graph_new();
    model_spec s = support_model("model.kind=transformer model.head=0 model.activation=gelu model.dropout=0.1", &one);
    s.stream[0].x = input(g, shape3(BATCH, 50, 15));
    tensor logits = model_build(g, &s);
    assert_true(shape_equal(graph_info(g, logits)->shape, shape2(BATCH, 3)));
    assert_int_equal(graph_parameter_values(g), 603651);
    assert_int_equal(graph_parameters(g), 2 + 1 + 3 * 12 + 2);
    has_parameter(g, "fast.input.weight", shape2(128, 15), 15);
    begins_as(g, "fast.position", shape2(50, 128), INIT_NORMAL, 0.02);
    begins_as(g, "fast.encoder.layers.0.self_attn.in_proj_weight", shape2(384, 128), INIT_UNIFORM, sqrt(6.0 / 512));
    begins_as(g, "fast.encoder.layers.1.self_attn.in_proj_bias", shape1(384), INIT_ZERO, 0);
    has_parameter(g, "fast.encoder.layers.2.self_attn.out_proj.weight", shape2(128, 128), 128);
    begins_as(g, "fast.encoder.layers.2.self_attn.out_proj.bias", shape1(128), INIT_ZERO, 0);
    has_parameter(g, "fast.encoder.layers.0.linear1.weight", shape2(512, 128), 128);
    has_parameter(g, "fast.encoder.layers.0.linear2.bias", shape1(128), 512);
    begins_as(g, "fast.encoder.layers.1.norm1.weight", shape1(128), INIT_ONE, 0);
    begins_as(g, "fast.encoder.layers.1.norm2.bias", shape1(128), INIT_ZERO, 0);
    has_parameter(g, "head.0.weight", shape2(3, 128), 128);
    graph_free(g);
}

// The timed case: 30 blocks of width 512, 60 steps to 12: 25.7 M parameters.
static void nbeats_is_the_reference(void **state) {
    (void)state;
    graph *g = graph_new();
    model_data d = {.streams = 1, .stream = {"series"}, .series = true, .horizon = 12, .quantiles = 1};
    model_spec s = support_model("model.kind=nbeats model.blocks=30", &d);
    s.stream[0].x = input(g, shape2(BATCH, 60));
    tensor y = model_build(g, &s);
    assert_true(shape_equal(graph_info(g, y)->shape, shape2(BATCH, 12)));
    assert_int_equal(graph_parameter_values(g), 25684080);
    assert_int_equal(graph_parameters(g), 30 * 10);
    has_parameter(g, "blocks.0.fc.0.weight", shape2(512, 60), 60);
    has_parameter(g, "blocks.29.fc.6.bias", shape1(512), 512);
    has_parameter(g, "blocks.29.theta.weight", shape2(72, 512), 512);
    graph_free(g);
}

static void normal_weights_are_normal(void **state) {
    enum { N = 40000 };
    (void)state;
    graph *g = graph_new();
    graph_parameter(g, "p", shape1(N), (init){INIT_NORMAL, 0.5f});
    float *w = malloc((size_t)graph_slab_elements(g) * sizeof *w);
    assert_non_null(w);
    graph_initial(g, 3, w);
    double sum = 0, square = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        double z = (double)w[i] / 0.5;
        sum += z / N;
        square += z * z / N;
        fourth += z * z * z * z / N;
    }
    assert_true(fabs(sum) < 0.02 && fabs(square - 1) < 0.03 && fabs(fourth - 3) < 0.2);
    free(w);
    graph_free(g);
}

static void names_are_found(void **state) {
    (void)state;
    for (int k = 0; k < MODEL_COUNT; k++) assert_int_equal(model_find(model_name((model_kind)k)), k);
    assert_int_equal(model_find("oracle"), MODEL_COUNT);
    assert_int_equal(model_layout(MODEL_lstm), WINDOW_STEPS);
    assert_int_equal(model_layout(MODEL_mlp), WINDOW_FLAT);
    assert_int_equal(model_layout(MODEL_transformer), WINDOW_STEPS);
    assert_int_equal(model_layout(MODEL_nbeats), WINDOW_FLAT);
}

// The line that a model of these keys gives over two streams, whose graph is built on the way.
static void describes(const char *keys, const char *want) {
    char text[256];
    graph *g = graph_new();
    model_spec s = support_model(keys, &two);
    bool flat = model_layout(s.kind) == WINDOW_FLAT;
    for (int i = 0; i < 2; i++) s.stream[i].x = input(g, flat ? shape2(BATCH, 12) : shape3(BATCH, 4, 3));
    assert_int_equal(strncmp(model_describe(&s, text, sizeof text), want, strlen(want)), 0);
    model_build(g, &s);
    assert_true((model_segment(s.kind) != NULL) == (graph_segments(g) > 0));
    graph_free(g);
}

// All that the graph depends on is in the line, and what can be recomputed has a name.
static void descriptions_are_whole(void **state) {
    char keys[64];
    (void)state;
    for (int k = 0; k < MODEL_COUNT; k++) {
        snprintf(keys, sizeof keys, "model.kind=%s", model_name((model_kind)k));
        describes(keys, model_name((model_kind)k));
    }
    describes("model.layers=2 model.hidden.slow=8",
        "lstm, 2 layers, hidden 32 8, projection 32, head 64, dropout, 3 classes");
    describes("model.kind=mlp model.dropout=0", "mlp, 512-256, relu, 3 classes");
    describes("model.kind=transformer model.causal=true",
        "transformer, 3 layers, hidden 128 128, projection 32, head 64, relu, 8 heads, inner 0, causal, by the mean, "
        "dropout, 3 classes");
    describes("model.kind=nbeats model.stacks=generic,generic",
        "nbeats, 4 layers, width 512, stacks gg of 3 blocks, degree 2, by 12 steps, head 64, dropout, 3 classes");
}

static void short_room_cuts_a_description(void **state) {
    (void)state;
    char text[8];
    model_spec s = support_model("", &two);
    assert_string_equal(model_describe(&s, text, sizeof text), "lstm, 1");
}

// Within its bound, spread over it, different between parameters and seeds, zero in the padding.
static void check_initial(const graph *g, const float *w, const float *other) {
    int64_t covered = 0;
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *p = graph_info(g, graph_parameter_at(g, i));
        int64_t n = shape_count(p->shape);
        double sum = 0, square = 0, bound = (double)p->init.bound;
        assert_true(p->offset >= covered);
        for (; covered < p->offset; covered++) assert_true(w[covered] == 0);
        for (int64_t k = 0; k < n; k++, covered++) {
            double v = (double)w[p->offset + k];
            assert_true(v >= -bound && v < bound);
            sum += v / bound;
            square += v * v / (bound * bound);
        }
        if (n > 1000) assert_true(fabs(sum / (double)n) < 0.06 && fabs(square / (double)n - 1.0 / 3) < 0.05);
        assert_memory_not_equal(w + p->offset, other + p->offset, (size_t)n * sizeof *w);
    }
}

static void initial_weights_are_pytorchs_kind(void **state) {
    (void)state;
    graph *g = graph_new();
    model_spec s = reference(g);
    model_build(g, &s);
    size_t n = (size_t)graph_slab_elements(g);
    float *w = malloc(3 * n * sizeof *w);
    assert_non_null(w);
    graph_initial(g, 1, w);
    graph_initial(g, 1, w + n);
    graph_initial(g, 2, w + 2 * n);
    assert_memory_equal(w, w + n, n * sizeof *w);
    check_initial(g, w, w + 2 * n);
    const tensor_info *a = graph_info(g, graph_parameter_named(g, "fast.bias_ih_l0"));
    const tensor_info *b = graph_info(g, graph_parameter_named(g, "fast.bias_hh_l0"));
    assert_memory_not_equal(w + a->offset, w + b->offset, 128 * sizeof *w);
    free(w);
    graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_is_the_reference),
        cmocka_unit_test(lstm_may_be_deep_and_lack_a_vector),
        cmocka_unit_test(descriptions_are_whole),
        cmocka_unit_test(short_room_cuts_a_description),
        cmocka_unit_test(mlp_is_numbered_as_a_sequence),
        cmocka_unit_test(transformer_is_pytorchs),
        cmocka_unit_test(nbeats_is_the_reference),
        cmocka_unit_test(normal_weights_are_normal),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(initial_weights_are_pytorchs_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
