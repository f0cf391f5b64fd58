// Sums of files that we wrote, so that what was damaged later is refused when the file is read. That of a safetensors
// file is a CRC-32 over its notes and over each tensor's name and bytes, kept as the note "sum"; that of a text one
// over its bytes.
#ifndef TRADEWIND_RUN_SUM_H
#define TRADEWIND_RUN_SUM_H

#include "run/safetensors.h"

enum { SUM_ROOM = 16, SUM_NOTES_MOST = 32 };

// The sum of a text, in 8 hexadecimal digits.
void sum_of_text(const char *text, char sum[SUM_ROOM]);

// The note "sum" for a file of these notes, which are put in order by their keys, and tensors; its text is in `text`.
safetensors_note sum_note(
    safetensors_note *notes, int note_count, const safetensors_entry *entries, int count, char text[SUM_ROOM]);

// False, and ERR_INPUT, where a file's note "sum" does not fit its content. A file without one passes.
bool sum_holds(const safetensors *s, const char *path, err *e);

#endif
