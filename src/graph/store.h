// A store: tensors that last, by name. Weights with their 16-bit copy, gradients, moments, states and the progress of a
// training; or the constants of a dataset.
//
// It is described first, which needs no device: graphs add what their programs will read and write. Then it is measured
// (store_bytes) and placed in a space, which copies the constants and clears the rest. Programs find their tensors in
// the stores that they are given, by name: two graphs whose parameters have the same names and shapes share them.
//
// A store has one writing queue. Others read a copy that was made on the device at a step boundary (store_copy).
//
// Layout, each at a multiple of PLAN_ALIGN bytes: weights, their 16-bit copy, gradients and directly behind them the
// normaliser of the loss, moments, the progress, states, constants. A constant is read where the caller has it, and
// takes no memory here, if the device sees the host's memory and wants the type that it has.
#ifndef TRADEWIND_GRAPH_STORE_H
#define TRADEWIND_GRAPH_STORE_H

#include "graph/graph.h"
#include "graph/space.h"

typedef struct store store;

typedef enum { STORE_WEIGHTS, STORE_GRADIENTS, STORE_MOMENTS, STORE_STATES, STORE_CONSTANTS, STORE_KINDS } store_kind;

// An empty description, for a device that computes in the host's memory or in its own.
store *store_new(bool host_memory);

// Gives its memory back to the space.
void store_free(store *s);

// The programs that a store is for: steps and evaluation, evaluation alone, or the constants of a dataset.
typedef enum { STORE_FOR_TRAINING, STORE_FOR_INFERENCE, STORE_FOR_DATASET } store_purpose;

// Adds what a graph's programs need and the store does not have. For training: parameters, gradients, moments, states
// and constants. For inference: parameters, and what the forward pass reads and writes. For a dataset: the constants
// that graph_share marked, and nothing else; other stores leave these out. The graph must outlive the store. The first
// graph with parameters decides how they lie. Before store_place.
void store_add(store *s, const graph *g, store_purpose purpose);

// Bytes that it takes in a space: all, or of one kind.
size_t store_bytes(const store *s);
size_t store_bytes_of(const store *s, store_kind kind);

// Takes its memory in a space, copies the constants and clears everything else. The queue becomes the writing one.
bool store_place(store *s, queue *q, space *in, err *e);

// The address of a graph's lasting tensor, NULL where the store does not have it; and of a parameter's 16-bit copy, or
// of all parameters', NULL where there is none. A tensor of the same name but another type or shape is a mistake.
void *store_address(const store *s, const graph *g, tensor t);
void *store_low_address(const store *s, const graph *g, tensor t);
step_progress *store_progress(const store *s);

// Moves a whole tensor between host and device. A parameter's 16-bit copy follows what is written.
bool store_write(store *s, const graph *g, tensor t, const void *from, err *e);
bool store_read(store *s, const graph *g, tensor t, void *to, err *e);
bool store_clear(store *s, const graph *g, tensor t, err *e);
bool store_progress_write(store *s, const step_progress *p, err *e);
bool store_progress_read(store *s, step_progress *p, err *e);

// Makes the 16-bit copy of all parameters one of this graph's type, on the device.
bool store_narrow(store *s, const graph *g, err *e);

// Copies every parameter of `to` from the parameter of that name in `from`, on the device, and its 16-bit copy. `from`
// stands at a step boundary: its queue has nothing under way.
bool store_copy(store *to, const store *from, err *e);

#endif
