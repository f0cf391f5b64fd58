// Kinds of commands that faults and kills are tried on: a table with a row for each, and what a test does with a row:
// puts its inputs in place, runs it with a fault, runs it again without one, compares. A command that is new is a row
// here, and every test of this folder has it.
//
// All happens in the working directory, which is the test's own: the program is copied there with the stand-in for a
// card beside it (cli/fake_card.c).
#ifndef TRADEWIND_TEST_FAULT_KINDS_H
#define TRADEWIND_TEST_FAULT_KINDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { KIND_WORDS = 12 };

typedef struct {
    const char *name;
    const char *clear; // patterns of what is removed before it runs, apart by spaces, or NULL
    const char *copy;  // "FROM TO": what is copied then, or NULL
    const char *words[KIND_WORDS];
    const char *again;   // word that is added where it goes on, or NULL
    const char *left;    // file or directory that holds its result
    void (*check)(void); // compares the result with that of an undisturbed command, which lies in `whole`
    bool writes;         // leaves something behind; false: it prints only
    const char *card;    // FAKE_CARD where it is tried on the card, "" for a sound one; NULL: it uses no device
    const char *mark;    // text that it writes just before its first step, member or fold; NULL: all is opening
} kind;

extern const kind kinds[];
extern const int kinds_count;

// One fault: shim.c says what the words are. At 0 there is none, calls are only counted, and so are their places.
typedef struct {
    const char *call, *how;
    int64_t at;
} fault;

// Folder with a built program and its CUDA plug-in ($TRADEWIND_CARD): kinds then run on this machine's card, without
// the shim. NULL: on the stand-in.
const char *kinds_real_card(void);

// Starts the program with the shim, whose clock goes by its readings, and a fault or none (NULL); `mark` may be NULL.
pid_t fault_start(const char *const *words, const fault *f, const char *mark);

// Copies the program here and makes the inputs of every kind: a run that was stopped after its first epoch, one that
// has ended, a set without its newest bars; on the card the runs are the card's.
void kinds_enter(bool card);

// Puts a kind's inputs in place and leaves the result of the undisturbed command as `whole`.
void kind_whole(const kind *k, bool card);

// Inputs, then the command with a fault, or with none (NULL); and its end, as waitpid has it. Where there is a fault
// the command is a fork (stem.h); the other starts it anew always.
int kind_run(const kind *k, bool card, const fault *f);
int kind_run_anew(const kind *k, bool card, const fault *f);

// Puts a kind's inputs in place; and starts the undisturbed command on them.
void kind_put(const kind *k);
pid_t kind_start(const kind *k, bool card);

// The command once more, undisturbed, on what lies there: it must end with status 0 and the result of `whole`.
void kind_go_on(const kind *k, bool card);

// Calls that the last command with the shim has made, which came to its end: in all, and before its mark.
void kind_calls(int64_t *all, int64_t *opening);

// Calls of the last command that only counted them, `all` in number: true for each, from 1, that was the first of its
// place. The caller frees it.
bool *kind_places(int64_t all);

// True where the last command has a word of trouble: a line on standard error, or a note that the undisturbed one has
// not.
bool kind_told(void);

// False where the last command with the shim has made no call that could change a file; a killed one counts none.
bool kind_changed(void);

// Runs a shell's line; fails the test where that fails.
void kinds_shell(const char *line);

#endif
