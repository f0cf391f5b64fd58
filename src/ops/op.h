// For the files that implement operators.
//
// Each ops/NAME.c holds the operator's rule and its plainest right implementation, and is compiled several times:
//   with OP_RULES          the builder: shape rule, node, what backward needs
//   with OP_VARIANT=v      the kernel record NAME_v, once per instruction set, and once (f64) with `real` as double
// The plain implementation is the operator's meaning: faster kernels and other devices must agree with it.
#ifndef TRADEWIND_OPS_OP_H
#define TRADEWIND_OPS_OP_H

#include "base/err.h"
#include "base/pool.h"
#include "graph/device.h"
#include "ops/attr.h"
#include "ops/ops.h"

#ifdef OP_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#define OP_JOIN_(a, b) a##_##b
#define OP_JOIN(a, b)  OP_JOIN_(a, b)
#define KERNEL(name)   OP_JOIN(name, OP_VARIANT)

// Rules

#define OP_NODE(g, name, ...)                                                                                          \
    op_node(g, OP_##name, (const tensor[]){__VA_ARGS__}, (int)(sizeof((const tensor[]){__VA_ARGS__}) / sizeof(tensor)))

node *op_node(graph *g, op o, const tensor *input, int inputs);
shape op_shape(const graph *g, tensor t);

// Kernels

typedef void op_range(const call *c, int64_t begin, int64_t end);

typedef struct {
    const call *c;
    op_range *fn;
    int64_t count, grain;
} op_split;

static inline void op_split_item(void *arg, int64_t item, int worker) {
    const op_split *s = arg;
    int64_t begin = item * s->grain, end = begin + s->grain;
    (void)worker;
    s->fn(s->c, begin, end < s->count ? end : s->count);
}

// Runs fn over 0..count-1 in pieces whose size depends on `work`, the cost of one item in elements, never on the number
// of threads: a sum that stays within one piece has the same bits on any machine.
static inline void op_for(const call *c, int64_t count, int64_t work, op_range *fn) {
    int64_t grain = 16384 / (work > 0 ? work : 1);
    op_split s = {c, fn, count, grain > 0 ? grain : 1};
    pool_run(c->pool, (count + s.grain - 1) / s.grain, op_split_item, &s);
}

// A gradient's destination takes `value`, overwriting or adding as the graph decided.
static inline void op_put(const operand *o, int64_t i, real value) {
    real *d = o->data;
    d[i] = o->add ? d[i] + value : value;
}

#endif
