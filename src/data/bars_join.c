// Rows behind the bars that are known already.
#include "data/bars_rows.h"

#include <stdlib.h>
#include <string.h>

bool bars_rows_join(joined_rows *j, const rows *r, int64_t span, const bars_options *o, err *e) {
    int64_t n = 0, newest = INT64_MIN;
    bar *known = o->before ? o->before(o->arg, r->symbol, span, r->row[0].bar.time, &n, &newest) : NULL;
    *j = (joined_rows){.all = *r, .before = (size_t)n};
    if (n) {
        j->all.count = j->all.room = j->before + r->count;
        j->all.row = calloc(j->all.count, sizeof *j->all.row);
        for (size_t i = 0; j->all.row && i < j->before; i++) j->all.row[i].bar = known[i];
        if (j->all.row) memcpy(j->all.row + j->before, r->row, r->count * sizeof *r->row);
    }
    free(known);
    if (!j->all.row) return err_run(e, "%s: no memory for the bars before it", r->name);
    while (j->seam < j->all.count && j->all.row[j->seam].bar.time <= newest) j->seam++;
    return true;
}

void bars_rows_join_done(joined_rows *j, const rows *r) {
    if (j->all.row != r->row) free(j->all.row);
    *j = (joined_rows){0};
}
