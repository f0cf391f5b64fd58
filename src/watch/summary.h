// The summary of a report: what the page says at its head, for the screen and for other programs.
#ifndef TRADEWIND_WATCH_SUMMARY_H
#define TRADEWIND_WATCH_SUMMARY_H

#include "watch/facts.h"

// An object:
//   run, kind (run or walk), status, model, device, epochs, best_epoch, validation {loss, METRIC} of the best epoch
//   evaluation   by part: samples, from, to, metrics
//   backtest     statistics: label, value, unit by key
//   walk         scheme, folds, done, metrics; incomplete where it has no walk.json yet, and folds may be null then
//   figures      names of those that can be drawn
//   missing      figures (their titles), why, command: what to do for them, or null
//   notes        sentences: files that cannot be read, scores of other weights than the best ones
// Facts that the directory does not have are left out.
json_t *summary_make(const facts *f);

#endif
