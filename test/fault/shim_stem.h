// A stem: a program that is started once and waits before its main. Each command is a fork of it, which has begun
// already. Where faults are tried one after the other, a trunk saves more: a fork of the stem that goes on to the call
// that is to go wrong, and is forked there. The branch carries the fault; the trunk goes on to the next one.
//
// A trunk needs that nothing but memory has changed: it ends where it has changed a file or has a second thread.
//
// FAULT_STEM holds two descriptors, for orders and for answers. Orders and answers go through pipes, whole.
#ifndef TRADEWIND_TEST_FAULT_SHIM_STEM_H
#define TRADEWIND_TEST_FAULT_SHIM_STEM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { STEM_RUN, STEM_GROW, STEM_FELL } stem_act;

// A command with a fault (run), the same by a trunk, which is new where there is none (grow), or the end of the trunk.
typedef struct {
    char call[12], how[8]; // as FAULT_CALL and FAULT_HOW
    int64_t at;
    int32_t act;
} stem_order;

// The end of a command, as waitpid has it; not of a branch: of a command or a trunk that was forked off the stem.
typedef struct {
    int32_t status, branch;
} stem_answer;

// True in the process of a command, with its order; false where there is no stem. A stem never returns.
bool stem_wait(stem_order *o);

// Forks. True in the branch; false in the trunk once the branch has ended, with the next order.
bool stem_branch(stem_order *next);

// True where a branch would be what a command of its own is.
bool stem_may_branch(void);

#endif
