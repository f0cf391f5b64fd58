#include "backtest/trades.h"

#include "base/file.h"

#include <stdio.h>

const char trades_header[] = "position,entry_time,exit_time,entry_price,exit_price,result,commission,swap,exit_reason";

static bool write_trade(file_writer *w, const replay *p, const replay_trade *t, err *e) {
    enum { TEXT = 32 };
    char line[512], entry[TEXT], exit[TEXT], lots[TEXT], number[5][TEXT];
    const int64_t all[5] = {t->entry_price, t->exit_price, t->result, t->commission, t->swap};
    for (int i = 0; i < 5; i++) account_text(number[i], TEXT, all[i], 8);
    account_text(lots, TEXT, (int64_t)account_round((account_wide)t->units * ACCOUNT_ONE, p->rules.contract), 0);
    when_moment_text(entry, sizeof entry, p->quotes->time[t->entry]);
    when_moment_text(exit, sizeof exit, p->quotes->time[t->exit]);
    int n = snprintf(line, sizeof line, "%s,%s,%s,%s,%s,%s,%s,%s,%s\n", lots, entry, exit, number[0], number[1],
        number[2], number[3], number[4], account_reason_name(t->reason));
    return file_writer_write(w, line, (size_t)n, e);
}

bool trades_write(const char *path, const replay *p, err *e) {
    file_writer w;
    if (!file_writer_open(&w, path, e)) return false;
    bool ok = file_writer_write(&w, trades_header, sizeof trades_header - 1, e) && file_writer_write(&w, "\n", 1, e);
    for (int64_t i = 0; ok && i < p->trades; i++) ok = write_trade(&w, p, &p->trade[i], e);
    ok = ok && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    return ok;
}
