#include "watch/web/server.h"

#include "base/clock.h"
#include "watch/web/answer.h"
#include "watch/web/guard.h"
#include "watch/web/hub.h"
#include "watch/web/mhd.h"
#include "watch/web/request.h"
#include "watch/web/site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

// Bytes of a request's head; connections at once, of which streams of events are a part.
enum { HEAD_MOST = 16384, CONNECTIONS_MOST = 256, THREADS = 3, TOKEN_BYTES = 16, HOSTS_MOST = 16 };

static const double news_every = 0.5, beat_every = 10;

struct server {
    struct MHD_Daemon *daemon;
    site *site;
    hub *hub;
    guard *guard;
    bool local; // it listens on the loopback device
    char token[2 * TOKEN_BYTES + 1], cookie[32], host_name[256];
    const char *hosts[HOSTS_MOST + 2];
    char url[512];
    double looked, beaten;
};

// A request on its way: what libmicrohttpd keeps of it.
typedef struct {
    char *target;
    bool begun;
} inquiry;

// Answers

static void put_headers(struct MHD_Response *r, const answer *a) {
    static const char *const always[][2] = {{"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"},
        {"X-Frame-Options", "DENY"}, {"Cross-Origin-Resource-Policy", "same-origin"}};
    static const char page[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    static const char report[] = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        mhd()->add_response_header(r, always[i][0], always[i][1]);
    mhd()->add_response_header(r, "Content-Security-Policy", a->report ? report : page);
    mhd()->add_response_header(r, "Cache-Control", a->tag ? "no-cache" : "no-store");
    if (a->type) mhd()->add_response_header(r, "Content-Type", a->type);
    if (a->tag) mhd()->add_response_header(r, "ETag", a->tag);
    if (a->file[0]) {
        char text[sizeof a->file + 32];
        snprintf(text, sizeof text, "attachment; filename=\"%s\"", a->file);
        mhd()->add_response_header(r, "Content-Disposition", text);
    }
}

static enum MHD_Result send_response(
    struct MHD_Connection *c, unsigned status, struct MHD_Response *r, const answer *a) {
    if (!r) return MHD_NO;
    put_headers(r, a);
    enum MHD_Result ok = mhd()->queue_response(c, status, r);
    mhd()->destroy_response(r);
    return ok;
}

// Sends an answer and takes it over.
static enum MHD_Result send_answer(struct MHD_Connection *c, answer *a) {
    struct MHD_Response *r;
    if (a->fd >= 0)
        r = mhd()->create_response_from_fd(a->bytes, a->fd);
    else if (a->fixed)
        r = mhd()->create_response_from_buffer(a->bytes, (void *)(uintptr_t)a->fixed, MHD_RESPMEM_PERSISTENT);
    else
        r = mhd()->create_response_from_buffer(a->bytes, a->body, MHD_RESPMEM_MUST_FREE);
    return send_response(c, a->status, r, a);
}

static enum MHD_Result send_words(struct MHD_Connection *c, unsigned status, const char *words) {
    answer a = answer_words(status, words);
    return send_answer(c, &a);
}

static enum MHD_Result send_method(struct MHD_Connection *c) {
    static const char words[] = "Only GET and HEAD: nothing can be changed here.\n";
    answer a = answer_words(MHD_HTTP_METHOD_NOT_ALLOWED, words);
    struct MHD_Response *r =
        mhd()->create_response_from_buffer(a.bytes, (void *)(uintptr_t)a.fixed, MHD_RESPMEM_PERSISTENT);
    if (r) mhd()->add_response_header(r, "Allow", "GET, HEAD");
    return send_response(c, a.status, r, &a);
}

// Events: a stream without an end.
static enum MHD_Result send_events(server *s, struct MHD_Connection *c) {
    const char *last = mhd()->lookup_connection_value(c, MHD_HEADER_KIND, "Last-Event-ID");
    answer a = {.type = "text/event-stream; charset=utf-8", .fd = -1};
    struct MHD_Response *r = hub_join(s->hub, c, last);
    if (!r) return send_words(c, MHD_HTTP_SERVICE_UNAVAILABLE, "Too many pages are open.\n");
    const union MHD_ConnectionInfo *at = mhd()->get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (at) guard_set(s->guard, at->socket_context, GUARD_STREAMS);
    return send_response(c, MHD_HTTP_OK, r, &a);
}

// Access

static bool knows_token(const server *s, struct MHD_Connection *c) {
    static const char bearer[] = "Bearer ";
    char given[64];
    const char *cookies = mhd()->lookup_connection_value(c, MHD_HEADER_KIND, "Cookie");
    const char *word = mhd()->lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    if (request_cookie(cookies, s->cookie, given, sizeof given) && request_same_secret(given, s->token)) return true;
    return word && strncmp(word, bearer, sizeof bearer - 1) == 0 &&
           request_same_secret(word + sizeof bearer - 1, s->token);
}

// The token of the address becomes a cookie, and the address bar forgets it.
static enum MHD_Result send_cookie(const server *s, struct MHD_Connection *c) {
    char text[192];
    answer a = {.fd = -1};
    struct MHD_Response *r = mhd()->create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    snprintf(text, sizeof text, "%s=%s; HttpOnly; SameSite=Strict; Path=/", s->cookie, s->token);
    if (r) mhd()->add_response_header(r, "Set-Cookie", text);
    if (r) mhd()->add_response_header(r, "Location", "/");
    return send_response(c, MHD_HTTP_SEE_OTHER, r, &a);
}

// True where a request may be answered; otherwise it was refused, with `*sent`.
static bool may_ask(server *s, struct MHD_Connection *c, const request *r, enum MHD_Result *sent) {
    const char *host = mhd()->lookup_connection_value(c, MHD_HEADER_KIND, "Host"), *given = request_value(r, "token");
    if (!request_host_allowed(host, s->local, s->hosts)) {
        *sent = send_words(c, MHD_HTTP_FORBIDDEN,
            "This server answers to addresses and to localhost; start it with --host NAME for another name.\n");
        return false;
    }
    if (!s->token[0] || knows_token(s, c)) return true;
    if (given && request_same_secret(given, s->token) && r->route == ROUTE_ASSET)
        *sent = send_cookie(s, c);
    else
        *sent = send_words(c, MHD_HTTP_UNAUTHORIZED,
            "This page needs the token that `tradewind watch` has printed: open the whole address, or send it as "
            "`Authorization: Bearer TOKEN`.\n");
    return false;
}

static enum MHD_Result answer_request(server *s, struct MHD_Connection *c, const char *method, const request *r) {
    enum MHD_Result sent;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) return send_method(c);
    if (!may_ask(s, c, r, &sent)) return sent;
    if (r->route == ROUTE_EVENTS && strcmp(method, "GET") == 0) return send_events(s, c);
    answer a = answer_make(s->site, r, mhd()->lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match"));
    return send_answer(c, &a);
}

// Calls of libmicrohttpd

static void *on_target(void *arg, const char *target, struct MHD_Connection *c) {
    inquiry *q = calloc(1, sizeof *q);
    (void)arg;
    (void)c;
    NEED(q, "out of memory for a request");
    q->target = strndup(target, REQUEST_TARGET);
    NEED(q->target, "out of memory for a request");
    return q;
}

static bool has_body(struct MHD_Connection *c) {
    const char *length = mhd()->lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
    return (length && strcmp(length, "0") != 0) ||
           mhd()->lookup_connection_value(c, MHD_HEADER_KIND, "Transfer-Encoding");
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
    const char *version, const char *upload, size_t *bytes, void **con) {
    server *s = arg;
    inquiry *q = *con;
    request r;
    (void)url;
    (void)version;
    (void)upload;
    if (*bytes || !q) return MHD_NO;
    // A body is not wanted: an answer at the first call comes before it, and ends the connection.
    if (!q->begun && !has_body(c)) return q->begun = true;
    const union MHD_ConnectionInfo *at = mhd()->get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (at) guard_set(s->guard, at->socket_context, GUARD_ANSWERS);
    request_read(&r, q->target);
    return answer_request(s, c, method, &r);
}

static void on_done(void *arg, struct MHD_Connection *c, void **con, enum MHD_RequestTerminationCode how) {
    server *s = arg;
    inquiry *q = *con;
    (void)how;
    const union MHD_ConnectionInfo *at = mhd()->get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (at) guard_set(s->guard, at->socket_context, GUARD_WAITS);
    if (q) free(q->target);
    free(q);
    *con = NULL;
}

static void on_connection(void *arg, struct MHD_Connection *c, void **place, enum MHD_ConnectionNotificationCode what) {
    server *s = arg;
    const union MHD_ConnectionInfo *at = mhd()->get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        *place = at ? guard_enter(s->guard, at->connect_fd) : NULL;
    else
        guard_leave(s->guard, *place);
}

static void on_log(void *arg, const char *format, va_list args) {
    (void)arg; // what clients do wrong is theirs
    (void)format;
    (void)args;
}

static void on_panic(void *arg, const char *file, unsigned line, const char *why) {
    (void)arg;
    err_abort(file, (int)line, "libmicrohttpd", "%s", why ? why : "");
}

// Starting

static bool read_address(const char *bind, int port, struct sockaddr_storage *to, bool *local, err *e) {
    struct sockaddr_in *four = (struct sockaddr_in *)to;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
    const char *const none[] = {NULL};
    *to = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, bind, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        *local = request_host_allowed(bind, true, none);
    } else if (inet_pton(AF_INET6, bind, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        *local = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    } else {
        return err_input(e, "--bind %.100s: is no address; 0.0.0.0 or :: listen on all of this machine's", bind);
    }
    return true;
}

static void make_token(char token[2 * TOKEN_BYTES + 1]) {
    unsigned char bytes[TOKEN_BYTES];
    CHECK(getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "no random bytes");
    for (int i = 0; i < TOKEN_BYTES; i++) sprintf(token + 2 * i, "%02x", bytes[i]);
}

// A socket that listens; -1 on failure.
static int open_socket(const struct sockaddr_storage *at, const server_options *o, err *e) {
    socklen_t length = at->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
              bind(fd, (const struct sockaddr *)at, length) == 0 && listen(fd, SOMAXCONN) == 0;
    if (ok) return fd;
    int code = errno;
    if (code == EADDRINUSE)
        err_input(e, "--web %d: another program listens there; choose another port, or 0 for any", o->port);
    else if (code == EADDRNOTAVAIL)
        err_input(e, "--bind %.100s: this machine has no such address", o->bind);
    else
        err_run(e, "cannot listen on %s port %d: %s", o->bind ? o->bind : "127.0.0.1", o->port, strerror(code));
    if (fd >= 0) close(fd);
    return -1;
}

static int port_of(int fd) {
    struct sockaddr_storage at = {0};
    socklen_t length = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &length);
    return ntohs(
        at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port : ((struct sockaddr_in6 *)&at)->sin6_port);
}

// The page's address: of a server that listens on all addresses, this machine's name.
static void write_url(server *s, const char *bind, int port) {
    bool every = strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "::") == 0, six = !every && strchr(bind, ':');
    const char *host = every ? s->host_name : bind;
    snprintf(s->url, sizeof s->url, "http://%s%s%s:%d/%s%s", six ? "[" : "", host, six ? "]" : "", port,
        s->token[0] ? "?token=" : "", s->token);
    snprintf(s->cookie, sizeof s->cookie, "tradewind_%d", port);
}

static void know_hosts(server *s, const server_options *o) {
    int n = 0;
    if (gethostname(s->host_name, sizeof s->host_name - 1) != 0 || !s->host_name[0]) strcpy(s->host_name, "localhost");
    if (!s->local) s->hosts[n++] = s->host_name;
    for (int i = 0; o->hosts && o->hosts[i] && i < HOSTS_MOST; i++) s->hosts[n++] = o->hosts[i];
}

static struct MHD_Daemon *start_daemon(server *s, int fd) {
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    return mhd()->start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MOST, MHD_OPTION_CONNECTION_TIMEOUT, 60u,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, s, MHD_OPTION_NOTIFY_COMPLETED, on_done, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_END);
}

static bool start(server *s, const server_options *o, err *e) {
    struct sockaddr_storage at;
    const char *address = o->bind ? o->bind : "127.0.0.1";
    if (!read_address(address, o->port, &at, &s->local, e) || !mhd_open(e)) return false;
    know_hosts(s, o);
    if (o->token)
        snprintf(s->token, sizeof s->token, "%s", o->token);
    else if (!s->local)
        make_token(s->token);
    s->site = site_new(o->dir, o->version, e);
    if (!s->site) return false;
    int fd = open_socket(&at, o, e);
    if (fd < 0) return false;
    write_url(s, address, port_of(fd));
    s->hub = hub_new();
    s->guard = guard_new(CONNECTIONS_MOST + 16);
    mhd()->set_panic_func(on_panic, NULL);
    s->daemon = start_daemon(s, fd);
    if (s->daemon) return true;
    close(fd);
    return err_run(e, "the server cannot be started");
}

server *server_start(const server_options *o, err *e) {
    server *s = calloc(1, sizeof *s);
    NEED(s, "out of memory for a server");
    if (start(s, o, e)) return s;
    server_stop(s);
    return NULL;
}

const char *server_url(const server *s) {
    return s->url;
}

static void tell_news(void *arg, const char *event, const char *data) {
    server *s = arg;
    hub_tell(s->hub, event, data);
}

void server_tick(server *s) {
    double now = clock_seconds();
    guard_tick(s->guard, now);
    if (now - s->looked >= news_every && hub_listeners(s->hub)) {
        site_refresh(s->site, tell_news, s);
        s->looked = clock_seconds();
    }
    if (now - s->beaten < beat_every) return;
    hub_beat(s->hub);
    s->beaten = now;
}

// Streams are ended first: what is suspended cannot be closed.
void server_stop(server *s) {
    if (!s) return;
    if (s->hub) hub_close(s->hub);
    if (s->daemon) mhd()->stop_daemon(s->daemon);
    hub_free(s->hub);
    guard_free(s->guard);
    site_free(s->site);
    free(s);
}
