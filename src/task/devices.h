// The devices that a task may compute on.
#ifndef TRADEWIND_TASK_DEVICES_H
#define TRADEWIND_TASK_DEVICES_H

#include "base/config.h"
#include "graph/device.h"

typedef struct {
    const device *card;    // comes first; NULL: none
    const device *host;    // stands in where there is no card, or none that can be used; NULL: nothing does
    err no_card;           // why there is no card where one was looked for, or an empty text
    queue_options options; // of queues
    bool open;             // the description may choose among them (run.device)
    queue *queue;          // of the device that comes first: the caller's, in place of one that the task opens; or NULL
} task_devices;

// Leaves the devices that run.device names, where the caller has not named one. ERR_INPUT where there is none such.
bool task_name_device(task_devices *d, const config *c, err *e);

// Opens a queue on the first device that can be used. `why` says why the host stands in for a card, or is empty.
bool task_open_queue(const task_devices *from, const device **d, queue **q, err *why, err *e);

#endif
