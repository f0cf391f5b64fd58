// Cards by their architecture, and what a plug-in's kernels were built for.
//
// A build is a list such as "86-real:75-virtual", in CMake's words. Real: machine code, for cards of the same major
// number and of its minor number or a higher one. Virtual: PTX, which the driver compiles for any card that is as new
// or newer. Both, without either word. Behind an `a` they are for that architecture alone, behind an `f` for its major
// number.
#ifndef TRADEWIND_GRAPH_ARCH_H
#define TRADEWIND_GRAPH_ARCH_H

#include <stdbool.h>
#include <stddef.h>

enum { ARCH_LEAST = 75 }; // Turing

typedef struct {
    int arch; // whose instructions the kernels have: 75 for those from the PTX of compute_75; 0: there are none
    bool ptx; // they come from PTX
} arch_kernels;

// Kernels that a card of this architecture (86 for sm_86) gets of a build. A driver prefers machine code.
arch_kernels arch_kernels_of(const char *built, int card);

// The newest architecture that a build has machine code for, or 0.
int arch_newest(const char *built);

// For people: "sm_86, and for others from PTX of compute_75".
void arch_text(const char *built, char *text, size_t room);

#endif
