// The contract of a model: the inputs that it was trained on, by name, and the meaning of its answers.
//
// Weights and checkpoints carry it in their metadata as JSON, under the key contract_key:
//   {"version": "...", "streams": [{"name": "fast", "span": 300, "window": 50, "columns": [...]}],
//    "vector": {"columns": [...]}, "classes": ["DOWN", ...], "label": {...}, "scaler": "standard", "symbols": [...],
//    "zone": "mt5", "trained": {"from": "2024-01-02 10:00", "to": "2025-08-26 14:00"}, "prices": [[1810.4, 3415.2]]}
// "trained" is the time from the first training sample to the end of the last label of one, where the data have times.
// "prices" are the lowest and the highest price at training samples of each instrument, in the order of the symbols.
// "zone" is the zone of the bar files' clock that was given, or "default". Columns and classes without names stand
// there as numbers: how many there are. A forecaster has "forecast", the number of its values, in place of "classes".
// Weights of PyTorch and of earlier programs carry none. Checkpoints also carry which samples they were made of, under
// contract_data_key:
//   {"name": "gold.npz", "samples": 1000, "first": "2024-01-02 10:00", "last": "...", "sources": [...]}
// The weights alone do not: the same samples under another name give the same bytes.
#ifndef TRADEWIND_TASK_CONTRACT_H
#define TRADEWIND_TASK_CONTRACT_H

#include "base/json.h"
#include "data/dataset.h"
#include "data/split.h"
#include "run/safetensors.h"

extern const char contract_key[], contract_data_key[];

// Names, or their number alone.
typedef struct {
    int64_t count;
    const json_t *names; // array of texts, or NULL
} contract_names;

typedef struct {
    const char *name;
    int64_t span;   // seconds of a bar; 0: not bars
    int64_t window; // steps
    contract_names columns;
} contract_stream;

typedef struct {
    const char *version; // of the program that made it
    int streams;
    contract_stream stream[STREAMS_MOST];
    contract_names vector;
    contract_names classes;
    int64_t forecast;   // values of a forecast; 0: classes
    json_t *label;      // settings of labels that are made of bars, or NULL
    const char *scaler; // "none", "standard" or "own"
    contract_names symbols;
    const char *zone;                      // of the bar files' clock, or NULL
    const json_t *prices;                  // [lowest, highest] of each instrument, or NULL
    const char *trained_from, *trained_to; // time of the training samples and their labels, or NULL
    const char *data;                      // name of the data; NULL where a file does not say, and all below with it
    int64_t samples;                       // of the data
    const char *first, *last;              // times of the first and the last sample, or NULL
    const json_t *sources;                 // files of bars and their number of bars, or NULL
    json_t *json, *data_json;              // both texts; own everything above
} contract;

// Facts of which a contract is made.
typedef struct {
    const dataset *data;
    const int64_t *window;   // steps of each stream
    const split_part *train; // samples that are trained on; NULL: not said
    bool forecasts;
    const char *scale;   // "none", "standard" or "own"
    const char *version; // of the program
} contract_facts;

contract *contract_make(const contract_facts *f);
void contract_free(contract *c);

// The contract and its data as JSON, which the caller frees.
char *contract_text(const contract *c);
char *contract_data_text(const contract *c);

// Reads the contract of a file into `*c`, which is NULL where the file carries none. ERR_INPUT where it is damaged.
bool contract_read(contract **c, const safetensors *from, const char *path, err *e);

// Parts that two contracts may differ in.
enum {
    CONTRACT_COLUMNS = 1, // streams, columns, the vector
    CONTRACT_FRAMES = 2,  // spans of bars
    CONTRACT_WINDOWS = 4,
    CONTRACT_CLASSES = 8, // classes, or values of a forecast
    CONTRACT_LABEL = 16,  // settings of labels
    CONTRACT_SCALER = 32, // the scaler's word
    CONTRACT_ALL = 63,
};

// True where the data are not those that the weights were made for. `text` gets the first difference in words and what
// to do: "columns of fast differ: column 3 is rsi_14 in the weights and body in gold.npz; import with --features ...".
// Columns and classes without names are compared by their number.
bool contract_differs(const contract *weights, const contract *data, unsigned parts, char *text, size_t room);

// True where data that fit may not be meant for the weights: read on another clock, or of other instruments. `text`
// gets the difference in words.
bool contract_zones_differ(const contract *weights, const contract *data, char *text, size_t room);
bool contract_symbols_differ(const contract *weights, const contract *data, char *text, size_t room);

// Instruments that no name tells apart. A price is odd for an instrument where it is below a CONTRACT_PRICE_TIMES-th of
// the lowest or above CONTRACT_PRICE_TIMES times the highest one that the weights were trained at; none is odd where
// they do not say or do not know the symbol. `symbol` is NULL for an instrument without a name.
enum { CONTRACT_PRICE_TIMES = 4 };
bool contract_price_is_odd(const contract *weights, const char *symbol, double price);

// True where a price is odd; `text` gets that in words.
bool contract_price_differs(const contract *weights, const char *symbol, double price, char *text, size_t room);

// True where more than half of an instrument's prices at these samples are odd: bars of another instrument, or in other
// units.
bool contract_prices_differ(
    const contract *weights, const dataset *data, const split_part *samples, char *text, size_t room);

// True where files of bars are of other instruments by their names, as far as terminals gave both:
// "XAUUSD_H1_202301020000_202605152300.csv" is of XAUUSD, a name without a frame behind the symbol of none. Checkpoints
// and data know their files, weights do not.
bool contract_files_differ(const contract *was, const contract *is, char *text, size_t room);

// True where the samples are not the same, as far as can be seen here: "gold.npz has 1,210 samples, had 1,000".
bool contract_data_differ(const contract *was, const contract *is, char *text, size_t room);

// A stream, and what the model answers, in a line for people: "stream fast: bars of 5 min, 50 steps of body,rsi_14".
// Both return `text`.
const char *contract_stream_line(const contract *c, int stream, char *text, size_t room);
const char *contract_answers_line(const contract *c, char *text, size_t room);

// Compares the contract of weights, where they carry one, with the data that they are used on. ERR_INPUT names both.
bool contract_fits(const safetensors *weights, const char *path, const contract *data, unsigned parts, err *e);

#endif
