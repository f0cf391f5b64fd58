#include "task/devices.h"

#include <stddef.h>

bool task_name_device(task_devices *d, const config *c, err *e) {
    static const char key[] = "run.device";
    if (!d->open || config_is(c, key, "auto")) return true;
    if (config_is(c, key, "cpu")) {
        d->card = NULL;
        return true;
    }
    d->host = NULL;
    return d->card || config_fail(c, key, e, "there is no card to use%s%s; use auto or cpu",
                          d->no_card.text[0] ? ": " : "", d->no_card.text);
}

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
