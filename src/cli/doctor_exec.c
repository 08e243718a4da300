/* SPDX-License-Identifier: Apache-2.0 */
/* `doctor --node`: runs check-node in both plugins of a node. */
#include <string.h>

#include "base/mem.h"
#include "cli/check_report.h"
#include "cli/doctor.h"
#include "cli/pod_case.h"

enum { CHECK_NODE_MS = 180 * 1000 }; /* NVML may take a minute to initialize */

static const char *const programs[] = { "compute-domain-kubelet-plugin", "gpu-kubelet-plugin" };

static const struct container_status *doctor_container_status(const struct container_status *list, size_t n,
                                                              const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].name, name))
                        return &list[i];
        return NULL;
}

/* Why the container does not run; NULL: it runs. An init container that waits is the reason for all. */
static const char *not_running(struct doctor *d, const struct pod_object *p, const char *container) {
        const struct container_status *s = doctor_container_status(p->statuses, p->n_statuses, container);
        const struct pod_container_why *why = NULL;
        if (s && s->state.started)
                return NULL;
        for (size_t i = 0; i < p->n_init_statuses && !why; i++) {
                const struct container_status *x = &p->init_statuses[i];
                const struct pod_container_why *w = x->state.waiting ? x->state.waiting : x->last;
                bool ended = x->state.terminated && streq(x->state.terminated->reason, "Completed");
                if (ended || (x->state.started && pod_object_is_sidecar(p, x->name)))
                        continue;
                if (x->state.started)
                        return arena_printf(
                                d->a, "the init container %s still runs: kubectl -n %s logs %s -c %s",
                                str_or(x->name, ""), term_shell_word(d->a, p->o.meta.ns),
                                term_shell_word(d->a, p->o.meta.name), term_shell_word(d->a, x->name));
                why = w && !streq(w->reason, "Completed") ? w : NULL;
        }
        if (!why && s)
                why = s->state.waiting ? s->state.waiting : s->state.terminated;
        if (why)
                return arena_printf(d->a, "%s%s%s", str_or(why->reason, "not running"),
                                    why->message ? ": " : "", why->message ? why->message : "");
        return str_or(p->reason, str_or(p->phase, "not started"));
}

static void add_report(struct doctor *d, const char *container, const struct check_report *report) {
        const char *program = d->check;
        for (size_t i = 0; i < report->n_items; i++) {
                const struct check_report_item *x = &report->items[i];
                d->check = arena_printf(d->a, "%s/%s", container, x->name);
                if (x->state == CHECK_REPORT_OK)
                        doctor_ok(d, "%s", x->text);
                else if (x->state == CHECK_REPORT_SKIPPED)
                        doctor_skip(d, "%s", x->text);
                else
                        doctor_fail_reason(d, FAULT_NODE_CHECK, NULL, x->remedy, x->text);
        }
        d->check = program;
        if (!report->n_items)
                doctor_skip(d, "check-node has checked nothing");
}

static void run_check(struct doctor *d, const struct pod_object *p, const struct container *c,
                      const char *program, const struct kubectl *k) {
        const char *const args[] = { "exec",  "-n", p->o.meta.ns, p->o.meta.name, "-c",
                                     c->name, "--", program,      "check-node",   "--json" };
        const struct kubectl_call call = { .args = args,
                                           .n_args = ARRAY_LEN(args),
                                           .limit = CHECK_REPORT_MAX,
                                           .timeout_ms = CHECK_NODE_MS };
        struct kubectl_result x;
        struct check_report report;
        struct err e;
        int r = kubectl_call(k, &call, &x, &e);
        struct str out = str_trim((struct str){ buf_str(&x.out), x.out.n });
        /* With a problem, check-node and so kubectl ends with 1. */
        if (r == 0 && out.n)
                r = check_report_decode(out, d->a, &report, &e);
        else if (r == 0)
                r = kubectl_error(&call, &x, &e);
        if (r == 0) {
                add_report(d, c->name, &report);
        } else {
                bool denied = e.kind == ERR_DENIED;
                if (denied)
                        doctor_skip(
                                d, "needs permission to get pods and to create pods/exec in namespace %s: %s",
                                p->o.meta.ns, e.msg);
                else
                        doctor_skip(d, "%s", e.msg);
                d->results[d->n - 1].denied = denied;
                d->results[d->n - 1].failed = !denied;
        }
        kubectl_result_done(&x);
}

static void check_program(struct doctor *d, const struct pod_object *p, const char *program,
                          const struct kubectl *k) {
        const struct container *c = container_find(p->containers, p->n_containers, program);
        d->check = program;
        if (!c || !str_is_dns_label(c->name) || !str_is_dns_subdomain(p->o.meta.name)) {
                doctor_skip(d, "the pod %s has no container with it", p->o.meta.name);
                return;
        }
        const char *why = not_running(d, p, c->name);
        if (why)
                doctor_fail(d, FAULT_NODE_PLUGIN,
                            arena_printf(d->a, "kubectl -n %s describe pod %s",
                                         term_shell_word(d->a, p->o.meta.ns),
                                         term_shell_word(d->a, p->o.meta.name)),
                            "container %s of %s does not run: %s", c->name, p->o.meta.name, why);
        else
                run_check(d, p, c, program, k);
}

/* Returns whether the node exists. */
static bool check_node(struct doctor *d, const char *node) {
        d->check = "node";
        if (!doctor_needs_one(d, VIEW_NODES, node))
                return false;
        const struct node_object *n = view_find(d->v, VIEW_NODES, NULL, node);
        if (!n) {
                doctor_fail(d, FAULT_NODE_UNKNOWN, "kubectl get nodes", "the node %s does not exist", node);
                return false;
        }
        if (node_ready(&n->node))
                doctor_ok(d, "%s is Ready, %s, %s, Linux %s", node, str_or(n->kubelet, "?"),
                          str_or(n->runtime, "?"), str_or(n->kernel, "?"));
        else
                doctor_fail(d, FAULT_NODE_DOWN, NULL, "the node %s is not Ready", node);
        return true;
}

/* The newest Pod of a plugin on the node. Only Pods in the driver's namespace count: the commands run with
 * the rights of the user, and their output is printed. */
static const struct pod_object *plugin_pod_on(const struct doctor *d, const char *node) {
        const struct pod_object *pod = NULL;
        VIEW_EACH(d->v, VIEW_PODS, struct pod_object, p)
        if ((p->plugin || pod_object_is_plugin(p, programs[1])) && streq(p->node, node) &&
            streq(p->o.meta.ns, d->v->driver_ns) && (!pod || pod->o.meta.created <= p->o.meta.created))
                pod = p;
        return pod;
}

static void add_missing_plugin(struct doctor *d, const char *node) {
        struct diagnosis x = { .v = d->v, .a = d->a };
        /* Without the driver's DaemonSet, its namespace is not known. */
        if (!d->v->driver_ns && !doctor_needs(d, VIEW_DAEMON_SETS, NULL))
                return;
        bool known = !d->gpus_only && plugin_diagnose(&x, node) && x.n_causes;
        doctor_fail_reason(d, FAULT_NODE_PLUGIN, reason_cause(CAUSE_NO_PLUGIN),
                           known ? x.causes[0].fix : NULL,
                           known ? x.causes[0].text : arena_printf(d->a, "no plugin runs on %s", node));
}

void doctor_check_node(struct doctor *d, const char *node, const struct kubectl *kubectl) {
        if (!check_node(d, node))
                return;
        d->check = "plugin";
        if (doctor_doubts_driver(d, true) || !doctor_needs(d, VIEW_PODS, d->ns))
                return;
        const struct pod_object *pod = d->v->driver_ns ? plugin_pod_on(d, node) : NULL;
        if (!pod)
                add_missing_plugin(d, node);
        for (size_t i = 0; pod && i < ARRAY_LEN(programs); i++)
                check_program(d, pod, programs[i], kubectl);
}
