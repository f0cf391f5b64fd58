#include "run/live_file.h"

#include "base/format.h"

const row_sums_table live_file_tables[LIVE_FILE_TABLES] = {
    {"words", "words", "key, text", NULL, false},
    {"bars", "bars", "symbol, frame, time, end, open, high, low, close, volume, spread", NULL, false},
    {"decisions", "decisions",
        "symbol, time, end, kind, inputs, answer, score, volatility, side, units, stop, target, changes, equity, why, "
        "made",
        NULL, false},
    {"intents", "intents", "id, symbol, time, until, units, lots, stop, target, price, sent, status, filled", NULL,
        false},
    {"trades", "trades",
        "id, symbol, units, entry, exit, entry_price, exit_price, result, commission, swap, reason, value, traded, "
        "cost",
        NULL, false},
    {"books", "books",
        "symbol, time, units, stop, target, cash, equity, entry, entry_price, held, order_units, order_stop, "
        "order_target, numbers",
        NULL, false},
    {"states", "states", "symbol, time, state", NULL, false},
    {"fills", "fills", "id, symbol, time, bid, ask, price", NULL, false},
    {"memories", "memories", "symbol, time, weights, memory", NULL, false},
    {"events", "events", "id, at, time, symbol, kind, answer, text", NULL, false},
};

const live_file_part live_file_parts[LIVE_FILE_PARTS] = {
    [LIVE_FILE_BOOKS] = {"books",
        "SELECT symbol, datetime(time, 'unixepoch') AS bar, units / 1e8 AS position, equity / 1e8 AS equity,"
        " cash / 1e8 AS cash, datetime(entry, 'unixepoch') AS since, entry_price / 1e8 AS entry_price,"
        " stop / 1e8 AS stop, target / 1e8 AS target, (SELECT count(*) FROM trades t WHERE t.symbol = books.symbol)"
        " AS trades FROM books ORDER BY symbol"},
    [LIVE_FILE_INTENTS] = {"intents",
        "SELECT id, symbol, datetime(time, 'unixepoch') AS decided, lots / 1e8 AS position, price / 1e8 AS price,"
        " stop / 1e8 AS stop, target / 1e8 AS target, status, sent FROM intents ORDER BY id DESC LIMIT 10"},
    [LIVE_FILE_TRADES] = {"trades",
        "SELECT symbol, units / 1e8 AS units, datetime(entry, 'unixepoch') AS entry, datetime(exit, 'unixepoch') AS"
        " exit, entry_price / 1e8 AS entry_price, exit_price / 1e8 AS exit_price, result / 1e8 AS result, reason FROM"
        " trades ORDER BY id DESC LIMIT 10"},
    [LIVE_FILE_EVENTS] = {"events",
        "SELECT datetime(at, 'unixepoch') AS at, datetime(time, 'unixepoch') AS bar, symbol, kind, answer, text FROM"
        " events ORDER BY id DESC LIMIT 10"},
};

static int number_of(sqlite3 *file, const char *sql) {
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(file, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;
    int n = ok ? sqlite3_column_int(st, 0) : -1;
    sqlite3_finalize(st);
    return n;
}

live_file_state live_file_known(sqlite3 *file, const char *path, err *e) {
    int mark = number_of(file, "PRAGMA application_id");
    int version = mark < 0 ? -1 : number_of(file, "PRAGMA user_version"); // whoever has it locked is waited for once
    int tables = mark || version < 0 ? 1 : number_of(file, "SELECT count(*) FROM sqlite_master");
    if (mark < 0 || version < 0 || tables < 0) return LIVE_FILE_FAILED;
    if (mark == 0 && tables == 0) return LIVE_FILE_EMPTY;
    if (mark == LIVE_FILE_MARK)
        return format_known(path, version, LIVE_FILE_FORMAT, e) ? LIVE_FILE_OURS : LIVE_FILE_FOREIGN;
    err_input(e, "%s: is another program's database; name another file with --state", path);
    return LIVE_FILE_FOREIGN;
}

bool live_file_vouch(sqlite3 *file, const char *path, err *e) {
    const char *table = "";
    *e = (err){0};
    row_sums_state state = row_sums_check(file, live_file_tables, LIVE_FILE_TABLES, false, &table);
    if (state == ROW_SUMS_DAMAGED)
        return err_input(e,
            "%s: the rows of its table %s do not fit their sum: it is damaged, or another program has written to it; "
            "name another --state",
            path, table);
    return state != ROW_SUMS_FAILED;
}
