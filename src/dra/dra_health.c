/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/dra_health.h"

#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/loop.h"
#include "base/stderr.h"
#include "dra/dra_messages.h"
#include "dra/grpc_server.h"
#include "drahealth.pb-c.h"

struct watcher {
        LIST_ENTRY(watcher) link;
        struct grpc_call *call;
};

struct dra_health {
        dra_health_fn *fn;
        void *u;
        struct loop_timer settle, repeat;
        LIST_HEAD(, watcher) watchers;
        struct buf sent; /* the last list, without the time */
};

static Drahealth__DeviceHealth *health_message(const struct dra_device_health *d, int64_t now_s,
                                               struct arena *a) {
        static const Drahealth__HealthStatus states[] = {
                [DRA_HEALTH_UNKNOWN] = DRAHEALTH__HEALTH_STATUS__UNKNOWN,
                [DRA_HEALTH_GOOD] = DRAHEALTH__HEALTH_STATUS__HEALTHY,
                [DRA_HEALTH_BAD] = DRAHEALTH__HEALTH_STATUS__UNHEALTHY,
        };
        Drahealth__DeviceIdentifier *id = arena_alloc(a, sizeof(*id));
        Drahealth__DeviceHealth *m = arena_alloc(a, sizeof(*m));
        drahealth__device_identifier__init(id);
        drahealth__device_health__init(m);
        id->pool_name = dra_messages_unconst(d->pool);
        id->device_name = dra_messages_unconst(d->device);
        m->device = id;
        m->health = states[d->state];
        m->last_updated_time = now_s;
        m->message = dra_messages_text(a, d->message, DRA_HEALTH_MESSAGE_MAX);
        return m;
}

void dra_health_render(const struct dra_health_list *l, int64_t now_s, struct arena *a, struct buf *out) {
        Drahealth__NodeWatchResourcesResponse m = DRAHEALTH__NODE_WATCH_RESOURCES_RESPONSE__INIT;
        m.n_devices = l->n;
        m.devices = arena_alloc(a, (l->n + 1) * sizeof(*m.devices));
        for (size_t i = 0; i < l->n; i++)
                m.devices[i] = health_message(&l->devices[i], now_s, a);
        size_t n = protobuf_c_message_get_packed_size(&m.base);
        uint8_t *packed = arena_alloc(a, n + 1);
        protobuf_c_message_pack(&m.base, packed);
        buf_add(out, packed, n);
}

/* Sends the present list to all streams. Without `always`: only if it has changed. */
static void send_list(struct dra_health *h, bool always) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        _cleanup_(buf_done) struct buf bare = BUF_INIT(SIZE_MAX), timed = BUF_INIT(SIZE_MAX);
        struct dra_health_list l = { 0 };
        struct watcher *w;
        if (LIST_EMPTY(&h->watchers))
                return;
        h->fn(h->u, a, &l);
        dra_health_render(&l, 0, a, &bare);
        if (!always &&
            (l.pending || (bare.n == h->sent.n && memcmp(buf_str(&bare), buf_str(&h->sent), bare.n) == 0)))
                return;
        dra_health_render(&l, (int64_t)time(NULL), a, &timed);
        LIST_FOREACH (w, &h->watchers, link)
                grpc_call_send(w->call, buf_str(&timed), timed.n);
        buf_clear(&h->sent);
        buf_add(&h->sent, bare.p, bare.n);
        loop_timer_start(&h->repeat, DRA_HEALTH_REPEAT_MS);
}

static void dra_health_on_settled(void *u) {
        send_list(u, false);
}

static void dra_health_on_repeat(void *u) {
        send_list(u, true);
}

static void dra_health_on_cancel(void *u, struct grpc_call *call) {
        struct watcher *w = u;
        LIST_REMOVE(w, link);
        free(w);
}

void dra_health_watch(struct dra_health *h, struct grpc_call *call) {
        struct watcher *w = xnew(struct watcher);
        w->call = call;
        LIST_INSERT_HEAD(&h->watchers, w, link);
        grpc_call_on_cancel(call, dra_health_on_cancel, w);
        send_list(h, true);
}

void dra_health_changed(struct dra_health *h) {
        if (!loop_timer_waits(&h->settle))
                loop_timer_start(&h->settle, DRA_HEALTH_SETTLE_MS);
}

struct dra_health *dra_health_new(uv_loop_t *loop, dra_health_fn *fn, void *u) {
        struct dra_health *h = xnew(struct dra_health);
        h->fn = fn;
        h->u = u;
        h->sent = BUF_INIT(SIZE_MAX);
        LIST_INIT(&h->watchers);
        loop_timer_init(&h->settle, loop, dra_health_on_settled, h);
        loop_timer_init(&h->repeat, loop, dra_health_on_repeat, h);
        return h;
}

void dra_health_free(struct dra_health *h) {
        if (!h)
                return;
        BUG_ON(!LIST_EMPTY(&h->watchers));
        loop_timer_done(&h->settle);
        loop_timer_done(&h->repeat);
        buf_done(&h->sent);
        free(h);
}
