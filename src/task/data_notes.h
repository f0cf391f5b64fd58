// Notes about data that fit trained weights and may yet not be meant for them: read on another clock, of other
// instruments, of the time that the weights were trained on, or by a description that was changed since.
#ifndef TRADEWIND_TASK_DATA_NOTES_H
#define TRADEWIND_TASK_DATA_NOTES_H

#include "task/open.h"

enum { DATA_WARNINGS = 6, DATA_WARNING_ROOM = 400 };

typedef struct {
    int64_t trained_on;  // samples within the time that the weights were trained on; -1: not known
    bool trained_same;   // the part is the one that they were trained on
    char trained_to[32]; // the end of that time
    int64_t from, until; // that time, UTC seconds, where trained_on is known
    int warnings;
    char warning[DATA_WARNINGS][DATA_WARNING_ROOM];
} data_notes;

// Compares the contract of weights with the data of a task, for samples of the part of this name. ERR_INPUT where the
// contract is damaged.
bool data_notes_make(data_notes *n, const task *t, const char *part, const split_part *samples, const safetensors *f,
    const char *path, err *e);

// True where a sample that is known at this moment lies in the time of training; `trained_on` says that it is known.
bool data_notes_in_training(const data_notes *n, int64_t known);

// Notes on weights whose environment has no data: none but on the description.
void data_notes_none(data_notes *n);

// Adds a note where a description of a run has changed since: "FILE was changed after the run, so WHAT than the
// weights' own".
void data_notes_description(data_notes *n, const char *file, const char *what);

// Adds a note where the files of bars that a task is on are, by their names, of other instruments than those of `own`.
void data_notes_files(data_notes *n, const contract *own, const task *t);

#endif
