// The server of `tradewind watch --web`: the page, its documents, events and metrics of the runs below a directory, on
// libmicrohttpd. It reads, and writes nothing; a few threads answer, the caller's looks for news.
//
// Strangers are kept out: it listens on the loopback device unless told otherwise, where it asks for a token; it
// answers only where the request's Host is an address or a known name; runs are found by ids of its list, never by a
// path; requests, connections and their times are bounded (guard.h).
#ifndef TRADEWIND_WATCH_WEB_SERVER_H
#define TRADEWIND_WATCH_WEB_SERVER_H

#include "base/err.h"

typedef struct server server;

typedef struct {
    const char *dir;          // runs are looked for below it; or a run itself
    const char *bind;         // an address; NULL: 127.0.0.1
    int port;                 // 0: any that is free
    const char *token;        // NULL: one is made where the address is not of the loopback device
    const char *const *hosts; // further names that requests may be sent to, NULL at the end; or NULL
    const char *version;      // of the program
} server_options;

server *server_start(const server_options *o, err *e);

// The address of the page, with the token where there is one.
const char *server_url(const server *s);

// Looks for news, tells the clients, and ends connections that are out of time: to be called every SERVER_TICK seconds.
#define SERVER_TICK 0.25
void server_tick(server *s);

void server_stop(server *s);

#endif
