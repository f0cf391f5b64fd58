#include "cuda/rows/rows_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static size_t some_scratch(const call *c) {
    (void)c;
    return 4096;
}

static const kernel none, scratched = {NULL, NULL, some_scratch, NULL};
const kernel *table[OP_COUNT];

const linear_attr plain = {ACT_NONE}, relu = {ACT_RELU};
static const dropout_attr half = {0.5f};
static const cross_entropy_attr smooth = {0.125f};
enum { LABELS = 800, SAMPLE_WEIGHTS, SEED }; // where they lie
static step_progress training;
static step_cursor samples;

list *list_new(void) {
    for (int i = 0; i < OP_COUNT; i++) table[i] = i == OP_linear || i == OP_cross_entropy ? &scratched : &none;
    list *l = calloc(1, sizeof *l);
    assert_non_null(l);
    rows_begin(&l->r, table, ROWS, (rows_card){ROOM, MULTIPROCESSORS, true});
    return l;
}

operand tensor_at(uintptr_t megabyte, int64_t width, dtype type) {
    return (operand){.data = (void *)(megabyte << 20), .type = type, .shape = shape2(ROWS, width)};
}

operand x_at(uintptr_t megabyte, int64_t width) {
    return tensor_at(megabyte, width, DTYPE_BF16);
}

call *call_new(list *l, int op, const void *attr, bool backward, int inputs) {
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
        .step = {&training, &samples}};
    return c;
}

call *linear(list *l, const linear_attr *a, operand x, operand y, uintptr_t weights) {
    call *c = call_new(l, OP_linear, a, false, 3);
    c->in[0] = x;
    c->out[0] = y;
    c->in[1] = (operand){.data = (void *)(weights << 20), .shape = shape2(operand_width(&y), operand_width(&x))};
    return c;
}

call *linear_back(list *l, const linear_attr *a, operand x, operand y, operand dx, operand dy, uintptr_t scratch) {
    call *c = linear(l, a, x, y, 900);
    c->backward = true;
    c->din[0] = dx;
    c->dout[0] = dy;
    c->scratch = (void *)(scratch << 20);
    c->din[1] = c->in[1];
    c->din[1].data = (void *)((scratch << 20) + (1 << 19));
    return c;
}

call *dropout(list *l, operand x, operand y) {
    call *c = call_new(l, OP_dropout, &half, false, 1);
    c->in[0] = x;
    c->out[0] = y;
    return c;
}

call *dropout_back(list *l, operand dx, operand dy) {
    call *c = call_new(l, OP_dropout, &half, true, 1);
    c->din[0] = dx;
    c->dout[0] = dy;
    return c;
}

operand floats_at(uintptr_t megabyte, int64_t n) {
    return (operand){.data = (void *)(megabyte << 20), .type = DTYPE_F32, .shape = shape1(n)};
}

static operand labels_at(uintptr_t megabyte) {
    return (operand){.data = (void *)(megabyte << 20), .type = DTYPE_I32, .shape = shape1(ROWS)};
}

call *confusion(list *l, operand scores, uintptr_t counts) {
    call *c = call_new(l, OP_confusion, NULL, false, 3);
    c->in[0] = scores;
    c->in[1] = labels_at(LABELS);
    c->in[2] = floats_at(SAMPLE_WEIGHTS, ROWS);
    c->out[0] = (operand){.data = (void *)(counts << 20), .type = DTYPE_I64, .shape = shape2(CLASSES, CLASSES)};
    return c;
}

call *cross_entropy(list *l, operand scores, uintptr_t sum) {
    call *c = call_new(l, OP_cross_entropy, &smooth, false, 4);
    c->in[0] = scores;
    c->in[1] = labels_at(LABELS);
    c->in[2] = floats_at(SAMPLE_WEIGHTS, ROWS);
    c->out[0] = floats_at(sum, 2);
    c->scratch = (void *)((sum + 1) << 20);
    return c;
}

call *cross_entropy_back(list *l, operand scores, operand gradient) {
    call *c = cross_entropy(l, scores, 700);
    c->backward = true;
    c->scratch = NULL;
    c->din[0] = gradient;
    c->dout[0] = floats_at(SEED, 2);
    return c;
}

const rows_instr *instr(const list *l, int i) {
    return &l->r.made.code[i];
}

const rows_instr *first_of(const list *l, rows_op op) {
    for (int i = 0; i < l->r.made.count; i++)
        if (instr(l, i)->op == op) return instr(l, i);
    fail_msg("no instruction %d", (int)op);
    return NULL;
}
