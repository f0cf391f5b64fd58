// A backtest's own description, `backtest --config FILE`: keys of account, signal and report, and what is traded.
#ifndef TRADEWIND_CLI_BACKTEST_FILE_H
#define TRADEWIND_CLI_BACKTEST_FILE_H

#include "base/config.h"

enum { BACKTEST_WORDS_MOST = 128 };

typedef struct {
    config *config;             // NULL: there is no file
    char *signals, *bars, *run; // paths; NULL: not given
    const char *part, *symbol, *trades;
    char *own[BACKTEST_WORDS_MOST];
    int owned;
    const char *word[BACKTEST_WORDS_MOST]; // "account.cash=10000": those of the file, then the command's, which win
    int words;
} backtest_file;

// Reads the file, which may be NULL, and takes the command's words. ERR_INPUT names the line. To be given back by
// backtest_file_done, also on failure; `path` and the words must outlive it.
bool backtest_file_read(backtest_file *f, const char *path, const char *const *words, int count, err *e);
void backtest_file_done(backtest_file *f);

// The keys for --help: those of account, signal and report.
void backtest_file_help(void);

#endif
