// Lines that say what will run.
#ifndef TRADEWIND_CLI_SHOW_H
#define TRADEWIND_CLI_SHOW_H

#include "task/keys.h"

// Device, data, model, batch, tuning and memory of a task that is open. `bars` stands before the data, or is NULL.
void show_task(const task *t, const char *bars, FILE *out);

// The device, and the reason where the CPU stands in for a card.
void show_device(const device *d, const queue *q, const err *no_card, FILE *out);

// Bytes that a card's monitor will count, or the system for the process, and the limit.
void show_limit(const budget *b, const demand *n, const settings *s, FILE *out);

// The report of bar files, in a line each and their warnings, or the whole of it; the caller frees it.
char *show_bars(const task_event *e, bool whole);

// The line of one key.
void show_key(const told_key *k, FILE *out);

// Names that were read as others and keys without effect, a line each; as text or as JSON.
void show_keys(const task *t, bool json, FILE *out);
void show_agent_keys(const agent_task *t, bool json, FILE *out);

// A note where the bytes of a set were not checked.
void show_unchecked(const task *t, FILE *out);

// A warning where labels of training samples reach into validation; as text or as JSON.
void show_overlap(const task *t, bool json, FILE *out);

#endif
