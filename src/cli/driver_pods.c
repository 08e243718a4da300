/* SPDX-License-Identifier: Apache-2.0 */
/* Why the plugin or the daemon does not run on a node. */
#include <string.h>

#include "api/names.h"
#include "cli/pod_case.h"
#include "rules/message.h"

/* Why a container of the Pod does not run; NULL: all run, or have just been started. */
static const char *down_text(struct diagnosis *d, const struct pod_object *p) {
        const struct {
                const struct container_status *list;
                size_t n;
        } lists[] = { { p->init_statuses, p->n_init_statuses }, { p->statuses, p->n_statuses } };
        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                for (size_t k = 0; k < lists[i].n; k++) {
                        const struct container_status *s = &lists[i].list[k];
                        const struct pod_container_why *w =
                                s->state.waiting ? s->state.waiting : s->state.terminated;
                        bool starts = w && (pod_container_starts(w) || streq(w->reason, "Completed"));
                        if (!w || starts)
                                continue;
                        const char *last = s->last && s->last->message ? s->last->message : w->message;
                        return arena_printf(d->a, "%s%s%s", str_or(w->reason, "not running"),
                                            last ? ": " : "", last ? last : "");
                }
        return NULL;
}

/* A container that runs now, but has been restarted several times; NULL: there is none. */
static const char *restarts_text(struct diagnosis *d, const struct pod_object *p) {
        for (size_t i = 0; i < p->n_statuses; i++) {
                const struct container_status *s = &p->statuses[i];
                if (s->restarts > 1 && s->last)
                        return arena_printf(d->a, "restarted %lld times: %s%s%s", (long long)s->restarts,
                                            str_or(s->last->reason, "ended"), s->last->message ? ": " : "",
                                            str_or(s->last->message, ""));
        }
        return NULL;
}

static const struct workload_object *daemon_set_of(struct view *v, const char *program) {
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, d)
        if (view_is_driver(v, d, program))
                return d;
        return NULL;
}

/* The Event that shows why a DaemonSet cannot create its Pods; NULL: none. */
static const struct event_object *failed_create(struct view *v, const struct workload_object *d) {
        view_read(v, VIEW_EVENTS, d->o.meta.ns);
        return view_event(v, "DaemonSet", d->o.meta.ns, d->o.meta.name, d->o.meta.uid, "FailedCreate");
}

/* The remedy for a refusal, if its words show it. */
static const char *refusal_fix(struct diagnosis *d, const char *ns, const char *message, bool daemon) {
        if (strstr(message, "PodSecurity"))
                return arena_printf(d->a,
                                    "kubectl label namespace %s "
                                    "pod-security.kubernetes.io/enforce=privileged --overwrite",
                                    term_shell_word(d->a, ns));
        if (daemon && (strstr(message, "quota") || strstr(message, "priority")))
                return "install with --set daemon.priorityClassName= , or allow the priority class in the "
                       "quota";
        return strstr(message, "quota") ? arena_printf(d->a, "raise the ResourceQuota of namespace %s", ns)
                                        : NULL;
}

/* The text behind the last "is forbidden: ". */
static const char *short_refusal(const char *message) {
        static const char words[] = "is forbidden: ";
        const char *at = strstr(message, words);
        return at ? at + sizeof words - 1 : message;
}

static size_t gpu_nodes(struct view *v) {
        size_t n = 0;
        view_read(v, VIEW_NODES, NULL);
        VIEW_EACH(v, VIEW_NODES, struct node_object, x)
        n += node_has_gpu(&x->node);
        return n;
}

static const struct pod_object *driver_pod_on(struct view *v, const char *node, bool daemon) {
        const struct pod_object *best = NULL;
        VIEW_EACH(v, VIEW_PODS, struct pod_object, p)
        if ((daemon ? p->daemon != NULL : p->plugin != NULL) && streq(p->node, node) &&
            (!best || p->o.meta.created >= best->o.meta.created))
                best = p;
        return best;
}

/* Why this plugin's Pod is not Ready. Returns whether it is not. */
static bool plugin_pod_fails(struct diagnosis *d, const struct pod_object *p, const char *node) {
        const char *why = down_text(d, p);
        if (pod_object_ready(p))
                return false;
        diagnosis_add(d, reason_cause(CAUSE_NO_PLUGIN),
                      arena_printf(d->a, "kubectl -n %s describe pod %s", term_shell_word(d->a, p->o.meta.ns),
                                   term_shell_word(d->a, p->o.meta.name)),
                      "the plugin's Pod %s on %s is not Ready%s%s", p->o.meta.name, node, why ? ": " : "",
                      why ? why : "");
        return true;
}

/* Whether the DaemonSet controller makes all its Pods tolerate the taint (pkg/controller/daemon/util). */
static bool is_always_tolerated(const struct node_taint *t) {
        static const char *const keys[] = {
                "node.kubernetes.io/not-ready",     "node.kubernetes.io/unreachable",
                "node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
                "node.kubernetes.io/pid-pressure",  "node.kubernetes.io/unschedulable"
        };
        return has_string(keys, ARRAY_LEN(keys), t->key);
}

/* Whether the plugin's Pods may not run on the Node. The chart passes their node selector to the program. */
static bool plugin_excludes(struct diagnosis *d, const struct workload_object *set,
                            const struct node_object *n) {
        const char *text = workload_object_env(set, "compute-domain-kubelet-plugin", "POD_NODE_SELECTOR");
        struct node_selector s;
        struct err e;
        return text && node_selector_parse(text, d->a, &s, &e) >= 0 &&
               !node_selector_matches(&s, n->node.o.meta.name, n->labels, n->n_labels, true);
}

bool plugin_diagnose(struct diagnosis *d, const char *node) {
        struct view *v = d->v;
        view_find_driver(v);
        const struct workload_object *set = daemon_set_of(v, "compute-domain-kubelet-plugin");
        if (!set) {
                if (v->driver == VIEW_DRIVER_UNCLEAR ||
                    view_state(v, VIEW_DAEMON_SETS, NULL) != VIEW_COMPLETE)
                        return false;
                diagnosis_no_driver(d, "no DaemonSet of the ComputeDomain plugin exists");
                return true;
        }
        if (!diagnosis_needs(d, VIEW_PODS, set->o.meta.ns))
                return false;
        const struct pod_object *p = node ? driver_pod_on(v, node, false) : NULL;
        if (p)
                return plugin_pod_fails(d, p, node);
        const struct event_object *e = set->current < set->desired ? failed_create(v, set) : NULL;
        if (e && e->message) {
                diagnosis_add(d, reason_cause(CAUSE_NO_PLUGIN),
                              refusal_fix(d, set->o.meta.ns, e->message, false),
                              "%zu GPU nodes, %lld plugin pods: %s", gpu_nodes(v), (long long)set->current,
                              short_refusal(e->message));
                return true;
        }
        if (node) {
                const struct node_object *n =
                        (view_read(v, VIEW_NODES, NULL), view_find(v, VIEW_NODES, NULL, node));
                for (size_t i = 0; n && i < n->n_all_taints; i++)
                        if (!is_always_tolerated(&n->all_taints[i]) &&
                            (streq(n->all_taints[i].effect, "NoSchedule") ||
                             streq(n->all_taints[i].effect, "NoExecute")))
                                diagnosis_hint(d,
                                               "%s has the taint %s=%s:%s, which the plugin may not tolerate "
                                               "(kubeletPlugin.tolerations)",
                                               node, str_or(n->all_taints[i].key, ""),
                                               str_or(n->all_taints[i].value, ""), n->all_taints[i].effect);
                if (n && node_has_gpu(&n->node) && plugin_excludes(d, set, n)) {
                        diagnosis_add(d, reason_cause(CAUSE_NO_PLUGIN),
                                      "to run the plugin there, change kubeletPlugin.nodeSelector or "
                                      "kubeletPlugin.affinity of the chart",
                                      "the node selector or the affinity of the plugin excludes %s", node);
                        return true;
                }
                diagnosis_add(d, reason_cause(CAUSE_NO_PLUGIN),
                              n && !node_has_gpu(&n->node)
                                      ? arena_printf(d->a,
                                                     "kubectl label node %s nvidia.com/gpu.present=true",
                                                     term_shell_word(d->a, node))
                                      : NULL,
                              "no plugin runs on %s%s", node,
                              n && !node_has_gpu(&n->node) ? ", which has no label of a GPU node" : "");
                return true;
        }
        if (set->desired == 0) {
                diagnosis_add(d, reason_cause(CAUSE_NO_PLUGIN),
                              gpu_nodes(v) ? NULL : "kubectl label node NODE nvidia.com/gpu.present=true",
                              "the DaemonSet %s selects no node (nodes with a label of a GPU node: %zu)",
                              set->o.meta.name, gpu_nodes(v));
                return true;
        }
        VIEW_EACH(v, VIEW_PODS, struct pod_object, x)
        if (x->plugin && x->node && !pod_object_ready(x))
                return plugin_pod_fails(d, x, x->node);
        return false;
}

bool daemon_diagnose(struct diagnosis *d, const char *node) {
        struct view *v = d->v;
        view_find_driver(v);
        if (!v->driver_ns || !diagnosis_needs(d, VIEW_PODS, v->driver_ns))
                return false;
        const struct pod_object *p = driver_pod_on(v, node, true);
        const struct workload_object *set = daemon_set_of(v, CD_DAEMON_OBJECT);
        if (!p) {
                const struct event_object *e = set ? failed_create(v, set) : NULL;
                const struct node_object *n =
                        (view_read(v, VIEW_NODES, NULL), view_find(v, VIEW_NODES, NULL, node));
                if (e && e->message)
                        diagnosis_add(d, reason_cause(CAUSE_DAEMON_NOT_CREATED),
                                      refusal_fix(d, v->driver_ns, e->message, true),
                                      "the daemon of %s cannot be created: %s", node,
                                      short_refusal(e->message));
                else if (n && !streq(n->node.imex_daemon, "true"))
                        diagnosis_add(d, reason_cause(CAUSE_DAEMON_NOT_CREATED),
                                      "look at the log of the controller",
                                      "%s has no label " CD_LABEL_DAEMON "=true, which the controller sets",
                                      node);
                return (e && e->message) || (n && !streq(n->node.imex_daemon, "true"));
        }
        const char *why = down_text(d, p);
        if (!why && !p->daemon->report)
                why = restarts_text(d, p);
        const struct condition *scheduled = condition_find(p->conditions, p->n_conditions, "PodScheduled");
        const struct event_object *prepare = (view_read(v, VIEW_EVENTS, v->driver_ns),
                                              view_event(v, "Pod", p->o.meta.ns, p->o.meta.name,
                                                         p->o.meta.uid, "FailedPrepareDynamicResources"));
        if (why) {
                diagnosis_add(d, reason_cause(CAUSE_DAEMON_NOT_RUNNING),
                              arena_printf(d->a, "kubectl -n %s logs --previous %s",
                                           term_shell_word(d->a, p->o.meta.ns),
                                           term_shell_word(d->a, p->o.meta.name)),
                              "daemon Pod %s on %s: %s", p->o.meta.name, node, why);
                return true;
        }
        if (scheduled && condition_status_decode(scheduled->status) == STATUS_FALSE) {
                diagnosis_add(d, reason_cause(CAUSE_DAEMON_NOT_RUNNING), NULL, "daemon Pod %s on %s: %s",
                              p->o.meta.name, node, str_or(scheduled->message, "not scheduled"));
                return true;
        }
        if (prepare && prepare->message && !pod_object_ready(p)) {
                const struct reason *r = reason_find_message(prepare->message);
                diagnosis_add(d, r ? r : reason_cause(CAUSE_DAEMON_NOT_RUNNING), NULL,
                              "daemon Pod %s on %s: %s", p->o.meta.name, node, prepare->message);
                return true;
        }
        return false;
}

/* The Go driver's workload of one kind; NULL: none. */
static const struct workload_object *go_workload(const struct view *v, enum view_kind k) {
        VIEW_EACH(v, k, struct workload_object, w)
        if (workload_object_is_go(w))
                return w;
        return NULL;
}

/* Whether only the Go driver is installed. */
static bool diagnose_go_driver(struct diagnosis *d) {
        const struct workload_object *w = go_workload(d->v, VIEW_DEPLOYMENTS);
        if (!w)
                w = go_workload(d->v, VIEW_DAEMON_SETS);
        if (d->v->driver != VIEW_DRIVER_NONE || !w)
                return false;
        diagnosis_add(d, reason_cause(CAUSE_UNKNOWN),
                      arena_printf(d->a, "ask a cluster admin for the log of the Go driver in namespace %s",
                                   w->o.meta.ns),
                      "the Go driver manages ComputeDomains in this cluster, and does not show its state in "
                      "conditions");
        return true;
}

bool controller_diagnose(struct diagnosis *d) {
        struct view *v = d->v;
        bool found = false, up = false;
        view_find_driver(v);
        if (v->driver == VIEW_DRIVER_UNCLEAR)
                return false;
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, x)
        if (view_is_driver(v, x, "compute-domain-controller")) {
                found = true;
                up = up || x->ready_replicas > 0;
        }
        if (up || (!found && view_state(v, VIEW_DEPLOYMENTS, NULL) != VIEW_COMPLETE))
                return false;
        if (diagnose_go_driver(d))
                return true;
        diagnosis_add(d, reason_cause(CAUSE_NO_CONTROLLER), NULL, "no controller of the driver is ready%s%s",
                      v->driver_ns ? " in namespace " : "", v->driver_ns ? v->driver_ns : "");
        return true;
}
