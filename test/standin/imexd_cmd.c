/* SPDX-License-Identifier: Apache-2.0 */
/* The command service: it answers a line with a line.
 *     STATUS     -> READY
 *     SUBSCRIBE  -> the status now, and again at every change
 *     ROW        -> ROW <id> <status> <version> <host name> <letters of the outgoing connections, in the
 * order of the node list> */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "imexd.h"

static void answer_row(struct imexd *d, struct command *c) {
        char host[256] = "N/A";
        char *letters = malloc(d->nodes.n + 1);
        int64_t until;

        if (!letters)
                abort();
        gethostname(host, sizeof(host) - 1);
        for (size_t i = 0; i < d->nodes.n; i++)
                letters[i] = d->peers ? peer_letter(d->peers[i].link) : 'N';
        letters[d->nodes.n] = '\0';
        stream_write(d, &c->stream, "ROW %zd %s %s %s %s\n", d->own,
                     imexd_status_name(imexd_status(d, &until)), d->no_gpu ? "NO_GPU" : d->version, host,
                     letters);
        free(letters);
}

static void commanded(struct imexd *d, struct source *s, uint32_t events) {
        struct command *c = (struct command *)(void *)((char *)s - offsetof(struct command, stream.source));
        char line[STREAM_LINE];
        struct conf knobs;
        int64_t until;
        bool alive;

        if (events & EPOLLOUT)
                stream_flush(d, &c->stream);
        alive = stream_fill(&c->stream);
        while (c->stream.source.fd >= 0 && stream_line(&c->stream, line)) {
                conf_load_knobs(&knobs);
                c->hangs = c->hangs || conf_number(&knobs, "HANG_STATUS", 0);
                conf_done(&knobs);
                if (c->hangs)
                        continue;
                if (!strcmp(line, "STATUS")) {
                        stream_write(d, &c->stream, "%s\n", imexd_status_name(imexd_status(d, &until)));
                } else if (!strcmp(line, "SUBSCRIBE")) {
                        c->subscribed = true;
                        stream_write(d, &c->stream, "%s\n", imexd_status_name(imexd_status(d, &until)));
                } else if (!strcmp(line, "ROW")) {
                        answer_row(d, c);
                } else {
                        stream_close(&c->stream);
                }
        }
        if (!alive)
                stream_close(&c->stream);
}

static void accepted(struct imexd *d, struct source *s, uint32_t events) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct command *c;

        (void)events;
        if (fd < 0)
                return;
        c = calloc(1, sizeof(*c));
        if (!c)
                abort();
        c->next = d->commands;
        d->commands = c;
        stream_open(d, &c->stream, fd, commanded, EPOLLIN);
}

static void listen_at(struct imexd *d, struct source *s, const struct sockaddr_storage *at, socklen_t n,
                      const char *where) {
        int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;

        if (fd >= 0 && at->ss_family != AF_UNIX)
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (fd < 0 || bind(fd, (const struct sockaddr *)at, n) < 0 || listen(fd, 64) < 0 ||
            source_add(d, s, fd, accepted, EPOLLIN) < 0)
                imexd_fail(d, "Failed to start the command service at %s: %s", where, strerror(errno));
}

void command_listen(struct imexd *d) {
        const char *ip = conf_text(&d->config, "IMEX_CMD_BIND_INTERFACE_IP", "");
        const char *path = conf_text(&d->config, "IMEX_CMD_UNIX_DOMAIN_PATH", "");
        long port = conf_number(&d->config, "IMEX_CMD_PORT", 0);
        struct sockaddr_storage at;
        struct addr a = { .family = AF_INET };
        char where[128];
        socklen_t n;

        if (!conf_number(&d->config, "IMEX_CMD_ENABLED", 0))
                return;
        if (!port && !*path)
                imexd_fail(d, "IMEX_CMD_ENABLED needs IMEX_CMD_PORT or IMEX_CMD_UNIX_DOMAIN_PATH");
        if (port) {
                if (*ip && !addr_parse(ip, &a))
                        imexd_fail(d, "Invalid value '%.64s' for config option IMEX_CMD_BIND_INTERFACE_IP",
                                   ip);
                snprintf(where, sizeof(where), "%.64s:%ld", *ip ? ip : "*", port);
                n = addr_fill(&a, (uint16_t)port, d->interface, &at);
                listen_at(d, &d->command_tcp, &at, n, where);
        }
        if (*path) {
                struct sockaddr_un *local = (struct sockaddr_un *)(void *)&at;

                if (strlen(path) >= sizeof(local->sun_path))
                        imexd_fail(d, "IMEX_CMD_UNIX_DOMAIN_PATH is too long");
                at = (struct sockaddr_storage){ .ss_family = AF_UNIX };
                memcpy(local->sun_path, path, strlen(path) + 1);
                unlink(path);
                listen_at(d, &d->command_unix, &at, sizeof(*local), path);
        }
}

void command_notify(struct imexd *d) {
        int64_t until;
        enum status now = imexd_status(d, &until);

        if (now == d->shown)
                return;
        d->shown = now;
        for (struct command *c = d->commands; c; c = c->next)
                if (c->subscribed && c->stream.source.fd >= 0)
                        stream_write(d, &c->stream, "%s\n", imexd_status_name(now));
}

void command_sweep(struct imexd *d) {
        struct command **at = &d->commands;

        while (*at) {
                struct command *c = *at;

                if (c->stream.source.fd >= 0) {
                        at = &c->next;
                        continue;
                }
                *at = c->next;
                free(c);
        }
}
