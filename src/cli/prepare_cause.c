/* SPDX-License-Identifier: Apache-2.0 */
/* The causes why the containers of a pod that has a node do not run. */
#include <string.h>

#include "api/names.h"
#include "api/states.h"
#include "cli/member_view.h"
#include "cli/pod_case.h"
#include "rules/message.h"

/* The part of the kubelet's message that comes from the plugin: "... node-1: device 'channel-0' is ...". */
static const char *plugin_part(const struct pod_case *c, const char *message) {
        _cleanup_(freep) char *lead = xasprintf("%s: ", c->pod->node);
        const char *at = strstr(message, lead);
        return at ? at + strlen(lead) : message;
}

static const struct pod_object *prepare_daemon(struct pod_case *c) {
        view_find_driver(c->v);
        if (c->v->driver_ns)
                view_read(c->v, VIEW_PODS, c->v->driver_ns);
        VIEW_EACH(c->v, VIEW_PODS, struct pod_object, p)
        if (p->daemon && streq(p->node, c->pod->node) && !p->o.meta.deleted)
                return p;
        return NULL;
}

/* ---- lines ---- */

static void line_node(struct pod_case *c) {
        const struct domain_node *member = NULL;
        for (size_t i = 0; c->cd && i < c->cd->n_nodes; i++)
                if (streq(c->cd->nodes[i].node, c->pod->node))
                        member = &c->cd->nodes[i];
        view_read(c->v, VIEW_NODES, NULL);
        const struct node_object *n = view_find(c->v, VIEW_NODES, NULL, c->pod->node);
        if (n && !node_ready(&n->node))
                diagnosis_line(c->d, TERM_BAD, "node", "%s is not Ready", c->pod->node);
        else if (member && member->index >= 0)
                diagnosis_line(c->d, TERM_OK, "node", "%s is in the domain, index %lld", c->pod->node,
                               (long long)member->index);
        else if (member)
                diagnosis_line(c->d, TERM_OK, "node", "%s is in the domain", c->pod->node);
        else
                diagnosis_line(c->d, TERM_WAIT, "node", "%s%s", c->pod->node,
                               c->cd && c->cd->nodes_wanted ? " has not joined the domain yet" : "");
}

static void line_daemon(struct pod_case *c, const struct pod_object *daemon) {
        if (c->v->hosts || !c->asks)
                return;
        if (daemon)
                diagnosis_line(c->d, pod_object_ready(daemon) ? TERM_OK : TERM_WAIT, "daemon", "%s %s",
                               daemon->o.meta.name, str_or(daemon->phase, "Unknown"));
        else if (c->v->driver_ns && view_state(c->v, VIEW_PODS, c->v->driver_ns) == VIEW_COMPLETE)
                diagnosis_line(c->d, TERM_BAD, "daemon", "no daemon Pod on %s", c->pod->node);
        const struct pod *p = daemon ? &daemon->daemon->pod : NULL;
        if (!p || !p->state)
                return;
        bool ready = streq(p->ready, "true");
        diagnosis_line(c->d,
                       ready                                                ? TERM_OK
                       : imex_status_decode(p->state) == IMEX_STATE_BACKOFF ? TERM_BAD
                                                                            : TERM_WAIT,
                       "IMEX", "%s%s%s%s%s", p->state, p->reason ? ": " : "", p->reason ? p->reason : "",
                       p->peers ? ", peers " : "", p->peers ? p->peers : "");
}

/* ---- causes ---- */

/* The other claim that has the same device. The plugin does not name claims of other namespaces to a pod. */
static const struct claim_object *claim_with_device(struct pod_case *c) {
        const struct claim *mine = c->claim ? &c->claim->claim : NULL;
        if (!mine || !mine->n_results)
                return NULL;
        view_read(c->v, VIEW_CLAIMS, NULL);
        VIEW_EACH(c->v, VIEW_CLAIMS, struct claim_object, x)
        for (size_t i = 0; x != c->claim && i < x->claim.n_results; i++) {
                const struct claim_result *r = &x->claim.results[i];
                if (claim_result_is_channel(r) && !claim_result_is_shared(r) && !r->admin_access &&
                    streq(r->pool, mine->results[0].pool) && streq(r->device, mine->results[0].device))
                        return x;
        }
        return NULL;
}

/* "ns/name" between quotation marks behind the word "claim". */
static const struct claim_object *holder_of(struct pod_case *c, const char *message) {
        static const char words[] = "held by claim '";
        const char *at = strstr(message, words), *slash = at ? strchr(at, '/') : NULL;
        if (!slash)
                return claim_with_device(c);
        at += sizeof words - 1;
        const char *ns = arena_strndup(c->d->a, at, (size_t)(slash - at));
        const char *name = arena_strndup(c->d->a, slash + 1, strcspn(slash + 1, "'"));
        if (!str_is_dns_label(ns) || !str_is_dns_subdomain(name))
                return NULL;
        view_read(c->v, VIEW_CLAIMS, ns);
        return view_find(c->v, VIEW_CLAIMS, ns, name);
}

/* The pod that still has the channel device. */
static void add_holder(struct pod_case *c, const struct reason *r, const char *message) {
        const struct claim_object *claim = holder_of(c, message);
        const char *ns = claim ? claim->claim.o.meta.ns : NULL;
        const char *pod_name = claim && claim->claim.n_consumers ? claim->claim.consumers[0].name : NULL;
        if (!pod_name)
                pod_name = claim && claim->claim.n_owners && streq(claim->claim.owners[0].kind, "Pod")
                                   ? claim->claim.owners[0].name
                                   : NULL;
        if (pod_name)
                view_read_one(c->v, VIEW_PODS, ns, pod_name);
        const struct pod_object *p = view_find(c->v, VIEW_PODS, ns, pod_name);
        if (!p) {
                diagnosis_add(c->d, r, NULL, "%s", message);
                return;
        }
        const char *ends = p->o.meta.deleted ? arena_printf(c->d->a, "Terminating for %s%s%s",
                                                            pod_case_since(c->d, pod_object_deleted(p)),
                                                            p->n_finalizers ? ", finalizer " : "",
                                                            p->n_finalizers ? p->finalizers[0] : "")
                                             : str_or(p->phase, "Unknown");
        const char *fix;
        if (!p->o.meta.deleted)
                fix = arena_printf(c->d->a, "end pod %s/%s, or use another node", ns, pod_name);
        else if (p->o.meta.deleted > c->v->source->now)
                fix = arena_printf(c->d->a, "wait until pod %s/%s ends: %s of its grace period are left", ns,
                                   pod_name, term_age(c->d->a, p->o.meta.deleted - c->v->source->now));
        else
                fix = arena_printf(c->d->a,
                                   "see why that pod does not end: kubectl compute-domains why pod/%s -n %s",
                                   term_shell_word(c->d->a, pod_name), term_shell_word(c->d->a, ns));
        diagnosis_add(c->d, r, fix, "the channel of %s is still held by %s/%s (%s)", c->pod->node, ns,
                      pod_name, ends);
}

/* NetworkPolicies that select the daemon, except the chart's own. */
static const char *policies_of(struct pod_case *c, const struct pod_object *daemon) {
        struct message_list names = { 0 };
        view_read(c->v, VIEW_POLICIES, daemon->o.meta.ns);
        VIEW_EACH(c->v, VIEW_POLICIES, struct policy_object, p)
        if (streq(p->o.meta.ns, daemon->o.meta.ns) && policy_object_selects(p, daemon) &&
            !jd_pair_get(p->selector, p->n_selector, CD_LABEL_COMPONENT))
                message_add(&names, "\"%s\"", p->o.meta.name);
        return message_end(&names, c->d->a);
}

/* IMEX of the node waits for other nodes. */
static void add_peers(struct pod_case *c, const struct reason *r, const struct pod_object *daemon,
                      const char *message) {
        const struct pod *p = daemon ? &daemon->daemon->pod : NULL;
        const char *policies = daemon ? policies_of(c, daemon) : "";
        const char *awaited = p && p->awaited ? arena_printf(c->d->a, "; it waits for %s", p->awaited) : "";
        const char *peers = p && p->peers ? arena_printf(c->d->a, " (%s peers connected)", p->peers) : "";
        const char *fix = *policies ? arena_printf(c->d->a,
                                                   "NetworkPolicy %s in %s selects the daemons: allow TCP "
                                                   "28000 to 32095 between them",
                                                   policies, daemon->o.meta.ns)
                                    : NULL;
        diagnosis_add(c->d, r, fix, "IMEX on %s: %s%s%s", c->pod->node, message, peers, awaited);
}

/* The plugin or the daemon waits for a decision of the controller. */
static bool awaits_controller(const struct reason *r) {
        static const char *const anchors[] = { "no-assignment", "no-channel-yet", "no-index-yet" };
        return has_string(anchors, ARRAY_LEN(anchors), r->anchor);
}

/* Why the controller does not decide. */
static bool diagnose_decision(struct pod_case *c) {
        static const char *const reasons[] = { REASON_WRITE_FAILED, REASON_DECISION_WRONG,
                                               REASON_DOMAIN_FULL,  REASON_OTHER_MODE,
                                               REASON_INVALID_SPEC, REASON_FORMED_BY_GO_DRIVER };
        for (size_t i = 0; c->cd && i < c->cd->n_conditions; i++) {
                const struct cd_condition *x = &c->cd->conditions[i];
                bool says_why = streq(x->reason, REASON_WAITING) && x->message &&
                                !strstr(x->message, "the controller assigns it");
                if ((says_why || has_string(reasons, ARRAY_LEN(reasons), x->reason)) &&
                    domain_diagnose_condition(c->d, c->cd, x))
                        return true;
        }
        return controller_diagnose(c->d) || (!c->v->hosts && daemon_diagnose(c->d, c->pod->node));
}

static const char imex_lead[] = "IMEX daemon is ";

/* The kubelet knows no plugin. Only this driver's plugin on the node is looked at. */
static bool diagnose_unregistered(struct pod_case *c, const char *message) {
        bool channel = strstr(message, "DRA driver " CD_DRIVER " is not registered");
        if (!channel && !strstr(message, "DRA driver " GPU_DRIVER " is not registered"))
                return false;
        bool known = channel || (c->v->driver_ns && !view_gpus_only(c->v));
        if (!known || !plugin_diagnose(c->d, c->pod->node))
                diagnosis_add(c->d, reason_cause(CAUSE_NO_PLUGIN), NULL,
                              "no plugin is registered with the kubelet of %s", c->pod->node);
        return true;
}

/* The message of the plugin names an entry of the catalogue. */
static bool diagnose_message(struct pod_case *c, const struct pod_object *daemon, const char *whole) {
        const char *message = plugin_part(c, whole);
        const struct reason *r = reason_find_message(message);
        if (diagnose_unregistered(c, whole))
                return true;
        /* The message of the node authorizer in Kubernetes (plugin/pkg/auth/authorizer/node). */
        if (strstr(whole, "no relationship found between node ")) {
                diagnosis_add(c->d, reason_cause(CAUSE_CLAIM_NOT_LINKED), NULL,
                              "the API server did not let the kubelet of %s read the claim yet",
                              c->pod->node);
                return true;
        }
        /* The message of a kubelet since 1.37 (pkg/kubelet/cm/dra/manager.go). */
        if (c->claim && str_ends(whole, arena_printf(c->d->a, "ResourceClaim %s is being unprepared",
                                                     c->claim->claim.o.meta.name))) {
                diagnosis_add(c->d, reason_cause(CAUSE_BEING_UNPREPARED), NULL,
                              "the kubelet of %s still unprepares the claim for an earlier pod",
                              c->pod->node);
                return true;
        }
        if (!r)
                return false;
        if (str_starts(r->anchor, "device-held"))
                add_holder(c, r, message);
        else if (streq(r->anchor, "no-daemon-yet")) {
                if (!daemon_diagnose(c->d, c->pod->node))
                        diagnosis_add(c->d, r, NULL, "%s", message);
        } else if (awaits_controller(r)) {
                if (!diagnose_decision(c))
                        diagnosis_add(c->d, r, NULL, "%s", message);
        } else if (streq(r->anchor, "waiting-for-peers") || str_starts(r->anchor, "recovery")) {
                const char *at = strstr(message, imex_lead);
                add_peers(c, r, daemon, at ? at + sizeof imex_lead - 1 : message);
        } else
                diagnosis_add(c->d, r, NULL, "%s", message);
        return true;
}

/* The report of the daemon, if no Event shows the cause. */
static bool diagnose_daemon(struct pod_case *c, const struct pod_object *daemon) {
        const struct pod *p = daemon ? &daemon->daemon->pod : NULL;
        const struct reason *r = p ? reason_find_message(p->reason) : NULL;
        if (!r || streq(p->ready, "true"))
                return false;
        if (streq(r->anchor, "waiting-for-peers") || str_starts(r->anchor, "recovery"))
                add_peers(c, r, daemon, p->reason);
        else
                diagnosis_add(c->d, r, NULL, "IMEX on %s is %s: %s", c->pod->node,
                              str_or(p->state, "not ready"), p->reason);
        return true;
}

/* The controller's own rules, on the objects that were read. */
static bool diagnose_member(struct pod_case *c) {
        struct membership all;
        if (!c->cd || !member_view_make(c->v, c->cd, &all))
                return false;
        for (size_t i = 0; i < all.n_members; i++) {
                const struct member *m = &all.members[i];
                if (!streq(m->entry.node, c->pod->node) || !*m->message)
                        continue;
                const struct reason *r = reason_find_message(m->message);
                if (!r)
                        r = reason_find(REASON_OF_COMPUTE_DOMAIN,
                                        m->why == MEMBER_LOST       ? REASON_NODE_LOST
                                        : m->why == MEMBER_OCCUPIED ? REASON_NODE_OCCUPIED
                                        : m->why == MEMBER_FULL     ? REASON_DOMAIN_FULL
                                        : m->why == MEMBER_FAILING  ? REASON_NODE_FAILING
                                                                    : REASON_NODES_NOT_READY);
                diagnosis_add(c->d, r, NULL, "%s: %s", c->pod->node, m->message);
                return true;
        }
        return false;
}

/* The condition Ready names only a few nodes. The list of nodes has each. */
static bool diagnose_listed(struct pod_case *c) {
        const struct cd_condition *ready = NULL;
        for (size_t i = 0; c->cd && i < c->cd->n_conditions; i++)
                if (streq(c->cd->conditions[i].reason, REASON_NODES_NOT_READY))
                        ready = &c->cd->conditions[i];
        for (size_t i = 0; ready && i < c->cd->n_nodes; i++) {
                const struct domain_node *n = &c->cd->nodes[i];
                if (!streq(n->node, c->pod->node) || domain_status_decode(n->status) != DOMAIN_NOT_READY)
                        continue;
                diagnosis_add(c->d, reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_NODES_NOT_READY), NULL,
                              "ComputeDomain %s: %s has joined and is not ready yet. %s", c->cd_name, n->node,
                              str_or(ready->message, ""));
                return true;
        }
        return false;
}

/* containerd and CRI-O report that the CDI file of the claim does not exist. Once the kubelet has forgotten
 * the claim, it reports that itself (pkg/kubelet/cm/dra/manager.go), and calls no runtime. */
static bool is_unprepared_early(const struct pod_case *c, const char *message) {
        if (!message)
                return false;
        if (strstr(message, "unresolvable CDI devices") && strstr(message, CD_CDI_KIND_CLAIM))
                return true;
        const char *claim =
                c->claim ? arena_printf(c->d->a, "unable to get claim info for ResourceClaim %s in ",
                                        c->claim->claim.o.meta.name)
                         : NULL;
        return claim && strstr(message, claim);
}

/* The runtime finds no device node of the channel to mount. It mounts one only for a pod with hostUsers:
 * false. Returns its message; NULL: it reports something else. */
static const char *device_node_error(const struct container_status *s) {
        static const char path[] = "/dev/nvidia-caps-imex-channels/";
        const char *texts[] = { s->state.waiting ? s->state.waiting->message : NULL,
                                s->last ? s->last->message : NULL };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (texts[i] && strstr(texts[i], path) && strstr(texts[i], "no such file"))
                        return texts[i];
        return NULL;
}

/* With host-managed IMEX and isolation by domain, the administrator creates the device node. */
static void add_device_node(struct pod_case *c, const char *message) {
        view_find_driver(c->v);
        bool by_driver = c->v->driver_ns && (!c->v->hosts || c->v->own_channels);
        diagnosis_add(c->d, reason_find(REASON_OF_POD, REASON_IMEX_CHANNEL_NODE_MISSING),
                      by_driver ? arena_printf(c->d->a,
                                               "read why the plugin on %s \"cannot make a channel's device "
                                               "node on the host\" in its log, or remove hostUsers: false",
                                               c->pod->node)
                                : NULL,
                      "the host %s has no device node of the channel: %s", c->pod->node, message);
}

bool container_diagnose(struct pod_case *c, const char *claim) {
        const struct {
                const struct container_status *list;
                size_t n;
        } lists[] = { { c->pod->init_statuses, c->pod->n_init_statuses },
                      { c->pod->statuses, c->pod->n_statuses } };
        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                for (size_t k = 0; k < lists[i].n; k++) {
                        const struct container_status *s = &lists[i].list[k];
                        const struct pod_container_why *w = s->state.waiting;
                        if (claim && !pod_object_names_claim(c->pod, s->name, claim))
                                continue;
                        if (claim && !w)
                                w = s->state.terminated;
                        if (!w || pod_container_starts(w) || streq(w->reason, "Completed"))
                                continue;
                        const char *node_error = c->asks ? device_node_error(s) : NULL;
                        if (node_error) {
                                add_device_node(c, node_error);
                                return true;
                        }
                        const char *why = is_unprepared_early(c, w->message) ? CAUSE_UNPREPARED_EARLY
                                                                             : CAUSE_CONTAINER_FAILED;
                        diagnosis_add(c->d, reason_cause(why), NULL, "container %s: %s%s%s", s->name,
                                      str_or(w->reason, "not running"), w->message ? ": " : "",
                                      w->message ? w->message : "");
                        return true;
                }
        return false;
}

/* The newest Event of the kubelet about the start of the pod; NULL: none. It mounts volumes before it
 * prepares claims, and pulls images after that. */
static const struct event_object *newest_event(const struct pod_case *c) {
        static const char *const reasons[] = {
                "FailedPrepareDynamicResources", "FailedMount", "FailedAttachVolume",
                "FailedCreatePodSandBox",        "Failed",      "Pulling"
        };
        const struct kube_meta *m = &c->pod->o.meta;
        const struct event_object **list;
        size_t n = view_events(c->v, "Pod", m->ns, m->name, m->uid, &list);
        for (size_t i = 0; i < n; i++)
                if (has_string(reasons, ARRAY_LEN(reasons), list[i]->reason))
                        return list[i];
        return NULL;
}

/* The channel was given to the pod, or is not the problem. Returns whether the Event shows that. */
static bool diagnose_event(struct pod_case *c, const struct event_object *e) {
        if (!e || e == c->prepare)
                return false;
        if (streq(e->reason, "Pulling")) {
                diagnosis_line(c->d, TERM_OK, "channel", "prepared");
                diagnosis_hint(c->d, "The container runtime pulls an image: %s", str_or(e->message, ""));
                c->d->fine = true;
        } else {
                diagnosis_add(c->d, reason_cause(CAUSE_CONTAINER_FAILED), NULL, "%s: %s", e->reason,
                              str_or(e->message, ""));
        }
        return true;
}

/* The init container that runs: one that the others wait for, if there is any, or else the last sidecar.
 * NULL: none runs. */
static const struct container_status *running_init(const struct pod_case *c) {
        const struct container_status *sidecar = NULL;
        for (size_t i = 0; i < c->pod->n_init_statuses; i++) {
                const struct container_status *s = &c->pod->init_statuses[i];
                if (!s->state.started)
                        continue;
                if (!pod_object_is_sidecar(c->pod, s->name))
                        return s;
                sidecar = s;
        }
        return sidecar;
}

/* An init container runs, so the kubelet has prepared all claims: it does that before it starts any. An image
 * of another container may be pulled beside a sidecar. */
static bool diagnose_init(struct pod_case *c, const struct event_object *e) {
        const struct container_status *s = running_init(c);
        if (!s)
                return false;
        bool sidecar = pod_object_is_sidecar(c->pod, s->name);
        if (sidecar && e && (streq(e->reason, "Pulling") || streq(e->reason, "Failed")) &&
            event_object_time(e) >= s->state.started)
                return diagnose_event(c, e);
        if (c->asks)
                diagnosis_line(c->d, TERM_OK, "channel", "prepared");
        if (sidecar)
                diagnosis_hint(c->d, "The sidecar %s runs. The other containers start when it has started.",
                               s->name);
        else
                diagnosis_hint(c->d, "The init container %s runs.", s->name);
        c->d->fine = true;
        return true;
}

/* The sources other than an Event, the most specific first. A pod without a channel does not wait for IMEX.
 */
static bool diagnose_reports(struct pod_case *c, const struct pod_object *daemon) {
        if (!c->asks)
                return false;
        if (diagnose_daemon(c, daemon))
                return true;
        if (c->cd && domain_diagnose_conditions(c->d, c->cd, c->pod->node))
                return true;
        if (!c->v->hosts && !daemon && daemon_diagnose(c->d, c->pod->node))
                return true;
        return diagnose_member(c) || diagnose_listed(c);
}

/* No object that was read shows a cause. */
static void diagnose_nothing(struct pod_case *c) {
        bool complete = diagnosis_needs(c->d, VIEW_NODES, NULL);
        complete = diagnosis_needs(c->d, VIEW_DAEMON_SETS, NULL) && complete;
        if (c->v->driver_ns)
                complete = diagnosis_needs(c->d, VIEW_PODS, c->v->driver_ns) && complete;
        bool is_new = c->v->source->now - c->pod->o.meta.created < 60;
        if (is_new)
                diagnosis_hint(c->d, "The pod is new. Try again in a minute.");
        else if (complete && !c->d->n_unread)
                diagnosis_add(c->d, reason_cause(CAUSE_UNKNOWN), NULL,
                              "no Event and no condition shows why the containers do not run");
        else
                diagnosis_possible(c->d, reason_cause(CAUSE_UNKNOWN),
                                   "no object that you may read shows the cause");
        c->d->fine = is_new && complete;
}

void prepare_diagnose(struct pod_case *c) {
        const struct pod_object *daemon = prepare_daemon(c);
        const struct event_object *newest = newest_event(c);
        line_node(c);
        line_daemon(c, daemon);
        const struct node_object *n = view_find(c->v, VIEW_NODES, NULL, c->pod->node);
        if (n && !node_ready(&n->node)) {
                diagnosis_add(c->d, reason_cause(CAUSE_NODE_DOWN), NULL, "the Node %s is not Ready",
                              c->pod->node);
                return;
        }
        if (container_diagnose(c, NULL) || diagnose_init(c, newest) || diagnose_event(c, newest) ||
            named_claim_diagnose_ending(c))
                return;
        if (c->prepare && c->prepare->message) {
                diagnosis_line(c->d, TERM_WAIT, "channel", "not given to the pod yet");
                if (diagnose_message(c, daemon, c->prepare->message))
                        return;
        }
        if (diagnose_reports(c, daemon))
                return;
        if (c->prepare)
                diagnosis_add(c->d, reason_cause(CAUSE_UNKNOWN), NULL, "%s",
                              plugin_part(c, str_or(c->prepare->message, "")));
        else
                diagnose_nothing(c);
}
