// The board: what a model sees of the newest bars of its instruments, as a dataset that changes.
//
// Sample k of the dataset is instrument k at its newest bar: windows of rows, the strategy vector, time and price. A
// bar that is pushed becomes a row by data/stream.h, which import is made of, so that the windows are those of a set
// with the same bars, to the bit. Rows behind the longest window are forgotten.
//
// Coarser frames are made here of the finest bars (data/frame.h), or come as bars of their own; these wait until the
// finest bar has closed that may see them. A bar belongs to an instrument and a frame, and comes in order.
#ifndef TRADEWIND_LIVE_BOARD_H
#define TRADEWIND_LIVE_BOARD_H

#include "data/dataset.h"
#include "data/frame.h"
#include "data/stream.h"

typedef struct board board;

// Facts of an instrument that a trained model's data hold.
typedef struct {
    const dataset *like;   // of bars; names, columns, types and words are taken from it
    const int64_t *window; // [streams]
    int series;            // instruments, 1 or more
    const int64_t *of;     // [series] their places in `like`
    unsigned made;         // frames that are made of the finest: bits
} board_options;

// NULL on failure: ERR_INPUT where the dataset is not one that bars can be added to.
board *board_new(const board_options *o, err *e);
void board_free(board *b);

// The dataset, which is the board's. Its pointers stay; what they point to changes with every bar.
dataset *board_data(board *b);

int board_frames(const board *b);

// Takes a bar of a coarser frame that has closed, and keeps it until the finest frame has come so far. One that is not
// newer than those before it is passed over.
void board_wait(board *b, int series, int frame, const bar *x);

// Takes the bar of the finest frame that has just closed, and everything that it may see.
void board_push(board *b, int series, const bar *x);

// True where the instrument has a sample: every frame has a row, and the vector has warmed up.
bool board_ready(const board *b, int series);

// Bars of the finest frame that are still needed before that, as far as is known.
int64_t board_needs(const board *b, int series);

// The end of the newest bar of a frame that was seen, and that waits; INT64_MIN where there is none.
int64_t board_end(const board *b, int series, int frame);
int64_t board_waiting(const board *b, int series, int frame);

// A checksum of what the model sees of an instrument: its windows and its vector.
uint32_t board_sum(const board *b, int series);

// The newest row of a frame.
const float *board_row(const board *b, int series, int frame);

// The state of an instrument after the bars pushed so far, with those that wait. board_save gives a block that the
// caller frees. board_load refuses, with ERR_INPUT, what is not a state of such an instrument.
void *board_save(const board *b, int series, size_t *bytes);
bool board_load(board *b, int series, const void *from, size_t bytes, err *e);

#endif
