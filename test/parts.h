// A group of tests that can be run in parts: by name, or shared by several processes.
#ifndef TRADEWIND_TEST_PARTS_H
#define TRADEWIND_TEST_PARTS_H

struct CMUnitTest;

// Runs the tests as cmocka does: all of them, those whose names match TRADEWIND_TEST_ONLY (a pattern with * and ?), or
// with TRADEWIND_TEST_PART=I/N every Nth from the Ith on, I from 0 to N - 1, so that N processes share them. Changes
// the array. Returns what main is to return.
int parts_run(const char *group, struct CMUnitTest *tests, int count);

#endif
