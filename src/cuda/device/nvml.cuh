// The card's own monitor, NVML, the source of nvidia-smi's figures. It is opened at run time and needed by nothing:
// where it is missing, nobody counts.
#ifndef TRADEWIND_CUDA_DEVICE_NVML_CUH
#define TRADEWIND_CUDA_DEVICE_NVML_CUH

#include <stddef.h>

typedef struct nvml nvml;

// The monitor of the card at a PCI address as CUDA writes it; NULL where there is none.
nvml *nvml_open(const char *bus);
void nvml_close(nvml *m);

// Bytes of the card: in use by everyone, and in all.
bool nvml_card(const nvml *m, size_t *used, size_t *total);

// Bytes that it counts for this process, and how many others compute on the card. False where it does not show the
// process: in a container, which has other process numbers than the driver, or under WSL2.
bool nvml_process(const nvml *m, size_t *used, int *others);

// As device_readings has them; -1 where the card does not tell.
struct nvml_gauges {
    double utilisation, temperature, power, clock, memory_clock;
};

nvml_gauges nvml_read(const nvml *m);

// The driver's version, such as 580.95.05; empty where unknown.
void nvml_driver(const nvml *m, char *text, unsigned room);

#endif
