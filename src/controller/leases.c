/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases.h"

#include <uthash.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/backoff.h"
#include "kube/kube_object.h"
#include "kube/kube_pages.h"

#define NODE_LEASES "kube-node-lease"

enum { BACKOFF_MIN_MS = 500, BACKOFF_MAX_MS = 30000, PAUSE_MS = 15000 };

struct entry {
        UT_hash_handle hh;
        int64_t renewed; /* by the kubelet's clock */
        int64_t alive_after;
        char node[];
};

struct leases {
        struct kube_client *client;
        struct work_queue *queue;
        struct kube_pages *list;
        struct entry *entries, *coming; /* of the last complete list, and of the list under way */
        struct work_queue_waiter *requesters;
        int64_t at, before, coming_at;
        unsigned failures;
        uint64_t not_before_ms; /* loop time before which no list begins: back-off, or pause between lists */
};

struct node_lease {
        const char *node;
        int64_t renewed;
};
static const struct jd_field f_lease[] = { JD_STR(struct node_lease, "metadata>name", node),
                                           JD_TIME(struct node_lease, "spec>renewTime", renewed), JD_END };

static void leases_forget(struct entry **all) {
        for (struct entry *e = *all, *next; e; e = next) {
                next = e->hh.next;
                HASH_DEL(*all, e);
                free(e);
        }
}

/* Compares a Lease in the list under way with the same Lease in the last complete list. */
static void leases_compare(const struct leases *l, struct entry *x) {
        struct entry *was;
        HASH_FIND_STR(l->entries, x->node, was);
        if (was)
                x->alive_after = x->renewed > was->renewed ? l->at : was->alive_after;
}

/* A Lease that cannot be decoded is skipped: then nothing is known about this kubelet. */
static void leases_take(struct leases *l, yyjson_val *object) {
        struct arena *a = arena_new(256);
        struct node_lease lease = { 0 };
        struct err e;
        if (jd_decode(f_lease, object, "", a, &lease, &e) == 0 && lease.node) {
                struct entry *x = xnew_keyed(struct entry, node, lease.node);
                x->renewed = lease.renewed;
                leases_compare(l, x);
                HASH_ADD_STR(l->coming, node, x);
        }
        arena_free(a);
}

static void leases_on_page(void *u, yyjson_val *list, bool last, const struct err *e) {
        struct leases *l = u;
        yyjson_val *item;
        size_t n, max;
        if (e) {
                unsigned ms = backoff_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, ++l->failures);
                log_warn("cannot list the Leases of the nodes, so unused channels are not freed; check the "
                         "controller's Role in " NODE_LEASES,
                         kv_err(e));
                l->not_before_ms = uv_now(kube_client_loop(l->client)) + ms;
                work_queue_waiters_queue(&l->requesters, l->queue, ms);
                return;
        }
        yyjson_arr_foreach (yyjson_obj_get(list, "items"), n, max, item)
                leases_take(l, item);
        if (!last)
                return;
        leases_forget(&l->entries);
        l->entries = TAKE(l->coming);
        l->before = l->at;
        l->at = l->coming_at;
        l->failures = 0;
        l->not_before_ms = uv_now(kube_client_loop(l->client)) + PAUSE_MS;
        work_queue_waiters_queue(&l->requesters, l->queue, 0);
}

struct leases *leases_new(struct kube_client *client, struct work_queue *queue) {
        struct leases *l = xnew(struct leases);
        l->client = client;
        l->queue = queue;
        l->list = kube_pages_new(
                client, &(struct kube_pages_options){
                                .res = &kube_leases, .ns = NODE_LEASES, .page = leases_on_page, .u = l });
        return l;
}

void leases_free(struct leases *l) {
        if (!l)
                return;
        kube_pages_free(l->list);
        leases_forget(&l->entries);
        leases_forget(&l->coming);
        work_queue_waiters_drop(&l->requesters);
        free(l);
}

void leases_ask(struct leases *l, const char *requester) {
        uint64_t now = uv_now(kube_client_loop(l->client));
        if (!kube_pages_under_way(l->list) && l->not_before_ms > now) {
                work_queue_add_after(l->queue, requester, (unsigned)(l->not_before_ms - now));
                return;
        }
        work_queue_waiters_add(&l->requesters, requester);
        if (kube_pages_under_way(l->list))
                return;
        leases_forget(&l->coming);
        l->coming_at = clock_mono_s();
        kube_pages_start(l->list, false);
}

int64_t leases_at(const struct leases *l) {
        return l->at;
}

int64_t leases_before(const struct leases *l) {
        return l->before;
}

int64_t leases_alive_after(const struct leases *l, const char *node) {
        struct entry *e;
        HASH_FIND_STR(l->entries, node, e);
        return e ? e->alive_after : 0;
}
