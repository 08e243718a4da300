/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "imexd.h"

int source_add(struct imexd *d, struct source *s, int fd,
               void (*ready)(struct imexd *, struct source *, uint32_t), uint32_t events) {
        struct epoll_event event = { .events = events, .data.ptr = s };

        s->fd = fd;
        s->ready = ready;
        return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &event);
}

void source_close(struct source *s) {
        if (s->fd >= 0)
                close(s->fd);
        s->fd = -1;
}

static void watch(struct imexd *d, struct stream *s, uint32_t events) {
        struct epoll_event event = { .events = events, .data.ptr = &s->source };

        (void)epoll_ctl(d->epoll, EPOLL_CTL_MOD, s->source.fd, &event);
}

void stream_open(struct imexd *d, struct stream *s, int fd,
                 void (*ready)(struct imexd *, struct source *, uint32_t), uint32_t events) {
        s->n_in = 0;
        if (source_add(d, &s->source, fd, ready, events) < 0)
                source_close(&s->source);
}

void stream_close(struct stream *s) {
        source_close(&s->source);
        free(s->out);
        s->out = NULL;
        s->n_out = 0;
        s->n_in = 0;
}

void stream_flush(struct imexd *d, struct stream *s) {
        while (s->n_out > 0 && s->source.fd >= 0) {
                ssize_t n = send(s->source.fd, s->out, s->n_out, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN) {
                        watch(d, s, EPOLLIN | EPOLLOUT);
                        return;
                }
                if (n < 0) {
                        /* The reader notices and handles the broken connection. */
                        s->n_out = 0;
                        break;
                }
                s->n_out -= (size_t)n;
                memmove(s->out, s->out + n, s->n_out);
        }
        if (s->source.fd >= 0)
                watch(d, s, EPOLLIN);
}

void stream_write(struct imexd *d, struct stream *s, const char *format, ...) {
        char *text = NULL;
        va_list args;
        int n;

        va_start(args, format);
        n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0)
                abort();
        if (s->source.fd < 0 || s->n_out + (size_t)n > STREAM_MAX_OUT) {
                free(text);
                stream_close(s);
                return;
        }
        s->out = realloc(s->out, s->n_out + (size_t)n + 1);
        if (!s->out)
                abort();
        memcpy(s->out + s->n_out, text, (size_t)n);
        s->n_out += (size_t)n;
        free(text);
        stream_flush(d, s);
}

bool stream_fill(struct stream *s) {
        while (s->source.fd >= 0 && s->n_in < sizeof(s->in)) {
                ssize_t n = recv(s->source.fd, s->in + s->n_in, sizeof(s->in) - s->n_in, MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return true;
                if (n <= 0)
                        return false;
                s->n_in += (size_t)n;
        }
        return s->source.fd >= 0;
}

bool stream_line(struct stream *s, char line[static STREAM_LINE]) {
        char *end = memchr(s->in, '\n', s->n_in);
        size_t n;

        if (!end) {
                if (s->n_in == sizeof(s->in))
                        stream_close(s);
                return false;
        }
        n = (size_t)(end - s->in);
        memcpy(line, s->in, n);
        line[n] = '\0';
        s->n_in -= n + 1;
        memmove(s->in, end + 1, s->n_in);
        return true;
}
