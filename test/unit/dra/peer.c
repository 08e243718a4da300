/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *ret) {
        struct peer *p = h->data;
        *ret = uv_buf_init(p->buffer, sizeof p->buffer);
}

static void on_read(uv_stream_t *h, ssize_t n, const uv_buf_t *b) {
        struct peer *p = h->data;
        if (n < 0) {
                peer_close(p);
                return;
        }
        assert_int_equal(h2_input(p->h2, b->base, (size_t)n), 0);
        peer_flush(p);
}

struct write {
        uv_write_t req;
        char bytes[];
};

static void on_written(uv_write_t *w, int status) {
        free(w->data);
}

void peer_flush(struct peer *p) {
        const uint8_t *bytes;
        size_t n;
        while ((n = h2_output(p->h2, &bytes)) > 0) {
                if (p->closed)
                        continue;
                struct write *w = xmalloc(sizeof *w + n);
                memcpy(w->bytes, bytes, n);
                w->req.data = w;
                uv_buf_t b = uv_buf_init(w->bytes, (unsigned)n);
                if (uv_write(&w->req, &p->h.stream, &b, 1, on_written) != 0)
                        free(w);
        }
}

void peer_close(struct peer *p) {
        if (p->closed)
                return;
        p->closed = true;
        uv_close(&p->h.handle, NULL);
}

static struct peer *peer_new(int fd, const struct sockaddr *addr, socklen_t n) {
        struct peer *p = xnew(struct peer);
        assert_true(fd >= 0);
        assert_int_equal(connect(fd, addr, n), 0);
        p->h2 = h2_new();
        return p;
}

static void peer_start(struct peer *p) {
        p->h.handle.data = p;
        uv_read_start(&p->h.stream, on_alloc, on_read);
}

struct peer *peer_unix(uv_loop_t *loop, const char *path) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        assert_true(strlen(path) < sizeof a.sun_path);
        memcpy(a.sun_path, path, strlen(path));
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct peer *p = peer_new(fd, (const struct sockaddr *)&a, sizeof a);
        uv_pipe_init(loop, &p->h.pipe, 0);
        assert_int_equal(uv_pipe_open(&p->h.pipe, fd), 0);
        peer_start(p);
        return p;
}

struct h2_call *peer_call(struct peer *p, const char *path, const void *message, size_t n,
                          const struct h2_options *o) {
        size_t total;
        _cleanup_(freep) uint8_t *m = h2_message(message, n, &total);
        struct h2_call *call = h2_call(p->h2, path, m, total, o);
        peer_flush(p);
        return call;
}

static void on_too_late(uv_timer_t *t) {
        fail_msg("nothing happened for 20 s");
}

static void run_until(uv_loop_t *loop, const bool *a, const bool *b) {
        uv_timer_t guard;
        uv_timer_init(loop, &guard);
        uv_timer_start(&guard, on_too_late, 20000, 0);
        while (!*a && !*b)
                uv_run(loop, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&guard, NULL);
        uv_run(loop, UV_RUN_NOWAIT);
}

void peer_wait(struct peer *p, const struct h2_call *call) {
        run_until(p->h.handle.loop, &call->closed, &p->closed);
}

void loop_until(uv_loop_t *loop, const bool *flag) {
        run_until(loop, flag, flag);
}

void loop_turns(uv_loop_t *loop, unsigned n) {
        while (n--)
                uv_run(loop, UV_RUN_NOWAIT);
}

void peer_free(struct peer *p, uv_loop_t *loop) {
        peer_close(p);
        loop_turns(loop, 2);
        h2_free(p->h2);
        free(p);
}
