// Answers of the server to a request: a document, a part of the page, a table, or a refusal.
#ifndef TRADEWIND_WATCH_WEB_ANSWER_H
#define TRADEWIND_WATCH_WEB_ANSWER_H

#include "watch/web/site.h"

typedef struct {
    unsigned status; // of HTTP
    const char *type;
    const char *tag;   // a part of the page: what its content is told by; or NULL
    const void *fixed; // the body, which lives as long as the program; or
    char *body;        // one to be freed; or
    int fd;            // an open file to be closed, where both are NULL and bytes are not 0
    size_t bytes;
    bool report;   // a page that came from a file
    char file[80]; // the name that it is saved under; empty: it is shown
} answer;

// Answers a request for anything but the stream of events; `tag`: what the client has of it, or NULL.
answer answer_make(site *s, const request *r, const char *tag);

// A line of text, which lives as long as the program.
answer answer_words(unsigned status, const char *words);

#endif
