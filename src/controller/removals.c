/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/removals.h"

#include <stdlib.h>

#include "base/mem.h"

static struct controller_removal *removals_find(const struct controller *c, const char *node) {
        struct controller_removal *x;
        HASH_FIND_STR(c->memory.removals, node, x);
        return x;
}

static void removals_drop(struct controller *c, struct controller_removal *x) {
        HASH_DEL(c->memory.removals, x);
        free(x->pod_uid);
        free(x);
}

/* The partition that the daemon may be in: that of its node's ResourceSlice, else the one on its Pod. */
static const char *partition_of(const struct controller *c, const struct daemon_pod *p) {
        const char *slice = records_node_clique(c, p->pod.node);
        return slice && *slice ? slice : p->pod.clique_id;
}

static bool is_marked(const struct compute_domain_fabric *f, const struct daemon_pod *p) {
        for (size_t i = 0; f && i < f->n_removals; i++)
                if (streq(f->removals[i].node, p->pod.node) &&
                    streq(f->removals[i].pod_uid, p->pod.o.meta.uid))
                        return true;
        return false;
}

bool removals_marked(const struct controller *c, const struct daemon_pod *p) {
        return is_marked(records_fabric(c, partition_of(c, p)), p);
}

bool removals_ask(struct controller *c, const struct daemon_pod *p, enum removals_why why) {
        const char *node = p->pod.node, *clique = partition_of(c, p);
        if (!node || !*node || !clique || !*clique)
                return !p->report;
        struct controller_removal *x = removals_find(c, node);
        if (!x) {
                x = xnew_keyed(struct controller_removal, node, node);
                HASH_ADD_STR(c->memory.removals, node, x);
        }
        if (!streq(x->pod_uid, p->pod.o.meta.uid)) {
                free(x->pod_uid);
                x->why = 0;
                x->pod_uid = xstrdup(p->pod.o.meta.uid);
                records_queue_fabric(c, clique);
        }
        x->why |= why;
        return is_marked(records_fabric(c, clique), p);
}

void removals_withdraw(struct controller *c, const char *node, enum removals_why why) {
        struct controller_removal *x = node ? removals_find(c, node) : NULL;
        if (!x)
                return;
        x->why &= ~(unsigned)why;
        if (!x->why)
                removals_drop(c, x);
}

bool removals_asked(const struct controller *c, const char *node, enum removals_why why) {
        const struct controller_removal *x = node ? removals_find(c, node) : NULL;
        return x && x->why & why;
}

const char *removals_on(const struct controller *c, const char *node) {
        const struct controller_removal *x = removals_find(c, node);
        return x ? x->pod_uid : NULL;
}

void removals_done(struct controller *c) {
        for (struct controller_removal *x = c->memory.removals, *next; x; x = next) {
                next = x->hh.next;
                removals_drop(c, x);
        }
}
