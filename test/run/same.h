// Compares the remains of two runs, to the bit.
#ifndef TRADEWIND_TEST_RUN_SAME_H
#define TRADEWIND_TEST_RUN_SAME_H

// Fails the test unless two files have the same tensors, bit for bit, and the same notes of where the run stood; of the
// values, the time spent aside.
void same_files(const char *a, const char *b);

// Fails the test unless two directories have the same last checkpoint, the same best weights and, in run.db, the same
// epochs, metrics and end. Which steps have a row there depends on the clock: none is told of twice, and what both tell
// of a step is the same.
void same_runs(const char *a, const char *b);

#endif
