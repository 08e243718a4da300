/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a ComputeDomain, from its conditions. */
#include <string.h>

#include "api/states.h"
#include "cli/doctor_kinds.h"
#include "cli/member_view.h"
#include "cli/pod_case.h"

/* The conditions that a person should look at when they are not True. */
static bool is_judged(const struct cd_condition *c) {
        static const char *const types[] = { CONDITION_READY,
                                             CONDITION_PEERS_CONNECTED,
                                             CONDITION_CHANNEL_ASSIGNED,
                                             CONDITION_CHANNEL_AVAILABLE,
                                             CONDITION_SHARED_CLAIM_AVAILABLE,
                                             CONDITION_START_GATE_OPEN,
                                             CONDITION_IMEX_HEALTHY,
                                             CONDITION_HOST_IMEX_HEALTHY };
        return has_string(types, ARRAY_LEN(types), c->type);
}

/* A daemon queries the connections of nvidia-imex half a second after a change, because the query costs time
 * on all peers, and then every 30 seconds. It reports them within three seconds. */
enum { PEERS_REPORTED_S = 40 };

bool domain_is_connecting(const struct view *v, const struct cd_condition *c) {
        return streq(c->type, CONDITION_PEERS_CONNECTED) && streq(c->reason, REASON_PEERS_MISSING) &&
               c->last_transition && v->source->now - c->last_transition < PEERS_REPORTED_S;
}

const struct cd_condition *domain_condition(const struct compute_domain *cd, const char *type) {
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, type))
                        return &cd->conditions[i];
        return NULL;
}

/* Whether no pod uses the ComputeDomain or waits for it, as far as its status shows. Only ComputeDomains with
 * their own IMEX domain list their nodes. */
static bool is_idle(const struct compute_domain *cd) {
        static const char *const health[] = { CONDITION_IMEX_HEALTHY, CONDITION_HOST_IMEX_HEALTHY };
        static const char *const ready[] = { REASON_NO_NODES, REASON_NODES_MISSING, REASON_ADMITTED };
        const struct cd_condition *c = domain_condition(cd, CONDITION_READY);
        if (cd->n_nodes || !c || !has_string(ready, ARRAY_LEN(ready), c->reason) ||
            domain_condition(cd, CONDITION_CHANNEL_AVAILABLE))
                return false;
        for (size_t i = 0; i < ARRAY_LEN(health); i++) {
                c = domain_condition(cd, health[i]);
                if (c && !streq(c->reason, REASON_NO_NODES))
                        return false;
        }
        return true;
}

/* With imex.hostProbeInterval=0, the plugins never report the state of the hosts' IMEX. */
static bool probes_are_off(const struct view *v) {
        static const char program[] = "compute-domain-kubelet-plugin";
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, d) {
                const char *interval = workload_object_env(d, program, "IMEX_HOST_PROBE_INTERVAL");
                if (view_is_driver(v, d, program) && streq(interval, "0"))
                        return true;
        }
        return false;
}

/* Reasons that are not a problem, although the condition is not True. While a ComputeDomain is being deleted,
 * only the reason of Ready is current. */
static bool is_harmless(const struct view *v, const struct compute_domain *cd, const struct cd_condition *c) {
        static const char *const reasons[] = { REASON_NO_NODES, REASON_NO_FABRIC_NODES };
        return has_string(reasons, ARRAY_LEN(reasons), c->reason) || domain_is_connecting(v, c) ||
               (cd->o.meta.deleted && !streq(c->type, CONDITION_READY)) ||
               (streq(c->reason, REASON_START_GATE_CLOSED) && is_idle(cd)) ||
               (streq(c->type, CONDITION_HOST_IMEX_HEALTHY) && streq(c->reason, REASON_NOT_PROBED) &&
                probes_are_off(v));
}

static bool is_problem(const struct view *v, const struct compute_domain *cd, const struct cd_condition *c) {
        return condition_status_decode(c->status) != STATUS_TRUE && is_judged(c) && !is_harmless(v, cd, c);
}

bool domain_condition_fails(const struct view *v, const struct compute_domain *cd,
                            const struct cd_condition *c) {
        return is_problem(v, cd, c) && !(streq(c->reason, REASON_NODES_MISSING) && is_idle(cd));
}

/* Where the message names the node; NULL: it does not. */
static const char *find_node(const char *message, const char *node) {
        size_t n = strlen(node);
        for (const char *at = message; at && (at = strstr(at, node)); at++) {
                char before = at > message ? at[-1] : ' ', after = at[n];
                if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", before) &&
                    (!after || !strchr("abcdefghijklmnopqrstuvwxyz0123456789-", after)))
                        return at;
        }
        return NULL;
}

/* The part about one node of "node-1: why; node-2: why" or "node-1 is DOWN: why; node-2 is DOWN: why". The
 * whole message, if it does not name the node. */
static const char *part_about(const struct diagnosis *d, const struct compute_domain *cd, const char *message,
                              const char *node) {
        const char *begin = find_node(message, node), *end = begin ? begin + strlen(begin) : NULL;
        for (size_t i = 0; begin && i < cd->n_nodes; i++) {
                _cleanup_(freep) char *lead = xasprintf("; %s", str_or(cd->nodes[i].node, ""));
                const char *other = strstr(begin, lead);
                if (other && other < end && strchr(": ", other[strlen(lead)]))
                        end = other;
        }
        return begin ? arena_strndup(d->a, begin, (size_t)(end - begin)) : message;
}

/* Only these reasons depend on single nodes. */
static bool is_about_nodes(const struct cd_condition *c) {
        static const char *const reasons[] = { REASON_NODES_NOT_READY,
                                               REASON_NODE_FAILING,
                                               REASON_NODE_LOST,
                                               REASON_NODE_OCCUPIED,
                                               REASON_PEERS_MISSING,
                                               REASON_IMEX_DOWN,
                                               REASON_DOMAIN_HOST_IMEX_DOWN,
                                               REASON_DOMAIN_HOST_IMEX_DEGRADED };
        return has_string(reasons, ARRAY_LEN(reasons), c->reason);
}

/* A more specific entry for the text of the message: "IMEX daemon is BACKOFF: ...". */
static const struct reason *entry_of(const struct cd_condition *c, const char *text) {
        const struct reason *message = is_about_nodes(c) ? reason_find_message(text) : NULL;
        return message && !streq(message->anchor, "daemon-not-ready")
                       ? message
                       : reason_find(REASON_OF_COMPUTE_DOMAIN, c->reason);
}

/* `node` NULL: the cause may concern any node. */
static bool diagnose_condition(struct diagnosis *d, const struct compute_domain *cd,
                               const struct cd_condition *c, const char *node) {
        if (!is_problem(d->v, cd, c))
                return false;
        const struct reason *r =
                entry_of(c, node && c->message ? part_about(d, cd, c->message, node) : c->message);
        diagnosis_add(d, r ? r : reason_cause(CAUSE_UNKNOWN), NULL, "ComputeDomain %s: %s", cd->o.meta.name,
                      str_or(c->message, str_or(c->reason, c->type)));
        return true;
}

bool domain_diagnose_condition(struct diagnosis *d, const struct compute_domain *cd,
                               const struct cd_condition *c) {
        return domain_condition_fails(d->v, cd, c) && diagnose_condition(d, cd, c, NULL);
}

/* Whether ChannelAssigned reports that the ComputeDomain has its channel in the node's partition, and has
 * none in another one: "none on rack-b yet: why; channel 5 on rack-a". */
static bool waits_elsewhere(const struct diagnosis *d, const struct cd_condition *c, const char *node) {
        if (!streq(c->reason, REASON_WAITING))
                return false;
        view_read(d->v, VIEW_SLICES, NULL);
        view_read(d->v, VIEW_FABRICS, NULL);
        const char *clique = inventory_clique(d->v, node);
        if (!clique || !*clique)
                return false;
        _cleanup_(freep) char *where = xasprintf(" on %s", inventory_rack_name(d->v, clique));
        for (const char *at = c->message; at && (at = strstr(at, where)); at++) {
                char after = at[strlen(where)];
                if (at > c->message && at[-1] >= '0' && at[-1] <= '9' && (!after || after == ';'))
                        return true;
        }
        return false;
}

/* Pods with a node wait neither for other nodes nor for peers, and have a claim and a channel device. */
static bool delays_node(const struct diagnosis *d, const struct cd_condition *c, const char *node) {
        return !streq(c->reason, REASON_NODES_MISSING) && !streq(c->type, CONDITION_PEERS_CONNECTED) &&
               !streq(c->type, CONDITION_CHANNEL_AVAILABLE) &&
               !streq(c->type, CONDITION_SHARED_CLAIM_AVAILABLE) &&
               (!is_about_nodes(c) || find_node(str_or(c->message, ""), node)) &&
               !waits_elsewhere(d, c, node);
}

bool domain_diagnose_conditions(struct diagnosis *d, const struct compute_domain *cd, const char *node) {
        bool any = false;
        for (size_t i = 0; i < cd->n_conditions; i++) {
                const struct cd_condition *c = &cd->conditions[i];
                /* A state that is not known may be harmless on this node. */
                if (node && condition_status_decode(c->status) != STATUS_FALSE)
                        continue;
                if (!node || delays_node(d, c, node))
                        any = diagnose_condition(d, cd, c, node) || any;
        }
        return any;
}

bool domain_diagnose_template(struct diagnosis *d, const struct compute_domain *cd) {
        static const char *const reasons[] = { REASON_TEMPLATE_NAME_TAKEN, REASON_TEMPLATE_TERMINATING,
                                               REASON_TEMPLATE_MISSING,    REASON_INVALID_SPEC,
                                               REASON_OTHER_MODE,          REASON_WRITE_FAILED,
                                               REASON_DELETION_WAITING,    REASON_DECISION_WRONG };
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (has_string(reasons, ARRAY_LEN(reasons), cd->conditions[i].reason))
                        return domain_diagnose_condition(d, cd, &cd->conditions[i]);
        return false;
}

bool domain_diagnose_shared_claim(struct diagnosis *d, const struct compute_domain *cd) {
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, CONDITION_SHARED_CLAIM_AVAILABLE) &&
                    condition_status_decode(cd->conditions[i].status) == STATUS_FALSE)
                        return domain_diagnose_condition(d, cd, &cd->conditions[i]);
        return domain_diagnose_template(d, cd);
}

bool domain_diagnose_deletion(struct diagnosis *d, const struct compute_domain *cd) {
        if (!cd->o.meta.deleted)
                return false;
        if (!domain_diagnose_template(d, cd))
                diagnosis_add(d, reason_find_anchor("domain-deleting"), NULL,
                              "ComputeDomain %s is being deleted", cd->o.meta.name);
        return true;
}

/* A node, judged by the rules of the controller. */
static void line_member(struct diagnosis *d, const struct member *m) {
        enum term_mark mark = m->why == MEMBER_READY                                  ? TERM_OK
                              : m->why == MEMBER_STARTING || m->why == MEMBER_LEAVING ? TERM_WAIT
                                                                                      : TERM_BAD;
        diagnosis_line(d, mark, "node", "%s%s, %s%s%s", m->entry.node,
                       m->entry.index >= 0 ? arena_printf(d->a, ", index %lld", (long long)m->entry.index)
                                           : "",
                       inventory_rack_name(d->v, m->entry.clique_id), *m->message ? ": " : "", m->message);
}

static void domain_lines(struct diagnosis *d, const struct compute_domain *cd) {
        for (size_t i = 0; i < cd->n_conditions; i++) {
                const struct cd_condition *c = &cd->conditions[i];
                enum term_mark m = condition_status_decode(c->status) == STATUS_TRUE ? TERM_OK
                                   : is_problem(d->v, cd, c)                         ? TERM_BAD
                                                                                     : TERM_WAIT;
                diagnosis_line(d, m, c->type, "%s%s%s", str_or(c->reason, str_or(c->status, "")),
                               c->message && *c->message ? ": " : "", str_or(c->message, ""));
        }
        struct membership all;
        if (member_view_make(d->v, cd, &all)) {
                for (size_t i = 0; i < all.n_members; i++)
                        line_member(d, &all.members[i]);
                return;
        }
        for (size_t i = 0; i < cd->n_nodes; i++) {
                const struct domain_node *n = &cd->nodes[i];
                diagnosis_line(d, domain_status_decode(n->status) == DOMAIN_READY ? TERM_OK : TERM_WAIT,
                               "node", "%s%s, %s", n->node,
                               n->index >= 0 ? arena_printf(d->a, ", index %lld", (long long)n->index) : "",
                               inventory_rack_name(d->v, n->clique_id));
        }
}

/* A ComputeDomain without the condition is new, or has the schema of the Go driver. */
bool domain_is_unexplained(const struct compute_domain *cd) {
        return domain_status_decode(cd->status) != DOMAIN_READY && !domain_condition(cd, CONDITION_READY);
}

/* What only a controller does, and has not been done for a minute; NULL: nothing. It writes the conditions
 * together with the status. */
static const char *lacking_work(const struct diagnosis *d, const struct compute_domain *cd) {
        enum { CONTROLLER_S = 60 };
        int64_t now = d->v->source->now, deleted = cd->o.meta.deleted;
        if (deleted)
                return now - deleted > CONTROLLER_S ? "ended the ComputeDomain, or written why it waits"
                                                    : NULL;
        if (cd->status)
                return domain_is_unexplained(cd) ? "written why the ComputeDomain is not Ready" : NULL;
        return now - cd->o.meta.created > CONTROLLER_S ? "written the status of the ComputeDomain" : NULL;
}

/* Whether the schema drops what the controller writes. */
static bool diagnose_schema(struct diagnosis *d) {
        static const char name[] = "computedomains." CD_GROUP;
        view_read_one(d->v, VIEW_CRDS, NULL, name);
        const struct crd_object *crd = view_find(d->v, VIEW_CRDS, NULL, name);
        const char *lacks = NULL;
        for (size_t i = 0; crd && i < crd->n_versions; i++)
                if (streq(crd->versions[i].name, "v1beta1"))
                        lacks = crd_object_lacks(&crd->versions[i], compute_domain_fields);
        if (lacks)
                diagnosis_add(d, reason_cause(CAUSE_UNKNOWN), DEFINITION_OLD_FIX,
                              "the ComputeDomain has no conditions: the " DEFINITION
                              " has no member \"%s\", so it is of another version",
                              lacks);
        return lacks;
}

static void diagnose_lack(struct diagnosis *d, const char *lacks) {
        if (controller_diagnose(d) || diagnose_schema(d))
                return;
        (void)diagnosis_needs(d, VIEW_DEPLOYMENTS, NULL);
        diagnosis_possible(d, reason_cause(CAUSE_NO_CONTROLLER), "no controller has %s", lacks);
}

bool domain_diagnose(struct diagnosis *d, const char *ns, const char *name) {
        diagnosis_needs(d, VIEW_DOMAINS, ns);
        view_read(d->v, VIEW_FABRICS, NULL);
        view_find_driver(d->v);
        const struct compute_domain *cd = view_find(d->v, VIEW_DOMAINS, ns, name);
        if (!cd)
                return false;
        d->object = arena_printf(d->a, "computedomain/%s in %s", name, ns);
        d->state = arena_printf(d->a, "%s, %s old%s",
                                cd->o.meta.deleted ? "being deleted" : str_or(cd->status, "no status yet"),
                                pod_case_since(d, cd->o.meta.created),
                                cd->nodes_wanted ? arena_printf(d->a, ", %lld of %lld nodes ready",
                                                                (long long)cd->nodes_ready,
                                                                (long long)cd->nodes_wanted)
                                                 : "");
        domain_lines(d, cd);
        bool any = domain_diagnose_conditions(d, cd, NULL);
        const char *lacks = lacking_work(d, cd);
        if (lacks && (!any || !cd->status)) {
                diagnose_lack(d, lacks);
                any = true;
        }
        d->fine = !any;
        return true;
}
