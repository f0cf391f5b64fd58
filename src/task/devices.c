#include "task/devices.h"

#include "graph/device_name.h"

#include <stdio.h>
#include <string.h>

enum { CARDS_MOST = 16 };

bool task_name_device(task_devices *d, const config *c, err *e) {
    static const char key[] = "run.device";
    if (!d->open || config_is(c, key, "auto")) return true;
    if (config_is(c, key, "cpu")) {
        d->card = NULL;
        return true;
    }
    device_name name;
    device_name_read(&name, config_text(c, key));
    d->options.number = name.number;
    d->host = NULL;
    return d->card || config_fail(c, key, e, "there is no card to use%s%s; use auto or cpu",
                          d->no_card.text[0] ? ": " : "", d->no_card.text);
}

// Refuses the number of a card that is not there, and names those that are. Without any, opening one says why.
static bool check_number(const task_devices *from, err *e) {
    device_identity list[CARDS_MOST];
    char names[700] = "";
    int number = from->options.number;
    if (!number || !from->card->cards) return true;
    int count = from->card->cards(list, CARDS_MOST);
    if (!count || number < count) return true;
    for (int i = 0; i < count && i < CARDS_MOST; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%scuda:%d (%s)", i ? ", " : "", i, list[i].card);
    }
    return err_input(e, "there is no card cuda:%d; use %s%s", number, count > 1 ? "one of " : "", names);
}

bool task_open_queue(const task_devices *from, const device **d, queue **q, err *why, err *e) {
    *why = from->no_card;
    if (from->queue) {
        *d = from->card ? from->card : from->host;
        *q = from->queue;
        return true;
    }
    if (from->card && !check_number(from, e)) return false;
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
