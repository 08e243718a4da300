/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/command_table.h"
#include "cli/pod_case.h"

/* ---- pods ---- */

/* The state as `kubectl get pods` shows it. */
static const char *pod_state(struct diagnosis *d, const struct pod_object *p) {
        const char *state = str_or(p->phase, "Unknown"), *since = pod_case_since(d, p->o.meta.created);
        for (size_t i = 0; i < p->n_statuses && p->node; i++)
                if (p->statuses[i].state.waiting)
                        state = str_or(p->statuses[i].state.waiting->reason, state);
        if (p->node && p->n_statuses == 0 && streq(p->phase, "Pending"))
                state = "ContainerCreating";
        if (p->o.meta.deleted)
                return arena_printf(d->a, "Terminating for %s", pod_case_since(d, pod_object_deleted(p)));
        return arena_printf(d->a, "%s for %s%s%s", state, since, p->node ? "   node " : "",
                            p->node ? p->node : "");
}

static bool pod_runs(const struct pod_object *p) {
        for (size_t i = 0; i < p->n_statuses; i++)
                if (p->statuses[i].state.started)
                        return streq(p->phase, "Running");
        return false;
}

static void diagnose_other(struct diagnosis *d, struct pod_case *c) {
        if (named_claim_diagnose_label(c))
                return;
        if (pod_runs(c->pod)) {
                diagnosis_add(d, reason_cause(CAUSE_NO_CHANNEL_REQUESTED), NULL,
                              "the pod names no claim of a ComputeDomain");
                return;
        }
        diagnosis_line(d, TERM_WAIT, "claim", "the pod requests no channel of a ComputeDomain");
        if (c->pod->node)
                prepare_diagnose(c);
        else
                pending_diagnose(c);
}

/* The API server marks all Pods of a lost node as not Ready, so they prove nothing. A node with Ready=False
 * still reports, and can end pods. Returns whether the node is lost. */
static bool diagnose_lost_node(struct diagnosis *d, const char *node) {
        const struct node_object *n =
                diagnosis_needs(d, VIEW_NODES, NULL) ? view_find(d->v, VIEW_NODES, NULL, node) : NULL;
        const struct condition *ready =
                n ? condition_find(n->node.conditions, n->node.n_conditions, "Ready") : NULL;
        if (!n || (ready && condition_status_decode(ready->status) != STATUS_UNKNOWN))
                return false;
        diagnosis_add(d, reason_cause(CAUSE_NODE_DOWN),
                      arena_printf(d->a,
                                   "bring the node back. If it is shut down: kubectl taint node %s "
                                   "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
                                   term_shell_word(d->a, node)),
                      "the kubelet of Node %s does not report, so it does not end the pod", node);
        return true;
}

/* Whether a plugin of this driver has to unprepare a claim of the pod. Other drivers may also allocate GPUs
 * under the name of the GPU driver. */
static bool has_claim_of_driver(struct view *v, const struct pod_object *p) {
        view_find_driver(v);
        bool gpus = v->driver_ns && !view_gpus_only(v);
        for (size_t i = 0; i < p->n_claims; i++) {
                const struct claim_object *c =
                        view_find(v, VIEW_CLAIMS, p->o.meta.ns, pod_object_claim(p, &p->claims[i]));
                for (size_t k = 0; c && k < c->claim.n_results; k++) {
                        const char *driver = c->claim.results[k].driver;
                        if (streq(driver, CD_DRIVER) || (gpus && streq(driver, GPU_DRIVER)))
                                return true;
                }
        }
        return false;
}

/* A pod that is being deleted: its claim must be unprepared by the plugin of its node. */
static void diagnose_terminating(struct diagnosis *d, const struct pod_object *p) {
        int64_t since = d->v->source->now - p->o.meta.deleted; /* negative: in its grace period */
        diagnosis_line(d, TERM_WAIT, "pod", "is being deleted%s%s",
                       p->n_finalizers ? ", with the finalizer " : "",
                       p->n_finalizers ? p->finalizers[0] : "");
        bool late = since > 30;
        bool ended = pod_object_has_ended(p);
        if (p->node && late &&
            ((!ended && diagnose_lost_node(d, p->node)) ||
             (has_claim_of_driver(d->v, p) && plugin_diagnose(d, p->node))))
                return;
        d->fine = !late;
        const struct event_object *evicted =
                view_event(d->v, "Pod", p->o.meta.ns, p->o.meta.name, p->o.meta.uid, REASON_EVICTED_FOR_IMEX);
        if (evicted)
                diagnosis_hint(d, "The controller has evicted the pod: %s", str_or(evicted->message, ""));
        if (since < 0)
                diagnosis_hint(d, "Its containers may run for up to %s more (the grace period).",
                               term_age(d->a, -since));
        else
                diagnosis_hint(d, late ? "The containers, a finalizer or the kubelet of the node delay "
                                         "the deletion. Read the Events of the pod."
                                       : "The deletion has just begun.");
}

static void diagnose_found(struct diagnosis *d, const struct pod_object *p) {
        struct pod_case c;
        d->object = arena_printf(d->a, "pod/%s in %s", p->o.meta.name, p->o.meta.ns);
        d->state = pod_state(d, p);
        d->command = arena_printf(d->a, "kubectl compute-domains why pod/%s -n %s",
                                  term_shell_word(d->a, p->o.meta.name), term_shell_word(d->a, p->o.meta.ns));
        pod_case_make(d, p, &c);
        if (p->o.meta.deleted) {
                diagnose_terminating(d, p);
        } else if (pod_object_has_ended(p)) {
                diagnosis_line(d, TERM_WAIT, "pod", "has ended%s%s", p->reason ? ": " : "",
                               p->reason ? p->reason : "");
                d->fine = streq(p->phase, "Succeeded");
                if (!d->fine)
                        diagnosis_add(d, reason_cause(CAUSE_CONTAINER_FAILED), NULL, "the pod has failed%s%s",
                                      p->message ? ": " : "", p->message ? p->message : "");
        } else if (!c.asks) {
                diagnose_other(d, &c);
        } else if (!p->node) {
                pending_diagnose(&c);
        } else if (pod_runs(p)) {
                running_diagnose(&c);
        } else {
                prepare_diagnose(&c);
        }
}

bool pod_diagnose(struct diagnosis *d, const char *ns, const char *name) {
        diagnosis_needs(d, VIEW_PODS, ns);
        const struct pod_object *p = view_find(d->v, VIEW_PODS, ns, name);
        if (p)
                diagnose_found(d, p);
        return p;
}

/* ---- workloads ---- */

static bool owned_by(const struct pod_object *p, const char *name) {
        static const char *const labels[] = { "batch.kubernetes.io/job-name", "job-name",
                                              "jobset.sigs.k8s.io/jobset-name",
                                              "training.kubeflow.org/job-name",
                                              "leaderworkerset.sigs.k8s.io/name" };
        for (size_t i = 0; i < ARRAY_LEN(labels); i++)
                if (streq(pod_object_label(p, labels[i]), name))
                        return true;
        for (size_t i = 0; i < p->n_owners; i++)
                if (streq(p->owners[i].name, name))
                        return true;
        return false;
}

/* Whether both belong to the same Job, which may be one of several of a JobSet. */
static bool have_same_job(const struct pod_object *a, const struct pod_object *b) {
        static const char *const labels[] = { "batch.kubernetes.io/job-name", "job-name" };
        for (size_t i = 0; i < ARRAY_LEN(labels); i++)
                if (!streq(pod_object_label(a, labels[i]), pod_object_label(b, labels[i])))
                        return false;
        return true;
}

/* Whether a later pod of the Job has succeeded in the place of a failed one: with the same index or, if the
 * Job has no indices, created after the other had failed. */
static bool pod_is_replaced(const struct view *v, const struct pod_object *failed, const char *name) {
        static const char label[] = "batch.kubernetes.io/job-completion-index";
        const char *index = pod_object_label(failed, label);
        const struct condition *ready = condition_find(failed->conditions, failed->n_conditions, "Ready");
        int64_t end =
                ready && ready->since > failed->o.meta.created ? ready->since : failed->o.meta.created + 1;
        VIEW_EACH(v, VIEW_PODS, struct pod_object, p)
        if (streq(p->phase, "Succeeded") && streq(p->o.meta.ns, failed->o.meta.ns) && owned_by(p, name) &&
            have_same_job(p, failed) &&
            (index ? streq(pod_object_label(p, label), index) : p->o.meta.created >= end))
                return true;
        return false;
}

/* Pods that wait come first: without a node, then without a running container. Ended pods come last: a Job
 * keeps its failed pods next to their replacements. A failed pod counts no longer if its replacement has
 * succeeded. */
static int pod_rank(const struct view *v, const struct pod_object *p, const char *name) {
        if (streq(p->phase, "Succeeded"))
                return 4;
        if (streq(p->phase, "Failed"))
                return pod_is_replaced(v, p, name) ? 5 : 3;
        return pod_runs(p) ? 2 : p->node ? 1 : 0;
}

bool workload_diagnose(struct diagnosis *d, const char *ns, const char *name) {
        const struct pod_object *first = NULL;
        size_t n = 0, runs = 0, pending = 0;
        int rank = 0;
        diagnosis_needs(d, VIEW_PODS, ns);
        VIEW_EACH(d->v, VIEW_PODS, struct pod_object, p) {
                if (!streq(p->o.meta.ns, ns) || !owned_by(p, name))
                        continue;
                n++;
                runs += pod_runs(p);
                pending += !p->node;
                int its = pod_rank(d->v, p, name);
                if (first && its >= rank)
                        continue;
                first = p;
                rank = its;
        }
        if (first) {
                diagnose_found(d, first);
                diagnosis_hint(d,
                               "job/%s has %zu pod%s (running: %zu, without a node: %zu). This is about "
                               "pod/%s.",
                               name, n, n == 1 ? "" : "s", runs, pending, first->o.meta.name);
                return true;
        }
        diagnosis_needs(d, VIEW_EVENTS, ns);
        const char *const kinds[] = { "Job",         "JobSet",    "MPIJob", "LeaderWorkerSet",
                                      "StatefulSet", "PyTorchJob" };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                const struct event_object **events;
                size_t n_events = view_events(d->v, kinds[i], ns, name, NULL, &events);
                const struct event_object *last = n_events ? events[0] : NULL;
                /* Others are about its pods or its end, and earlier ones may no longer be true. */
                if (!last || (!streq(last->type, "Warning") && !strstr(str_or(last->reason, ""), "uspended")))
                        continue;
                d->object = arena_printf(d->a, "job/%s in %s", name, ns);
                diagnosis_add(d, reason_cause(CAUSE_NO_PODS), NULL, "%s %s has no pod: %s: %s", kinds[i],
                              name, str_or(last->reason, ""), str_or(last->message, ""));
                return true;
        }
        return false;
}

/* ---- the command ---- */

static const struct {
        const char *prefix;
        enum { WHY_POD, WHY_JOB, WHY_DOMAIN, WHY_NODE } what;
        enum view_kind kind; /* whose list decides whether the object exists */
} prefixes[] = {
        { "pod/", WHY_POD, VIEW_PODS },
        { "pods/", WHY_POD, VIEW_PODS },
        { "job/", WHY_JOB, VIEW_PODS },
        { "jobset/", WHY_JOB, VIEW_PODS },
        { "mpijob/", WHY_JOB, VIEW_PODS },
        { "lws/", WHY_JOB, VIEW_PODS },
        { "statefulset/", WHY_JOB, VIEW_PODS },
        { "computedomain/", WHY_DOMAIN, VIEW_DOMAINS },
        { "computedomains/", WHY_DOMAIN, VIEW_DOMAINS },
        { "cdom/", WHY_DOMAIN, VIEW_DOMAINS },
        { "cd/", WHY_DOMAIN, VIEW_DOMAINS },
        { "node/", WHY_NODE, VIEW_NODES },
        { "nodes/", WHY_NODE, VIEW_NODES },
};

static size_t prefix_of(const char *arg) {
        size_t i = 0;
        while (i < ARRAY_LEN(prefixes) && !str_starts(arg, prefixes[i].prefix))
                i++;
        return i;
}

const char *why_domain_name(const char *arg) {
        size_t i = prefix_of(arg);
        return i < ARRAY_LEN(prefixes) && prefixes[i].what == WHY_DOMAIN ? arg + strlen(prefixes[i].prefix)
                                                                         : NULL;
}

static int why_missing(struct cli *c, const struct diagnosis *d, const char *what, enum view_kind k,
                       const char *ns) {
        if (k == VIEW_DOMAINS && view_lacks_definition(d->v))
                return command_usage(c, "the cluster has no %s: the " DEFINITION " is missing",
                                     view_resource(k)->plural);
        if (view_not_served(d->v, k))
                return command_usage(c, "the cluster has no %s: is the driver installed?",
                                     view_resource(k)->plural);
        if (view_state(d->v, k, ns) == VIEW_UNREADABLE) {
                command_usage(c, "you may not list %s%s%s: %s", view_resource(k)->plural,
                              ns ? " in namespace " : "", ns ? ns : "",
                              str_or(view_why(d->v, k, ns), "forbidden"));
                return COMMAND_DENIED;
        }
        if (view_state(d->v, k, ns) == VIEW_PARTIAL)
                return command_usage(c, "%s: %s", what,
                                     str_or(view_why(d->v, k, ns), "the list is not complete"));
        return command_usage(c, "%s does not exist%s%s", what, ns ? " in namespace " : "", ns ? ns : "");
}

/* The tool reads no Jobs, so a Job without pods and Events may exist. */
static int why_no_pods(struct cli *c, const struct diagnosis *d, const char *what, const char *ns) {
        if (view_state(d->v, VIEW_PODS, ns) != VIEW_COMPLETE)
                return why_missing(c, d, what, VIEW_PODS, ns);
        if (view_state(d->v, VIEW_EVENTS, ns) != VIEW_COMPLETE)
                return why_missing(c, d, what, VIEW_EVENTS, ns);
        return command_usage(c,
                             "no pod of %s exists in namespace %s, and no Event shows why: it may be "
                             "suspended, wait in a queue, have ended, or not exist",
                             what, ns);
}

static int why_run(struct cli *c) {
        struct diagnosis d = { .v = &c->v, .a = c->v.a };
        const char *ns = c->source->ns, *name = c->n_args ? c->args[0] : NULL;
        bool found;
        if (c->n_args != 1)
                return command_usage(c, "usage: why [pod/|job/|computedomain/|node/]NAME");
        size_t i = prefix_of(name);
        bool prefixed = i < ARRAY_LEN(prefixes);
        if (!prefixed && strchr(name, '/'))
                return command_usage(
                        c, "'%s' is not a kind that `why` knows: pod/, job/, computedomain/, node/", name);
        if (prefixed)
                name += strlen(prefixes[i].prefix);
        else
                i = 0;
        if (!str_is_dns_subdomain(name))
                return command_usage(c, "'%s' is not the name of an object", name);
        switch (prefixes[i].what) {
        case WHY_JOB:
                found = workload_diagnose(&d, ns, name);
                break;
        case WHY_DOMAIN:
                found = domain_diagnose(&d, ns, name);
                break;
        case WHY_NODE:
                ns = NULL;
                found = node_diagnose(&d, name);
                break;
        case WHY_POD:
        default:
                found = pod_diagnose(&d, ns, name);
                break;
        }
        if (!found && prefixes[i].what == WHY_JOB)
                return why_no_pods(c, &d, c->args[0], ns);
        if (!found)
                return why_missing(c, &d, c->args[0], prefixes[i].kind, ns);
        if (c->v.driver == VIEW_DRIVER_UNCLEAR)
                diagnosis_needs(&d, VIEW_ADMISSION, NULL);
        if (c->v.driver_doubt && (d.n_causes || c->v.driver == VIEW_DRIVER_UNCLEAR))
                diagnosis_hint(&d, "%s", c->v.driver_doubt);
        if (!d.command)
                d.command = arena_printf(d.a, "kubectl compute-domains why %s%s%s",
                                         term_shell_word(d.a, c->args[0]), ns ? " -n " : "",
                                         ns ? term_shell_word(d.a, ns) : "");
        if (streq(options.output, "json"))
                diagnosis_json(&d, &c->t.out);
        else
                diagnosis_print(&d, &c->t);
        return diagnosis_exit(&d);
}

const struct command command_why = {
        .name = "why",
        .args = "[pod/|job/|computedomain/|node/]NAME",
        .summary = "why a pod does not start, a ComputeDomain is not ready, or a node offers nothing",
        .text = "Names the cause, the remedy, and who can apply it. A name without a kind is a pod. For a "
                "pod that runs, answers whether it "
                "can use NVLink between nodes. For a job, looks at the pod that is furthest from running.\n\n"
                "If you may not read objects that would decide, lists the possible causes, these objects, "
                "and a command for an admin. "
                "`explain` describes the word in brackets behind a cause.\n\n"
                " kubectl compute-domains why train-0-x9k4d -n team-b\n kubectl compute-domains why "
                "node/gb200-a15",
        .reads = true,
        .run = why_run,
};
