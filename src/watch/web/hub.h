// Server-sent events: what happens is told to every client that listens, and to one that comes back from where it was.
//
// The newest messages are kept in a ring, and each client is a place in it, so that a slow client holds no memory: one
// that has fallen behind the ring, or that comes back to another server, is told "reset" and reads everything anew.
#ifndef TRADEWIND_WATCH_WEB_HUB_H
#define TRADEWIND_WATCH_WEB_HUB_H

#include <microhttpd.h>
#include <stdbool.h>

typedef struct hub hub;

hub *hub_new(void);

// To be called once no client is left.
void hub_free(hub *h);

// A stream for a client; `last` is its Last-Event-ID, or NULL. NULL where too many listen already.
struct MHD_Response *hub_join(hub *h, struct MHD_Connection *to, const char *last);

// Tells an event with its data, a line of JSON. Any thread.
void hub_tell(hub *h, const char *event, const char *data);

// Says something, so that connections that are gone are noticed. Any thread.
void hub_beat(hub *h);

// Number of clients.
int hub_listeners(hub *h);

// Ends all streams; nobody may join any more.
void hub_close(hub *h);

#endif
