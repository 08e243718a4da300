/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `doctor` about the objects of an installation. */
#include <string.h>

#include "api/names.h"
#include "cli/doctor.h"
#include "rules/message.h"

/* A leader renews its Lease every few seconds. A second may be lost between the clocks of two machines. */
enum { LEASE_SECONDS = 15, LEASE_TOLERANCE_SECONDS = 45 };

#define CONTROLLER "compute-domain-controller"
#define PLUGIN "compute-domain-kubelet-plugin"

static void check_driver(struct doctor *d) {
        if (doctor_doubts_driver(d, false))
                return;
        if (d->controller || d->plugin) {
                const struct workload_object *w = d->controller ? d->controller : d->plugin;
                const char *version = jd_pair_get(w->labels, w->n_labels, "app.kubernetes.io/version");
                if (d->v->driver_doubt)
                        doctor_ok(d, "%s%s%s", version ? version : "", version ? ". " : "",
                                  d->v->driver_doubt);
                else
                        doctor_ok(d, "%s%sin namespace %s", version ? version : "", version ? " " : "",
                                  d->ns);
                return;
        }
        if (d->gpus_only) {
                doctor_skip(d, "%s, which `doctor --node NODE%s` checks", d->gpus_only,
                            d->v->gpu_releases ? " --namespace NAMESPACE" : "");
                return;
        }
        if (doctor_needs(d, VIEW_DEPLOYMENTS, NULL) && doctor_needs(d, VIEW_DAEMON_SETS, NULL))
                doctor_fail(d, FAULT_NO_DRIVER, "kubectl compute-domains doctor --pre",
                            "the driver is not installed");
}

/* ---- the controller ---- */

/* Only Leases of which this controller is known to be a candidate. */
static const struct lease_object *leader_lease(const struct doctor *d) {
        const struct workload_object *w = d->controller;
        const char *name = workload_object_env(w, CONTROLLER, "LEADER_ELECTION_LEASE_LOCK_NAME");
        return view_find(d->v, VIEW_LEASES, d->ns, name ? name : w->o.meta.name);
}

static void check_leader(struct doctor *d) {
        const char *enabled = workload_object_env(d->controller, CONTROLLER, "LEADER_ELECTION_ENABLED");
        if (streq(enabled, "false") || (!enabled && d->controller->replicas < 2)) {
                doctor_ok(d, "%lld of %lld Ready, without an election",
                          (long long)d->controller->ready_replicas, (long long)d->controller->replicas);
                return;
        }
        if (!doctor_needs(d, VIEW_LEASES, d->ns))
                return;
        const struct lease_object *lease = leader_lease(d);
        const char *fix =
                arena_printf(d->a, "kubectl -n %s logs deployment/%s --all-pods --tail=20",
                             term_shell_word(d->a, d->ns), term_shell_word(d->a, d->controller->o.meta.name));
        if (!lease) {
                doctor_fail(d, FAULT_NO_LEADER, fix, "no controller leads: the Lease does not exist");
                return;
        }
        int64_t age = d->v->source->now - lease->renewed;
        int64_t limit = (lease->seconds > 0 ? lease->seconds : LEASE_SECONDS) + LEASE_TOLERANCE_SECONDS;
        if (age > limit)
                doctor_fail(d, FAULT_NO_LEADER, fix, "no controller leads: Lease %s was renewed %s ago by %s",
                            lease->o.meta.name, term_age(d->a, age), str_or(lease->holder, "nobody"));
        else
                doctor_ok(d, "%lld of %lld Ready, %s leads", (long long)d->controller->ready_replicas,
                          (long long)d->controller->replicas, str_or(lease->holder, "nobody"));
}

static void check_controller(struct doctor *d) {
        const struct workload_object *w = d->controller;
        if (!w) {
                if (doctor_needs(d, VIEW_DEPLOYMENTS, NULL) && d->plugin)
                        doctor_fail(d, FAULT_CONTROLLER_DOWN,
                                    "Run `helm upgrade` with the values of the release.",
                                    "the Deployment of the controller does not exist");
                return;
        }
        const char *fix = arena_printf(d->a, "kubectl -n %s describe deployment,pods -l app=" CONTROLLER,
                                       term_shell_word(d->a, d->ns));
        if (w->ready_replicas == 0)
                doctor_fail(d, FAULT_CONTROLLER_DOWN, fix, "0 of %lld pods of %s are Ready",
                            (long long)w->replicas, w->o.meta.name);
        else if (w->ready_replicas < w->replicas)
                doctor_fail_reason(d, FAULT_CONTROLLER_DOWN, NULL, fix,
                                   arena_printf(d->a, "%lld of %lld pods of %s are Ready",
                                                (long long)w->ready_replicas, (long long)w->replicas,
                                                w->o.meta.name));
        if (w->ready_replicas)
                check_leader(d);
}

/* ---- objects of the chart ---- */

static const struct {
        const char *name;
        const struct jd_field *fields; /* NULL: only the Go driver writes the objects */
} crds[] = {
        { "computedomains." CD_GROUP, compute_domain_fields },
        { "computedomainfabrics." CD_GROUP, compute_domain_fabric_fields },
        { "computedomaincliques." CD_GROUP, NULL },
};

static void judge_crd(struct doctor *d, const struct crd_object *crd, const struct jd_field *fields) {
        const struct condition *established =
                condition_find(crd->conditions, crd->n_conditions, "Established");
        const char *lacks = NULL;
        bool served = false;
        for (size_t i = 0; i < crd->n_versions; i++) {
                const struct crd_version *x = &crd->versions[i];
                if (!streq(x->name, "v1beta1"))
                        continue;
                served = x->served;
                lacks = fields ? crd_object_lacks(x, fields) : NULL;
        }
        if (!served)
                doctor_fail(d, FAULT_CRD_DIFFERS, "Apply deploy/chart/compute-domains/crds.",
                            "%s does not serve v1beta1", crd->o.meta.name);
        else if (lacks)
                doctor_fail(d, FAULT_CRD_DIFFERS, DEFINITION_OLD_FIX,
                            "%s has no member \"%s\", so it is of another version", crd->o.meta.name, lacks);
        else if (established && condition_status_decode(established->status) == STATUS_FALSE)
                doctor_fail(d, FAULT_CRD_DIFFERS, NULL, "%s is not established: %s", crd->o.meta.name,
                            str_or(established->message, str_or(established->reason, "no reason is known")));
}

static void check_crds(struct doctor *d) {
        size_t before = d->n;
        for (size_t i = 0; i < ARRAY_LEN(crds); i++) {
                if (!doctor_needs_one(d, VIEW_CRDS, crds[i].name))
                        return;
                const struct crd_object *crd = view_find(d->v, VIEW_CRDS, NULL, crds[i].name);
                if (crd)
                        judge_crd(d, crd, crds[i].fields);
                else
                        doctor_fail(d, FAULT_CRD_MISSING, DEFINITION_FIX, "%s does not exist", crds[i].name);
        }
        if (d->n == before)
                doctor_ok(d, "%zu CustomResourceDefinitions of this version", ARRAY_LEN(crds));
}

static void check_classes(struct doctor *d) {
        const char *const names[] = { CD_CLASS_CHANNEL, CD_CLASS_DAEMON };
        /* Host-managed IMEX needs no daemons. Without the Deployment the mode is not known. */
        size_t n = d->controller && !d->v->hosts ? 2 : 1, before = d->n;
        if (!doctor_needs(d, VIEW_CLASSES, NULL))
                return;
        for (size_t i = 0; i < n; i++)
                if (!view_find(d->v, VIEW_CLASSES, NULL, names[i]))
                        doctor_fail(d, FAULT_CLASS_MISSING,
                                    "Run `helm upgrade` with the values of the release, which creates it.",
                                    "the DeviceClass %s does not exist", names[i]);
        if (d->n == before)
                doctor_ok(d, "%zu DeviceClass%s", n, n == 1 ? "" : "es");
}

static const struct {
        const char *suffix;
        bool daemons; /* only with driver-managed IMEX */
} policies[] = { { "-fabrics", false },
                 { "-controller-nodes", false },
                 { "-controller-daemonsets", false },
                 { "-controller-claimtemplates", false },
                 { "-resourceslices", false },
                 { "-events", false },
                 { "-daemon-claims", false },
                 { "-daemon-pods", true } };

static bool is_of_release(const struct admission_object *x, const struct workload_object *w) {
        const char *ours = jd_pair_get(w->labels, w->n_labels, "app.kubernetes.io/instance"),
                   *its = jd_pair_get(x->labels, x->n_labels, "app.kubernetes.io/instance");
        return !ours || streq(ours, its);
}

/* The beginning of the names of all policies of the release; NULL: it has none. */
static const char *policy_prefix(const struct doctor *d) {
        VIEW_EACH(d->v, VIEW_ADMISSION, struct admission_object, x)
        for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
                const char *suffix = policies[i].suffix;
                /* "x-go-daemon-pods" ends with "-daemon-pods". */
                if (!policies[i].daemons && str_ends(x->o.meta.name, suffix) &&
                    is_of_release(x, d->controller))
                        return arena_strndup(d->a, x->o.meta.name, strlen(x->o.meta.name) - strlen(suffix));
        }
        return NULL;
}

static bool has_binding(const struct doctor *d, const char *policy) {
        VIEW_EACH(d->v, VIEW_BINDINGS, struct admission_object, x)
        if (streq(x->policy, policy))
                return true;
        return false;
}

static void check_policies(struct doctor *d) {
        struct message_list missing = { 0 };
        size_t n = 0;
        if (!d->controller) {
                doctor_skip(d, "the Deployment of the controller is not known");
                return;
        }
        if (!doctor_needs(d, VIEW_ADMISSION, NULL) || !doctor_needs(d, VIEW_BINDINGS, NULL))
                return;
        const char *prefix = policy_prefix(d);
        for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
                if (policies[i].daemons && d->v->hosts)
                        continue;
                n++;
                const char *name = arena_printf(d->a, "%s%s", prefix ? prefix : "...", policies[i].suffix);
                if (!prefix || !view_find(d->v, VIEW_ADMISSION, NULL, name))
                        message_add(&missing, "%s", name);
                else if (!has_binding(d, name))
                        message_add(&missing, "the binding of %s", name);
        }
        const char *list = message_end(&missing, d->a);
        if (*list)
                doctor_fail(d, FAULT_POLICY_MISSING,
                            "Run `helm upgrade` with the values of the release, which creates them.",
                            "these admission policies do not exist: %s", list);
        else
                doctor_ok(d, "%zu admission policies", n);
}

/* ---- versions ---- */

static const char *image_of(const struct container *list, size_t n, const char *program) {
        const struct container *c = container_find(list, n, program);
        return c ? c->image : NULL;
}

static void check_versions(struct doctor *d) {
        const struct workload_object *c = d->controller, *p = d->plugin;
        struct message_list old = { 0 };
        size_t before = d->n;
        const char *of_controller = c ? image_of(c->containers, c->n_containers, CONTROLLER) : NULL,
                   *of_plugin = p ? image_of(p->containers, p->n_containers, PLUGIN) : NULL;
        if (!of_controller || !of_plugin) {
                doctor_skip(d, "the images of controller and plugin are not known");
                return;
        }
        if (!streq(of_controller, of_plugin))
                doctor_fail(d, FAULT_VERSIONS_DIFFER, "Run `helm upgrade` with the values of the release.",
                            "the controller is %s, and the plugin is %s", of_controller, of_plugin);
        if (!doctor_needs(d, VIEW_PODS, d->ns))
                return;
        VIEW_EACH(d->v, VIEW_PODS, struct pod_object, x) {
                const char *image = x->plugin ? image_of(x->containers, x->n_containers, PLUGIN) : NULL;
                if (image && !streq(image, of_plugin))
                        message_add(&old, "%s (%s)", str_or(x->node, x->o.meta.name), image);
        }
        const char *list = message_end(&old, d->a);
        if (*list)
                doctor_fail(d, FAULT_VERSIONS_DIFFER,
                            arena_printf(d->a, "kubectl -n %s rollout status daemonset/%s",
                                         term_shell_word(d->a, d->ns), term_shell_word(d->a, p->o.meta.name)),
                            "plugins that are not %s: %s", of_plugin, list);
        if (d->n == before)
                doctor_ok(d, "controller and plugins are %s", of_plugin);
}

/* ---- NetworkPolicies ---- */

enum { IMEX_PORT_FIRST = 28000, IMEX_PORT_LAST = 32095 };

/* Whether the rule may allow a port of IMEX. The peers that it allows are not judged. */
static bool rule_allows(const struct policy_rule *r) {
        if (!r->n_ports)
                return true;
        for (size_t i = 0; i < r->n_ports; i++) {
                const struct policy_port *p = &r->ports[i];
                int64_t first, last;
                if (p->protocol && !streq(p->protocol, "TCP"))
                        continue;
                if (!p->port.n || !str_to_i64(p->port, &first))
                        return true; /* all ports, or one with a name */
                last = p->end > first ? p->end : first;
                if (first <= IMEX_PORT_LAST && last >= IMEX_PORT_FIRST)
                        return true;
        }
        return false;
}

/* Whether the policy concerns the direction. A policy that lists no types concerns Ingress, and Egress if it
 * has rules for it. */
static bool policy_concerns(const struct policy_object *p, bool egress) {
        if (p->n_types)
                return has_string(p->types, p->n_types, egress ? "Egress" : "Ingress");
        return !egress || p->n_egress;
}

/* The policies that together block one direction for a daemon; "": none. Policies only add permissions, so
 * one that allows is sufficient. */
static const char *blocking_policies(const struct doctor *d, const struct pod_object *daemon, bool egress) {
        struct message_list names = { 0 };
        bool allowed = false;
        VIEW_EACH(d->v, VIEW_POLICIES, struct policy_object, p) {
                if (!streq(p->o.meta.ns, d->ns) || !policy_concerns(p, egress))
                        continue;
                const struct policy_rule *rules = egress ? p->egress : p->ingress;
                size_t n = egress ? p->n_egress : p->n_ingress;
                bool by_expressions = p->expressions.n && !str_eq(p->expressions, STR("[]"));
                if (!by_expressions && !policy_object_selects(p, daemon))
                        continue;
                for (size_t i = 0; i < n; i++)
                        allowed = allowed || rule_allows(&rules[i]);
                if (!by_expressions)
                        message_add(&names, "%s", p->o.meta.name);
        }
        const char *list = message_end(&names, d->a);
        return allowed ? "" : list;
}

static void check_network(struct doctor *d) {
        const struct pod_object *daemon = NULL;
        size_t before = d->n;
        if (d->v->hosts) {
                doctor_ok(d, "IMEX is host-managed");
                return;
        }
        if (!doctor_needs(d, VIEW_POLICIES, d->ns) || !doctor_needs(d, VIEW_PODS, d->ns))
                return;
        VIEW_EACH(d->v, VIEW_PODS, struct pod_object, p)
        if (p->daemon && streq(p->o.meta.ns, d->ns))
                daemon = p;
        if (!daemon) {
                doctor_skip(d, "no daemon exists yet");
                return;
        }
        for (int egress = 0; egress < 2; egress++) {
                const char *list = blocking_policies(d, daemon, egress);
                if (*list)
                        doctor_fail(d, FAULT_NETWORK_POLICY,
                                    "Allow TCP 28000 to 32095 and 50005 between the pods with the label "
                                    "`" CD_LABEL_COMPONENT "=" CD_DAEMON_OBJECT "`.",
                                    "NetworkPolicy %s in %s allows daemons no %s TCP port of IMEX", list,
                                    d->ns, egress ? "outgoing" : "incoming");
        }
        if (d->n == before)
                doctor_ok(d, "no NetworkPolicy of %s blocks IMEX", d->ns);
}

const struct doctor_check doctor_install_checks[] = {
        { "driver", DOCTOR_RUNNING, check_driver },
        { 0 },
};

const struct doctor_check doctor_chart_checks[] = {
        { "controller", DOCTOR_RUNNING, check_controller },
        { "crds", DOCTOR_RUNNING, check_crds },
        { "device-classes", DOCTOR_RUNNING, check_classes },
        { "admission-policies", DOCTOR_RUNNING, check_policies },
        { "versions", DOCTOR_RUNNING, check_versions },
        { "network-policies", DOCTOR_RUNNING, check_network },
        { 0 },
};
