/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/fabric_watch.h"

#include <limits.h>
#include <sys/queue.h>

#include "api/resources.h"
#include "base/stderr.h"
#include "base/log.h"
#include "base/loop.h"
#include "kube/kube_informer.h"
#include "node/fetch.h"

struct fabric_ask {
        LIST_ENTRY(fabric_ask) link;
        struct fabric_watch *w;
        struct kube_call *call;
        bool dropped;  /* the node is in no partition any more, and `done` is due */
        bool answered; /* for the present clique ID, and the cache holds the answer or a later version */
        uint64_t from; /* the version in the cache when the request was sent; 0: none */
        /* The server had no object while the watch still, or already, showed this version. */
        char *missed;
        void (*done)(void *u, const struct err *e);
        kube_retry_fn *failed;
        void *u;
};

struct fabric_watch {
        struct kube_client *client;
        void (*changed)(void *u);
        void *u;
        char *clique;
        struct kube_informer *informer; /* NULL: no clique ID */
        struct loop_turn turn;
        LIST_HEAD(, fabric_ask) asks;
};

/* ---- the watch ---- */

static void fabric_watch_ask(struct fabric_ask *a);

static void fabric_watch_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct fabric_watch *w = u;
        struct fabric_ask *a;
        LIST_FOREACH (a, &w->asks, link)
                if (!a->answered && !a->call)
                        fabric_watch_ask(a);
        w->changed(w->u);
}

static void fabric_watch_on_synced(void *u) {
        struct fabric_watch *w = u;
        w->changed(w->u);
}

static void fabric_watch_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        const struct fabric_watch *w = u;
        if (e)
                log_warn("cannot watch the ComputeDomainFabric of this node: pods wait for their channels",
                         kv_str("fabric", w->clique), kv_err(e));
        else
                log_info("the watch of this node's ComputeDomainFabric works again",
                         kv_str("fabric", w->clique));
}

static void fabric_watch_on_undecodable(void *u, const struct kube_resource *res, const struct err *e) {
        const struct fabric_watch *w = u;
        log_error("the ComputeDomainFabric of this node cannot be read", kv_str("fabric", w->clique),
                  kv_err(e));
}

static struct kube_informer *fabric_watch_watch(struct fabric_watch *w) {
        return kube_informer_new(w->client, &(struct kube_informer_options){
                                                    .res = &kube_fabrics,
                                                    .name = w->clique,
                                                    .fields = compute_domain_fabric_fields,
                                                    .size = sizeof(struct compute_domain_fabric),
                                                    .changed = fabric_watch_on_changed,
                                                    .synced = fabric_watch_on_synced,
                                                    .failing = fabric_watch_on_failing,
                                                    .undecodable = fabric_watch_on_undecodable,
                                                    .u = w,
                                            });
}

static struct fabric_ask *dropped_ask(const struct fabric_watch *w) {
        struct fabric_ask *a;
        LIST_FOREACH (a, &w->asks, link) {
                if (a->dropped)
                        return a;
        }
        return NULL;
}

static void fabric_watch_report(void *u) {
        struct fabric_watch *w = u;
        struct fabric_ask *a;
        while ((a = dropped_ask(w))) { /* `done` may end this request, and others */
                a->dropped = false;
                a->done(a->u, NULL);
        }
        w->changed(w->u);
}

struct fabric_watch *fabric_watch_new(struct kube_client *c, void (*changed)(void *u), void *u) {
        struct fabric_watch *w = xnew(struct fabric_watch);
        w->client = c;
        w->changed = changed;
        w->u = u;
        w->clique = xstrdup("");
        LIST_INIT(&w->asks);
        loop_turn_init(&w->turn, kube_client_loop(c), fabric_watch_report, w);
        return w;
}

void fabric_watch_follow(struct fabric_watch *w, const char *clique_id) {
        struct fabric_ask *a;
        if (streq(w->clique, clique_id))
                return;
        kube_informer_free(w->informer);
        free(w->clique);
        w->clique = xstrdup(clique_id);
        w->informer = *clique_id ? fabric_watch_watch(w) : NULL;
        LIST_FOREACH (a, &w->asks, link) {
                bool pending = a->call || a->dropped;
                fabric_watch_ask(a);
                a->dropped = pending && !a->call;
        }
        loop_turn_start(&w->turn);
}

const char *fabric_watch_clique(const struct fabric_watch *w) {
        return w->clique;
}

const struct compute_domain_fabric *fabric_watch_get(const struct fabric_watch *w) {
        return w->informer
                       ? (const struct compute_domain_fabric *)kube_informer_get(w->informer, NULL, w->clique)
                       : NULL;
}

bool fabric_watch_seen(const struct fabric_watch *w) {
        return !w->informer || kube_informer_synced(w->informer);
}

void fabric_watch_free(struct fabric_watch *w) {
        if (!w)
                return;
        BUG_ON(!LIST_EMPTY(&w->asks));
        loop_turn_done(&w->turn);
        kube_informer_free(w->informer);
        free(w->clique);
        free(w);
}

/* ---- requests ---- */

static uint64_t cached_version(const struct fabric_watch *w) {
        const struct compute_domain_fabric *seen = fabric_watch_get(w);
        return seen ? kube_object_version(seen->o.meta.rv) : 0;
}

/* Returns whether the cache holds the answer or a later version. The cache ignores an answer that cannot be
 * decoded, and one with a lower version. If the cache already had a higher version before the request, etcd
 * was restored: a list then replaces the cached object, and the request is repeated. */
static bool take_answer(const struct fabric_ask *a, yyjson_val *obj) {
        uint64_t version = kube_object_version(
                yyjson_get_str(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "resourceVersion")));
        if (version < a->from)
                kube_informer_relist(a->w->informer);
        kube_informer_answer(a->w->informer, obj);
        return version >= a->from && cached_version(a->w) >= version;
}

static void fabric_watch_on_answer(void *u, yyjson_val *obj, const struct err *e) {
        struct fabric_ask *a = u;
        const struct compute_domain_fabric *seen = fabric_watch_get(a->w);
        bool missing = e && e->kind == ERR_NOT_FOUND;
        a->call = NULL;
        if (missing && seen)
                a->missed = xstrdup(seen->o.meta.rv);
        a->answered = missing || (!e && take_answer(a, obj));
        a->done(a->u, missing ? NULL : e);
}

static void fabric_watch_on_failed(void *u, const struct err *e) {
        const struct fabric_ask *a = u;
        a->failed(a->u, e);
}

static void fabric_watch_ask(struct fabric_ask *a) {
        kube_cancel(a->call);
        a->call = NULL;
        a->answered = false;
        freep(&a->missed);
        a->missed = NULL;
        if (!a->w->informer)
                return;
        a->from = cached_version(a->w);
        a->call = kube_start(a->w->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                   .res = &kube_fabrics,
                                                                   .name = a->w->clique,
                                                                   .attempts = UINT_MAX,
                                                                   .backoff_max_ms = FETCH_BACKOFF_MAX_MS,
                                                                   .done = fabric_watch_on_answer,
                                                                   .retry = fabric_watch_on_failed,
                                                                   .u = a });
}

struct fabric_ask *fabric_ask_start(struct fabric_watch *w, void (*answered)(void *u, const struct err *e),
                                    kube_retry_fn *failed, void *u) {
        struct fabric_ask *a = xnew(struct fabric_ask);
        a->w = w;
        a->done = answered;
        a->failed = failed;
        a->u = u;
        LIST_INSERT_HEAD(&w->asks, a, link);
        fabric_watch_ask(a);
        return a;
}

bool fabric_ask_pending(const struct fabric_ask *a) {
        return a->call;
}

bool fabric_ask_see(const struct fabric_ask *a, const struct compute_domain_fabric **ret) {
        const struct compute_domain_fabric *seen = fabric_watch_get(a->w);
        if (!a->answered)
                return false;
        *ret = seen && !streq(a->missed, seen->o.meta.rv) ? seen : NULL;
        return true;
}

void fabric_ask_again(struct fabric_ask *a) {
        if (!a->call)
                fabric_watch_ask(a);
}

void fabric_ask_cancel(struct fabric_ask *a) {
        if (!a)
                return;
        LIST_REMOVE(a, link);
        kube_cancel(a->call);
        free(a->missed);
        free(a);
}
