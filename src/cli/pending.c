/* SPDX-License-Identifier: Apache-2.0 */
/* The causes why a pod gets no node. */
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "cli/doctor_kinds.h"
#include "cli/placement.h"
#include "cli/pod_case.h"
#include "model/rack.h"
#include "rules/message.h"

/* ---- the claim template ---- */

/* The number of characters that must be inserted, removed or replaced. */
static size_t edit_distance(const char *a, const char *b) {
        size_t row[256], n = strlen(b);
        if (n >= ARRAY_LEN(row) || strlen(a) >= ARRAY_LEN(row))
                return SIZE_MAX;
        for (size_t k = 0; k <= n; k++)
                row[k] = k;
        for (size_t i = 0; a[i]; i++) {
                size_t before = row[0];
                row[0] = i + 1;
                for (size_t k = 1; k <= n; k++) {
                        size_t replaced = before + (a[i] != b[k - 1]);
                        size_t other = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
                        before = row[k];
                        row[k] = replaced < other ? replaced : other;
                }
        }
        return row[n];
}

/* The claim template of the namespace with the most similar name; NULL: none is similar. */
static const char *similar_template(const struct pod_case *c) {
        size_t best = strlen(c->template_name) / 3 + 1;
        const char *name = NULL;
        VIEW_EACH(c->v, VIEW_TEMPLATES, struct rct, r) {
                size_t n = streq(r->o.meta.ns, c->pod->o.meta.ns)
                                   ? edit_distance(r->o.meta.name, c->template_name)
                                   : SIZE_MAX;
                if (n < best) {
                        best = n;
                        name = r->o.meta.name;
                }
        }
        return name;
}

/* The ComputeDomain of the template exists. Only a user who may read the Deployment of the controller knows
 * whether the template is still being created. */
static void diagnose_missing_template(struct pod_case *c) {
        const struct reason *r = reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_TEMPLATE_MISSING);
        static const char text[] = "ComputeDomain %s exists, but its claim template %s does not yet";
        if (diagnosis_needs(c->d, VIEW_DEPLOYMENTS, NULL)) {
                diagnosis_add(c->d, r, NULL, text, c->cd_name, c->template_name);
        } else {
                diagnosis_possible(c->d, reason_cause(CAUSE_NO_CONTROLLER),
                                   "no controller of the driver is ready");
                diagnosis_possible(c->d, r, text, c->cd_name, c->template_name);
        }
}

/* Whether a ComputeDomain has the name of the rack, so that the rack gets none in this namespace. */
static bool diagnose_rack_name(struct pod_case *c, const char *rack) {
        const struct compute_domain *cd = view_find(c->v, VIEW_DOMAINS, c->pod->o.meta.ns, rack);
        if (!cd || cd->rack)
                return false;
        diagnosis_add(c->d, reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_RACK_NAME_TAKEN), NULL,
                      "the ComputeDomain %s has the name of the rack whose claim template the pod needs, but "
                      "does not belong to the rack",
                      rack);
        return true;
}

/* Whether the controller's message names the rack whose ComputeDomain has the name: "... rack ID ...". Only a
 * rack with a label has the same ID and name. */
static bool message_names_rack(struct arena *a, const char *message, const char *name) {
        static const char lead[] = "rack ", chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
        for (const char *at = message; (at = strstr(at, lead)) != NULL;) {
                _cleanup_(buf_done) struct buf part = BUF_INIT(1024), whole = BUF_INIT(1024);
                at += sizeof lead - 1;
                size_t n = strspn(at, chars);
                if (n > RACK_MAX)
                        continue;
                const char *id = arena_strndup(a, at, n);
                rack_domain_name(id, false, &part);
                rack_domain_name(id, true, &whole);
                if (streq(name, buf_str(&part)) || streq(name, buf_str(&whole)))
                        return true;
        }
        return false;
}

/* Whether an Event of such an object explains why the rack has no ComputeDomain. name, reason: NULL: any. */
static bool diagnose_rack_event(struct pod_case *c, const char *kind, const char *name, unsigned of,
                                const char *reason, const char *rack) {
        const struct event_object **list;
        view_read(c->v, VIEW_EVENTS, "default"); /* of objects without a namespace */
        for (size_t i = 0, n = view_events(c->v, kind, NULL, name, NULL, &list); i < n; i++) {
                const struct reason *r = reason_find(of, list[i]->reason);
                if (!r || (reason && !streq(reason, list[i]->reason)) || !list[i]->message ||
                    !message_names_rack(c->d->a, list[i]->message, rack))
                        continue;
                diagnosis_add(c->d, r, NULL, "%s", list[i]->message);
                return true;
        }
        return false;
}

/* Why the namespace has no ComputeDomain for the rack whose claim template the pod names. */
static bool diagnose_rack_template(struct pod_case *c) {
        const char *ns = c->pod->o.meta.ns, *name = c->template_name, *rack;
        if (!str_starts(name, RACK_TEMPLATE_PREFIX))
                return false;
        rack = name + strlen(RACK_TEMPLATE_PREFIX);
        if (diagnose_rack_name(c, rack))
                return true;
        if (diagnose_rack_event(c, "Namespace", ns, REASON_OF_NAMESPACE, NULL, rack) ||
            diagnose_rack_event(c, "Node", NULL, REASON_OF_NODE, REASON_TOO_MANY_RACKS_OF_NODE, rack))
                return true;
        view_find_driver(c->v);
        view_read_one(c->v, VIEW_NAMESPACES, NULL, ns);
        const struct namespace_object *o = view_find(c->v, VIEW_NAMESPACES, NULL, ns);
        const char *label = o ? jd_pair_get(o->labels, o->n_labels, CD_LABEL_RACK_DOMAINS) : NULL;
        if (!o || streq(ns, c->v->driver_ns) || streq(label, "enabled"))
                return false;
        if (label) {
                diagnosis_add(c->d, reason_find(REASON_OF_NAMESPACE, REASON_RACK_DOMAINS_LABEL_INVALID), NULL,
                              "the label " CD_LABEL_RACK_DOMAINS " of namespace %s has the value \"%s\"", ns,
                              label);
                return true;
        }
        diagnosis_add(c->d, reason_cause(CAUSE_TEMPLATE_NOT_FOUND),
                      arena_printf(c->d->a,
                                   "if %s is a rack, ask a cluster admin: kubectl label namespace "
                                   "%s " CD_LABEL_RACK_DOMAINS "=enabled",
                                   rack, term_shell_word(c->d->a, ns)),
                      "no claim template \"%s\" in namespace %s, which has no label " CD_LABEL_RACK_DOMAINS,
                      name, ns);
        return true;
}

/* The pod has no claim because its template does not exist. */
static void diagnose_template(struct pod_case *c) {
        const char *ns = c->pod->o.meta.ns;
        if (view_not_served(c->v, VIEW_DOMAINS)) {
                diagnosis_no_domains(c->d);
                return;
        }
        if (c->cd && (domain_diagnose_deletion(c->d, c->cd) || domain_diagnose_template(c->d, c->cd)))
                return;
        if (c->cd && controller_diagnose(c->d))
                return;
        if (c->cd) {
                diagnose_missing_template(c);
                return;
        }
        if (diagnose_rack_template(c))
                return;
        /* The names of racks are similar to each other. */
        const char *similar = str_starts(c->template_name, RACK_TEMPLATE_PREFIX) ? NULL : similar_template(c);
        if (similar)
                diagnosis_add(c->d, reason_cause(CAUSE_TEMPLATE_NOT_FOUND),
                              arena_printf(c->d->a, "correct resourceClaimTemplateName of the pod: \"%s\"",
                                           similar),
                              "no claim template \"%s\" in namespace %s; \"%s\" exists", c->template_name, ns,
                              similar);
        else
                diagnosis_add(c->d, reason_cause(CAUSE_TEMPLATE_NOT_FOUND), NULL,
                              "no claim template \"%s\" in namespace %s", c->template_name, ns);
}

/* The template exists, or may not be read, and the claim does not exist. */
static bool diagnose_claim(struct pod_case *c) {
        const struct kube_meta *m = &c->pod->o.meta;
        const struct event_object *e =
                view_event(c->v, "Pod", m->ns, m->name, m->uid, "FailedResourceClaimCreation");
        if (!c->template_name || c->claim)
                return false;
        if (!c->template && view_state(c->v, VIEW_TEMPLATES, m->ns) == VIEW_COMPLETE) {
                diagnose_template(c);
                return true;
        }
        /* The Event may be from the time before the template existed. */
        if (e && !c->template && e->message && strstr(e->message, c->template_name) &&
            strstr(e->message, "not found")) {
                diagnosis_add(c->d, reason_cause(CAUSE_TEMPLATE_NOT_FOUND), NULL, "%s", e->message);
                return true;
        }
        if (e && !pod_object_claim(c->pod, c->asks)) {
                diagnosis_add(c->d, reason_cause(CAUSE_CLAIM_NOT_CREATED), NULL, "%s",
                              str_or(e->message, e->reason));
                return true;
        }
        return false;
}

/* ---- channels ---- */

/* The rack that a selector of the claim template requires:
 * device.attributes["compute-domain.nvidia.com"].rack == "x". */
static const char *required_rack(const struct pod_case *c) {
        for (size_t i = 0; c->template && i < c->template->n_requests; i++)
                for (size_t k = 0; k < c->template->requests[i].n_selectors; k++) {
                        const char *text = c->template->requests[i].selectors[k].expression;
                        const char *at = text ? strstr(text, "." CD_ATTRIBUTE_RACK) : NULL;
                        at = at ? strpbrk(at, "'\"") : NULL;
                        if (at)
                                return arena_strndup(c->d->a, at + 1, strcspn(at + 1, "'\""));
                }
        return NULL;
}

/* Which nodes the pod may use, as far as the rules of channels decide. */
struct candidates {
        const char *clique, *rack;    /* NULL: any */
        const struct pod_object *pod; /* limits them to those on which it may run; NULL: any */
        bool shared;                  /* the device of shared claims, for any number of pods */
        size_t nodes, offered, free, seats, used;
        const char *last; /* the name of one of them; NULL: there is none */
};

static bool is_candidate(const struct candidates *x, const struct inventory_node *n) {
        return (!x->clique || streq(x->clique, n->clique)) && (!x->rack || streq(x->rack, n->rack)) &&
               (!x->pod || placement_judge(x->pod, n->node) == PLACEMENT_ALLOWED);
}

/* The ResourceSlice of the shared device selects this label. */
static bool offers_shared(const struct node_object *n) {
        return n && streq(jd_pair_get(n->labels, n->n_labels, CD_LABEL_SHARED), "true");
}

static void count_candidates(const struct inventory *inv, struct candidates *x) {
        for (size_t i = 0; i < inv->n_nodes; i++) {
                const struct inventory_node *n = &inv->nodes[i];
                if (!is_candidate(x, n))
                        continue;
                x->nodes++;
                x->last = n->name;
                if (x->shared) {
                        bool offers = offers_shared(n->node);
                        x->offered += offers;
                        x->free += offers && inventory_is_up(n);
                        continue;
                }
                if (!n->seats)
                        continue;
                x->offered++;
                x->free += inventory_is_free(n);
                x->seats += n->seats;
                x->used += n->n_holders < n->seats ? n->n_holders : n->seats;
        }
}

struct user_count {
        const char *name;
        size_t n;
};

static int users_by_count(const void *x, const void *y) {
        const struct user_count *a = x, *b = y;
        return a->n < b->n ? 1 : a->n > b->n ? -1 : strcmp(a->name, b->name);
}

/* "12 team-a/llm-70b, 6 team-c/eval" */
static const char *users_of(struct pod_case *c, const struct inventory *inv, const struct candidates *x) {
        struct user_count *list = arena_alloc(c->d->a, (c->v->kinds[VIEW_CLAIMS].n + 1) * sizeof *list);
        struct message_list text = { 0 };
        size_t n = 0;
        for (size_t i = 0; i < inv->n_nodes; i++)
                for (size_t k = 0; is_candidate(x, &inv->nodes[i]) && k < inv->nodes[i].n_holders; k++) {
                        const char *name = inventory_user(c->v, inv->nodes[i].holders[k]);
                        size_t at = 0;
                        while (at < n && !streq(list[at].name, name))
                                at++;
                        if (at == n)
                                list[n++] = (struct user_count){ .name = name };
                        list[at].n++;
                }
        if (n)
                qsort(list, n, sizeof *list, users_by_count);
        for (size_t i = 0; i < n; i++)
                message_add(&text, "%zu %s", list[i].n, list[i].name);
        return message_end(&text, c->d->a);
}

/* The rack with the most nodes that have a free channel device for the pod, except one; NULL: none has. */
static const struct inventory_rack *freest_rack(const struct pod_case *c, const struct inventory *inv,
                                                const char *except, size_t *ret_free) {
        const struct inventory_rack *best = NULL;
        *ret_free = 0;
        for (size_t i = 0; i < inv->n_racks; i++) {
                struct candidates x = { .clique = inv->racks[i].clique, .pod = c->pod };
                if (streq(x.clique, except))
                        continue;
                count_candidates(inv, &x);
                if (x.free > *ret_free) {
                        best = &inv->racks[i];
                        *ret_free = x.free;
                }
        }
        return best;
}

/* The most frequent reason why nodes publish no channel device. Returns whether there is any. */
static bool diagnose_withheld(struct pod_case *c, const struct inventory *inv, const struct candidates *x) {
        const struct inventory_node *best = NULL;
        size_t most = 0;
        struct message_list names = { 0 };
        for (size_t i = 0; i < inv->n_nodes; i++) {
                const struct inventory_node *n = &inv->nodes[i];
                size_t same = 0;
                if (!n->withheld || !is_candidate(x, n))
                        continue;
                for (size_t k = 0; k < inv->n_nodes; k++)
                        same += streq(inv->nodes[k].withheld, n->withheld) && is_candidate(x, &inv->nodes[k]);
                if (same > most) {
                        most = same;
                        best = n;
                }
        }
        if (!best)
                return false;
        for (size_t i = 0; i < inv->n_nodes; i++)
                if (streq(inv->nodes[i].withheld, best->withheld) && is_candidate(x, &inv->nodes[i]))
                        message_add(&names, "%s", inv->nodes[i].name);
        const struct reason *r = reason_find(REASON_OF_NODE, best->withheld);
        diagnosis_add(c->d, r ? r : reason_cause(CAUSE_NO_CHANNEL_OFFERED), NULL,
                      "%s withhold%s the channel: %s%s%s", message_end(&names, c->d->a), most == 1 ? "s" : "",
                      best->withheld, best->withheld_why ? ": " : "",
                      best->withheld_why ? best->withheld_why : "");
        return true;
}

static bool limits_gpus(const struct container *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (jd_pair_get(list[i].limits, list[i].n_limits, "nvidia.com/gpu"))
                        return true;
        return false;
}

/* Whether the pod also needs devices of other drivers, or GPUs of a device plugin. */
static bool needs_gpus(const struct pod_case *c) {
        for (size_t i = 0; i < c->pod->n_claims; i++) {
                const struct pod_claim *x = &c->pod->claims[i];
                const struct claim_object *claim =
                        view_find(c->v, VIEW_CLAIMS, c->pod->o.meta.ns, pod_object_claim(c->pod, x));
                if (claim && claim != c->claim && !claim->claim.allocated)
                        return true;
        }
        return limits_gpus(c->pod->containers, c->pod->n_containers) ||
               limits_gpus(c->pod->init_containers, c->pod->n_init_containers);
}

static bool says(const struct pod_case *c, const char *words) {
        return c->waits && strstr(c->waits, words);
}

/* Whether the scheduler also gives reasons that concern neither channels nor GPUs. */
static bool has_other_reason(const struct pod_case *c) {
        static const char *const words[] = { "taint",
                                             "node affinity",
                                             "selector",
                                             "Insufficient cpu",
                                             "Insufficient memory",
                                             "unschedulable",
                                             "Too many pods",
                                             "topology spread",
                                             "anti-affinity",
                                             "volume",
                                             "Insufficient ephemeral-storage",
                                             "free ports" };
        for (size_t i = 0; c->waits && i < ARRAY_LEN(words); i++)
                if (strstr(c->waits, words[i]))
                        return true;
        return false;
}

static void add_full(struct pod_case *c, const struct inventory *inv, const struct candidates *x) {
        const char *rack = inventory_rack_name(c->v, x->clique);
        size_t n_free;
        const struct inventory_rack *other = freest_rack(c, inv, x->clique, &n_free);
        const char *rest = other ? arena_printf(c->d->a, "; %s has %zu free", other->name, n_free) : "";
        diagnosis_add(
                c->d, reason_cause(CAUSE_PARTITION_FULL),
                other ? "delete the workload and create it again: its first pod chooses the partition again"
                      : "wait until a pod with a channel ends there, or use fewer nodes",
                "%zu of %zu pods run on %s, where no channel is free (%zu of %zu in use: %s)%s", c->n_placed,
                c->n_siblings, rack, x->used, x->seats, users_of(c, inv, x), rest);
}

/* The pod may run on none of the nodes. */
static void diagnose_excluded(struct pod_case *c, const struct inventory *inv, const struct candidates *x,
                              const char *where) {
        const struct node_taint *taint = NULL;
        struct message_list list = { 0 };
        size_t n_taint = 0, n_labels = 0;
        for (size_t i = 0; i < inv->n_nodes; i++) {
                const struct node_object *n = inv->nodes[i].node;
                if (!is_candidate(x, &inv->nodes[i]))
                        continue;
                enum placement why = placement_judge(c->pod, n);
                n_taint += why == PLACEMENT_TAINT;
                n_labels += why == PLACEMENT_LABELS;
                if (!taint)
                        taint = placement_taint(c->pod, n);
        }
        if (n_labels)
                message_add(&list, "%zu without the labels of its nodeSelector or node affinity", n_labels);
        if (taint)
                message_add(&list, "%zu with a taint that it does not tolerate (%s=%s:%s)", n_taint,
                            str_or(taint->key, ""), str_or(taint->value, ""), str_or(taint->effect, ""));
        diagnosis_add(c->d, reason_cause(CAUSE_SCHEDULING_FAILED),
                      "change the nodeSelector, the node affinity or the tolerations of the pod",
                      "the pod may run on no GPU node%s: %s", where, message_end(&list, c->d->a));
}

/* " on rack-a", " on node-3" */
static const char *where_text(struct pod_case *c, const struct inventory *inv, const struct candidates *x,
                              bool limited) {
        if (limited)
                return x->nodes == 1 ? arena_printf(c->d->a, " on %s", x->last) : " on the allowed nodes";
        if (x->clique)
                return arena_printf(c->d->a, " on %s", inventory_rack_name(c->v, x->clique));
        if (x->rack)
                return arena_printf(c->d->a, " on %s", x->rack);
        return inv->n_racks == 1 ? arena_printf(c->d->a, " on %s", inv->racks[0].name) : "";
}

/* All nodes, those in the rack and the partition that the pod needs, and of these, those that accept it. */
struct places {
        struct candidates all, part, own;
        const char *where; /* describes `own` in messages */
};

/* Returns false if it has named why the pod may run on no node of `part`. */
static bool find_places(struct pod_case *c, const struct inventory *inv, bool shared, const char *rack,
                        struct places *ret) {
        *ret = (struct places){ .all = { .shared = shared }, .part = { .shared = shared, .rack = rack } };
        if (pod_case_affinity(c->pod) && c->n_placed && pod_case_clique(c) && *c->clique)
                ret->part.clique = c->clique;
        ret->own = ret->part;
        ret->own.pod = c->pod;
        count_candidates(inv, &ret->all);
        count_candidates(inv, &ret->part);
        count_candidates(inv, &ret->own);
        ret->where = where_text(c, inv, &ret->own, ret->own.nodes < ret->part.nodes);
        if (!ret->part.nodes || ret->own.nodes)
                return true;
        diagnose_excluded(c, inv, &ret->part, where_text(c, inv, &ret->part, false));
        return false;
}

/* Names the cause from complete lists. */
static void diagnose_channels(struct pod_case *c, const struct inventory *inv) {
        struct places p;
        if (!find_places(c, inv, false, required_rack(c), &p))
                return;
        if (p.own.seats)
                diagnosis_line(c->d, p.own.free ? TERM_OK : TERM_BAD, "channel", "%zu of %zu in use%s",
                               p.own.used, p.own.seats, p.where);
        else
                diagnosis_line(c->d, TERM_BAD, "channel", "no node publishes one%s", p.where);
        if (!p.all.offered) {
                if (!plugin_diagnose(c->d, NULL) && !diagnose_withheld(c, inv, &p.own))
                        diagnosis_add(c->d, reason_cause(CAUSE_NO_CHANNEL_OFFERED), NULL,
                                      inv->n_nodes ? "no node publishes a channel device"
                                                   : "no node of the cluster has an NVIDIA GPU");
        } else if (!p.own.offered) {
                if (!(p.own.nodes == 1 && plugin_diagnose(c->d, p.own.last)) &&
                    !diagnose_withheld(c, inv, &p.own))
                        diagnosis_add(c->d, reason_cause(CAUSE_NO_CHANNEL_OFFERED), NULL,
                                      "no channel device is published%s", p.where);
        } else if (!p.part.free && p.part.clique && p.all.free) {
                add_full(c, inv, &p.part);
        } else if (!p.own.free && p.own.used < p.own.seats) {
                if (!diagnose_withheld(c, inv, &p.own))
                        diagnosis_add(c->d, reason_cause(CAUSE_NO_FREE_CHANNEL),
                                      "wait until the nodes are Ready, or uncordon them",
                                      "the nodes%s with a free channel are not Ready or cordoned (%zu of %zu "
                                      "channels in use)",
                                      p.where, p.own.used, p.own.seats);
        } else if (!p.own.free) {
                diagnosis_add(c->d, reason_cause(CAUSE_NO_FREE_CHANNEL), NULL,
                              "no free channel: %zu of %zu%s in use (%s)", p.own.used, p.own.seats, p.where,
                              users_of(c, inv, &p.own));
        } else if (needs_gpus(c) && !has_other_reason(c)) {
                diagnosis_add(c->d, reason_cause(CAUSE_GPUS_NOT_FREE), NULL,
                              "%zu of %zu nodes have a free channel, but the scheduler finds none with "
                              "enough GPUs: %s",
                              p.own.free, p.own.offered, c->waits);
        } else {
                diagnosis_add(c->d, reason_cause(CAUSE_SCHEDULING_FAILED), NULL,
                              "%zu of %zu nodes have a free channel, but the pod may not use them: %s",
                              p.own.free, p.own.offered, c->waits);
        }
}

static void channels_possible(struct pod_case *c) {
        diagnosis_possible(c->d, reason_cause(CAUSE_NO_FREE_CHANNEL), "all channels are in use");
        diagnosis_possible(c->d, reason_cause(CAUSE_NO_CHANNEL_OFFERED),
                           "the nodes withhold their channels, or no plugin runs on them");
        if (pod_case_affinity(c->pod) && c->n_placed)
                diagnosis_possible(c->d, reason_cause(CAUSE_PARTITION_FULL),
                                   "the NVLink partition of the other pods is full");
        if (needs_gpus(c))
                diagnosis_possible(c->d, reason_cause(CAUSE_GPUS_NOT_FREE), "not enough GPUs are free");
}

/* ---- shared claims ---- */

/* Pods that have reserved the claim need no other place in it. */
static bool is_reserved(const struct pod_case *c) {
        const struct claim *x = c->claim ? &c->claim->claim : NULL;
        for (size_t i = 0; x && i < x->n_consumers; i++)
                if (claim_consumer_is_group(&x->consumers[i]) ||
                    streq(x->consumers[i].uid, c->pod->o.meta.uid))
                        return true;
        return false;
}

/* Why no pod can use the claim, as the controller reports it. */
static bool diagnose_shared_condition(struct pod_case *c) {
        const struct cd_condition *x =
                c->cd ? domain_condition(c->cd, CONDITION_SHARED_CLAIM_AVAILABLE) : NULL;
        if (!x || condition_status_decode(x->status) != STATUS_FALSE ||
            streq(x->reason, REASON_GROUP_ON_ONE_NODE) ||
            (streq(x->reason, REASON_CLAIM_FULL) && is_reserved(c)))
                return false;
        return domain_diagnose_condition(c->d, c->cd, x);
}

static void shared_possible(struct pod_case *c) {
        diagnosis_possible(c->d, reason_cause(CAUSE_NO_CHANNEL_OFFERED),
                           "the nodes that the pod may use do not have the label " CD_LABEL_SHARED
                           ", which the driver sets where IMEX is ready");
        if (needs_gpus(c) || says(c, "Insufficient nvidia.com/gpu"))
                diagnosis_possible(c->d, reason_cause(CAUSE_GPUS_NOT_FREE), "not enough GPUs are free");
}

/* Names the cause from complete lists. Any number of pods can use the device of a node. */
static void diagnose_shared_nodes(struct pod_case *c, const struct inventory *inv) {
        struct places p;
        if (!find_places(c, inv, true, NULL, &p))
                return;
        diagnosis_line(c->d, p.own.free ? TERM_OK : TERM_BAD, "channel",
                       "%zu of %zu nodes%s offer it to shared claims", p.own.offered, p.own.nodes, p.where);
        if (!p.own.offered) {
                if (!(p.own.nodes == 1 && plugin_diagnose(c->d, p.own.last)) &&
                    !(!p.all.offered && plugin_diagnose(c->d, NULL)) && !diagnose_withheld(c, inv, &p.own))
                        diagnosis_add(c->d, reason_cause(CAUSE_NO_CHANNEL_OFFERED), NULL,
                                      "no node%s has the label " CD_LABEL_SHARED
                                      ", which the driver sets where IMEX is ready",
                                      p.where);
        } else if (!p.own.free) {
                diagnosis_add(c->d, reason_cause(CAUSE_NO_CHANNEL_OFFERED),
                              "wait until the nodes are Ready, or uncordon them",
                              "the nodes%s that offer the channel are not Ready or cordoned", p.where);
        } else if ((needs_gpus(c) || says(c, "Insufficient nvidia.com/gpu")) && !has_other_reason(c)) {
                diagnosis_add(c->d, reason_cause(CAUSE_GPUS_NOT_FREE), NULL,
                              "%zu of %zu nodes%s offer the channel, but the scheduler finds none with "
                              "enough GPUs: %s",
                              p.own.free, p.own.nodes, p.where, c->waits);
        } else {
                diagnosis_add(c->d, reason_cause(CAUSE_SCHEDULING_FAILED), NULL,
                              "%zu of %zu nodes%s offer the channel, but the pod may not use them: %s",
                              p.own.free, p.own.nodes, p.where, c->waits);
        }
}

/* The pod waits for a node, and its shared claim exists. Returns whether the claim explains it. */
static bool diagnose_shared(struct pod_case *c) {
        struct inventory inv;
        bool about =
                says(c, "resourceclaim not available on the node") || says(c, "cannot allocate all claims");
        if (!c->shared)
                return false;
        if (diagnose_shared_condition(c))
                return true;
        if (!about && !says(c, "didn't match pod affinity rules"))
                return false;
        inventory_make_channels(c->v, c->pod->o.meta.ns, &inv);
        if (diagnosis_needs(c->d, VIEW_NODES, NULL)) {
                diagnose_shared_nodes(c, &inv);
                return true;
        }
        if (about)
                shared_possible(c);
        return about;
}

/* ---- claims for one node ---- */

/* The scheduler has found the claim on another node. Returns whether that can be the channel's claim. */
static bool diagnose_on_one_node(struct pod_case *c) {
        const struct reason *r = reason_find(REASON_OF_CLAIM, REASON_SHARED_ON_ONE_NODE);
        const struct claim *x = c->claim ? &c->claim->claim : NULL;
        const struct cd_condition *group =
                c->cd ? domain_condition(c->cd, CONDITION_SHARED_CLAIM_AVAILABLE) : NULL;
        struct claim_group owner;
        const char *name = str_or(pod_object_claim(c->pod, c->asks), "of the pod");
        if (!says(c, "resourceclaim not available on the node") || (x ? !x->allocated : !c->asks->claim))
                return false;
        const char *node = x && x->n_results ? str_or(x->results[0].pool, "another node") : "another node";
        if (x && claim_of_group(x, c->d->a, &owner)) {
                if (!group || !streq(group->reason, REASON_GROUP_ON_ONE_NODE) ||
                    !domain_diagnose_condition(c->d, c->cd, group))
                        diagnosis_add(c->d, reason_find(REASON_OF_POD_GROUP, REASON_POD_GROUP_ON_ONE_NODE),
                                      NULL, "the pods of PodGroup %s share the claim %s, which belongs to %s",
                                      owner.name, name, node);
        } else if (c->template_name) {
                diagnosis_add(c->d, reason_cause(CAUSE_SCHEDULING_FAILED),
                              "wait: the scheduler chooses another node. If this persists, recreate the pod",
                              "the claim %s belongs to %s, which the pod may not use: %s", name, node,
                              c->waits);
        } else {
                diagnosis_add(c->d, r, NULL, "the claim %s belongs to another node", name);
        }
        return true;
}

void pending_diagnose(struct pod_case *c) {
        struct inventory inv;
        if (c->asks && (diagnose_claim(c) || named_claim_diagnose(c) || named_claim_diagnose_taken(c) ||
                        named_claim_diagnose_ending(c)))
                return;
        if (says(c, "nil or empty request mappings")) {
                diagnosis_add(
                        c->d, reason_cause(CAUSE_GPUS_OFFERED_TWICE), NULL,
                        "both a device plugin and the device class gpu.nvidia.com offer nvidia.com/gpu");
                return;
        }
        if (c->asks && c->cd && c->cd->o.meta.deleted) {
                diagnosis_add(c->d, reason_find_anchor("domain-deleting"), NULL,
                              "ComputeDomain %s is being deleted", c->cd_name);
                return;
        }
        if (c->asks && c->domain_uid && !c->cd &&
            view_state(c->v, VIEW_DOMAINS, c->pod->o.meta.ns) == VIEW_COMPLETE) {
                diagnosis_add(c->d, reason_find_anchor("no-computedomain"), NULL,
                              "the ComputeDomain %s of the claim does not exist",
                              str_or(c->cd_name, c->domain_uid));
                return;
        }
        bool affinity =
                says(c, "didn't match pod affinity rules") && pod_case_affinity(c->pod) && c->n_placed;
        if (c->asks && (c->shared ? diagnose_shared(c) : diagnose_on_one_node(c)))
                return;
        if (c->asks && !c->shared && (says(c, "cannot allocate all claims") || affinity)) {
                inventory_make_channels(c->v, c->pod->o.meta.ns, &inv);
                bool complete = diagnosis_needs(c->d, VIEW_NODES, NULL);
                complete = diagnosis_needs(c->d, VIEW_SLICES, NULL) && complete;
                complete = diagnosis_needs(c->d, VIEW_CLAIMS, NULL) && complete;
                if (complete && inv.complete)
                        diagnose_channels(c, &inv);
                else if (!shortage_diagnose(c, pod_case_affinity(c->pod)))
                        channels_possible(c);
        } else if (says(c, "Insufficient nvidia.com/gpu")) {
                diagnosis_add(c->d, reason_cause(CAUSE_GPUS_NOT_FREE), NULL,
                              "the scheduler finds no node with enough GPUs: %s", c->waits);
        } else if (c->waits) {
                diagnosis_add(c->d, reason_cause(CAUSE_SCHEDULING_FAILED), NULL, "%s", c->waits);
        } else {
                diagnosis_add(c->d, reason_cause(CAUSE_UNKNOWN), NULL,
                              "the scheduler has not reported why the pod has no node");
        }
}
