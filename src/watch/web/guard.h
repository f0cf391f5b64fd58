// The connections of a server and their time: a client that is slow, or many that say nothing, keep nobody else away.
//
// A request must be whole soon after its connection began or its last answer ended, an answer must be taken within a
// minute or two; a stream of events has no end. Where nearly all places are taken, those that wait for a request give
// theirs up first. A connection that is out of time is shut down, and its thread then closes it.
#ifndef TRADEWIND_WATCH_WEB_GUARD_H
#define TRADEWIND_WATCH_WEB_GUARD_H

typedef struct guard guard;
typedef struct guard_place guard_place;

typedef enum { GUARD_WAITS, GUARD_ANSWERS, GUARD_STREAMS } guard_state;

guard *guard_new(int places);
void guard_free(guard *g);

// A connection begins; NULL where there is no place. It ends, before its descriptor is closed.
guard_place *guard_enter(guard *g, int fd);
void guard_leave(guard *g, guard_place *p);

void guard_set(guard *g, guard_place *p, guard_state to);

// Ends those that are out of time; `now` in seconds of clock_seconds. To be called a few times a second.
void guard_tick(guard *g, double now);

#endif
