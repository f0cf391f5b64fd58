// Figures of all runs in the text format of Prometheus, version 0.0.4.
#ifndef TRADEWIND_WATCH_WEB_SCRAPE_H
#define TRADEWIND_WATCH_WEB_SCRAPE_H

#include "watch/web/view.h"

#include <stdio.h>

void scrape_write(FILE *out, const char *const *names, const view *const *views, int count);

#endif
