/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions between nodes. Every node connects to every node of its list, including itself, so a pair has two
 * connections. nvidia-imex-ctl shows the outgoing connection of A to B in row A, column B.
 *
 * A session consists of lines of text. The caller sends
 *     HELLO 1 <version> <hash of node list> <own id> <id it wants> <instance>
 * and the other side answers
 *     WELCOME <id> <version> <instance>     or     REFUSED <VERSION|MAP|ID> <why>
 * Either side sends "BYE <id>" before it ends for good. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "imexd.h"

enum { CONNECT_MS = 20000, SILENT_MS = 20000, HOLD_MS = 30000, MAX_INLETS = 4 * NODES_MAX };

static void outgoing(struct imexd *d, struct source *s, uint32_t events);
static void incoming(struct imexd *d, struct source *s, uint32_t events);

char peer_letter(enum link link) {
        static const char letters[] = { 'I', 'N', 'R', 'D', 'V', 'M', 'C' };

        return letters[link];
}

static const char *text_of(const struct imexd *d, size_t id) {
        return d->nodes.v[id].text;
}

/* Keep-alive: a dead host must be noticed without traffic. */
static void tune(int fd) {
        const int on = 1, idle = 10, every = 5, times = 2, unacked_ms = 20000;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
}

/* ---- outgoing ---- */

static void retry_later(struct peer *p) {
        static const int64_t seconds[] = { 15, 31, 62, 125 };
        const size_t last = sizeof(seconds) / sizeof(*seconds) - 1;
        struct conf knobs;
        long fixed;

        conf_load_knobs(&knobs);
        fixed = conf_number(&knobs, "RECONNECT_MS", 0);
        conf_done(&knobs);
        p->retry_at =
                imexd_now() + (fixed > 0 ? fixed : 1000 * seconds[p->failures < last ? p->failures : last]);
        p->failures++;
}

static void hang_up(struct peer *p) {
        stream_close(&p->stream);
        p->phase = PEER_IDLE;
        p->timeout_at = 0;
        p->retry_at = 0;
}

static void failed(struct imexd *d, struct peer *p, const char *why) {
        size_t id = (size_t)(p - d->peers);
        bool was_up = p->phase == PEER_UP;

        log_line(was_up ? LOG_ERROR : LOG_VERBOSE, "%s to node %zu - %s: %s",
                 was_up ? "Connection lost" : "Failed to connect", id, text_of(d, id), why);
        hang_up(p);
        if (was_up) {
                p->failures = 0;
                p->link = LINK_RECOVERING;
                if (d->grace_time >= 0)
                        p->grace_at = imexd_now() + 1000 * d->grace_time;
        }
        retry_later(p);
}

static void dial(struct imexd *d, struct peer *p) {
        size_t id = (size_t)(p - d->peers);
        const struct node *node = &d->nodes.v[id];
        struct sockaddr_storage to, from;
        socklen_t n_to;
        int fd;

        hang_up(p);
        if (p->blocked || d->status == STATUS_SHUTTING_DOWN)
                return;
        p->attempts++;
        if (p->failures > 0)
                log_line(LOG_INFO, "Attempting connection for target node %zu - %s:%u, attempt #%u", id,
                         node->text, d->server_port, p->attempts);
        if (node->n_addrs == 0) {
                failed(d, p, "unknown host");
                return;
        }
        p->addr = node->addrs[p->failures % node->n_addrs];
        n_to = addr_fill(&p->addr, d->server_port, d->interface, &to);
        fd = socket(p->addr.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
                failed(d, p, strerror(errno));
                return;
        }
        tune(fd);
        /* The other side identifies this node by its address, so the connection must come from it. */
        if (d->own_addr.family == p->addr.family)
                (void)bind(fd, (struct sockaddr *)&from, addr_fill(&d->own_addr, 0, d->interface, &from));
        if (connect(fd, (struct sockaddr *)&to, n_to) < 0 && errno != EINPROGRESS) {
                int error = errno;

                close(fd);
                failed(d, p, strerror(error));
                return;
        }
        p->phase = PEER_CONNECTING;
        p->timeout_at = imexd_now() + CONNECT_MS;
        stream_open(d, &p->stream, fd, outgoing, EPOLLIN | EPOLLOUT);
}

static void disable(struct imexd *d, size_t id, enum link link) {
        struct peer *p = &d->peers[id];

        if (p->link != link)
                log_line(LOG_ERROR, "%s mismatch with node %zu - %s, communication disabled",
                         link == LINK_MAP_MISMATCH ? "Node map" : "Version", id, text_of(d, id));
        hang_up(p);
        p->grace_at = 0;
        p->link = link;
        p->blocked = p->blocked || link == LINK_MAP_MISMATCH;
        for (struct inlet *in = d->inlets; p->blocked && in; in = in->next)
                if (in->phase != INLET_SILENT && in->id == id)
                        stream_close(&in->stream);
}

static void welcomed(struct imexd *d, struct peer *p, const char *line) {
        size_t id = (size_t)(p - d->peers), theirs;
        uint64_t instance;
        char version[64], shown[INET6_ADDRSTRLEN];

        if (sscanf(line, "WELCOME %zu %63s %" SCNx64, &theirs, version, &instance) != 3 || theirs != id) {
                failed(d, p, "bad answer");
                return;
        }
        if (p->instance != 0 && p->instance != instance)
                log_line(LOG_INFO,
                         "Node %zu - %s is a new instance, cleaning up what the old one had imported", id,
                         text_of(d, id));
        p->instance = instance;
        p->phase = PEER_UP;
        p->link = LINK_CONNECTED;
        p->failures = 0;
        p->timeout_at = p->grace_at = 0;
        p->times_connected++;
        if (d->nodes.v[id].literal)
                log_line(LOG_INFO,
                         "Connection established to node %zu with ip address %s. Number of times connected: "
                         "%u",
                         id, addr_show(&p->addr, shown), p->times_connected);
        else
                log_line(LOG_INFO,
                         "Connection established to node %zu with address %s. Number of times connected: %u",
                         id, text_of(d, id), p->times_connected);
        imexd_progress(d);
}

static void refused(struct imexd *d, struct peer *p, const char *line) {
        size_t id = (size_t)(p - d->peers);

        if (!strncmp(line, "REFUSED VERSION", 15)) {
                disable(d, id, LINK_VERSION_MISMATCH);
        } else if (!strncmp(line, "REFUSED MAP", 11)) {
                disable(d, id, LINK_MAP_MISMATCH);
        } else {
                log_line(LOG_ERROR, "Node %zu - %s refused the connection: %s", id, text_of(d, id),
                         line + strlen("REFUSED "));
                hang_up(p);
                p->link = LINK_INVALID;
                retry_later(p);
        }
}

static void left(struct imexd *d, size_t id) {
        struct peer *p = &d->peers[id];

        /* The peer sends BYE on both connections of the pair; the second one has no effect. */
        if (p->link == LINK_DISCONNECTED && p->phase == PEER_IDLE)
                return;
        log_line(LOG_INFO, "Received notification of shutdown from node %zu - %s", id, text_of(d, id));
        log_line(LOG_ERROR, "Node disconnect event detected for node %zu with address %s", id,
                 text_of(d, id));
        hang_up(p);
        p->grace_at = 0;
        p->failures = 0;
        if (p->times_connected > 0 && !p->blocked)
                p->link = LINK_DISCONNECTED;
        persist_importer(d, id, false);
        retry_later(p);
}

static void outgoing(struct imexd *d, struct source *s, uint32_t events) {
        struct peer *p = (struct peer *)(void *)((char *)s - offsetof(struct peer, stream.source));
        char line[STREAM_LINE];
        bool alive;

        if (p->phase == PEER_CONNECTING) {
                struct sockaddr_storage who;
                socklen_t n_who = sizeof(who), n_error = sizeof(int);
                int error = 0;

                getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &n_error);
                if (error) {
                        failed(d, p, strerror(error));
                        return;
                }
                /* An event that was fetched for this peer's socket earlier in the same turn. */
                if (getpeername(s->fd, (struct sockaddr *)&who, &n_who) < 0)
                        return;
                p->phase = PEER_GREETING;
                p->timeout_at = imexd_now() + HOLD_MS + CONNECT_MS;
                stream_write(d, &p->stream, "HELLO 1 %s %" PRIx64 " %zd %zd %" PRIx64 "\n", d->version,
                             d->nodes.hash, d->own, p - d->peers, d->instance);
                return;
        }
        if (events & EPOLLOUT)
                stream_flush(d, &p->stream);
        alive = stream_fill(&p->stream);
        while (p->stream.source.fd >= 0 && stream_line(&p->stream, line)) {
                if (p->phase == PEER_GREETING && !strncmp(line, "WELCOME ", 8))
                        welcomed(d, p, line);
                else if (p->phase == PEER_GREETING && !strncmp(line, "REFUSED ", 8))
                        refused(d, p, line);
                else if (p->phase == PEER_UP && !strncmp(line, "BYE ", 4))
                        left(d, (size_t)(p - d->peers));
                else
                        failed(d, p, "bad message");
        }
        if (p->phase != PEER_IDLE && (!alive || p->stream.source.fd < 0))
                failed(d, p, "closed by the other side");
}

/* ---- incoming ---- */

static void drop(struct inlet *in) {
        stream_close(&in->stream);
}

static void refuse(struct imexd *d, struct inlet *in, const char *code, const char *why) {
        char shown[INET6_ADDRSTRLEN];

        log_line(LOG_ERROR, "Refused connection from %s: %s", addr_show(&in->addr, shown), why);
        stream_write(d, &in->stream, "REFUSED %s %s\n", code, why);
        drop(in);
}

static void admit(struct imexd *d, struct inlet *in) {
        struct peer *p = &d->peers[in->id];

        for (struct inlet *other = d->inlets; other; other = other->next) {
                if (other == in || other->phase != INLET_UP || other->id != in->id ||
                    other->stream.source.fd < 0)
                        continue;
                if (other->instance != in->instance)
                        log_line(LOG_INFO, "Node %zu - %s came back as a new instance", in->id,
                                 text_of(d, in->id));
                drop(other);
        }
        in->phase = INLET_UP;
        in->deadline = 0;
        stream_write(d, &in->stream, "WELCOME %zd %s %" PRIx64 "\n", d->own, d->version, d->instance);
        log_line(LOG_VERBOSE, "Node %zu - %s connected to this node", in->id, text_of(d, in->id));
        if (in->id != (size_t)d->own)
                persist_importer(d, in->id, true);
        if (p->link == LINK_VERSION_MISMATCH) {
                /* The peer must have restarted, and now has the same list. */
                p->link = LINK_NEVER_CONNECTED;
                dial(d, p);
        }
        imexd_progress(d);
}

static bool connected_already(const struct imexd *d, const struct inlet *in) {
        for (const struct inlet *other = d->inlets; other; other = other->next)
                if (other != in && other->phase == INLET_UP && other->id == in->id &&
                    other->stream.source.fd >= 0 && other->instance != in->instance)
                        return true;
        return false;
}

static void greeted(struct imexd *d, struct inlet *in, const char *line) {
        char version[64], why[200], shown[INET6_ADDRSTRLEN];
        uint64_t hash, instance;
        size_t from, to;

        if (sscanf(line, "HELLO 1 %63s %" SCNx64 " %zu %zu %" SCNx64, version, &hash, &from, &to,
                   &instance) != 5) {
                refuse(d, in, "ID", "not an IMEX peer");
                return;
        }
        if (strcmp(version, d->version) != 0) {
                if (hash == d->nodes.hash && from < d->nodes.n)
                        disable(d, from, LINK_VERSION_MISMATCH);
                snprintf(why, sizeof(why), "version %s differs from %s", version, d->version);
                refuse(d, in, "VERSION", why);
                return;
        }
        if (hash != d->nodes.hash) {
                /* With different lists an id has no meaning; only the address identifies the peer. */
                for (size_t i = 0; i < d->nodes.n; i++)
                        if (i != (size_t)d->own && node_has(&d->nodes.v[i], &in->addr))
                                disable(d, i, LINK_MAP_MISMATCH);
                refuse(d, in, "MAP", "Node map mismatch");
                return;
        }
        if (from >= d->nodes.n || to != (size_t)d->own) {
                snprintf(why, sizeof(why), "node %zu looks for node %zu, but this is node %zd", from, to,
                         d->own);
                refuse(d, in, "ID", why);
                return;
        }
        if (d->peers[from].blocked) {
                refuse(d, in, "MAP", "Node map mismatch before, communication is disabled");
                return;
        }
        if (d->status == STATUS_SHUTTING_DOWN) {
                drop(in);
                return;
        }
        in->id = from;
        in->instance = instance;
        if (from == (size_t)d->own) {
                if (instance != d->instance)
                        refuse(d, in, "ID", "it claims the id of this node");
                else
                        admit(d, in);
                return;
        }
        if (node_has(&d->nodes.v[from], &in->addr)) {
                admit(d, in);
                return;
        }
        if (connected_already(d, in)) {
                snprintf(why, sizeof(why), "node %zu is already connected from another address", from);
                refuse(d, in, "ID", why);
                return;
        }
        /* It may be new, and our own hosts file not updated yet; the next name resolution decides. */
        log_line(LOG_WARNING,
                 "Node %zu - %s connects from %s, which is not its address here. Waiting for SIGUSR1", from,
                 text_of(d, from), addr_show(&in->addr, shown));
        in->phase = INLET_HELD;
        in->deadline = imexd_now() + HOLD_MS;
}

static void incoming(struct imexd *d, struct source *s, uint32_t events) {
        struct inlet *in = (struct inlet *)(void *)((char *)s - offsetof(struct inlet, stream.source));
        char line[STREAM_LINE];
        bool alive;

        if (events & EPOLLOUT)
                stream_flush(d, &in->stream);
        alive = stream_fill(&in->stream);
        while (in->stream.source.fd >= 0 && stream_line(&in->stream, line)) {
                if (in->phase == INLET_SILENT) {
                        greeted(d, in, line);
                } else if (in->phase == INLET_UP && !strncmp(line, "BYE ", 4)) {
                        left(d, in->id);
                        drop(in);
                } else {
                        drop(in);
                }
        }
        if (!alive)
                drop(in);
}

static void accepted(struct imexd *d, struct source *s, uint32_t events) {
        struct sockaddr_storage from;
        socklen_t n = sizeof(from);
        struct inlet *in;
        size_t count = 0;
        int fd = accept4(s->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

        (void)events;
        if (fd < 0)
                return;
        for (in = d->inlets; in; in = in->next)
                count++;
        in = count < MAX_INLETS ? calloc(1, sizeof(*in)) : NULL;
        if (!in) {
                close(fd);
                return;
        }
        tune(fd);
        in->addr = addr_of(&from);
        in->deadline = imexd_now() + SILENT_MS;
        in->next = d->inlets;
        d->inlets = in;
        stream_open(d, &in->stream, fd, incoming, EPOLLIN);
}

/* ---- both ---- */

void peer_listen(struct imexd *d) {
        struct sockaddr_storage at;
        socklen_t n = addr_fill(&d->own_addr, d->server_port, d->interface, &at);
        const int on = 1;
        int fd = socket(d->own_addr.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd >= 0)
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (fd < 0 || bind(fd, (struct sockaddr *)&at, n) < 0 || listen(fd, 256) < 0 ||
            source_add(d, &d->server, fd, accepted, EPOLLIN) < 0)
                imexd_fail(d, "Failed to start the server at port %u: %s", d->server_port, strerror(errno));
}

void peer_start_all(struct imexd *d) {
        /* The rest of the list is still being resolved; peer_resolved() connects to it. */
        for (size_t i = 0; i <= (size_t)d->own; i++)
                dial(d, &d->peers[i]);
}

void peer_restart_all(struct imexd *d) {
        for (size_t i = 0; d->own >= 0 && i < d->nodes.n; i++) {
                struct peer *p = &d->peers[i];

                hang_up(p);
                p->failures = 0;
                if (p->link == LINK_CONNECTED)
                        p->link = LINK_RECOVERING;
        }
        resolve_all(d);
}

void peer_resolved(struct imexd *d, size_t id) {
        struct node *node = &d->nodes.v[id];

        if (d->own < 0) {
                imexd_resolved_own(d, id);
                return;
        }
        if (id == (size_t)d->own && !node_has(node, &d->own_addr))
                log_line(LOG_ERROR,
                         "Node %zu - %s is this node, but the name leads elsewhere now. Other nodes will not "
                         "accept it",
                         id, node->text);
        if (d->peers[id].phase == PEER_IDLE && d->peers[id].retry_at == 0)
                dial(d, &d->peers[id]);
        for (struct inlet *in = d->inlets; in; in = in->next) {
                if (in->stream.source.fd < 0 || in->phase == INLET_SILENT || in->id != id ||
                    id == (size_t)d->own)
                        continue;
                if (in->phase == INLET_HELD && node_has(node, &in->addr)) {
                        admit(d, in);
                } else if (in->phase == INLET_UP && node->n_addrs > 0 && !node_has(node, &in->addr)) {
                        log_line(LOG_ERROR,
                                 "Node %zu - %s has moved to another address, dropping its old connection",
                                 id, node->text);
                        drop(in);
                }
        }
}

void peer_say_goodbye(struct imexd *d) {
        for (size_t i = 0; d->peers && i < d->nodes.n; i++)
                if (d->peers[i].phase == PEER_UP)
                        stream_write(d, &d->peers[i].stream, "BYE %zd\n", d->own);
        for (struct inlet *in = d->inlets; in; in = in->next)
                if (in->phase == INLET_UP && in->stream.source.fd >= 0)
                        stream_write(d, &in->stream, "BYE %zd\n", d->own);
}

static bool due(int64_t at, int64_t now) {
        return at != 0 && at <= now;
}

static void retry(struct imexd *d, struct peer *p) {
        size_t id = (size_t)(p - d->peers);
        struct conf knobs;
        bool look_up;

        conf_load_knobs(&knobs);
        look_up = conf_number(&knobs, "RERESOLVE", 0) && !d->nodes.v[id].literal;
        conf_done(&knobs);
        p->retry_at = 0;
        if (look_up)
                resolve_one(d, id);
        else
                dial(d, p);
}

void peer_timers(struct imexd *d, int64_t now) {
        for (size_t i = 0; d->own >= 0 && i < d->nodes.n; i++) {
                struct peer *p = &d->peers[i];

                if (due(p->grace_at, now)) {
                        p->grace_at = 0;
                        p->link = LINK_DISCONNECTED;
                        log_line(LOG_ERROR, "Node disconnect event detected for node %zu with address %s", i,
                                 text_of(d, i));
                        persist_importer(d, i, false);
                }
                if (due(p->timeout_at, now))
                        failed(d, p, "timed out");
                if (due(p->retry_at, now))
                        retry(d, p);
        }
        for (struct inlet *in = d->inlets; in; in = in->next) {
                char why[100];

                if (in->stream.source.fd < 0 || !due(in->deadline, now))
                        continue;
                snprintf(why, sizeof(why), "node %zu does not have this address", in->id);
                if (in->phase == INLET_HELD)
                        refuse(d, in, "ID", why);
                else
                        drop(in);
        }
}

static void earliest(int64_t *next, int64_t at) {
        if (at != 0 && (*next == 0 || at < *next))
                *next = at;
}

int64_t peer_next_timer(const struct imexd *d) {
        int64_t next = 0;

        for (size_t i = 0; d->own >= 0 && i < d->nodes.n; i++) {
                earliest(&next, d->peers[i].grace_at);
                earliest(&next, d->peers[i].timeout_at);
                earliest(&next, d->peers[i].retry_at);
        }
        for (const struct inlet *in = d->inlets; in; in = in->next)
                if (in->stream.source.fd >= 0)
                        earliest(&next, in->deadline);
        return next;
}

void peer_sweep(struct imexd *d) {
        struct inlet **at = &d->inlets;

        while (*at) {
                struct inlet *in = *at;

                if (in->stream.source.fd >= 0) {
                        at = &in->next;
                        continue;
                }
                *at = in->next;
                free(in);
        }
}
