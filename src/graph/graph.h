// The graph: tensors and nodes of one training step, as a description. It owns no tensor data.
//
// A model is written once, forward, with the batch size left as the symbol BATCH. Passes then complete the
// description, in this order: dtype_assign (graph/dtype.h), grad_build (graph/grad.h). After them it is read-only;
// plan_make (graph/plan.h) and program_new (graph/program.h) read it for any batch size.
//
// Tensors are dense and row-major, without strides or views. A tensor handle is an index: cheap to copy, valid as long
// as its graph. Handle 0 means "none" and stands for an optional input that is absent.
#ifndef TRADEWIND_GRAPH_GRAPH_H
#define TRADEWIND_GRAPH_GRAPH_H

#include "graph/types.h"

#include <stdbool.h>

typedef struct {
    int id;
} tensor;

#define TENSOR_NONE ((tensor){0})

typedef struct graph graph;

// Role of a tensor; it decides where the tensor lives.
typedef enum {
    ROLE_CONSTANT,   // data of the caller: a series, class weights
    ROLE_PARAMETER,  // a piece of the parameter slab
    ROLE_SLAB,       // a whole slab: weights, gradients, moments
    ROLE_STATE,      // lives across steps: sums, counts, norms
    ROLE_ACTIVATION, // written by a node, placed by the planner
    ROLE_GRADIENT,   // of an activation, placed by the planner
    ROLE_PARAMETER_GRADIENT,
} role;

// The slabs share one layout: element i of each belongs to the same parameter element.
typedef enum { SLAB_WEIGHTS, SLAB_GRADIENTS, SLAB_MOMENT1, SLAB_MOMENT2, SLAB_COUNT } slab_kind;

// How a parameter begins.
typedef enum { INIT_ZERO, INIT_ONE, INIT_VALUE, INIT_UNIFORM, INIT_NORMAL, INIT_ORTHOGONAL } init_kind;
typedef struct {
    init_kind kind;
    float bound; // INIT_VALUE: every value; INIT_UNIFORM: values in [-bound, bound); INIT_NORMAL: their standard
                 // deviation; INIT_ORTHOGONAL, of matrices: length of their orthogonal rows or columns
} init;

// When a node runs: in every micro-batch, after its backward pass, or once per optimizer step.
typedef enum { PHASE_FORWARD, PHASE_AFTER, PHASE_UPDATE } phase;

// How the precision pass treats an operator's results (graph/dtype.h).
typedef enum { CLASS_LOW, CLASS_FP32, CLASS_FOLLOW } precision_class;

typedef struct {
    const char *name;  // unique among parameters, among states and among constants; "" for what nobody named
    const char *given; // the name as it was given, before a number made it unique
    role role;
    dtype type;
    shape shape;
    int producer;     // node that writes it, or -1
    tensor gradient;  // none before grad_build, or where no gradient flows
    int64_t offset;   // ROLE_PARAMETER and its gradient: first element in the slabs
    slab_kind slab;   // ROLE_SLAB
    init init;        // ROLE_PARAMETER
    bool undecayed;   // ROLE_PARAMETER: graph_undecayed was called
    bool low_copy;    // ROLE_PARAMETER: some operator reads it in 16 bits
    bool kept;        // ROLE_ACTIVATION: stays readable until the micro-batch ends
    bool normaliser;  // ROLE_STATE: graph_normaliser was called
    bool shared;      // ROLE_CONSTANT: graph_share was called
    const void *data; // ROLE_CONSTANT: the caller's memory
    dtype data_type;  // ROLE_CONSTANT: the type of `data`
} tensor_info;

// Fate of an input's gradient: nothing, overwrite, or add to an earlier node's.
typedef enum { FLOW_NONE, FLOW_WRITE, FLOW_ADD } flow;

typedef struct {
    int op;           // index into the operator catalogue
    const char *name; // the operator's
    uint32_t number;  // part of random counters
    precision_class precision;
    phase phase;
    int segment; // 1, 2, ..; 0: none
    int inputs, outputs;
    tensor *input, *output;
    const void *attr; // the operator's own record, or NULL
    uint32_t needs;   // NEEDS_INPUT(i) | NEEDS_OUTPUT(i): what backward reads
    uint32_t flows;   // bit i: a gradient may flow to input i
    uint32_t wide;    // bit k: output k stays fp32 in every precision
    uint32_t rounds;  // bit i: all that is made of input i is made of its values in the low type
    uint32_t loose;   // bit k: output k takes the low type where all its readers round it so
    bool backward;    // set by grad_build: backward runs
    flow *flow;       // set by grad_build, per input
} node;

#define NEEDS_INPUT(i)  (1u << (i))
#define NEEDS_OUTPUT(i) (1u << (16 + (i)))
enum { INPUTS_MOST = 16, OUTPUTS_MOST = 8 };

graph *graph_new(void);
void graph_free(graph *g);

// Leaves. A constant's memory stays the caller's and must outlive whatever executes the graph. A store finds states and
// constants by name (graph/store.h): the second of a name gets ".2" behind it, and so on.
tensor graph_constant(graph *g, const char *name, dtype type, shape s, const void *data);
tensor graph_parameter(graph *g, const char *name, shape s, init begin);
tensor graph_state(graph *g, const char *name, dtype type, shape s);

// Puts `prefix`, which must outlive the graph, before the names of parameters from here on; NULL: nothing.
void graph_prefix(graph *g, const char *prefix);

// Changes how a parameter begins.
void graph_begins(graph *g, tensor parameter, init begin);

// Marks a constant as part of a dataset, of which all programs of a process read one copy (graph/store.h).
void graph_share(graph *g, tensor constant);

// True if weight decay that acts on weights only acts on a parameter. Biases and gains, which have one dimension, do
// not decay, nor do parameters that graph_undecayed marks, such as embeddings of positions.
void graph_undecayed(graph *g, tensor parameter);
bool graph_decays(const graph *g, tensor parameter);

// Zeroed memory that lives as long as the graph, for constants that a builder makes.
void *graph_memory(graph *g, size_t bytes);

// A whole slab, of as many elements as all parameters take; no parameter can be added afterwards.
tensor graph_slab(graph *g, slab_kind kind);

// Marks the state that the gradients are divided by: it lies directly behind them, so that both can be summed over
// several devices in one operation.
void graph_normaliser(graph *g, tensor state);

// Keeps an activation until the end of its micro-batch, so that the host can read it (program_peek).
void graph_keep(graph *g, tensor t);

// Nodes carry numbers, which are part of random counters: 0, 1, 2 in the order of their making, or on from the one set
// here. A model whose first node always has the same number draws the same bits wherever its inputs come from.
void graph_number_from(graph *g, uint32_t number);

// Segments: stretches of the forward pass, a layer or a block each, whose activations a plan may compute a second time
// in the backward pass instead of keeping them (plan_options). A segment ends where the next begins or at
// graph_segment_end; what it computes must follow from its inputs, parameters and the step record alone.
void graph_segment_begin(graph *g);
void graph_segment_end(graph *g);
int graph_segments(const graph *g);

// Appends a node. For operators' builders only (ops/op.h wraps it); models call those.
node *graph_node_add(graph *g, int op, const char *name, precision_class precision, const tensor *input, int inputs);
tensor graph_output_add(graph *g, node *n, dtype type, shape s);
tensor graph_state_output_add(graph *g, node *n, const char *name, dtype type, shape s);
void graph_state_written_add(graph *g, node *n, tensor state); // a state that exists, as a further output
void *graph_attr_add(graph *g, node *n, const void *attr, size_t bytes);

// Reading. Tensor ids run from 1 to graph_tensors(g); nodes from 0, in execution order.
const tensor_info *graph_info(const graph *g, tensor t);
int graph_tensors(const graph *g);
int graph_nodes(const graph *g);
const node *graph_node(const graph *g, int i);

// Multiplications of a node's forward pass over so many rows of a batch: the values of its parameters times the rows
// that it applies them to.
double graph_products(const graph *g, const node *n, int64_t batch);

tensor graph_gradient(const graph *g, tensor t);

// The node's k-th output, found from its first, for operators that return several.
tensor graph_sibling(const graph *g, tensor t, int k);

// True if the precision pass allowed products in tf32.
bool graph_tf32(const graph *g);

// Who computes large products on a card; a note for plans that are made from here on, at any time. PRODUCTS_AUTO unless
// it was said.
void graph_multiply_by(graph *g, products_by p);
products_by graph_multiplies_by(const graph *g);

// The 16-bit type that parameters marked low_copy are read in; DTYPE_F32 where there are none.
dtype graph_low_type(const graph *g);

// Parameters: how many tensors, how many values (as PyTorch counts them), how many slab elements (padding included).
int graph_parameters(const graph *g);
tensor graph_parameter_at(const graph *g, int i);
tensor graph_parameter_named(const graph *g, const char *name);
int64_t graph_parameter_values(const graph *g);
int64_t graph_slab_elements(const graph *g);
bool graph_uses_slab(const graph *g, slab_kind kind);

// Fills `weights`, of graph_slab_elements(g) values, with the parameters' initial values under `seed`.
void graph_initial(const graph *g, uint64_t seed, float *weights);

#endif
