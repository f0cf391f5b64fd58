#include "cuda/device/nvml.cuh"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// NVML's own records, which it promises to keep.
struct nvml_memory_record {
    unsigned long long total, free, used;
};

struct nvml_process_record {
    unsigned pid;
    unsigned long long used; // NOT_COUNTED where the system does not tell
    unsigned gpu_instance, compute_instance;
};

struct nvml_share_record {
    unsigned card, memory; // percent of the time
};

enum { PROCESSES_MOST = 256, SENSOR_OF_CARD = 0, CLOCK_OF_PROCESSORS = 1, CLOCK_OF_MEMORY = 2 };
static const unsigned long long NOT_COUNTED = ~0ull;

struct nvml {
    void *library, *card;
    int (*shutdown)(void);
    int (*memory)(void *card, nvml_memory_record *r);
    int (*processes)(void *card, unsigned *count, nvml_process_record *r);
    int (*driver)(char *text, unsigned room);
    int (*share)(void *card, nvml_share_record *r);
    int (*temperature)(void *card, int sensor, unsigned *degrees);
    int (*power)(void *card, unsigned *milliwatts);
    int (*clock)(void *card, int which, unsigned *mhz);
};

// False where the library has no such function.
static bool find(const nvml *m, const char *name, void *function) {
    void *symbol = dlsym(m->library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool start(nvml *m, const char *bus) {
    int (*init)(void), (*by_bus)(const char *bus, void **card);
    m->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!m->library) return false;
    if (!find(m, "nvmlInit_v2", &init) || !find(m, "nvmlShutdown", &m->shutdown)) return false;
    if (!find(m, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus)) return false;
    if (!find(m, "nvmlDeviceGetMemoryInfo", &m->memory)) return false;
    if (!find(m, "nvmlDeviceGetComputeRunningProcesses_v3", &m->processes))
        find(m, "nvmlDeviceGetComputeRunningProcesses_v2", &m->processes);
    find(m, "nvmlSystemGetDriverVersion", &m->driver);
    find(m, "nvmlDeviceGetUtilizationRates", &m->share);
    find(m, "nvmlDeviceGetTemperature", &m->temperature);
    find(m, "nvmlDeviceGetPowerUsage", &m->power);
    find(m, "nvmlDeviceGetClockInfo", &m->clock);
    if (init() != 0) return false;
    if (by_bus(bus, &m->card) == 0) return true;
    m->shutdown();
    return false;
}

nvml *nvml_open(const char *bus) {
    nvml *m = (nvml *)calloc(1, sizeof *m);
    if (!m) return NULL;
    if (start(m, bus)) return m;
    if (m->library) dlclose(m->library);
    free(m);
    return NULL;
}

void nvml_close(nvml *m) {
    if (!m) return;
    m->shutdown();
    dlclose(m->library);
    free(m);
}

bool nvml_card(const nvml *m, size_t *used, size_t *total) {
    nvml_memory_record r = {};
    *used = *total = 0;
    if (!m || m->memory(m->card, &r) != 0) return false;
    *used = (size_t)r.used;
    *total = (size_t)r.total;
    return true;
}

bool nvml_process(const nvml *m, size_t *used, int *others) {
    nvml_process_record all[PROCESSES_MOST];
    unsigned count = PROCESSES_MOST, self = (unsigned)getpid();
    bool found = false;
    if (!m || !m->processes || m->processes(m->card, &count, all) != 0) return false;
    for (unsigned i = 0; i < count && i < PROCESSES_MOST; i++) {
        if (all[i].pid != self || all[i].used == NOT_COUNTED) continue;
        *used = (size_t)all[i].used;
        found = true;
    }
    *others = found ? (int)count - 1 : 0;
    return found;
}

nvml_gauges nvml_read(const nvml *m) {
    nvml_gauges g = {-1, -1, -1, -1, -1};
    nvml_share_record share;
    unsigned v;
    if (!m) return g;
    if (m->share && m->share(m->card, &share) == 0) g.utilisation = share.card;
    if (m->temperature && m->temperature(m->card, SENSOR_OF_CARD, &v) == 0) g.temperature = v;
    if (m->power && m->power(m->card, &v) == 0) g.power = v * 1e-3;
    if (m->clock && m->clock(m->card, CLOCK_OF_PROCESSORS, &v) == 0) g.clock = v;
    if (m->clock && m->clock(m->card, CLOCK_OF_MEMORY, &v) == 0) g.memory_clock = v;
    return g;
}

void nvml_driver(const nvml *m, char *text, unsigned room) {
    if (!m || !m->driver || m->driver(text, room) != 0) text[0] = 0;
}
