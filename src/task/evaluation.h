// An evaluation on its way into the run's directory: one part of evaluation.json (run/results.h).
//
//   samples, from, to, epoch   how many, when (null: no times), and the best epoch, whose weights answered
//   metrics                    {loss, accuracy, mcc, macro_f1}, or {loss, mae, rmse, smape, mase, owa}
//   scores, trivial, bootstrap, symbols   beside trivial answers (task/skill_json.h)
//   classes, confusion         names, and counts of [true][predicted]
//   calibration                per class: ten bins of equal width over its probability: low, high, count, the mean
//                              probability and the share of samples that are of the class (null of an empty bin)
//   coverage                   of forecasts with quantiles: level, and the share of targets at or below its forecasts
//   accounts                   of an agent that trades, one an instrument: symbol, statistics, equity
//                              (task/agent_evaluation.h)
//   importance                 stream, column, metric, drop (task/importance.h), where it was measured
#ifndef TRADEWIND_TASK_EVALUATION_H
#define TRADEWIND_TASK_EVALUATION_H

#include "base/json.h"
#include "task/answers.h"

typedef struct {
    trained *t;
    answers answers;
    skill_table skill;
    score *score;         // of classes; or NULL
    series_score *series; // of forecasts; or NULL
    double loss;          // of forecasts
    json_t *importance;   // or NULL: not measured. Set by the caller, given back with the rest
} evaluation;

// Asks a run for its answers and scores them; to be given back by evaluation_done, also on failure. The run must
// outlive it.
bool evaluation_make(evaluation *v, trained *t, err *e);
void evaluation_done(evaluation *v);

// The part as an object; the caller gives it back.
json_t *evaluation_json(const evaluation *v);

// Names of a set's classes, and counts of [true][predicted] of K classes, as lists; the caller gives them back.
json_t *evaluation_classes(const dataset *d);
json_t *evaluation_confusion(const int64_t *count, int K);

// Puts it into the evaluation.json of a run's directory, in place of an earlier one of the same part; what was measured
// of importance stays where this one has none and is of the same epoch. True with the reason in `e` where the epoch is
// left out because run.db is damaged.
bool evaluation_store(const evaluation *v, const char *dir, err *e);

// The same of a part that was made elsewhere, which it takes over; `name` is the part's.
bool evaluation_store_part(json_t *part, const char *dir, const char *name, err *e);

// Writes the answers into the run's directory, in place of earlier ones: predictions_PART.npz, whose path the caller
// frees. NULL on failure.
char *evaluation_store_answers(const evaluation *v, const char *dir, err *e);

#endif
