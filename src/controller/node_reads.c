/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/node_reads.h"

#include <sys/queue.h>
#include <uthash.h>

#include "base/log.h"
#include "base/mem.h"
#include "kube/backoff.h"
#include "kube/kube_pages.h"

/* LIST_FROM: from this number of waiting Nodes on, a list costs less than single reads: the API server
 * compresses it. AGAIN_MS: the pause before a Node is read again that has changed during the read, and
 * LIST_AGAIN_MS after a list. RESYNC_MS: +-25 %, between two lists of all Nodes. */
enum {
        IN_FLIGHT_MAX = 16,
        LIST_FROM = 100,
        PAGE = 100,
        AGAIN_MS = 100,
        LIST_AGAIN_MS = 1000,
        RETRY_MS = 5000,
        RESYNC_MS = 30 * 60 * 1000,
};

struct node_read {
        UT_hash_handle hh;
        TAILQ_ENTRY(node_read) entry; /* while it waits */
        struct node_reads *r;
        struct kube_call *call; /* NULL: it waits, or it is listed */
        bool listed;            /* the list under way will answer it */
        char node[];
};

struct node_reads {
        struct controller *c;
        struct node_read *all;
        TAILQ_HEAD(, node_read) waiting;
        size_t n_waiting, n_in_flight;
        struct kube_pages *list;
        struct loop_timer later; /* runs while reads pause after a failure, or before reading again */
        struct loop_timer resync;
};

static void pump(struct node_reads *r);

/* ---- answers ---- */

static void wait_for_turn(struct node_read *x) {
        TAILQ_INSERT_TAIL(&x->r->waiting, x, entry);
        x->r->n_waiting++;
}

static void wait_again(struct node_read *x, unsigned ms) {
        struct node_reads *r = x->r;
        wait_for_turn(x);
        if (!loop_timer_waits(&r->later))
                loop_timer_start(&r->later, ms);
}

static void drop(struct node_read *x) {
        HASH_DEL(x->r->all, x);
        free(x);
}

/* Returns whether the cache has the whole Node, or the Node no longer exists. */
static bool is_complete(const struct node_reads *r, const char *name) {
        const struct node *n = records_node(r->c, name);
        return !n || !n->partial;
}

static void node_reads_end(struct node_read *x, unsigned again_ms) {
        if (is_complete(x->r, x->node))
                drop(x);
        else
                wait_again(x, again_ms);
}

static void node_reads_warn(const char *name, const struct err *e) {
        log_warn("cannot read a Node: whether it is Ready, cordoned or out of service may be out of date",
                 kv_str("node", name), kv_err(e));
}

static void node_reads_on_answer(void *u, yyjson_val *obj, const struct err *e) {
        struct node_read *x = u;
        struct node_reads *r = x->r;
        x->call = NULL;
        r->n_in_flight--;
        if (!e)
                kube_informer_answer(r->c->caches.nodes, obj);
        if (!e) {
                node_reads_end(x, AGAIN_MS);
        } else if (e->kind == ERR_NOT_FOUND) {
                drop(x); /* the watch will report the deletion */
        } else {
                node_reads_warn(x->node, e);
                wait_again(x, RETRY_MS);
        }
        pump(r);
}

static void node_reads_on_page(void *u, yyjson_val *list, bool last, const struct err *e) {
        struct node_reads *r = u;
        yyjson_val *item;
        size_t n, max;
        if (e)
                node_reads_warn("all", e);
        yyjson_arr_foreach (yyjson_obj_get(list, "items"), n, max, item)
                kube_informer_answer(r->c->caches.nodes, item);
        if (!e && !last)
                return;
        for (struct node_read *x = r->all, *next; x; x = next) {
                next = x->hh.next;
                if (!x->listed)
                        continue;
                x->listed = false;
                if (e)
                        wait_again(x, RETRY_MS);
                else
                        node_reads_end(x, LIST_AGAIN_MS);
        }
        pump(r);
}

/* ---- requests ---- */

static struct node_read *next_waiting(struct node_reads *r) {
        struct node_read *x = TAILQ_FIRST(&r->waiting);
        TAILQ_REMOVE(&r->waiting, x, entry);
        r->n_waiting--;
        return x;
}

static void list_all(struct node_reads *r) {
        while (r->n_waiting)
                next_waiting(r)->listed = true;
        kube_pages_start(r->list, false);
}

static void read_one(struct node_reads *r, struct node_read *x) {
        if (is_complete(r, x->node)) {
                drop(x);
                return;
        }
        r->n_in_flight++;
        x->call = kube_start(r->c->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                   .res = &kube_nodes,
                                                                   .name = x->node,
                                                                   .done = node_reads_on_answer,
                                                                   .u = x });
}

/* A list also answers for Nodes that began to wait after it. */
static void drop_complete(struct node_reads *r) {
        for (size_t n = r->n_waiting; n; n--) {
                struct node_read *x = next_waiting(r);
                if (is_complete(r, x->node))
                        drop(x);
                else
                        wait_for_turn(x);
        }
}

static void pump(struct node_reads *r) {
        if (loop_timer_waits(&r->later))
                return;
        if (r->n_waiting >= LIST_FROM && kube_pages_under_way(r->list))
                return;
        if (r->n_waiting >= LIST_FROM)
                drop_complete(r);
        if (r->n_waiting >= LIST_FROM)
                list_all(r);
        while (r->n_waiting && r->n_in_flight < IN_FLIGHT_MAX)
                read_one(r, next_waiting(r));
}

static void node_reads_on_later(void *u) {
        pump(u);
}

static void node_reads_on_resync(void *u) {
        struct node_reads *r = u;
        if (!kube_pages_under_way(r->list))
                list_all(r);
        loop_timer_start(&r->resync, backoff_spread(RESYNC_MS));
}

static void ask(struct controller *c, const char *name) {
        struct node_reads *r = c->node_reads;
        struct node_read *x;
        HASH_FIND_STR(r->all, name, x);
        if (x)
                return; /* an answer that is older than the cached metadata is asked for again */
        x = xnew_keyed(struct node_read, node, name);
        x->r = r;
        HASH_ADD_STR(r->all, node, x);
        wait_for_turn(x);
        pump(r);
}

struct node_reads *node_reads_new(struct controller *c) {
        struct node_reads *r = xnew(struct node_reads);
        r->c = c;
        TAILQ_INIT(&r->waiting);
        r->list = kube_pages_new(
                c->client, &(struct kube_pages_options){
                                   .res = &kube_nodes, .limit = PAGE, .page = node_reads_on_page, .u = r });
        loop_timer_init(&r->later, kube_client_loop(c->client), node_reads_on_later, r);
        loop_timer_init(&r->resync, kube_client_loop(c->client), node_reads_on_resync, r);
        loop_timer_start(&r->resync, backoff_spread(RESYNC_MS));
        return r;
}

void node_reads_free(struct node_reads *r) {
        if (!r)
                return;
        for (struct node_read *x = r->all, *next; x; x = next) {
                next = x->hh.next;
                kube_cancel(x->call);
                drop(x);
        }
        kube_pages_free(r->list);
        loop_timer_done(&r->later);
        loop_timer_done(&r->resync);
        free(r);
}

size_t node_reads_count(const struct node_reads *r) {
        return HASH_COUNT(r->all);
}

/* ---- when a Node has to be read ---- */

static bool is_ready(const struct daemon_pod *p) {
        return p && condition_true(p->pod.conditions, p->pod.n_conditions, "Ready");
}

/* A fabric object lists an assignment on the node, so a reboot or the out-of-service taint ends it. */
static bool node_reads_has_assignment(const struct controller *c, const struct node *n) {
        const struct compute_domain_fabric *f = records_fabric(c, n->clique_id);
        for (size_t i = 0; f && i < f->n_domains; i++)
                if (fabric_assignment_of(&f->domains[i], n->o.meta.name))
                        return true;
        return false;
}

static bool has_restarted(const struct pod *was, const struct pod *is) {
        int64_t before = was->n_containers ? was->containers[0].started : 0,
                now = is->n_containers ? is->containers[0].started : 0;
        return before && now != before;
}

static bool node_reads_other_boot(const struct daemon_pod *p, const struct node *n) {
        const char *boot_id = node_boot_id(n);
        return p && p->report && *boot_id && !strstr(p->report, boot_id);
}

void node_reads_node_changed(struct controller *c, const struct node *was, const struct node *is) {
        if (!is || !is->partial)
                return;
        const struct daemon_pod *p = records_daemon(c, is->o.meta.name);
        if (!was || !streq(was->o.meta.uid, is->o.meta.uid) || was->spec_writers != is->spec_writers ||
            !node_ready(is) || node_out_of_service(is) || node_reads_other_boot(p, is) ||
            (!is_ready(p) && node_reads_has_assignment(c, is)))
                ask(c, is->o.meta.name);
}

void node_reads_daemon_changed(struct controller *c, const struct daemon_pod *was,
                               const struct daemon_pod *is) {
        const char *name = is ? is->pod.node : was->pod.node;
        const struct node *n = name ? records_node(c, name) : NULL;
        if (!n)
                return;
        bool lost = was && ((is_ready(was) && !is_ready(is)) || (is && has_restarted(&was->pod, &is->pod)));
        if (node_reads_other_boot(is, n) || (lost && node_reads_has_assignment(c, n)))
                ask(c, name);
}
