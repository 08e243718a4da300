/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod that runs can use NVLink between nodes. */
#include <string.h>

#include "api/names.h"
#include "cli/pod_case.h"
#include "rules/message.h"

/* Adds the container to one of the lists if it names the claim. */
static void judge_container(struct pod_case *c, const char *name, struct message_list *have,
                            struct message_list *lack) {
        const struct container_status *s = pod_object_status(c->pod, name);
        if (pod_object_names_claim(c->pod, name, c->asks->name))
                message_add(s && (s->state.waiting || s->state.terminated) ? lack : have, "%s", name);
}

static void check_containers(struct pod_case *c) {
        struct message_list have = { 0 }, lack = { 0 };
        for (size_t i = 0; i < c->pod->n_containers; i++)
                judge_container(c, c->pod->containers[i].name, &have, &lack);
        for (size_t i = 0; i < c->pod->n_init_containers; i++)
                judge_container(c, c->pod->init_containers[i].name, &have, &lack);
        const char *running = message_end(&have, c->d->a), *others = message_end(&lack, c->d->a);
        if (*running)
                diagnosis_line(c->d, TERM_OK, "container", "%s has the channel", running);
        if (*others)
                diagnosis_line(c->d, TERM_WAIT, "container", "%s does not run", others);
        if (*running || *others)
                return;
        diagnosis_line(c->d, TERM_BAD, "container", "no container names the claim %s", c->asks->name);
        diagnosis_add(
                c->d, reason_cause(CAUSE_CONTAINER_WITHOUT_CLAIM),
                arena_printf(c->d->a,
                             "add `resources: {claims: [{name: %s}]}` to the container, and recreate the pod",
                             c->asks->name),
                "the pod has the claim \"%s\", but no container names it in resources.claims", c->asks->name);
}

/* The phase of the pod may be Running long after its node has failed. */
static void running_check_node(struct pod_case *c) {
        const struct node_object *n = view_find(c->v, VIEW_NODES, NULL, c->pod->node);
        if (!n || node_ready(&n->node))
                return;
        diagnosis_line(c->d, TERM_BAD, "node", "%s is not Ready", c->pod->node);
        diagnosis_add(c->d, reason_cause(CAUSE_NODE_DOWN), NULL, "the Node %s is not Ready", c->pod->node);
}

/* The device node of the host concerns only pods that cannot start without it. */
static void check_event(struct pod_case *c) {
        const struct kube_meta *m = &c->pod->o.meta;
        const struct event_object *e =
                view_event(c->v, "Pod", m->ns, m->name, m->uid, REASON_NO_IMEX_CHANNEL);
        if (e)
                diagnosis_add(c->d, reason_find(REASON_OF_POD, REASON_NO_IMEX_CHANNEL), NULL, "%s",
                              str_or(e->message, e->reason));
}

/* IMEX may have restarted since, but the program does not know that. */
static void hint_at_lost_imex(struct pod_case *c) {
        const struct kube_meta *m = c->claim ? &c->claim->claim.o.meta : NULL;
        const struct event_object *e =
                m ? view_event(c->v, "ResourceClaim", m->ns, m->name, m->uid, REASON_IMEX_DAEMON_NOT_READY)
                  : NULL;
        if (e)
                diagnosis_hint(
                        c->d,
                        "IMEX was not READY %s ago while the claim was in use: %s. Memory handles that "
                        "were exported before are not valid. If the program fails, restart it.",
                        pod_case_since(c->d, event_object_time(e)), str_or(e->message, e->reason));
}

/* The partitions of the nodes of the ComputeDomain, and of its pods. */
static void check_partition(struct pod_case *c) {
        struct message_list list = { .between = "; " };
        const char *first = c->clique;
        bool several = false;
        for (size_t i = 0; c->cd && i < c->cd->n_nodes; i++) {
                const char *x = c->cd->nodes[i].clique_id;
                if (!x)
                        continue;
                first = first ? first : x;
                several = several || !streq(first, x);
        }
        VIEW_EACH(c->v, VIEW_PODS, struct pod_object, p) {
                const char *x =
                        p->node && p != c->pod && !pod_object_has_ended(p) && pod_case_shares_domain(c, p)
                                ? inventory_clique(c->v, p->node)
                                : NULL;
                several = several || (x && first && !streq(first, x));
        }
        if (!c->clique)
                c->clique = first;
        if (!first) {
                diagnosis_line(c->d, TERM_UNKNOWN, "partition",
                               "unknown: the Node and its ResourceSlice may not be read");
        } else if (!*first) {
                const struct reason *r = reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_NO_FABRIC_NODES);
                diagnosis_line(c->d, TERM_BAD, "partition", "%s has no multi-node NVLink", c->pod->node);
                diagnosis_add(c->d, r, NULL, "node %s is in no NVLink partition", c->pod->node);
        } else if (several) {
                for (size_t i = 0; c->cd && i < c->cd->n_nodes; i++)
                        message_add(&list, "%s on %s", c->cd->nodes[i].node,
                                    inventory_rack_name(c->v, c->cd->nodes[i].clique_id));
                const char *nodes = message_end(&list, c->d->a);
                diagnosis_line(c->d, TERM_BAD, "partition", "the pods run in several NVLink partitions");
                diagnosis_add(c->d, reason_cause(CAUSE_SEVERAL_PARTITIONS), NULL,
                              "the pods run in several NVLink partitions%s%s", *nodes ? ": " : "", nodes);
        } else {
                diagnosis_line(c->d, TERM_OK, "partition", "%s for all pods",
                               inventory_rack_name(c->v, first));
        }
}

/* Whether Ready names nodes that are not in the IMEX domain. The controller does not know the peers of these
 * nodes, so it reports them as missing. */
static bool names_failed_nodes(const struct cd_condition *x) {
        static const char *const reasons[] = { REASON_NODE_FAILING, REASON_NODE_LOST, REASON_NODE_OCCUPIED,
                                               REASON_NODES_NOT_READY, REASON_DOMAIN_FULL };
        return streq(x->type, CONDITION_READY) && condition_status_decode(x->status) == STATUS_FALSE &&
               has_string(reasons, ARRAY_LEN(reasons), x->reason);
}

static void check_peers(struct pod_case *c) {
        static const char *const types[] = { CONDITION_PEERS_CONNECTED, CONDITION_IMEX_HEALTHY,
                                             CONDITION_HOST_IMEX_HEALTHY };
        const struct cd_condition *ready = c->cd ? domain_condition(c->cd, CONDITION_READY) : NULL;
        bool fails = ready && names_failed_nodes(ready);
        if (fails) {
                diagnosis_line(c->d, TERM_BAD, "nodes", "Ready is False: %s",
                               str_or(ready->message, ready->reason));
                domain_diagnose_condition(c->d, c->cd, ready);
        }
        for (size_t i = 0; c->cd && i < c->cd->n_conditions; i++) {
                const struct cd_condition *x = &c->cd->conditions[i];
                if (!has_string(types, ARRAY_LEN(types), x->type))
                        continue;
                /* A state that is not known proves nothing. */
                enum condition_status status = condition_status_decode(x->status);
                enum term_mark mark = status == STATUS_TRUE           ? TERM_OK
                                      : status != STATUS_FALSE        ? TERM_UNKNOWN
                                      : domain_is_connecting(c->v, x) ? TERM_WAIT
                                                                      : TERM_BAD;
                diagnosis_line(c->d, mark, "peers", "%s is %s%s%s", x->type, str_or(x->status, "Unknown"),
                               x->message && *x->message ? ": " : "", str_or(x->message, ""));
                if (status == STATUS_FALSE && !(fails && streq(x->reason, REASON_PEERS_MISSING)))
                        domain_diagnose_condition(c->d, c->cd, x);
        }
}

/* The driver starts a pod before the other nodes have joined. */
static void hint_at_missing_nodes(struct pod_case *c) {
        for (size_t i = 0; c->cd && i < c->cd->n_conditions; i++)
                if (streq(c->cd->conditions[i].reason, REASON_NODES_MISSING))
                        diagnosis_hint(c->d,
                                       "ComputeDomain %s: %s. The driver lets no pod wait for the missing "
                                       "nodes, but the program in the pod may.",
                                       c->cd_name, str_or(c->cd->conditions[i].message, ""));
}

void running_diagnose(struct pod_case *c) {
        view_read(c->v, VIEW_NODES, NULL);
        view_read(c->v, VIEW_SLICES, NULL);
        view_read(c->v, VIEW_FABRICS, NULL);
        pod_case_clique(c);
        running_check_node(c);
        named_claim_diagnose_taken(c);
        check_containers(c);
        container_diagnose(c, c->asks->name);
        check_event(c);
        check_partition(c);
        check_peers(c);
        hint_at_missing_nodes(c);
        hint_at_lost_imex(c);
        for (size_t i = 0; i < c->pod->n_containers; i++) {
                const struct container *x = &c->pod->containers[i];
                const char *off = jd_pair_get(x->env, x->n_env, "NCCL_MNNVL_ENABLE");
                if (streq(off, "0"))
                        diagnosis_hint(c->d,
                                       "Container %s sets NCCL_MNNVL_ENABLE=0, so NCCL does not use NVLink "
                                       "between nodes.",
                                       x->name);
        }
        if (c->d->n_causes == 0)
                diagnosis_hint(c->d,
                               "%s Whether NCCL does is in its log: with NCCL_DEBUG=INFO it prints \"MNNVL 1 "
                               "cliqueId ... "
                               "cliqueSize N\", where N is the number of processes. `kubectl logs -n %s %s | "
                               "grep MNNVL`",
                               c->clique && !diagnosis_failed(c->d)
                                       ? "The pod can use NVLink between nodes."
                                       : "Nothing that you may read prevents NVLink between nodes.",
                               term_shell_word(c->d->a, c->pod->o.meta.ns),
                               term_shell_word(c->d->a, c->pod->o.meta.name));
        c->d->fine = c->d->n_causes == 0;
}
