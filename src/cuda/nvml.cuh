// The card's own monitor, NVML, the source of nvidia-smi's figures. It is opened at run time and needed by nothing:
// where it is missing, nobody counts.
#ifndef TRADEWIND_CUDA_NVML_CUH
#define TRADEWIND_CUDA_NVML_CUH

#include <stddef.h>

typedef struct nvml nvml;

// The monitor of the card at a PCI address as CUDA writes it; NULL where there is none.
nvml *nvml_open(const char *bus);
void nvml_close(nvml *m);

// Bytes of the card: in use by everyone, and in all.
bool nvml_card(const nvml *m, size_t *used, size_t *total);

// Bytes that it counts for this process. False where it does not show the process: in a container, which has other
// process numbers than the driver, or under WSL2.
bool nvml_process(const nvml *m, size_t *used);

// The driver's version, such as 580.95.05; empty where unknown.
void nvml_driver(const nvml *m, char *text, unsigned room);

#endif
