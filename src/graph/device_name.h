// Devices as people name them, in --device and run.device: auto, cpu, cuda, or cuda:N for the card with that number.
#ifndef TRADEWIND_GRAPH_DEVICE_NAME_H
#define TRADEWIND_GRAPH_DEVICE_NAME_H

#include <stdbool.h>

typedef enum { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA } device_kind;

typedef struct {
    device_kind kind;
    int number; // of a card, as CUDA counts those that this process may see; 0 where none is given
} device_name;

// False where the text names no device.
bool device_name_read(device_name *n, const char *text);

#endif
