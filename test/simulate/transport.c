/* SPDX-License-Identifier: Apache-2.0 */
#include "transport.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "faults.h"
#include "lying.h"
#include "replica.h"
#include "server.h"
#include "sim.h"

enum {
        TIMED_OUT = 28, /* libcurl's numbers; the programs know only that they are small */
        NO_CONNECTION = 7,
        CUT = 56,
        SILENCE_MS = 30000,
        BOOKMARK_MS = 60000,
        LAST_BOOKMARK_MS = 2000,
        MAX_BODY = 64 << 20,
        LISTS_WITHIN_MS = 65000, /* after the acceptance of a watch */
};

/* A selection of objects that a client has listed, and when it last had the answer. */
struct listed {
        LIST_ENTRY(listed) entry;
        int64_t ms;
        char selection[];
};

struct http_call {
        TAILQ_ENTRY(http_call) entry;
        struct http_client *client;
        struct asked asked;
        char *body;
        unsigned timeout_ms;
        http_data_fn *data;
        http_head_fn *head;
        http_done_fn *done;
        void *u;
        struct sim_event *next, *timeout, *bookmark, *end; /* its next events */
        struct watch *watch;                               /* set if it is an accepted watch */
        bool on_way;                                       /* `next` is its arrival */
        bool last_words;                                   /* the bookmark before its end was sent */
        int64_t sent_ms, lag_ms, headed_ms;
        int status, wait_s;
        struct buf answer;
        unsigned busy;
        bool dead;
};

struct http_client {
        TAILQ_ENTRY(http_client) entry;
        TAILQ_HEAD(calls, http_call) calls;
        unsigned program;
        int64_t clock_ahead_s; /* the clock of its program */
        char who[32];
        int64_t received_ms;
        LIST_HEAD(, listed) listed;
};

static TAILQ_HEAD(clients, http_client) clients = TAILQ_HEAD_INITIALIZER(clients);
static int64_t sent_ms;

int64_t transport_sent_ms(void) {
        return sent_ms;
}

/* ---- calls ---- */

static void call_free(struct http_call *c) {
        asked_done(&c->asked);
        watch_free(c->watch);
        buf_done(&c->answer);
        free(c->body);
        free(c);
}

/* Cancels its events. */
static void call_end(struct http_call *c) {
        if (c->dead)
                return;
        c->dead = true;
        sim_cancel(TAKE(c->next));
        sim_cancel(TAKE(c->timeout));
        sim_cancel(TAKE(c->bookmark));
        sim_cancel(TAKE(c->end));
        TAILQ_REMOVE(&c->client->calls, c, entry);
        if (!c->busy)
                call_free(c);
}

void http_cancel(struct http_call *call) {
        if (call)
                call_end(call);
}

static void call_leave(struct http_call *c) {
        if (--c->busy == 0 && c->dead)
                call_free(c);
}

static void call_done(struct http_call *c, int status, const char *body, size_t n,
                      const struct err *transport) {
        const struct http_response r = { .status = status,
                                         .retry_after_s = transport ? -1 : c->wait_s,
                                         .body = body,
                                         .body_len = n,
                                         .transport = transport };
        c->busy++;
        call_end(c);
        int64_t before = sim_clock_set(c->client->clock_ahead_s);
        c->done(c->u, &r);
        sim_clock_set(before);
        call_leave(c);
}

static void call_fail(struct http_call *c, int code, const char *what) {
        struct err e;
        err_set(&e, ERR_RETRY, code, "network: %s", what);
        call_done(c, 0, "", 0, &e);
}

/* Runs in a later turn. */
static void on_cut(void *u) {
        struct http_call *c = u;
        c->next = NULL;
        call_fail(c, CUT, "the connection was cut");
}

static void cut_later(struct http_call *c) {
        sim_cancel(c->next);
        c->next = sim_at(sim_now_ms(), on_cut, c);
}

void http_client_reconnect(struct http_client *client) {
        struct http_call *c;
        TAILQ_FOREACH (c, &client->calls, entry)
                cut_later(c);
}

void http_give_up(struct http_call *call) {
        struct http_client *client = call->client;
        http_cancel(call);
        if (sim_now_ms() - client->received_ms >= SILENCE_MS)
                http_client_reconnect(client);
}

void transport_cut(unsigned program) {
        struct http_client *client;
        TAILQ_FOREACH (client, &clients, entry)
                if (client->program == program)
                        http_client_reconnect(client);
}

static void on_timeout(void *u) {
        struct http_call *c = u;
        struct http_client *client = c->client;
        c->timeout = NULL;
        if (sim_now_ms() - client->received_ms >= SILENCE_MS)
                http_client_reconnect(client);
        call_fail(c, TIMED_OUT, "no answer in time");
}

/* ---- watches ---- */

/* Bytes come in pieces. False: the call has ended. */
static bool give(struct http_call *c, const struct buf *b) {
        size_t first = b->n > 1 && sim_chance(20) ? 1 + (size_t)sim_draw(b->n - 1) : b->n;
        c->client->received_ms = sim_now_ms();
        c->busy++;
        int64_t before = sim_clock_set(c->client->clock_ahead_s);
        if (b->n)
                c->data(c->u, b->p, first);
        if (!c->dead && first < b->n)
                c->data(c->u, b->p + first, b->n - first);
        sim_clock_set(before);
        bool over = c->dead;
        call_leave(c);
        return !over;
}

static int64_t lag_ms(const struct http_call *c) {
        return c->lag_ms + faults_lag_ms(c->client->program, c->asked.k);
}

static void on_flush(void *u);

static void flush_at(struct http_call *c, int64_t ms) {
        if (c->next)
                return;
        c->next = sim_at(ms, on_flush, c);
}

static void on_flush(void *u) {
        struct http_call *c = u;
        int64_t silent = faults_silent_until_ms(c->client->program), lag = lag_ms(c);
        struct buf b = BUF_INIT(MAX_BODY);
        c->next = NULL;
        if (silent) {
                flush_at(c, silent);
                return;
        }
        bool goes_on = watch_take(c->watch, sim_now_ms() - lag, &b);
        if (give(c, &b) && goes_on) {
                const struct change *all;
                size_t n = store_history(c->asked.k, &all);
                if (n && all[n - 1].ms > sim_now_ms() - lag)
                        flush_at(c,
                                 all[n - 1].ms + lag > sim_now_ms() ? all[n - 1].ms + lag : sim_now_ms() + 1);
        }
        buf_done(&b);
}

static void on_bookmark(void *u) {
        struct http_call *c = u;
        struct buf b = BUF_INIT(MAX_BODY);
        c->bookmark = sim_at(sim_now_ms() + BOOKMARK_MS, on_bookmark, c);
        /* With the version of the last change of the kind: a real API server may or may not know etcd's
         * progress. */
        if (!faults_silent_until_ms(c->client->program) &&
            watch_take(c->watch, sim_now_ms() - lag_ms(c), &b)) {
                watch_bookmark(c->watch, &b);
                give(c, &b);
        }
        buf_done(&b);
}

static void on_end(void *u) {
        struct http_call *c = u;
        int64_t silent = faults_silent_until_ms(c->client->program);
        c->end = NULL;
        if (silent) {
                c->end = sim_at(silent, on_end, c);
        } else if (!c->last_words) {
                struct buf b = BUF_INIT(MAX_BODY);
                c->last_words = true;
                c->end = sim_at(sim_now_ms() + LAST_BOOKMARK_MS, on_end, c);
                if (watch_take(c->watch, sim_now_ms() - lag_ms(c), &b))
                        watch_bookmark(c->watch, &b);
                give(c, &b);
                buf_done(&b);
        } else {
                call_done(c, 200, "", 0, NULL);
        }
}

void transport_changed(enum kind k) {
        struct http_client *client;
        struct http_call *c;
        TAILQ_FOREACH (client, &clients, entry)
                TAILQ_FOREACH (c, &client->calls, entry)
                        if (c->watch && c->asked.k == k)
                                flush_at(c, sim_now_ms() + lag_ms(c));
}

static void on_head(void *u) {
        struct http_call *c = u;
        int64_t timeout_ms = (c->asked.timeout_s ? c->asked.timeout_s : 300) * 1000 - LAST_BOOKMARK_MS;
        c->next = NULL;
        c->client->received_ms = c->headed_ms = sim_now_ms();
        c->watch = watch_new(&c->asked);
        c->lag_ms = sim_between(0, 8);
        c->bookmark = sim_at(sim_now_ms() + sim_between(1000, BOOKMARK_MS), on_bookmark, c);
        c->end = sim_at(sim_now_ms() + (timeout_ms > 0 ? timeout_ms : 0), on_end, c);
        flush_at(c, sim_now_ms() + lag_ms(c));
        if (!c->head)
                return;
        c->busy++;
        int64_t before = sim_clock_set(c->client->clock_ahead_s);
        c->head(c->u, "application/json");
        sim_clock_set(before);
        call_leave(c);
}

/* ---- lists by client ---- */

static struct listed *listed_of(const struct http_call *c) {
        const struct asked *q = &c->asked;
        struct listed *l;
        _cleanup_(freep) char *selection = xasprintf("%d %s %s %s", (int)q->k, str_or(q->ns, ""),
                                                     str_or(q->label, ""), str_or(q->field, ""));
        LIST_FOREACH (l, &c->client->listed, entry)
                if (streq(l->selection, selection))
                        return l;
        l = xcalloc(1, sizeof *l + strlen(selection) + 1);
        memcpy(l->selection, selection, strlen(selection) + 1);
        l->ms = -1;
        LIST_INSERT_HEAD(&c->client->listed, l, entry);
        return l;
}

/* failure: etcd is restored in the simulation -> every informer lists within a time limit [simulation] */
void transport_check_listed(int64_t since_ms) {
        struct http_client *client;
        struct http_call *c;
        TAILQ_FOREACH (client, &clients, entry)
                TAILQ_FOREACH (c, &client->calls, entry)
                        if (c->watch && sim_now_ms() - c->headed_ms > LISTS_WITHIN_MS &&
                            c->headed_ms > since_ms && listed_of(c)->ms < since_ms)
                                sim_broken("%s has not listed %s since etcd was restored", client->who,
                                           kinds[c->asked.k].plural);
}

/* ---- the network ---- */

static void on_answer(void *u) {
        struct http_call *c = u;
        int64_t silent = faults_silent_until_ms(c->client->program);
        c->next = NULL;
        if (silent) {
                c->next = sim_at(silent, on_answer, c);
                return;
        }
        c->client->received_ms = sim_now_ms();
        if (c->status == 200 && c->asked.known && !c->asked.name && streq(c->asked.method, "GET"))
                listed_of(c)->ms = sim_now_ms();
        call_done(c, c->status, buf_str(&c->answer), c->answer.n, NULL);
}

/* Usually milliseconds, and now and then much longer. */
static int64_t way_ms(void) {
        return sim_chance(2) ? sim_between(20, 400) : sim_between(0, 4);
}

static void on_refused(void *u) {
        struct http_call *c = u;
        c->next = NULL;
        call_fail(c, NO_CONNECTION, "cannot connect");
}

static int serve(struct http_call *c) {
        sent_ms = c->sent_ms;
        lying_take(c->client->who, &c->asked, &c->body);
        return server_answer(&c->asked, c->client->who, str_or(c->body, ""), &c->answer);
}

static void on_arrival(void *u) {
        struct http_call *c = u;
        const struct asked *q = &c->asked;
        struct fate f = faults_fate(c->client->program, q->known, q->k, q->watch, !streq(q->method, "GET"));
        int64_t back = sim_now_ms() + way_ms();
        c->next = NULL;
        c->on_way = false;
        c->wait_s = -1;
        switch (f.what) {
        case FATE_REFUSED:
                c->next = sim_at(back, on_refused, c);
                return;
        case FATE_SILENT:
                c->next = sim_at(f.until_ms + way_ms(), on_arrival, c);
                c->on_way = true;
                return;
        case FATE_PAGE:
                c->status = f.status;
                c->wait_s = f.wait_s;
                buf_addf(&c->answer, "<html><body>%d another server</body></html>\n", f.status);
                break;
        case FATE_STATUS:
                c->status = f.status;
                c->wait_s = f.wait_s;
                server_status(f.status, f.reason, q, &c->answer);
                break;
        case FATE_SERVED:
        case FATE_LOST:
                if (q->watch && !server_refuses_watch(q)) {
                        c->next = sim_at(back, f.what == FATE_LOST ? on_cut : on_head, c);
                        return;
                }
                c->status = serve(c);
                if (f.what == FATE_LOST) {
                        c->next = sim_at(back, on_cut, c);
                        return;
                }
                break;
        }
        c->next = sim_at(back, on_answer, c);
}

struct http_call *http_start(struct http_client *client, const struct http_request *r) {
        struct http_call *c = xnew(struct http_call);
        *c = (struct http_call){ .client = client,
                                 .body = r->body ? xstrndup(r->body, r->body_len) : NULL,
                                 .data = r->data,
                                 .head = r->head,
                                 .done = r->done,
                                 .u = r->u,
                                 .sent_ms = sim_now_ms(),
                                 .answer = BUF_INIT(MAX_BODY) };
        asked_init(&c->asked, r->method, r->path, r->content_type, r->accept);
        TAILQ_INSERT_TAIL(&client->calls, c, entry);
        c->next = sim_at(sim_now_ms() + way_ms(), on_arrival, c);
        c->on_way = true;
        if (r->timeout_ms)
                c->timeout = sim_at(sim_now_ms() + r->timeout_ms, on_timeout, c);
        return c;
}

/* ---- clients ---- */

int http_client_new(uv_loop_t *loop, const struct http_client_options *o, struct http_client **ret,
                    struct err *e) {
        struct http_client *c = xnew(struct http_client);
        const char *who = strrchr(o->base_url, '/') + 1;
        TAILQ_INIT(&c->calls);
        c->program = (unsigned)atoi(strrchr(who, '-') + 1) + (str_starts(who, "controller-") ? 0 : REPLICAS);
        c->clock_ahead_s = sim_clock();
        c->received_ms = sim_now_ms();
        snprintf(c->who, sizeof c->who, "%s", who);
        TAILQ_INSERT_TAIL(&clients, c, entry);
        *ret = c;
        return 0;
}

static void on_arrival_of_last(struct http_call *c) {
        const struct asked *q = &c->asked;
        if (faults_fate(c->client->program, q->known, q->k, false, true).what == FATE_SERVED)
                serve(c);
}

void http_client_free(struct http_client *client) {
        struct http_call *c;
        if (!client)
                return;
        while ((c = TAILQ_FIRST(&client->calls))) {
                /* A sent request may be executed after its sender has ended. */
                if (c->on_way && !streq(c->asked.method, "GET") && sim_chance(50))
                        on_arrival_of_last(c);
                call_end(c);
        }
        TAILQ_REMOVE(&clients, client, entry);
        for (struct listed *l; (l = LIST_FIRST(&client->listed));) {
                LIST_REMOVE(l, entry);
                free(l);
        }
        free(client);
}
