/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_discovery.h"

#include <sys/queue.h>

#include "base/diag.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/backoff.h"

/* The pause between an answer and the next query, however often the version is doubted; and the longest
 * pause, while the server offers no supported version. */
enum { PAUSE_MS = 1000, PAUSE_MAX_MS = 10000 };

struct waiter {
        TAILQ_ENTRY(waiter) entry;
        kube_ready_fn *fn;
        void *u;
};

struct kube_discovery_group {
        LIST_ENTRY(kube_discovery_group) entry;
        struct kube_discovery *d;
        const struct kube_resource *res; /* the first resource for which the group was queried: the name, and
                                            the supported versions */
        const char *version;             /* one of these; NULL: not known yet */
        bool asked;                      /* a query is under way */
        uint64_t answered_ms; /* 0: never */
        unsigned n_none;      /* how many answers in a row have named no supported version */
        TAILQ_HEAD(, waiter) waiters;
};

struct kube_discovery {
        uv_loop_t *loop;
        kube_discovery_question_fn *put;
        void *u;
        LIST_HEAD(, kube_discovery_group) groups;
        struct loop_turn turn; /* reports a known version to users that asked for it */
        struct guard guard;
};

static struct kube_discovery_group *find(const struct kube_discovery *d, const struct kube_resource *res) {
        struct kube_discovery_group *g;
        LIST_FOREACH (g, &d->groups, entry)
                if (streq(g->res->group, res->group))
                        return g;
        return NULL;
}

static struct kube_discovery_group *find_or_add(struct kube_discovery *d, const struct kube_resource *res) {
        struct kube_discovery_group *g = find(d, res);
        if (g)
                return g;
        BUG_ON(!res->versions);
        g = xnew(struct kube_discovery_group);
        g->d = d;
        g->res = res;
        TAILQ_INIT(&g->waiters);
        LIST_INSERT_HEAD(&d->groups, g, entry);
        return g;
}

/* Takes them one by one from the front, because a callback may ask again, undo others or free the client.
 * After a failed attempt they stay in the list. False: the discovery was freed. */
static bool notify(struct kube_discovery_group *g, const struct err *e) {
        struct kube_discovery *d = g->d;
        struct waiter *w;
        unsigned n = 0;

        TAILQ_FOREACH (w, &g->waiters, entry)
                n++;
        guard_enter(&d->guard);
        while (n-- && !d->guard.dead && (w = TAILQ_FIRST(&g->waiters))) {
                struct waiter next = *w;
                TAILQ_REMOVE(&g->waiters, w, entry);
                if (e)
                        TAILQ_INSERT_TAIL(&g->waiters, w, entry);
                else
                        free(w);
                next.fn(next.u, e);
        }
        bool freed = d->guard.dead;
        if (guard_leave(&d->guard))
                free(d);
        return !freed;
}

static bool offers(yyjson_val *group, const char *version) {
        size_t i, max;
        yyjson_val *v;
        yyjson_arr_foreach (yyjson_obj_get(group, "versions"), i, max, v)
                if (streq(yyjson_get_str(yyjson_obj_get(v, "version")), version))
                        return true;
        return false;
}

static void names_of(const struct kube_discovery_group *g, struct buf *out) {
        for (const char *const *v = g->res->versions; *v; v++)
                buf_addf(out, "%s%s", v == g->res->versions ? "" : ", ", *v);
}

static void question(struct kube_discovery_group *g);

void kube_discovery_answered(void *group, yyjson_val *obj, const struct err *e) {
        struct kube_discovery_group *g = group;
        const char *const *v = g->res->versions;
        struct err none;

        g->asked = false;
        g->answered_ms = uv_now(g->d->loop);
        while (!e && *v && !offers(obj, *v))
                v++;
        if (!e && *v) {
                if (g->version && !streq(g->version, *v))
                        log_info("the API server now serves another version", kv_str("group", g->res->group),
                                 kv_str("version", *v));
                g->version = *v;
                g->n_none = 0;
        } else {
                if (!e) {
                        struct buf names = BUF_INIT(256);
                        names_of(g, &names);
                        err_set(&none, ERR_INVALID, 0, "the server offers no supported version of %s (%s)",
                                g->res->group, buf_str(&names));
                        buf_done(&names);
                        e = &none;
                }
                /* The present version stays in use: requests for it fail, and lead to another query. Without
                 * a version no request would: a server that has just started may not offer all of its groups
                 * yet, and refuses all requests until it has loaded the roles. */
                g->n_none++;
                if (!g->version)
                        question(g);
        }
        notify(g, e);
}

void kube_discovery_refused(void *group, const struct err *e) {
        notify(group, e);
}

static void question(struct kube_discovery_group *g) {
        struct kube_discovery *d = g->d;
        unsigned pause = g->n_none ? backoff_ms(PAUSE_MS, PAUSE_MAX_MS, g->n_none) : PAUSE_MS;
        uint64_t now = uv_now(d->loop), at = g->answered_ms ? g->answered_ms + pause : 0;

        if (g->asked)
                return;
        g->asked = true;
        d->put(d->u, g->res->group, at > now ? (unsigned)(at - now) : 0, g);
}

const char *kube_discovery_version(const struct kube_discovery *d, const struct kube_resource *res) {
        const struct kube_discovery_group *g = res->version ? NULL : find(d, res);
        return res->version ? res->version : g ? g->version : NULL;
}

void kube_discovery_ask(struct kube_discovery *d, const struct kube_resource *res, kube_ready_fn *fn,
                        void *u) {
        struct kube_discovery_group *g = find_or_add(d, res);
        struct waiter *w = xnew(struct waiter);

        w->fn = fn;
        w->u = u;
        TAILQ_INSERT_TAIL(&g->waiters, w, entry);
        if (!g->version)
                question(g);
        else
                loop_turn_start(&d->turn);
}

void kube_discovery_unask(struct kube_discovery *d, const struct kube_resource *res, kube_ready_fn *fn,
                          void *u) {
        struct kube_discovery_group *g = find(d, res);
        struct waiter *w, *next;

        for (w = g ? TAILQ_FIRST(&g->waiters) : NULL; w; w = next) {
                next = TAILQ_NEXT(w, entry);
                if (w->fn == fn && w->u == u) {
                        TAILQ_REMOVE(&g->waiters, w, entry);
                        free(w);
                }
        }
}

void kube_discovery_doubt(struct kube_discovery *d, const struct kube_resource *res) {
        struct kube_discovery_group *g = res->version ? NULL : find(d, res);
        if (g)
                question(g);
}

static void on_turn(void *u) {
        struct kube_discovery *d = u;
        struct kube_discovery_group *g;
        LIST_FOREACH (g, &d->groups, entry)
                if (g->version && !notify(g, NULL))
                        return;
}

struct kube_discovery *kube_discovery_new(uv_loop_t *loop, kube_discovery_question_fn *put, void *u) {
        struct kube_discovery *d = xnew(struct kube_discovery);
        d->loop = loop;
        d->put = put;
        d->u = u;
        LIST_INIT(&d->groups);
        loop_turn_init(&d->turn, loop, on_turn, d);
        return d;
}

void kube_discovery_free(struct kube_discovery *d) {
        struct kube_discovery_group *g;
        struct waiter *w;

        while ((g = LIST_FIRST(&d->groups))) {
                LIST_REMOVE(g, entry);
                while ((w = TAILQ_FIRST(&g->waiters))) {
                        TAILQ_REMOVE(&g->waiters, w, entry);
                        free(w);
                }
                free(g);
        }
        loop_turn_done(&d->turn);
        if (guard_free(&d->guard))
                free(d);
}
