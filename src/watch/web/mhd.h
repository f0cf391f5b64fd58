// libmicrohttpd, opened at run time: `watch --web` alone needs it, every other command starts without it and the
// libraries behind it.
#ifndef TRADEWIND_WATCH_WEB_MHD_H
#define TRADEWIND_WATCH_WEB_MHD_H

#include "base/err.h"

#include <microhttpd.h>

// Functions of the library that are used, without their prefix.
#define MHD_CALLS(X)                                                                                                   \
    X(start_daemon)                                                                                                    \
    X(stop_daemon)                                                                                                     \
    X(set_panic_func)                                                                                                  \
    X(get_connection_info)                                                                                             \
    X(lookup_connection_value)                                                                                         \
    X(suspend_connection)                                                                                              \
    X(resume_connection)                                                                                               \
    X(create_response_from_buffer)                                                                                     \
    X(create_response_from_callback)                                                                                   \
    X(create_response_from_fd)                                                                                         \
    X(add_response_header)                                                                                             \
    X(queue_response)                                                                                                  \
    X(destroy_response)

typedef struct {
#define MHD_MEMBER(name) __typeof__(&MHD_##name) name;
    MHD_CALLS(MHD_MEMBER)
#undef MHD_MEMBER
} mhd_calls;

// Opens the library, once; ERR_RUN with what to install where it is not there. To be called before threads begin.
bool mhd_open(err *e);

// The functions, after mhd_open.
const mhd_calls *mhd(void);

#endif
