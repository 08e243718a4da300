/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `doctor` that need no installation: Kubernetes, the nodes, and the driver's namespace. */
#include <string.h>

#include "api/names.h"
#include "cli/doctor.h"
#include "rules/message.h"

enum {
        KUBERNETES_MINOR = 32, /* kubeVersion of the chart */
        KERNEL_MAJOR = 5,      /* as in check-node (node/check_judge) */
        KERNEL_MINOR = 6,
        PODS_MAX = 1000 * 1000 * 1000, /* a larger quota is no limit */
};

/* ---- versions ---- */

bool doctor_version_read(const char *text, struct doctor_version *ret) {
        int64_t n[2] = { 0 };
        const char *p = str_or(text, "");
        p += *p == 'v';
        for (size_t i = 0; i < 2; i++) {
                size_t k = strspn(p, "0123456789");
                if (!k || k > 9 || !str_to_i64((struct str){ p, k }, &n[i]) || (i == 0 && p[k] != '.'))
                        return false;
                p += k + 1;
        }
        *ret = (struct doctor_version){ n[0], n[1] };
        return true;
}

bool doctor_version_is_older(const struct doctor_version *x, int64_t major, int64_t minor) {
        return x->major < major || (x->major == major && x->minor < minor);
}

static void check_kubernetes(struct doctor *d) {
        const char *server = d->v->source->server_version(d->v->source);
        struct doctor_version x;
        struct message_list old = { 0 };
        if (!doctor_version_read(server, &x))
                doctor_skip(d, "the API server does not report its version");
        else if (doctor_version_is_older(&x, 1, KUBERNETES_MINOR))
                doctor_fail(d, FAULT_KUBERNETES_OLD, "Upgrade Kubernetes to 1.32 or newer.",
                            "the API server is %s", server);
        else
                doctor_ok(d, "%s", server);
        view_read(d->v, VIEW_NODES, NULL);
        VIEW_EACH(d->v, VIEW_NODES, struct node_object, n)
        if (doctor_is_gpu_node(d->a, n) && doctor_version_read(n->kubelet, &x) &&
            doctor_version_is_older(&x, 1, KUBERNETES_MINOR))
                message_add(&old, "%s (%s)", n->node.o.meta.name, n->kubelet);
        const char *list = message_end(&old, d->a);
        if (*list)
                doctor_fail(d, FAULT_KUBERNETES_OLD, "Upgrade the kubelets to 1.32 or newer.",
                            "old kubelets: %s", list);
}

static void check_dra(struct doctor *d) {
        if (!doctor_needs(d, VIEW_CLASSES, NULL))
                return;
        if (view_not_served(d->v, VIEW_CLASSES))
                doctor_fail(d, FAULT_DRA_NOT_SERVED,
                            "From Kubernetes 1.34, it is on by default. In older versions, enable the "
                            "feature gate DynamicResourceAllocation, and start the API server with "
                            "`--runtime-config=resource.k8s.io/v1beta1=true`.",
                            "the API server does not serve resource.k8s.io");
        else
                doctor_ok(d, "resource.k8s.io is served");
}

static void check_policy_api(struct doctor *d) {
        if (!doctor_needs(d, VIEW_ADMISSION, NULL))
                return;
        if (view_not_served(d->v, VIEW_ADMISSION))
                doctor_fail(d, FAULT_POLICIES_NOT_SERVED,
                            "Do not disable admissionregistration.k8s.io/v1 in the API server.",
                            "the API server does not serve ValidatingAdmissionPolicies");
        else
                doctor_ok(d, "ValidatingAdmissionPolicies are served");
}

/* ---- nodes ---- */

const char *doctor_gpu_sign(struct arena *a, const struct node_object *n) {
        static const char *const labels[] = { "nvidia.com/gpu.product", "nvidia.com/gpu.count",
                                              GPU_CLIQUE_LABEL, "cloud.google.com/gke-accelerator",
                                              "k8s.amazonaws.com/accelerator" };
        for (size_t i = 0; i < n->n_allocatable; i++)
                if (streq(n->allocatable[i].key, "nvidia.com/gpu") && !streq(n->allocatable[i].value, "0"))
                        return arena_printf(a, "%s GPUs of a device plugin", n->allocatable[i].value);
        for (size_t i = 0; i < ARRAY_LEN(labels); i++)
                if (jd_pair_get(n->labels, n->n_labels, labels[i]))
                        return arena_printf(a, "the label %s", labels[i]);
        for (size_t i = 0; i < n->n_all_taints; i++)
                if (streq(n->all_taints[i].key, "nvidia.com/gpu"))
                        return "the taint nvidia.com/gpu";
        return NULL;
}

bool doctor_is_gpu_node(struct arena *a, const struct node_object *n) {
        return node_has_gpu(&n->node) || doctor_gpu_sign(a, n);
}

static size_t gpu_node_count(struct doctor *d) {
        size_t n = 0;
        VIEW_EACH(d->v, VIEW_NODES, struct node_object, x)
        n += doctor_is_gpu_node(d->a, x);
        return n;
}

static void check_kernel(struct doctor *d) {
        struct message_list old = { 0 };
        struct doctor_version x;
        size_t n_known = 0;
        if (!doctor_needs(d, VIEW_NODES, NULL))
                return;
        VIEW_EACH(d->v, VIEW_NODES, struct node_object, n) {
                if (!doctor_is_gpu_node(d->a, n) || !doctor_version_read(n->kernel, &x))
                        continue;
                n_known++;
                if (doctor_version_is_older(&x, KERNEL_MAJOR, KERNEL_MINOR))
                        message_add(&old, "%s (%s)", n->node.o.meta.name, n->kernel);
        }
        const char *list = message_end(&old, d->a);
        if (*list)
                doctor_fail(d, FAULT_KERNEL_OLD, "Install Linux 5.6 or newer on these nodes.",
                            "older than Linux 5.6: %s", list);
        else if (n_known)
                doctor_ok(d, "Linux 5.6 or newer on %zu GPU node%s", n_known, n_known == 1 ? "" : "s");
        else
                doctor_skip(d, "no GPU node reports its kernel");
}

enum runtime_state { RUNTIME_FINE, RUNTIME_UNKNOWN, RUNTIME_OLD };

/* Judges "containerd://1.7.27". containerd enables CDI by default from 2.0, and knows it from 1.7. */
static enum runtime_state judge_runtime(const char *text) {
        const char *at = strstr(text, "://");
        struct doctor_version x;
        if (!at || !doctor_version_read(at + 3, &x))
                return RUNTIME_UNKNOWN;
        if (str_starts(text, "docker://"))
                return RUNTIME_OLD;
        if (!str_starts(text, "containerd://"))
                return RUNTIME_FINE;
        return doctor_version_is_older(&x, 1, 7)   ? RUNTIME_OLD
               : doctor_version_is_older(&x, 2, 0) ? RUNTIME_UNKNOWN
                                                   : RUNTIME_FINE;
}

/* The daemons that report that the runtime has not applied their CDI file. */
static const char *daemons_without_cdi(struct doctor *d) {
        struct message_list list = { 0 };
        const struct reason *off = reason_find_anchor("cdi-off");
        VIEW_EACH(d->v, VIEW_PODS, struct pod_object, p)
        for (size_t i = 0; p->daemon && i < p->n_statuses; i++) {
                const struct container_status *s = &p->statuses[i];
                const struct pod_container_why *why = s->last ? s->last : s->state.terminated;
                if (why && why->message && reason_find_message(why->message) == off)
                        message_add(&list, "%s", str_or(p->node, p->o.meta.name));
        }
        return message_end(&list, d->a);
}

#define CDI_FIX "Use containerd 2, or set `enable_cdi = true` in the configuration of containerd 1.7."

static void doctor_check_runtime(struct doctor *d) {
        struct message_list old = { 0 }, unknown = { 0 };
        size_t n_fine = 0;
        if (!doctor_needs(d, VIEW_NODES, NULL))
                return;
        VIEW_EACH(d->v, VIEW_NODES, struct node_object, n) {
                if (!doctor_is_gpu_node(d->a, n) || !n->runtime)
                        continue;
                enum runtime_state s = judge_runtime(n->runtime);
                n_fine += s == RUNTIME_FINE;
                if (s != RUNTIME_FINE)
                        message_add(s == RUNTIME_OLD ? &old : &unknown, "%s (%s)", n->node.o.meta.name,
                                    n->runtime);
        }
        const char *too_old = message_end(&old, d->a), *not_known = message_end(&unknown, d->a);
        const char *daemons = d->mode == DOCTOR_RUNNING ? daemons_without_cdi(d) : "";
        if (*too_old)
                doctor_fail(d, FAULT_RUNTIME_OLD, CDI_FIX, "does not support CDI: %s", too_old);
        if (*daemons)
                doctor_fail(d, FAULT_RUNTIME_OLD, CDI_FIX, "has not applied the CDI file of the daemon: %s",
                            daemons);
        if (*too_old || *daemons)
                return;
        if (*not_known)
                doctor_skip(d,
                            "a Node does not show whether CDI is enabled; containerd 1.7 needs `enable_cdi = "
                            "true`: %s",
                            not_known);
        else if (n_fine)
                doctor_ok(d, "CDI is on by default on %zu GPU node%s", n_fine, n_fine == 1 ? "" : "s");
        else
                doctor_skip(d, "no GPU node reports its container runtime");
}

/* Whether the driver's Pods are known, so that a node without a plugin's Pod has none. Without a driver there
 * are no such Pods. */
static bool knows_plugins(const struct doctor *d) {
        if (d->mode == DOCTOR_RUNNING && d->v->driver == VIEW_DRIVER_UNCLEAR)
                return false;
        return d->mode != DOCTOR_RUNNING || !d->v->driver_ns ||
               view_state(d->v, VIEW_PODS, d->v->driver_ns) == VIEW_COMPLETE;
}

static bool has_plugin_pod(const struct doctor *d, const char *node) {
        VIEW_EACH(d->v, VIEW_PODS, struct pod_object, p)
        if (p->plugin && streq(p->node, node))
                return true;
        return false;
}

static void check_labels(struct doctor *d) {
        struct message_list list = { 0 };
        struct buf names = BUF_INIT(1 << 20);
        const char *sign = NULL;
        size_t n_selected = 0, n_named = 0;
        if (!doctor_needs(d, VIEW_NODES, NULL)) {
                buf_done(&names);
                return;
        }
        VIEW_EACH(d->v, VIEW_NODES, struct node_object, n) {
                const char *name = n->node.o.meta.name, *x = doctor_gpu_sign(d->a, n);
                /* A value of the chart may select other nodes. */
                bool selected = node_has_gpu(&n->node) || has_plugin_pod(d, name);
                n_selected += selected;
                if (selected || !x)
                        continue;
                sign = sign ? sign : x;
                message_add(&list, "%s", name);
                if (n_named++ < 50)
                        buf_addf(&names, " %s", term_shell_word(d->a, name));
        }
        const char *missing = message_end(&list, d->a);
        if ((*missing || !n_selected) && !knows_plugins(d))
                (void)(doctor_doubts_driver(d, false) || doctor_needs(d, VIEW_PODS, d->v->driver_ns));
        else if (*missing)
                doctor_fail(d, FAULT_NOT_LABELLED,
                            arena_printf(d->a, "kubectl label node%s " GPU_PRESENT_LABEL "=true",
                                         buf_str(&names)),
                            "no label of a GPU node on %s (%s)", missing, sign);
        else if (!n_selected)
                doctor_fail(d, FAULT_NOT_LABELLED, "kubectl label node NODE " GPU_PRESENT_LABEL "=true",
                            "no Node has a label of a GPU node");
        else
                doctor_ok(d, "%zu GPU node%s", n_selected, n_selected == 1 ? "" : "s");
        buf_done(&names);
}

/* ---- the namespace ---- */

/* Whether the checks of the namespace would judge one that may not be the driver's. If so, adds a line for
 * the skipped check. Before the installation, the user chooses the namespace. */
static bool doubts_namespace(struct doctor *d) {
        return d->mode == DOCTOR_RUNNING && doctor_doubts_driver(d, false);
}

static void check_pod_security(struct doctor *d) {
        if (doubts_namespace(d) || !doctor_needs_one(d, VIEW_NAMESPACES, d->ns))
                return;
        const struct namespace_object *ns = view_find(d->v, VIEW_NAMESPACES, NULL, d->ns);
        const char *level =
                ns ? jd_pair_get(ns->labels, ns->n_labels, "pod-security.kubernetes.io/enforce") : NULL;
        if (!ns)
                doctor_ok(d, "namespace %s does not exist yet", d->ns);
        else if (level && !streq(level, "privileged"))
                doctor_fail(d, FAULT_POD_SECURITY,
                            arena_printf(d->a,
                                         "kubectl label namespace %s "
                                         "pod-security.kubernetes.io/enforce=privileged --overwrite",
                                         term_shell_word(d->a, d->ns)),
                            "namespace %s enforces \"%s\", and the plugin is privileged", d->ns, level);
        else
                doctor_ok(d, level ? "namespace %s allows privileged pods" : "namespace %s enforces no level",
                          d->ns);
}

static bool on_gke(const struct doctor *d) {
        VIEW_EACH(d->v, VIEW_NODES, struct node_object, n)
        if (jd_pair_get(n->labels, n->n_labels, "cloud.google.com/gke-nodepool"))
                return true;
        return false;
}

/* The part of a quota that counts pods; -1: it counts none. */
static int64_t quota_pods(const struct jd_pair *list, size_t n) {
        const char *value = jd_pair_get(list, n, "pods");
        int64_t pods;
        value = value ? value : jd_pair_get(list, n, "count/pods");
        if (!value || !str_to_i64(str_from(value), &pods))
                return -1;
        return pods < PODS_MAX ? pods : PODS_MAX;
}

/* Whether the quota counts the pods of the driver: all pods, or those of its priority classes. */
static bool quota_counts(struct arena *a, const struct quota_object *q) {
        if (!q->scope.n || q->n_scopes)
                return !q->n_scopes;
        const char *scope = arena_strndup(a, q->scope.p, q->scope.n);
        return strstr(scope, "system-node-critical") || strstr(scope, "Exists");
}

static void check_quota(struct doctor *d) {
        bool room = false;
        size_t n_lines = d->n;
        if (doubts_namespace(d) || !doctor_needs(d, VIEW_QUOTAS, d->ns))
                return;
        view_read(d->v, VIEW_NODES, NULL);
        /* A plugin and a daemon on each node, and two controllers. If the driver is installed, a full quota
         * is a problem only while pods are missing. */
        bool installed = d->mode == DOCTOR_RUNNING;
        int64_t needed = installed ? 0 : 2 * (int64_t)gpu_node_count(d) + 2;
        VIEW_EACH(d->v, VIEW_QUOTAS, struct quota_object, q) {
                int64_t hard = quota_pods(q->hard, q->n_hard), used = quota_pods(q->used, q->n_used);
                if (!streq(q->o.meta.ns, d->ns) || !quota_counts(d->a, q) || hard < 0)
                        continue;
                used = used < 0 ? 0 : used;
                room = room || (hard > 0 && q->scope.n);
                bool waits = d->plugin && d->plugin->current < d->plugin->desired;
                if (installed ? used >= hard && waits : hard - used < needed)
                        doctor_fail(d, FAULT_QUOTA,
                                    arena_printf(d->a,
                                                 "kubectl -n %s patch resourcequota %s --patch "
                                                 "'{\"spec\":{\"hard\":{\"pods\":\"%lld\"}}}'",
                                                 term_shell_word(d->a, d->ns),
                                                 term_shell_word(d->a, q->o.meta.name),
                                                 (long long)(used + needed + 1000)),
                                    "ResourceQuota %s in %s: %lld of %lld pods used%s", q->o.meta.name, d->ns,
                                    (long long)used, (long long)hard,
                                    installed ? ""
                                              : arena_printf(d->a, ", and the driver needs %lld",
                                                             (long long)needed));
        }
        if (!room && !installed && on_gke(d))
                doctor_fail(d, FAULT_QUOTA,
                            "Create a quota for the classes, or install without them. See "
                            "docs/how-to/platforms.md#gke.",
                            "GKE allows the priority classes system-node-critical and "
                            "system-cluster-critical only with a ResourceQuota in %s",
                            d->ns);
        if (d->n == n_lines)
                doctor_ok(d, "no ResourceQuota of %s prevents the driver's pods", d->ns);
}

/* ---- other drivers ---- */

static void doctor_check_gpus(struct doctor *d) {
        const struct class_object *class = NULL;
        struct message_list list = { 0 };
        if (!doctor_needs(d, VIEW_CLASSES, NULL) || !doctor_needs(d, VIEW_NODES, NULL))
                return;
        VIEW_EACH(d->v, VIEW_CLASSES, struct class_object, c)
        if (streq(c->extended_resource, "nvidia.com/gpu"))
                class = c;
        VIEW_EACH(d->v, VIEW_NODES, struct node_object, n)
        for (size_t i = 0; i < n->n_allocatable; i++)
                if (streq(n->allocatable[i].key, "nvidia.com/gpu") && !streq(n->allocatable[i].value, "0"))
                        message_add(&list, "%s", n->node.o.meta.name);
        const char *nodes = message_end(&list, d->a);
        if (class && *nodes)
                doctor_fail(d, FAULT_GPUS_TWICE, NULL,
                            "the DeviceClass %s and a device plugin (%s) both offer nvidia.com/gpu",
                            class->o.meta.name, nodes);
        else
                doctor_ok(d, "nvidia.com/gpu is offered by %s",
                          class    ? arena_printf(d->a, "the DeviceClass %s", class->o.meta.name)
                          : *nodes ? "a device plugin"
                                   : "nothing");
}

static void check_other_drivers(struct doctor *d) {
        if (!doctor_needs(d, VIEW_DAEMON_SETS, NULL))
                return;
        if (d->go)
                doctor_fail(d, FAULT_GO_DRIVER,
                            "Run `kubectl compute-domains doctor --from-go`, and follow "
                            "docs/how-to/migrate.md.",
                            "the Go driver manages ComputeDomains: %s", d->go_all);
        else
                doctor_ok(d, "the Go driver does not manage ComputeDomains");
}

const struct doctor_check doctor_cluster_checks[] = {
        { "kubernetes", DOCTOR_PRE | DOCTOR_RUNNING | DOCTOR_GO, check_kubernetes },
        { "dra-api", DOCTOR_PRE | DOCTOR_RUNNING | DOCTOR_GO, check_dra },
        { "policy-api", DOCTOR_PRE | DOCTOR_GO, check_policy_api },
        { "kernel", DOCTOR_PRE | DOCTOR_RUNNING | DOCTOR_GO, check_kernel },
        { "runtime", DOCTOR_PRE | DOCTOR_RUNNING | DOCTOR_GO, doctor_check_runtime },
        { "node-labels", DOCTOR_PRE | DOCTOR_RUNNING | DOCTOR_GO, check_labels },
        { "pod-security", DOCTOR_PRE | DOCTOR_RUNNING | DOCTOR_GO, check_pod_security },
        { "quota", DOCTOR_PRE | DOCTOR_RUNNING, check_quota },
        { "gpus", DOCTOR_PRE | DOCTOR_RUNNING | DOCTOR_GO, doctor_check_gpus },
        { "other-drivers", DOCTOR_PRE | DOCTOR_RUNNING, check_other_drivers },
        { 0 },
};
