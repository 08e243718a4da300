/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/start_gate.h"

#include "api/names.h"
#include "api/reasons.h"
#include "api/states.h"
#include "base/stderr.h"
#include "rules/message.h"

static void lacks(struct message_list *l, struct start_gate_nodes *ret, const char *node, const char *what) {
        ret->others++;
        message_add(l, "%s: %.300s", node, what);
}

void start_gate_of_members(const struct membership *all, struct arena *a, struct start_gate_nodes *ret) {
        struct message_list l = { .between = "; " };
        *ret = (struct start_gate_nodes){ .lacking = "", .go = all->go != NULL };
        if (ret->go)
                return;
        for (size_t i = 0; i < all->n_members; i++) {
                const struct member *m = &all->members[i];
                ret->used = ret->used || m->wanted;
                if (membership_connected(all, m))
                        ret->connected++;
                else if (m->why != MEMBER_LEAVING)
                        lacks(&l, ret, m->entry.node,
                              m->why == MEMBER_READY ? "not connected to all of its peers" : m->message);
        }
        ret->lacking = message_end(&l, a);
}

void start_gate_of_hosts(const struct host *hosts, size_t n, struct arena *a, struct start_gate_nodes *ret) {
        struct message_list l = { .between = "; " };
        *ret = (struct start_gate_nodes){ .used = n };
        for (size_t i = 0; i < n; i++) {
                const struct host *h = &hosts[i];
                if (h->state == HOST_UP)
                        ret->connected++;
                else
                        lacks(&l, ret, h->name,
                              h->reported ? str_or(h->reason, "its IMEX is not READY")
                              : h->reason
                                      ? message_of(a, "the state of its IMEX is not known: %.200s", h->reason)
                                      : "the state of its IMEX has not been reported");
        }
        ret->lacking = message_end(&l, a);
}

/* Why the gate cannot work; NULL: it can. */
static const char *start_gate_error(const struct compute_domain *cd, struct arena *a) {
        if (!streq(cd->start_gate, "true"))
                return message_of(a,
                                  "Annotation " CD_ANNOTATION_START_GATE
                                  " has the value '%.40s': use \"true\" or \"false\". No pod starts until "
                                  "the annotation is corrected or removed",
                                  cd->start_gate);
        if (cd->num_nodes <= 0)
                return "Annotation " CD_ANNOTATION_START_GATE
                       " needs the number of nodes, but spec.numNodes is 0. No pod starts until you "
                       "remove the annotation, or set spec.numNodes";
        return NULL;
}

static const char *start_gate_progress(const struct compute_domain *cd, const struct start_gate_nodes *nodes,
                                       struct arena *a) {
        size_t known = nodes->connected + nodes->others, wanted = (size_t)cd->num_nodes;
        return message_of(
                a, "%zu of %zu nodes are connected%s%s%s", nodes->connected, wanted,
                *nodes->lacking ? ". " : "", nodes->lacking,
                known >= wanted
                        ? ""
                        : message_of(a, ". %zu more must join: their pods do not exist, or have no node",
                                     wanted - known));
}

void start_gate(const struct compute_domain *cd, const struct start_gate_nodes *nodes, struct arena *a,
                struct cd_condition *ret) {
        BUG_ON(!domain_is_gated(cd->start_gate));
        const char *error = start_gate_error(cd, a);
        bool was_open = false;
        for (size_t i = 0; i < cd->n_conditions; i++)
                was_open = was_open || (streq(cd->conditions[i].type, CONDITION_START_GATE_OPEN) &&
                                        condition_status_decode(cd->conditions[i].status) == STATUS_TRUE);
        bool open = !error &&
                    (nodes->go || nodes->connected >= (size_t)cd->num_nodes || (was_open && nodes->used));
        const char *message;
        if (error)
                message = error;
        else if (nodes->go)
                message = "The Go driver formed this ComputeDomain, so its pods do not wait";
        else if (open)
                message =
                        "Enough nodes were connected. The gate stays open while pods use this ComputeDomain";
        else
                message = start_gate_progress(cd, nodes, a);
        *ret = (struct cd_condition){
                .type = CONDITION_START_GATE_OPEN,
                .status = condition_status_name(open ? STATUS_TRUE : STATUS_FALSE),
                .reason = error  ? REASON_START_GATE_INVALID
                          : open ? REASON_START_GATE_OPENED
                                 : REASON_START_GATE_CLOSED,
                .message = message,
        };
}
