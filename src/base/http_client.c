/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http_client.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/stderr.h"
#include "base/guard.h"
#include "base/loop.h"
#include "base/magic.h"
#include "base/mem.h"

enum {
        MAX_BODY = 32 << 20,
        /* libcurl allocates this much for each transfer in progress, and most of our transfers are idle
         * watches. It is libcurl's default, and the largest DATA frame, so frames are not split. */
        BUFFER_BYTES = 16 << 10,
        /* The most that libcurl allows. Streams without own data read for the others on their
         * connection, as much as there is. If it does not fit into the other's buffer, reading stops, and
         * libcurl 7.88 may notice the end of that answer only when something else arrives. */
        LARGE_BUFFER_BYTES = 512 << 10,
        UPLOAD_BUFFER_BYTES = 16 << 10, /* libcurl's minimum */
        CONNECT_TIMEOUT_MS = 10000,
        /* A dead host is noticed 15 to 45 s after the last byte, as with client-go's HTTP/2 pings. */
        KEEPALIVE_S = 15,
        USER_TIMEOUT_MS = 30000,
        /* A server that TCP finds healthy counts as hung when a call has waited this long, and no call has
         * received anything in that time. */
        SILENCE_MS = 30000,
};

enum call_state {
        CALL_WAITING,   /* started from inside libcurl: added when it returns */
        CALL_ACTIVE,    /* libcurl has it */
        CALL_FAILED,    /* its connection was dropped: done is called in the next turn */
        CALL_CANCELLED, /* cancelled from inside libcurl: released when it returns */
        CALL_DONE,      /* inside its done callback */
};

enum { CALL_MAGIC = 0xca11ed01, CLIENT_MAGIC = 0x0c11e970, SOCKET_MAGIC = 0x50c3e7a1 };

struct http_call {
        unsigned magic;
        TAILQ_ENTRY(http_call) entry; /* in client->calls, in every state */
        struct http_client *client;
        enum call_state state;
        bool fresh; /* on its own connection */
        CURL *easy;
        struct curl_slist *headers;
        struct http_tls_set *tls; /* NULL without TLS */
        char *url, *body;
        struct buf answer;
        uint64_t started_ms;
        int retry_after_s;
        int poll_error; /* the client's poll_error when its connection was dropped */
        http_data_fn *data;
        http_head_fn *head; /* NULL after it has been called */
        http_done_fn *done;
        void *u;
        char reason[CURL_ERROR_SIZE];
};

/* A socket of libcurl. */
struct http_socket {
        unsigned magic;
        struct loop_fd poll;
        LIST_ENTRY(http_socket) entry;
        struct http_client *client;
        curl_socket_t fd;
};

struct http_client {
        unsigned magic;
        uv_loop_t *loop;
        CURLM *multi;
        struct loop_timer timer;
        struct loop_turn next_turn;
        TAILQ_HEAD(, http_call) calls;
        LIST_HEAD(, http_socket) sockets;
        struct guard guard; /* for callbacks, our own and libcurl's */
        bool in_curl;       /* libcurl refuses calls from inside its callbacks */
        bool unsettled;     /* some calls are in another state than ACTIVE */
        bool reconnect;
        int poll_error; /* the reason, as a libuv error; 0: the server is silent */
        uint64_t last_byte_ms; /* on the shared connection */
        uint64_t asked_ms;     /* when the first call on it since the last byte was started */
        unsigned silence_ms;

        char *base_url, *user_agent;
        struct http_tls *tls; /* NULL without TLS */
        bool secure;
        bool local; /* a loopback address never uses a proxy */
        struct curl_slist *connect_to_list;
        const char *(*token)(void *u);
        void *token_u;
};

static void http_client_settle(struct http_client *c);
static void teardown(struct http_client *c);

/* ---- libcurl's sockets and timer on the loop ---- */

static void http_client_enter(struct http_client *c) {
        guard_enter(&c->guard);
        c->in_curl = true;
}

static void http_client_leave(struct http_client *c) {
        c->in_curl = false;
        http_client_settle(c);
        if (guard_leave(&c->guard))
                teardown(c);
}

static void on_socket(void *u, int events) {
        struct http_socket *s = MAGIC_CAST(struct http_socket, u, SOCKET_MAGIC);
        struct http_client *c = s->client;
        int running, flags = events ? 0 : CURL_CSELECT_ERR;

        flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
        flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
        http_client_enter(c);
        curl_multi_socket_action(c->multi, s->fd, flags, &running);
        http_client_leave(c);
}

static void http_client_on_timer(void *u) {
        struct http_client *c = MAGIC_CAST(struct http_client, u, CLIENT_MAGIC);
        int running;
        http_client_enter(c);
        curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        http_client_leave(c);
}

/* 0 ms means the next turn: a timer of 0 ms that restarts in its own callback would never let libuv poll. */
static int set_timer(CURLM *multi, long ms, void *u) {
        struct http_client *c = MAGIC_CAST(struct http_client, u, CLIENT_MAGIC);
        if (ms <= 0)
                loop_timer_stop(&c->timer);
        else
                loop_timer_start(&c->timer, (uint64_t)ms);
        if (ms == 0)
                loop_turn_start(&c->next_turn);
        return 0;
}

static void socket_drop(struct http_socket *s) {
        LIST_REMOVE(s, entry);
        loop_fd_done(&s->poll);
        s->magic = 0;
        free(s);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *u, void *socket_u) {
        struct http_client *c = MAGIC_CAST(struct http_client, u, CLIENT_MAGIC);
        struct http_socket *s = socket_u;

        if (what == CURL_POLL_REMOVE) {
                /* libcurl closes the descriptor immediately afterwards. */
                if (s) {
                        curl_multi_assign(c->multi, fd, NULL);
                        socket_drop(s);
                }
                return 0;
        }
        if (!s) {
                s = xnew(struct http_socket);
                s->magic = SOCKET_MAGIC;
                s->client = c;
                s->fd = fd;
                /* The kernel may refuse to poll more sockets: then the calls fail like those of any dropped
                 * connection. */
                int r = loop_fd_init(&s->poll, c->loop, fd, on_socket, s);
                if (r < 0) {
                        free(s);
                        c->poll_error = r;
                        http_client_reconnect(c);
                        return -1;
                }
                LIST_INSERT_HEAD(&c->sockets, s, entry);
                curl_multi_assign(c->multi, fd, s);
        }
        loop_fd_start(&s->poll,
                      (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0));
        return 0;
}

/* libcurl's own function leaves the socket open in programs that we start. */
static curl_socket_t http_client_open_socket(void *u, curlsocktype purpose, struct curl_sockaddr *a) {
        const unsigned ms = USER_TIMEOUT_MS;
        const int on = 1;
        int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);

        if (fd < 0)
                return CURL_SOCKET_BAD;
        /* Best effort: without it a dead host is noticed only by the callers' own time-outs. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
        /* The kernel may choose a port at which another program on this address will listen, as nvidia-imex
         * at 50000. It still can if both have set this. */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        return fd;
}

static void multi_open(struct http_client *c) {
        c->multi = curl_multi_init();
        BUG_ON(!c->multi);
        curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
        curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, set_timer);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
        curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
}

/* All calls have been removed from it. */
static void multi_close(struct http_client *c) {
        struct http_socket *s;
        c->in_curl = true;
        curl_multi_cleanup(c->multi);
        c->in_curl = false;
        c->multi = NULL;
        /* Some versions of libcurl do not report their sockets as closed when they end. */
        while ((s = LIST_FIRST(&c->sockets)))
                socket_drop(s);
        loop_timer_stop(&c->timer);
        loop_turn_stop(&c->next_turn);
}

/* ---- one call ---- */

static void call_release(struct http_call *call) {
        struct http_client *c = call->client;

        if (call->state == CALL_ACTIVE || call->state == CALL_CANCELLED)
                curl_multi_remove_handle(c->multi, call->easy);
        TAILQ_REMOVE(&c->calls, call, entry);
        /* Never reused for another call: curl_easy_reset() of Debian 12's libcurl resets the size of the
         * receive buffer, but keeps the buffer, which then overflows. */
        curl_easy_cleanup(call->easy);
        curl_slist_free_all(call->headers);
        http_tls_unref(call->tls);
        free(call->url);
        free(call->body);
        buf_done(&call->answer);
        call->magic = 0;
        free(call);
}

static int call_status(const struct http_call *call) {
        long status = 0;
        curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        return (int)status;
}

static bool call_streams(const struct http_call *call) {
        int status = call_status(call);
        return call->data && status >= 200 && status < 300;
}

static bool call_silenced(const struct http_call *call) {
        return call->state == CALL_CANCELLED || call->client->guard.dead;
}

static const char *call_content_type(const struct http_call *call) {
        char *type = NULL;
        curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
        return str_or(type, "");
}

/* A call on its own connection proves nothing about the one that the other calls share. */
static void http_client_heard(const struct http_call *call) {
        if (!call->fresh)
                call->client->last_byte_ms = uv_now(call->client->loop);
}

static size_t http_client_on_header(char *p, size_t size, size_t n, void *u) {
        struct http_call *call = MAGIC_CAST(struct http_call, u, CALL_MAGIC);
        static const char name[] = "retry-after:";

        n *= size;
        if (call_silenced(call))
                return 0;
        http_client_heard(call);
        if (n >= sizeof name && strncasecmp(p, name, sizeof name - 1) == 0) {
                int64_t s;
                if (str_to_i64(str_trim((struct str){ p + sizeof name - 1, n - (sizeof name - 1) }), &s) &&
                    s >= 0)
                        call->retry_after_s = s > 3600 ? 3600 : (int)s;
        }
        if (n <= 2 && call->head && call_streams(call)) {
                TAKE(call->head)(call->u, call_content_type(call));
                if (call_silenced(call))
                        return 0;
        }
        return n;
}

/* A return value other than n ends the transfer. */
static size_t http_client_on_data(char *p, size_t size, size_t n, void *u) {
        struct http_call *call = MAGIC_CAST(struct http_call, u, CALL_MAGIC);

        n *= size;
        if (call_silenced(call))
                return 0;
        http_client_heard(call);
        if (call_streams(call)) {
                call->data(call->u, p, n);
                return call_silenced(call) ? 0 : n;
        }
        buf_add(&call->answer, p, n);
        return call->answer.failed ? 0 : n;
}

static void header_add(struct http_call *call, const char *name, const char *value) {
        char *line = xasprintf("%s: %s", name, value);
        struct curl_slist *l = curl_slist_append(call->headers, line);
        BUG_ON(!l);
        call->headers = l;
        wipe(line); /* it may contain the token */
}

static void set_blob(CURL *h, CURLoption option, char *pem) {
        if (!pem)
                return;
        struct curl_blob blob = { pem, strlen(pem), CURL_BLOB_NOCOPY };
        curl_easy_setopt(h, option, &blob);
}

static CURLcode on_ssl_ctx(CURL *easy, void *ctx, void *u) {
        http_tls_apply(u, ctx);
        return CURLE_OK;
}

/* libcurl lets calls share a connection only if these texts are equal. So calls with a new set do not use a
 * connection that was made with the old one. */
static void set_tls_options(const struct http_tls_set *t, CURL *h) {
        curl_easy_setopt(h, CURLOPT_SSL_SESSIONID_CACHE, 0L);
        if (t->ca_pem) {
                /* Only the cluster's authorities, not also the machine's. For newer versions of libcurl, NULL
                 * means their built-in defaults, so our store replaces whatever they load. */
                curl_easy_setopt(h, CURLOPT_CAINFO, NULL);
                curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
                set_blob(h, CURLOPT_CAINFO_BLOB, t->ca_pem);
                curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, on_ssl_ctx);
                curl_easy_setopt(h, CURLOPT_SSL_CTX_DATA, t);
        }
        set_blob(h, CURLOPT_SSLCERT_BLOB, t->cert_pem);
        set_blob(h, CURLOPT_SSLKEY_BLOB, t->key_pem);
}

static void set_connection_options(struct http_client *c, CURL *h) {
        curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        if (c->secure) /* with ALPN the handshake shows whether the connection can be shared; without TLS only
                          an answer does */
                curl_easy_setopt(h, CURLOPT_PIPEWAIT, 1L);
        curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L); /* the caller's encoded path must not be normalised */
        curl_easy_setopt(h, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER_BYTES);
        curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
        curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
        curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
        curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, http_client_open_socket);
        /* A thread that resolves a name is detached when its call ends: joining it would stop the loop for as
         * long as the name servers are silent. */
        curl_easy_setopt(h, CURLOPT_QUICK_EXIT, 1L);
        if (c->local)
                curl_easy_setopt(h, CURLOPT_PROXY, "");
        if (c->connect_to_list)
                curl_easy_setopt(h, CURLOPT_CONNECT_TO, c->connect_to_list);
}

static void set_call_options(struct http_call *call, const struct http_request *r) {
        CURL *h = call->easy;

        curl_easy_setopt(h, CURLOPT_PRIVATE, call);
        curl_easy_setopt(h, CURLOPT_ERRORBUFFER, call->reason);
        curl_easy_setopt(h, CURLOPT_URL, call->url);
        curl_easy_setopt(h, CURLOPT_HTTPHEADER, call->headers);
        curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, http_client_on_header);
        curl_easy_setopt(h, CURLOPT_HEADERDATA, call);
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, http_client_on_data);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, call);
        curl_easy_setopt(h, CURLOPT_BUFFERSIZE, (long)(r->large ? LARGE_BUFFER_BYTES : BUFFER_BYTES));
        curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
        /* Lists are JSON, which gzip reduces to a tenth. The events of a stream would wait until the
         * compressor has enough data. */
        if (!r->data)
                curl_easy_setopt(h, CURLOPT_ACCEPT_ENCODING, "gzip");
        curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, (long)r->fresh);
        if (call->body) {
                curl_easy_setopt(h, CURLOPT_POSTFIELDS, call->body);
                curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        }
        curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, r->method);
}

static void call_begin(struct http_call *call) {
        call->state = CALL_ACTIVE;
        CURLMcode r = curl_multi_add_handle(call->client->multi, call->easy);
        BUG_ON(r != CURLM_OK);
}

struct http_call *http_start(struct http_client *c, const struct http_request *r) {
        struct http_call *call = xnew(struct http_call);
        const char *token = c->token ? c->token(c->token_u) : NULL;

        BUG_ON(!r->done || !r->path || r->path[0] != '/' || c->guard.dead);
        call->magic = CALL_MAGIC;
        call->client = c;
        call->easy = curl_easy_init();
        BUG_ON(!call->easy);
        call->url = xasprintf("%s%s", c->base_url, r->path);
        call->body = r->body ? xstrndup(r->body, r->body_len) : NULL;
        call->answer = BUF_INIT(r->max_body ? r->max_body : MAX_BODY);
        call->started_ms = uv_now(c->loop);
        call->retry_after_s = -1;
        call->data = r->data;
        call->head = r->head;
        call->done = r->done;
        call->u = r->u;

        header_add(call, "Accept", r->accept ? r->accept : "application/json");
        header_add(call, "User-Agent", c->user_agent);
        if (r->body) {
                header_add(call, "Content-Type", r->content_type ? r->content_type : "application/json");
                header_add(call, "Expect", ""); /* no wait for "100 Continue" */
        }
        if (token) {
                char *bearer = xasprintf("Bearer %s", token);
                header_add(call, "Authorization", bearer);
                wipe(bearer);
        }
        set_connection_options(c, call->easy);
        if (c->tls) {
                call->tls = http_tls_current(c->tls);
                set_tls_options(call->tls, call->easy);
        }
        set_call_options(call, r);

        TAILQ_INSERT_TAIL(&c->calls, call, entry);
        call->fresh = r->fresh;
        if (!call->fresh && c->asked_ms <= c->last_byte_ms)
                c->asked_ms = call->started_ms;
        /* A connection that is about to be dropped takes no new calls: it may be the one whose socket
         * failed. */
        if (c->in_curl || c->reconnect) {
                call->state = CALL_WAITING;
                c->unsettled = true;
        } else {
                call_begin(call);
        }
        return call;
}

void http_cancel(struct http_call *call) {
        if (!call || call->state == CALL_DONE || call->state == CALL_CANCELLED)
                return;
        if (call->client->in_curl && call->state == CALL_ACTIVE) {
                call->state = CALL_CANCELLED;
                call->client->unsettled = true;
        } else {
                call_release(call);
        }
}

/* ---- the end of a call ---- */

/* OpenSSL's texts for the alert by which a server rejects a client certificate. */
static bool is_about_us(const char *reason) {
        return strstr(reason, "alert") && (strstr(reason, "certificate") || strstr(reason, "unknown ca"));
}

static void tls_failure(const struct http_call *call, CURLcode result, const char *reason, struct err *e) {
        long verify_result = 0;

        if (result == CURLE_PEER_FAILED_VERIFICATION) {
                curl_easy_getinfo(call->easy, CURLINFO_SSL_VERIFYRESULT, &verify_result);
                http_tls_explain(call->tls, reason, verify_result, e);
                e->code = (int)result;
        } else if (is_about_us(reason)) {
                err_set(e, ERR_RETRY, (int)result, "TLS: %s: the server %s", reason,
                        call->tls->cert_pem
                                ? "rejects the client certificate: renew it, or have it signed by an "
                                  "authority that the server trusts"
                                : "wants a client certificate");
        } else {
                err_set(e, ERR_RETRY, (int)result, "TLS: %s", reason);
        }
        /* An unnoticed change of the files may be the cause. */
        http_tls_check(call->client->tls);
}

/* libcurl's error, and whether it concerns certificates or the connection to the server. With TLS 1.3 the
 * server rejects a client certificate after the handshake, and libcurl reports a failed read. */
static void failure(const struct http_call *call, CURLcode result, struct err *e) {
        const char *reason = str_or(call->reason, curl_easy_strerror(result));

        if (call->tls && (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CONNECT_ERROR ||
                          result == CURLE_SSL_CERTPROBLEM || result == CURLE_SSL_CIPHER ||
                          (result == CURLE_RECV_ERROR && is_about_us(reason))))
                tls_failure(call, result, reason, e);
        else if (result == CURLE_COULDNT_RESOLVE_PROXY || result == CURLE_COULDNT_RESOLVE_HOST ||
                 result == CURLE_COULDNT_CONNECT || result == CURLE_OPERATION_TIMEDOUT ||
                 result == CURLE_GOT_NOTHING || result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR)
                err_set(e, ERR_RETRY, (int)result, "network: %s", reason);
        else
                err_set(e, ERR_RETRY, (int)result, "%s", reason);
}

static void http_client_call_finish(struct http_call *call, CURLcode result) {
        struct http_client *c = call->client;
        struct err e;
        struct http_response r = { .status = call_status(call), .retry_after_s = call->retry_after_s };

        if (call->answer.failed) {
                err_set(&e, ERR_INVALID, (int)result, "the answer is larger than %zu bytes",
                        call->answer.limit);
                r.transport = &e;
        } else if (call->state == CALL_FAILED) {
                if (call->poll_error)
                        err_set(&e, ERR_RETRY, -call->poll_error, "its socket cannot be watched: %s",
                                uv_strerror(call->poll_error));
                else
                        err_set(&e, ERR_RETRY, CURLE_OPERATION_TIMEDOUT,
                                "the server is silent, so its connection was dropped");
                r.transport = &e;
        } else if (result != CURLE_OK) {
                failure(call, result, &e);
                r.transport = &e;
        }
        r.body = buf_str(&call->answer);
        r.body_len = call->answer.n;

        if (call->state == CALL_ACTIVE)
                curl_multi_remove_handle(c->multi, call->easy);
        call->state = CALL_DONE;
        call->done(call->u, &r);
        call_release(call);
}

static void give_up_connection(struct http_client *c) {
        struct http_call *call;

        c->reconnect = false;
        TAILQ_FOREACH (call, &c->calls, entry) {
                if (call->state == CALL_CANCELLED)
                        curl_multi_remove_handle(c->multi, call->easy); /* released later */
                if (call->state == CALL_ACTIVE) {
                        curl_multi_remove_handle(c->multi, call->easy);
                        call->state = CALL_FAILED;
                        call->poll_error = c->poll_error;
                        c->unsettled = true;
                }
        }
        c->poll_error = 0;
        c->last_byte_ms = uv_now(c->loop);
        multi_close(c);
        multi_open(c);
}

/* For how long the server has owed an answer, to this call or to earlier ones, and sent nothing to any call
 * on the shared connection. */
static uint64_t silent_for(const struct http_call *call) {
        const struct http_client *c = call->client;
        return uv_now(c->loop) - (call->started_ms <= c->last_byte_ms ? c->last_byte_ms : c->asked_ms);
}

static void read_messages(struct http_client *c) {
        CURLMsg *m;
        int left;

        while (!c->guard.dead && (m = curl_multi_info_read(c->multi, &left))) {
                void *private;
                if (m->msg != CURLMSG_DONE)
                        continue;
                CURLcode result = m->data.result;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
                struct http_call *call = MAGIC_CAST(struct http_call, private, CALL_MAGIC);
                if (call->state == CALL_CANCELLED)
                        continue;
                if (result == CURLE_OPERATION_TIMEDOUT && !call->fresh && silent_for(call) >= c->silence_ms)
                        c->reconnect = true;
                http_client_call_finish(call, result);
        }
}

static struct http_call *next_unsettled(struct http_client *c) {
        struct http_call *call;
        TAILQ_FOREACH (call, &c->calls, entry)
                if (call->state != CALL_ACTIVE && call->state != CALL_DONE)
                        return call;
        return NULL;
}

/* Does what was not possible inside libcurl: reports ended calls, releases cancelled ones, starts new
 * ones. */
static void http_client_settle(struct http_client *c) {
        struct http_call *call;

        read_messages(c);
        if (c->reconnect && !c->guard.dead)
                give_up_connection(c);
        while (c->unsettled && !c->guard.dead) {
                if (!(call = next_unsettled(c)))
                        c->unsettled = false;
                else if (call->state == CALL_WAITING)
                        call_begin(call);
                else if (call->state == CALL_CANCELLED)
                        call_release(call);
                else
                        http_client_call_finish(call, CURLE_OPERATION_TIMEDOUT);
        }
}

void http_client_reconnect(struct http_client *c) {
        c->reconnect = true;
        loop_turn_start(&c->next_turn);
}

void http_give_up(struct http_call *call) {
        if (silent_for(call) >= call->client->silence_ms)
                http_client_reconnect(call->client);
        http_cancel(call);
}

/* ---- the client ---- */

/* For a certificate name that differs from the address: the URL carries the name, and the connection uses the
 * address. */
static int use_server_name(struct http_client *c, const char *name, struct err *e) {
        CURLU *u = curl_url();
        char *host = NULL, *port = NULL, *url = NULL;
        int r = -1;

        BUG_ON(!u);
        c->secure = str_starts(c->base_url, "https://");
        if ((!c->secure && !str_starts(c->base_url, "http://")) ||
            curl_url_set(u, CURLUPART_URL, c->base_url, 0) != CURLUE_OK ||
            curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
            curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
                err_set(e, ERR_INVALID, 0, "server address '%s' is not an http or https URL", c->base_url);
                goto out;
        }
        c->local = streq(host, "localhost") || str_starts(host, "127.") || streq(host, "[::1]");
        if (name) {
                if (curl_url_set(u, CURLUPART_HOST, name, 0) != CURLUE_OK ||
                    curl_url_get(u, CURLUPART_URL, &url, CURLU_NO_DEFAULT_PORT) != CURLUE_OK) {
                        err_set(e, ERR_INVALID, 0, "TLS server name '%s' is not a host name", name);
                        goto out;
                }
                _cleanup_(freep) char *rule = xasprintf("%s:%s:%s:%s", name, port, host, port);
                c->connect_to_list = curl_slist_append(NULL, rule);
                BUG_ON(!c->connect_to_list);
                free(c->base_url);
                c->base_url = xstrdup(url);
        }
        size_t n = strlen(c->base_url);
        while (n && c->base_url[n - 1] == '/')
                c->base_url[--n] = '\0';
        r = 0;
out:
        curl_free(host);
        curl_free(port);
        curl_free(url);
        curl_url_cleanup(u);
        return r;
}

static void free_options(struct http_client *c) {
        curl_slist_free_all(c->connect_to_list);
        free(c->base_url);
        free(c->user_agent);
        http_tls_free(c->tls);
}

int http_client_new(uv_loop_t *loop, const struct http_client_options *o, struct http_client **ret,
                    struct err *e) {
        struct http_client *c = xnew(struct http_client);

        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
                free(c);
                return err_set(e, ERR_INTERNAL, 0, "libcurl does not start");
        }
        c->magic = CLIENT_MAGIC;
        c->loop = loop;
        c->base_url = xstrdup(o->base_url);
        c->user_agent = xstrdup(str_or(o->user_agent, "compute-domains"));
        c->token = o->token;
        c->token_u = o->token_u;
        c->silence_ms = o->silence_ms ? o->silence_ms : SILENCE_MS;
        if (use_server_name(c, o->tls_server_name, e) < 0 ||
            (c->secure && http_tls_new(loop, &o->tls, &c->tls, e) < 0)) {
                free_options(c);
                free(c);
                return -1;
        }
        TAILQ_INIT(&c->calls);
        LIST_INIT(&c->sockets);
        loop_timer_init(&c->timer, loop, http_client_on_timer, c);
        loop_turn_init(&c->next_turn, loop, http_client_on_timer, c);
        multi_open(c);
        *ret = c;
        return 0;
}

static void teardown(struct http_client *c) {
        struct http_call *call;

        while ((call = TAILQ_FIRST(&c->calls)))
                call_release(call);
        multi_close(c);
        free_options(c);
        loop_timer_done(&c->timer);
        loop_turn_done(&c->next_turn);
        c->magic = 0;
        free(c);
}

void http_client_free(struct http_client *c) {
        if (c && guard_free(&c->guard))
                teardown(c);
}
