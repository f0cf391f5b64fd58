// Texts of a device's identity, and identities read back from them. Nothing else makes or takes apart such a text.
#ifndef TRADEWIND_GRAPH_IDENTITY_H
#define TRADEWIND_GRAPH_IDENTITY_H

#include "graph/device.h"

enum { IDENTITY_ROOM = 640 };

// Everything, for people: "cuda, NVIDIA H200, sm_90, driver 550.1, CUDA 12.4, 139.1 of 139.8 GB free; products by ...",
// or "cpu, avx512, 8 threads".
void identity_text(const device_identity *i, char *text, size_t room);

// The hardware with the threads of a CPU: "cuda, NVIDIA H200, sm_90", "cpu, avx512, 8 threads".
void identity_hardware(const device_identity *i, char *text, size_t room);

// The driver: "driver 550.1, CUDA 12.4"; "none" without one.
void identity_driver(const device_identity *i, char *text, size_t room);

// The line of a plan: hardware without threads, and driver.
void identity_plan(const device_identity *i, char *text, size_t room);

// Reads the line of a plan. What it does not understand is kept in `note`, so that it equals only itself.
void identity_read(device_identity *i, const char *text);

// True if two devices compute the same bits as far as is known: the same hardware and kernels. Threads, drivers and
// libraries may differ.
bool identity_same(const device_identity *a, const device_identity *b);

#endif
