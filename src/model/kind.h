// A kind of model: the record that its file exports, and what several kinds share. For the files of src/model alone.
#ifndef TRADEWIND_MODEL_KIND_H
#define TRADEWIND_MODEL_KIND_H

#include "model/model.h"

// Text of a description; what has no room is cut off.
typedef struct {
    char *to;
    size_t room, used;
} model_text;

typedef struct {
    window_layout layout;   // of its streams
    int64_t steps_most;     // of a window; 0: any
    const char *segment;    // unit that can be recomputed, one graph segment each; NULL: none
    const config_key *keys; // that no other kind has; the others are in common.c
    size_t key_count;
    const char *reads;                      // keys of common.c that it reads, without "model." and separated by spaces
    bool (*check)(const config *c, err *e); // its keys by themselves; NULL: their rows say all
    // Fills the settings of its kind (kind_set); the rest of `s` is filled. False where they contradict the data.
    bool (*read)(const config *c, const model_data *d, model_spec *s, err *e);
    tensor (*build)(graph *g, const model_spec *s);
    void (*describe)(const model_spec *s, model_text *t); // what the graph depends on, each setting behind ", "
} kind;

#define MODEL(name) extern const kind model_##name;
#include "model/model.def"
#undef MODEL

#define KIND_KEYS(list) .keys = (list), .key_count = sizeof(list) / sizeof *(list)

// Copies the settings of a kind into a model_spec, and out of it.
void kind_set(model_spec *s, const void *own, size_t bytes);
void kind_get(const model_spec *s, void *own, size_t bytes);

__attribute__((format(printf, 2, 3))) void kind_say(model_text *t, const char *fmt, ...);

// Values of keys that several kinds have; `usual` is the kind's own default.
int64_t kind_hidden(const config *c, const char *stream, int64_t usual);
int kind_layers(const config *c, int usual);
activation kind_activation(const config *c);
const char *kind_activation_name(activation a);

// The vector's projection and the head.
typedef struct {
    int64_t projection, head; // widths; a head of 0: none
} fusion;

fusion kind_fusion(const config *c);

// Joins what became of the streams with a projection of the vector, and puts a head on it.
//   vector:  strat = Linear, ReLU, Dropout                         -> [B, projection]
//   head:    Linear, ReLU, Dropout, Linear, or Linear alone        -> [B, outputs]
tensor model_fuse(graph *g, const model_spec *s, const fusion *f, const tensor *streams, int count);

// The head alone.
tensor model_head(graph *g, const model_spec *s, int64_t head, tensor x);

#endif
