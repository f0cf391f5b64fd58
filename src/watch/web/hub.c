#include "watch/web/hub.h"

#include "base/err.h"
#include "watch/web/mhd.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { RING = 256, MESSAGE_ROOM = 768, CLIENTS_MOST = 64 };

typedef struct client {
    struct client *next;
    hub *hub;
    struct MHD_Connection *connection;
    uint64_t at;             // the message that it gets next
    bool suspended, beat;    // it waits for a message; it is to get a sign of life
    bool reset;              // it has to read everything anew
    size_t used, sent;       // of `text`
    char text[MESSAGE_ROOM]; // what it gets now
} client;

struct hub {
    pthread_mutex_t lock; // of all that follows
    uint64_t start;       // of this server: ids of another one mean nothing here
    uint64_t count;       // messages so far
    char ring[RING][MESSAGE_ROOM];
    client *clients;
    int listeners;
    bool closed;
};

hub *hub_new(void) {
    hub *h = calloc(1, sizeof *h);
    NEED(h, "out of memory for events");
    pthread_mutex_init(&h->lock, NULL);
    if (getrandom(&h->start, sizeof h->start, 0) != sizeof h->start) h->start = (uint64_t)time(NULL);
    return h;
}

void hub_free(hub *h) {
    if (!h) return;
    pthread_mutex_destroy(&h->lock);
    free(h);
}

// Clients

// The next piece for a client, if there is one. The lock is held.
static bool prepare(client *c) {
    hub *h = c->hub;
    int n = 0;
    c->reset |= h->count - c->at > RING;
    if (c->reset) {
        c->at = h->count;
        n = snprintf(c->text, sizeof c->text, "retry: 1000\nid: %016" PRIx64 "-%" PRIu64 "\nevent: reset\ndata: {}\n\n",
            h->start, h->count);
    } else if (c->at < h->count) {
        n = snprintf(c->text, sizeof c->text, "%s", h->ring[c->at++ % RING]);
    } else if (c->beat) {
        n = snprintf(c->text, sizeof c->text, ":\n\n");
    }
    c->beat = c->reset = false;
    c->used = (size_t)n;
    c->sent = 0;
    return n > 0;
}

static ssize_t read_client(void *arg, uint64_t position, char *to, size_t room) {
    client *c = arg;
    hub *h = c->hub;
    ssize_t n = 0;
    (void)position;
    pthread_mutex_lock(&h->lock);
    if (h->closed) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (c->sent < c->used || prepare(c)) {
        size_t left = c->used - c->sent;
        n = (ssize_t)(left < room ? left : room);
        memcpy(to, c->text + c->sent, (size_t)n);
        c->sent += (size_t)n;
    } else {
        c->suspended = true;
        mhd()->suspend_connection(c->connection);
    }
    pthread_mutex_unlock(&h->lock);
    return n;
}

static void forget_client(void *arg) {
    client *c = arg;
    hub *h = c->hub;
    pthread_mutex_lock(&h->lock);
    for (client **at = &h->clients; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    h->listeners--;
    pthread_mutex_unlock(&h->lock);
    free(c);
}

// Where a client that comes back goes on; false where that is not known.
static bool place_of(const hub *h, const char *last, uint64_t *at) {
    uint64_t start, number;
    int end = 0;
    if (!last || sscanf(last, "%16" SCNx64 "-%" SCNu64 "%n", &start, &number, &end) != 2 || last[end]) return false;
    *at = number;
    return start == h->start && number <= h->count;
}

struct MHD_Response *hub_join(hub *h, struct MHD_Connection *to, const char *last) {
    client *c = calloc(1, sizeof *c);
    NEED(c, "out of memory for a client");
    struct MHD_Response *r = NULL;
    pthread_mutex_lock(&h->lock);
    bool place = !h->closed && h->listeners < CLIENTS_MOST;
    if (place) r = mhd()->create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_client, c, forget_client);
    if (r) {
        *c = (client){.next = h->clients, .hub = h, .connection = to};
        c->reset = !place_of(h, last, &c->at);
        h->clients = c;
        h->listeners++;
    }
    pthread_mutex_unlock(&h->lock);
    if (!r) free(c);
    return r;
}

// Telling

// The lock is held.
static void wake(hub *h) {
    for (client *c = h->clients; c; c = c->next) {
        if (!c->suspended) continue;
        c->suspended = false;
        mhd()->resume_connection(c->connection);
    }
}

void hub_tell(hub *h, const char *event, const char *data) {
    pthread_mutex_lock(&h->lock);
    int n = snprintf(h->ring[h->count % RING], MESSAGE_ROOM, "id: %016" PRIx64 "-%" PRIu64 "\nevent: %s\ndata: %s\n\n",
        h->start, h->count + 1, event, data);
    CHECK(n > 0 && n < MESSAGE_ROOM, "an event of %d bytes", n);
    h->count++;
    wake(h);
    pthread_mutex_unlock(&h->lock);
}

void hub_beat(hub *h) {
    pthread_mutex_lock(&h->lock);
    for (client *c = h->clients; c; c = c->next) c->beat = true;
    wake(h);
    pthread_mutex_unlock(&h->lock);
}

int hub_listeners(hub *h) {
    pthread_mutex_lock(&h->lock);
    int n = h->listeners;
    pthread_mutex_unlock(&h->lock);
    return n;
}

void hub_close(hub *h) {
    pthread_mutex_lock(&h->lock);
    h->closed = true;
    wake(h);
    pthread_mutex_unlock(&h->lock);
}
