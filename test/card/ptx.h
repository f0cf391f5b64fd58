// PTX, the text that nvcc makes of a kernel, as instructions that a processor can carry out for the 32 lanes of a warp.
//
// Invariants:
//  1. A register has rows in its function's file, 128 bytes each: one word for every lane. 64-bit registers have two, a
//     predicate is the mask in the first word of one. Constants are registers that are filled when the function begins.
//  2. An instruction whose `kind` is PLAIN changes nothing but registers and memory. All others are the business of
//     test/card/grid.c.
//  3. What is not understood is an error that names the line, never skipped.
#ifndef TRADEWIND_TEST_CARD_PTX_H
#define TRADEWIND_TEST_CARD_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WARP = 32, ROW = WARP * 4, OPERANDS = 16 };

// Static shared memory lies from 0 on, dynamic from here on: the size of one is not known where the other is placed.
enum { SHARED_DYNAMIC = 48 << 10 }; // the most that is static on a card

typedef struct warp warp;
typedef struct insn insn;
typedef struct function function;
typedef struct module module;
typedef void operation(warp *w, const insn *i, uint32_t mask);

typedef enum {
    PLAIN,
    BRANCH,
    RETURN,
    CALL,
    BARRIER,    // of the block
    CONVERGENT, // of all lanes that a mask names, or of the whole warp
    POLL,       // a load that other blocks may be waited for with
    TRAP
} insn_kind;

typedef enum { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_LANE_PARAM } space;

struct insn {
    operation *run;
    const char *name; // of the operation
    int kind, line;
    int guard; // row of a predicate, -1: none
    bool guard_not;
    int op[OPERANDS]; // rows, in the order of the text; vectors element by element
    int bytes[OPERANDS];
    const int *more; // rows of a long list: the sums of a product of four warps
    int64_t imm;     // offset of an address; place of what is moved; kind of a comparison
    int count;       // elements of a vector
    int size;        // bytes of an element
    bool is_signed, is_not;
    int space;
    int target;                      // of a branch
    const function *callee;          // of a call
    int args[16], arg_count, result; // offsets of its parameters in the caller's; -1: no result
};

// Memory that a name stands for: an offset in its space, or an address for SPACE_GLOBAL.
typedef struct {
    char *name;
    int space;
    int64_t at;
    int64_t bytes;
} symbol;

typedef struct {
    int row, bytes;
    uint64_t value;
} constant;

typedef struct {
    int64_t at, bytes;
} param;

struct function {
    char *name;
    module *of;
    bool entry;
    insn *code;
    int count;
    int rows;
    constant *constants;
    int constant_count;
    param *params; // of an entry in its arguments; of another in a lane's parameters
    int param_count;
    param result;       // of a function with one
    int64_t args_bytes; // of an entry
    int64_t lane_bytes; // of parameters, the callees' included
    int64_t local_bytes;
    int64_t shared_bytes; // static
    int max_threads;      // of a block, 0: not said
    struct frame **idle;  // frames that no call uses (test/card/grid.c)
    struct special {
        int row, which;
    } special[16];
    int special_count;
};

enum {
    TID_X,
    TID_Y,
    TID_Z,
    NTID_X,
    NTID_Y,
    NTID_Z,
    CTAID_X,
    CTAID_Y,
    CTAID_Z,
    NCTAID_X,
    NCTAID_Y,
    NCTAID_Z,
    LANE_ID,
    SPECIALS
};

struct module {
    function **functions;
    int function_count;
    symbol *symbols;
    int symbol_count;
    int target; // 80 of sm_80
};

// Reads a module; ends the process with one line where it cannot.
module *ptx_read(const char *text, size_t length);
function *ptx_function(const module *m, const char *name);
symbol *ptx_symbol(const module *m, const char *name);

// The operation of a name (test/card/lanes.c). `widths`: for each operand w (up to 32 bits), d (64) or p
// (predicate). NULL run: unknown.
typedef struct {
    const char *name;
    operation *run;
    const char *widths;
    insn_kind kind;
} lanes_row;
const lanes_row *lanes_find(const char *name);

// Operations with names made of parts.
operation lanes_load, lanes_store, lanes_copy;
operation *lanes_convert(const char *to, const char *from, const char *rounding, bool saturated);
operation *lanes_compare(const char *type, const char *how, insn *i);
operation *lanes_pack(bool pack);
operation *lanes_reach(bool to_generic);

#endif
