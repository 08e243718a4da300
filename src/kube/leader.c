/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/leader.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/stderr.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/backoff.h"
#include "kube/kube_informer.h"

enum { RELEASE_MS = 2000, BODY_MAX = 4 << 10, TIME_MAX = 32 };

struct lease {
        struct kube_object o;
        const char *holder, *acquired, *renewed;
        int64_t duration_s, transitions;
};

static const struct jd_field f_lease[] = {
        JD_OBJ(struct lease, "metadata", o.meta, kube_f_meta),
        JD_STR(struct lease, "spec>holderIdentity", holder),
        JD_STR(struct lease, "spec>acquireTime", acquired),
        JD_STR(struct lease, "spec>renewTime", renewed),
        JD_INT(struct lease, "spec>leaseDurationSeconds", duration_s),
        JD_INT(struct lease, "spec>leaseTransitions", transitions),
        JD_END,
};

struct leader {
        struct leader_options o;
        struct arena *arena; /* contains the object and its strings */
        uv_loop_t *loop;
        struct loop_timer timer;
        struct kube_informer *informer;
        struct kube_call *call; /* one request at a time: a write, or the read after a conflict */
        bool leads, ended;      /* ended: lost or released, nothing more is done */
        bool gives_back;        /* the write in flight releases the Lease instead of renewing it */
        bool unanswered;        /* the last write got no answer: its connection may be dead */
        char *observed_rv;
        uint64_t observed_ms; /* when we first saw that version, by our own clock: clocks of other machines do
                                 not count */
        uint64_t called_ms, renewed_ms, retry_at_ms;
        char written[TIME_MAX];     /* renewTime of the last write, sent at called_ms; "": none */
        char unknown[TIME_MAX];     /* renewTime of the last write that may have arrived although it
                                       failed; "": none */
        uint64_t unknown_called_ms; /* when it was sent */
        uint64_t read_from; /* the version known when the read in flight was sent */
        char *reported;     /* the identity last reported to `observed` */
        bool releasing;
        uint64_t release_until_ms;
        void (*released)(void *u);
        void *released_u;
        struct guard guard;
};

static void evaluate(struct leader *l);
static void leader_destroy(struct leader *l);

static void leader_leave(struct leader *l) {
        if (guard_leave(&l->guard))
                leader_destroy(l);
}

static const struct lease *current(struct leader *l) {
        return (const struct lease *)(const void *)kube_informer_get(l->informer, l->o.ns, l->o.name);
}

static bool leader_is_ours(const struct leader *l, const struct lease *lease) {
        return lease && streq(lease->holder, l->o.identity);
}

/* Its holder is another candidate that may be alive. */
static bool leader_is_taken(const struct leader *l, const struct lease *lease) {
        return lease && lease->holder && *lease->holder && !leader_is_ours(l, lease) &&
               !(l->o.earlier && str_starts(lease->holder, l->o.earlier));
}

/* ---- requests ---- */

/* One short attempt: evaluate() decides whether another one is useful. */
static void request(struct leader *l, enum kube_verb verb, struct str body, kube_done_fn *done) {
        struct kube_request r = {
                .verb = verb,
                .lane = KUBE_LANE_URGENT,
                .res = &kube_leases,
                .ns = l->o.ns,
                .name = l->o.name,
                .body = body,
                .timeout_ms = l->o.renew_deadline_ms / 2,
                .attempts = 1,
                .fresh = l->unanswered,
                .done = done,
                .u = l,
        };
        l->call = kube_start(l->o.client, &r);
}

/* Rounded up: a shorter Lease would end while its holder still leads. */
static int64_t duration_s(const struct leader *l) {
        return (l->o.duration_ms + 999) / 1000;
}

static uint64_t version_in(yyjson_val *lease) {
        return kube_object_version(
                yyjson_get_str(yyjson_obj_get(yyjson_obj_get(lease, "metadata"), "resourceVersion")));
}

static void leader_on_read(void *u, yyjson_val *obj, const struct err *e) {
        struct leader *l = u;

        guard_enter(&l->guard);
        l->call = NULL;
        if (e ? e->kind == ERR_NOT_FOUND : version_in(obj) < l->read_from)
                kube_informer_relist(l->informer);
        if (!e)
                kube_informer_answer(l->informer, obj);
        evaluate(l); /* with another version than before, it may write at once */
        leader_leave(l);
}

static void leader_on_written(void *u, yyjson_val *obj, const struct err *e) {
        struct leader *l = u;

        guard_enter(&l->guard);
        l->call = NULL;
        if (e) {
                if (e->kind == ERR_RETRY) {
                        memcpy(l->unknown, l->written, sizeof l->unknown);
                        l->unknown_called_ms = l->called_ms;
                }
                log_v(2, "lease was not written", kv_str("lease", l->o.name), kv_err(e));
                l->retry_at_ms = l->called_ms + backoff_spread(l->o.retry_ms);
                l->unanswered = kube_unreachable(e);
                if (e->kind == ERR_CONFLICT || e->kind == ERR_NOT_FOUND) {
                        /* Another writer has written since the version that we know. The watch reports it,
                         * but it may be interrupted, or wait for versions that a restored server does not
                         * have yet. */
                        const struct lease *lease = current(l);
                        l->read_from = lease ? kube_object_version(lease->o.meta.rv) : 0;
                        request(l, KUBE_GET, (struct str){ NULL, 0 }, leader_on_read);
                }
        } else {
                l->unanswered = false;
                l->renewed_ms = l->called_ms;
                kube_informer_answer(l->informer, obj);
                if (l->gives_back) {
                        l->leads = false;
                } else if (!l->leads) {
                        l->leads = true;
                        if (!l->releasing)
                                l->o.started(l->o.u);
                }
        }
        evaluate(l);
        leader_leave(l);
}

static void render_time(int64_t us, char out[static TIME_MAX]) {
        _cleanup_(buf_done) struct buf quoted = BUF_INIT(TIME_MAX + 2);
        struct jw w = JW(&quoted);
        jw_time_micro(&w, NULL, us);
        snprintf(out, TIME_MAX, "%.*s", (int)(quoted.n - 2), quoted.p + 1);
}

/* Writes the Lease, to acquire, renew or release it. `lease` is the version that it replaces, NULL when there
 * is none. */
static void write_lease(struct leader *l, const struct lease *lease, bool give_back) {
        struct buf b = BUF_INIT(BODY_MAX);
        struct jw w = JW(&b);
        bool keeps = leader_is_ours(l, lease) && !give_back;
        int64_t transitions = lease ? lease->transitions + (leader_is_ours(l, lease) ? 0 : 1) : 0,
                now = clock_wall_ns() / 1000;

        jw_obj(&w, NULL);
        jw_str(&w, "apiVersion", "coordination.k8s.io/v1");
        jw_str(&w, "kind", "Lease");
        jw_obj(&w, "metadata");
        jw_str(&w, "namespace", l->o.ns);
        jw_str(&w, "name", l->o.name);
        if (lease)
                jw_str(&w, "resourceVersion", lease->o.meta.rv);
        jw_end_obj(&w);
        jw_obj(&w, "spec");
        jw_str(&w, "holderIdentity", give_back ? "" : l->o.identity);
        jw_int(&w, "leaseDurationSeconds", give_back ? 1 : duration_s(l));
        if (keeps && lease->acquired)
                jw_str(&w, "acquireTime", lease->acquired);
        else
                jw_time_micro(&w, "acquireTime", now);
        render_time(now, l->written);
        jw_str(&w, "renewTime", l->written);
        jw_int(&w, "leaseTransitions", transitions);
        jw_end_obj(&w);
        jw_end_obj(&w);

        l->called_ms = loop_now_ms(l->loop);
        l->gives_back = give_back;
        request(l, lease ? KUBE_UPDATE : KUBE_CREATE, (struct str){ b.p, b.n }, leader_on_written);
        buf_done(&b);
}

/* ---- the rules ---- */

static void end_release(struct leader *l) {
        l->ended = true;
        kube_cancel(TAKE(l->call));
        loop_timer_stop(&l->timer);
        l->released(l->released_u);
}

static void evaluate_release(struct leader *l, const struct lease *lease, uint64_t now) {
        if (now >= l->release_until_ms || (!l->call && (!l->leads || !leader_is_ours(l, lease)))) {
                end_release(l);
                return;
        }
        loop_timer_at(&l->timer, l->release_until_ms);
        if (!l->call && now >= l->retry_at_ms)
                write_lease(l, lease, true);
}

static void evaluate_leading(struct leader *l, const struct lease *lease, uint64_t now) {
        uint64_t deadline = l->renewed_ms + l->o.renew_deadline_ms, renew = l->renewed_ms + l->o.retry_ms;

        if (now >= deadline || (lease && !leader_is_ours(l, lease))) {
                l->ended = true;
                l->leads = false;
                kube_cancel(TAKE(l->call));
                loop_timer_stop(&l->timer);
                l->o.lost(l->o.u);
                return;
        }
        if (renew < l->retry_at_ms)
                renew = l->retry_at_ms;
        if (!l->call && now >= renew)
                write_lease(l, lease, false);
        loop_timer_at(&l->timer, l->call || renew > deadline ? deadline : renew);
}

static void evaluate_following(struct leader *l, const struct lease *lease, uint64_t now) {
        uint64_t at = l->retry_at_ms;

        if (l->call || !kube_informer_synced(l->informer))
                return; /* the watch and the request's end both call evaluate() */
        if (leader_is_taken(l, lease)) {
                int64_t s = lease->duration_s > 0 && lease->duration_s < 24 * 3600 ? lease->duration_s
                                                                                   : duration_s(l);
                uint64_t expiry = l->observed_ms + (uint64_t)s * 1000;
                at = expiry > at ? expiry : at;
        }
        if (now >= at)
                write_lease(l, lease, false);
        else
                loop_timer_at(&l->timer, at);
}

/* The Lease has this renewTime. If it is that of the write in flight, or of one that seemed to fail, the
 * write has arrived. */
static void count_renewal(struct leader *l, const char *renewed) {
        uint64_t called_ms = streq(renewed, l->written)   ? l->called_ms
                             : streq(renewed, l->unknown) ? l->unknown_called_ms
                                                          : 0;
        if (called_ms > l->renewed_ms)
                l->renewed_ms = called_ms;
}

static void observe(struct leader *l, const struct lease *lease) {
        const char *rv = lease ? lease->o.meta.rv : NULL;

        if (streq(rv, l->observed_rv))
                return;
        free(l->observed_rv);
        l->observed_rv = xstrdup_or_null(rv);
        l->observed_ms = loop_now_ms(l->loop);
        l->retry_at_ms = 0;
        if (l->leads && leader_is_ours(l, lease))
                count_renewal(l, lease->renewed);
        if (lease && lease->holder && *lease->holder && !streq(lease->holder, l->reported)) {
                free(l->reported);
                l->reported = xstrdup(lease->holder);
                if (l->o.observed)
                        l->o.observed(l->o.u, l->reported);
        }
}

/* Compares the present state with the desired one. Called on every event. Inside the guard. */
static void evaluate(struct leader *l) {
        const struct lease *lease;

        if (l->guard.dead)
                return;
        lease = current(l);
        observe(l, lease);
        if (l->guard.dead || l->ended)
                return;
        if (l->releasing)
                evaluate_release(l, lease, loop_now_ms(l->loop));
        else if (l->leads)
                evaluate_leading(l, lease, loop_now_ms(l->loop));
        else
                evaluate_following(l, lease, loop_now_ms(l->loop));
}

static void leader_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct leader *l = u;
        guard_enter(&l->guard);
        evaluate(l);
        leader_leave(l);
}

/* A timer, or the first list. */
static void on_time(void *u) {
        leader_on_changed(u, NULL, NULL);
}

static void leader_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct leader *l = u;
        struct err wrapped;

        if (!l->o.failing)
                return;
        guard_enter(&l->guard);
        if (e) {
                wrapped = *e;
                err_wrap(&wrapped,
                         "the Lease %s/%s cannot be watched (this needs get, list, watch, create and update "
                         "of leases in that namespace)",
                         l->o.ns, l->o.name);
        }
        l->o.failing(l->o.u, e ? &wrapped : NULL);
        leader_leave(l);
}

/* ---- the candidate ---- */

struct leader *leader_new(const struct leader_options *o) {
        struct arena *a = arena_new(1024);
        struct leader *l = arena_alloc(a, sizeof *l);

        l->arena = a;
        l->o = *o;
        l->o.ns = arena_strdup(a, o->ns);
        l->o.name = arena_strdup(a, o->name);
        l->o.identity = arena_strdup(a, o->identity);
        l->o.earlier = arena_strdup_or_null(a, o->earlier);
        l->loop = kube_client_loop(o->client);
        loop_timer_init(&l->timer, l->loop, on_time, l);
        struct kube_informer_options informer = {
                .res = &kube_leases,
                .ns = l->o.ns,
                .name = o->name,
                .fields = f_lease,
                .size = sizeof(struct lease),
                .changed = leader_on_changed,
                .synced = on_time,
                .failing = leader_on_failing,
                .u = l,
        };
        l->informer = kube_informer_new(o->client, &informer);
        return l;
}

void leader_release(struct leader *l, void (*done)(void *u), void *u) {
        BUG_ON(l->releasing);
        l->releasing = true;
        l->ended = false; /* after `lost` there is nothing to release, but done must be called */
        l->released = done;
        l->released_u = u;
        l->retry_at_ms = 0;
        l->release_until_ms = loop_now_ms(l->loop) + RELEASE_MS;
        loop_timer_at(&l->timer, 0);
}

void leader_view(struct leader *l, struct leader_view *ret) {
        const struct lease *lease = current(l);
        uint64_t now = loop_now_ms(l->loop);

        *ret = (struct leader_view){
                .leads = l->leads,
                .holder = lease ? str_or(lease->holder, "") : "",
                .observed_ms = l->observed_rv ? now - l->observed_ms : 0,
                .renewed_ms = l->leads ? now - l->renewed_ms : 0,
                .writing = l->call != NULL,
        };
}

static void leader_destroy(struct leader *l) {
        free(l->reported);
        free(l->observed_rv);
        arena_free(l->arena);
}

void leader_free(struct leader *l) {
        if (!l || l->guard.dead)
                return;
        kube_cancel(TAKE(l->call));
        kube_informer_free(l->informer);
        loop_timer_done(&l->timer);
        if (guard_free(&l->guard))
                leader_destroy(l);
}
