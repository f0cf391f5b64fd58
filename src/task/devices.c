#include "task/devices.h"

bool task_open_queue(const task_devices *from, const device **d, queue **q, err *why, err *e) {
    *why = from->no_card;
    if (from->queue) {
        *d = from->card ? from->card : from->host;
        *q = from->queue;
        return true;
    }
    if (from->card) {
        *d = from->card;
        *q = from->card->open(&from->options, e);
        if (*q || !from->host) return *q != NULL;
        *why = *e;
    }
    *d = from->host;
    *q = from->host->open(&from->options, e);
    return *q != NULL;
}
