/* SPDX-License-Identifier: Apache-2.0 */
/* `doctor --node`: runs check-node in both plugins of a node. */
#include <string.h>

#include "base/mem.h"
#include "cli/check_report.h"
#include "cli/doctor.h"
#include "cli/pod_case.h"
#include "cli/tool_exec.h"

static const char *const programs[] = { "compute-domain-kubelet-plugin", "gpu-kubelet-plugin" };

static const struct container *container_of(const struct pod_object *p, const char *program) {
        for (size_t i = 0; i < p->n_containers; i++) {
                const char *command = p->containers[i].n_command ? p->containers[i].command[0] : "";
                const char *slash = strrchr(command, '/');
                if (streq(slash ? slash + 1 : command, program))
                        return &p->containers[i];
        }
        return NULL;
}

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
                if (x->state.started)
                        return arena_printf(d->a,
                                            "the init container %s still runs: kubectl -n %s logs %s -c "
                                            "%s",
                                            str_or(x->name, ""), p->o.meta.ns, p->o.meta.name,
                                            str_or(x->name, ""));
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

/* The last line of what kubectl printed. */
static const char *doctor_last_line(struct arena *a, const struct buf *b) {
        struct str rest = str_trim((struct str){ buf_str(b), b->n }), line, last = { "", 0 };
        while (str_next_line(&rest, &line))
                last = line.n ? line : last;
        return arena_strndup(a, last.p, str_utf8_cut(last, 500));
}

static void run_check(struct doctor *d, const struct pod_object *p, const struct container *c,
                      const char *program, const struct doctor_kubectl *k) {
        const char *const more[] = { "exec", "-n",    p->o.meta.ns, p->o.meta.name, "-c", c->name,
                                     "--",   program, "check-node", "--json",       NULL };
        const char **argv = arena_alloc(d->a, (1 + k->n_args + ARRAY_LEN(more)) * sizeof *argv);
        struct tool_exec_result x;
        struct check_report report;
        struct err e;
        argv[0] = k->program;
        if (k->n_args)
                memcpy(argv + 1, k->args, k->n_args * sizeof *argv);
        memcpy(argv + 1 + k->n_args, more, sizeof more);
        int r = tool_exec_run(argv, CHECK_REPORT_MAX, TOOL_EXEC_MS, &x, &e);
        struct str out = str_trim((struct str){ buf_str(&x.out), x.out.n });
        bool denied = memmem(buf_str(&x.errors), x.errors.n, "(Forbidden)", 11);
        /* With a problem, check-node and so kubectl ends with 1. */
        if (r == 0 && out.n)
                r = check_report_decode(out, d->a, &report, &e);
        else if (r == 0)
                r = err_set(&e, ERR_INTERNAL, 0, "kubectl exec: %s", doctor_last_line(d->a, &x.errors));
        if (r == 0) {
                add_report(d, c->name, &report);
        } else {
                doctor_skip(d, denied ? "needs permission to create pods/exec in namespace %s" : "%s",
                            denied ? p->o.meta.ns : e.msg);
                d->results[d->n - 1].denied = denied;
                d->results[d->n - 1].failed = !denied;
        }
        buf_done(&x.out);
        buf_done(&x.errors);
}

static void check_program(struct doctor *d, const struct pod_object *p, const char *program,
                          const struct doctor_kubectl *k) {
        const struct container *c = container_of(p, program);
        d->check = program;
        if (!c || !str_is_dns_label(c->name) || !str_is_dns_subdomain(p->o.meta.name)) {
                doctor_skip(d, "the pod %s has no container with it", p->o.meta.name);
                return;
        }
        const char *why = not_running(d, p, c->name);
        if (why)
                doctor_fail(d, FAULT_NODE_PLUGIN,
                            arena_printf(d->a, "kubectl -n %s describe pod %s", p->o.meta.ns, p->o.meta.name),
                            "container %s of %s does not run: %s", c->name, p->o.meta.name, why);
        else
                run_check(d, p, c, program, k);
}

void doctor_check_node(struct doctor *d, const char *node, const struct doctor_kubectl *kubectl) {
        const struct pod_object *pod = NULL;
        d->check = "node";
        if (!doctor_needs_one(d, VIEW_NODES, NULL, node))
                return;
        const struct node_object *n = view_find(d->v, VIEW_NODES, NULL, node);
        if (!n) {
                doctor_fail(d, FAULT_NODE_UNKNOWN, "kubectl get nodes", "the node %s does not exist", node);
                return;
        }
        if (node_ready(&n->node))
                doctor_ok(d, "%s is Ready, %s, %s, Linux %s", node, str_or(n->kubelet, "?"),
                          str_or(n->runtime, "?"), str_or(n->kernel, "?"));
        else
                doctor_fail(d, FAULT_NODE_DOWN, NULL, "the node %s is not Ready", node);
        d->check = "plugin";
        if (!doctor_needs(d, VIEW_PODS, d->ns))
                return;
        VIEW_EACH(d->v, VIEW_PODS, struct pod_object, p)
        if ((p->plugin || pod_object_runs(p, programs[1])) && streq(p->node, node) &&
            streq(p->o.meta.ns, d->ns) && (!pod || pod->o.meta.created <= p->o.meta.created))
                pod = p;
        if (!pod) {
                struct diagnosis x = { .v = d->v, .a = d->a };
                bool known = plugin_diagnose(&x, node) && x.n_causes;
                doctor_fail_reason(
                        d, FAULT_NODE_PLUGIN, reason_cause(CAUSE_NO_PLUGIN), known ? x.causes[0].fix : NULL,
                        known ? x.causes[0].text : arena_printf(d->a, "no plugin runs on %s", node));
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(programs); i++)
                check_program(d, pod, programs[i], kubectl);
}
