/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "cli/doctor_kinds.h"
#include "rules/message.h"

enum { OBJECTS_MAX = 2000000 };

static const struct {
        const struct kube_resource *res;
        const struct jd_field *fields, *more; /* `more`: a second table for the same struct */
        size_t size;
} kinds[VIEW_KINDS] = {
        [VIEW_PODS] = { &kube_pods, pod_object_fields, NULL, sizeof(struct pod_object) },
        [VIEW_EVENTS] = { &kube_events, event_object_fields, NULL, sizeof(struct event_object) },
        [VIEW_CLAIMS] = { &kube_resource_claims, claim_fields, claim_object_fields,
                          sizeof(struct claim_object) },
        [VIEW_TEMPLATES] = { &kube_resource_claim_templates, rct_fields, NULL, sizeof(struct rct) },
        [VIEW_DOMAINS] = { &kube_compute_domains, compute_domain_fields, NULL,
                           sizeof(struct compute_domain) },
        [VIEW_FABRICS] = { &kube_fabrics, compute_domain_fabric_fields, NULL,
                           sizeof(struct compute_domain_fabric) },
        [VIEW_NODES] = { &kube_nodes, node_fields, node_object_fields, sizeof(struct node_object) },
        [VIEW_SLICES] = { &kube_resource_slices, slice_fields, NULL, sizeof(struct slice) },
        [VIEW_DAEMON_SETS] = { &kube_daemonsets, workload_object_fields, NULL,
                               sizeof(struct workload_object) },
        [VIEW_DEPLOYMENTS] = { &tool_kinds_deployments, workload_object_fields, NULL,
                               sizeof(struct workload_object) },
        [VIEW_CLASSES] = { &tool_kinds_device_classes, class_object_fields, NULL,
                           sizeof(struct class_object) },
        [VIEW_QUOTAS] = { &tool_kinds_quotas, quota_object_fields, NULL, sizeof(struct quota_object) },
        [VIEW_POLICIES] = { &tool_kinds_policies, policy_object_fields, NULL, sizeof(struct policy_object) },
        [VIEW_NAMESPACES] = { &kube_namespaces, namespace_object_fields, NULL,
                              sizeof(struct namespace_object) },
        [VIEW_CRDS] = { &kube_crds, crd_object_fields, NULL, sizeof(struct crd_object) },
        [VIEW_ADMISSION] = { &doctor_kinds_admission, admission_object_fields, NULL,
                             sizeof(struct admission_object) },
        [VIEW_BINDINGS] = { &doctor_kinds_bindings, admission_object_fields, NULL,
                            sizeof(struct admission_object) },
        [VIEW_LEASES] = { &kube_leases, lease_object_fields, NULL, sizeof(struct lease_object) },
        [VIEW_CLIQUES] = { &doctor_kinds_cliques, clique_object_fields, NULL, sizeof(struct clique_object) },
};

void view_init(struct view *v, struct source *s) {
        *v = (struct view){ .a = arena_new(64 << 10), .source = s };
}

void view_done(struct view *v) {
        for (size_t i = 0; i < VIEW_KINDS; i++) {
                free(v->kinds[i].items);
                free(v->kinds[i].lists);
        }
        arena_free(v->a);
}

const struct kube_resource *view_resource(enum view_kind k) {
        return kinds[k].res;
}

/* ---- reading ---- */

struct view_reading {
        struct view *v;
        enum view_kind k;
        size_t n_before; /* objects of earlier lists that this list may contain, too */
        struct err bad;  /* kind ERR_NONE: every object could be decoded */
};

static int view_complete_pod(struct view *v, yyjson_val *object, struct pod_object *p, struct err *e) {
        if (!v->driver_ns || !streq(p->o.meta.ns, v->driver_ns))
                return 0;
        if (streq(pod_object_label(p, CD_LABEL_COMPONENT), CD_DAEMON_OBJECT)) {
                struct daemon_pod *d = arena_alloc(v->a, sizeof *d);
                if (jd_decode(daemon_pod_fields, object, "", v->a, d, e) < 0)
                        return -1;
                p->daemon = d;
        } else if (pod_object_is_plugin(p, "compute-domain-kubelet-plugin")) {
                struct plugin_pod *d = arena_alloc(v->a, sizeof *d);
                if (jd_decode(plugin_pod_fields, object, "", v->a, d, e) < 0)
                        return -1;
                p->plugin = d;
        }
        return 0;
}

/* A claim in any isolation: whether the claim fits the isolation of the installation is a matter of Prepare.
 */
static void view_complete_claim(struct view *v, struct claim_object *c) {
        struct opaque_config config;
        struct err e;
        if (!claim_place(&c->claim, false, v->a, &c->place) && !claim_place(&c->claim, true, v->a, &c->place))
                c->place = (struct claim_place){ 0 };
        c->domain_uid = c->place.domain_uid;
        for (size_t i = 0; i < c->claim.n_asked && !c->domain_uid; i++)
                if (streq(c->claim.asked[i].driver, CD_DRIVER) &&
                    opaque_decode(c->claim.asked[i].parameters, false, v->a, &config, &e) == 0 &&
                    config.kind == OPAQUE_CHANNEL && *config.domain_id)
                        c->domain_uid = config.domain_id;
}

static bool view_has(const struct view *v, enum view_kind k, size_t n, const struct kube_meta *m) {
        for (size_t i = 0; i < n; i++) {
                const struct kube_object *o = v->kinds[k].items[i];
                if (streq(o->meta.name, m->name) && streq(o->meta.ns, m->ns))
                        return true;
        }
        return false;
}

static void view_take(void *u, yyjson_val *object) {
        struct view_reading *r = u;
        struct view *v = r->v;
        struct view_objects *list = &v->kinds[r->k];
        struct kube_object *o = arena_alloc(v->a, kinds[r->k].size);
        struct err e;
        if (jd_decode(kinds[r->k].fields, object, "", v->a, o, &e) < 0 ||
            (kinds[r->k].more && jd_decode(kinds[r->k].more, object, "", v->a, o, &e) < 0) ||
            (r->k == VIEW_PODS && view_complete_pod(v, object, (struct pod_object *)o, &e) < 0)) {
                err_wrap(&e, "%s %s", kinds[r->k].res->kind, str_or(o->meta.name, "without a name"));
                r->bad = e;
                return;
        }
        if (list->n >= OBJECTS_MAX) {
                err_set(&r->bad, ERR_INVALID, 0, "too many objects");
                return;
        }
        if (r->k == VIEW_CLAIMS)
                view_complete_claim(v, (struct claim_object *)o);
        if (r->n_before && view_has(v, r->k, r->n_before, &o->meta))
                return;
        GROW(list->items, list->n, list->cap);
        list->items[list->n++] = o;
}

static const struct view_list *view_list_of(const struct view *v, enum view_kind k, const char *ns,
                                            const char *name) {
        for (size_t i = 0; i < v->kinds[k].n_lists; i++) {
                const struct view_list *l = &v->kinds[k].lists[i];
                if (streq(l->ns, ns) && streq(l->name, name))
                        return l;
        }
        return NULL;
}

/* Lists of two namespaces have no object in common. */
static bool view_overlaps(const struct view_objects *list, const struct view_list *x) {
        for (size_t i = 0; i < list->n_lists; i++)
                if (!x->ns || !list->lists[i].ns || streq(x->ns, list->lists[i].ns))
                        return true;
        return false;
}

static void view_read_list(struct view *v, enum view_kind k, const char *ns, const char *name) {
        if (k == VIEW_PODS)
                view_find_driver(v);
        struct view_objects *list = &v->kinds[k];
        struct view_list x = { .ns = arena_strdup_or_null(v->a, ns),
                               .name = arena_strdup_or_null(v->a, name) };
        struct view_reading r = { .v = v, .k = k, .n_before = view_overlaps(list, &x) ? list->n : 0 };
        const struct source_query q = { .res = kinds[k].res, .ns = ns, .name = name };
        struct err e;
        if (v->source->list(v->source, &q, view_take, &r, &e) < 0) {
                x.state = e.kind == ERR_DENIED      ? VIEW_UNREADABLE
                          : e.kind == ERR_NOT_FOUND ? VIEW_COMPLETE
                                                    : VIEW_PARTIAL;
                x.not_served = e.kind == ERR_NOT_FOUND;
                x.why = arena_strdup(v->a, e.msg);
        } else if (r.bad.kind != ERR_NONE) {
                x.state = VIEW_PARTIAL;
                x.why = arena_strdup(v->a, r.bad.msg);
        }
        GROW(list->lists, list->n_lists, list->cap_lists);
        list->lists[list->n_lists++] = x;
}

static bool view_all_read(const struct view *v, enum view_kind k) {
        const struct view_list *all = view_list_of(v, k, NULL, NULL);
        return all && all->state != VIEW_UNREADABLE;
}

void view_read(struct view *v, enum view_kind k, const char *ns) {
        if (!view_list_of(v, k, ns, NULL) && !view_all_read(v, k))
                view_read_list(v, k, ns, NULL);
}

void view_read_all(struct view *v, enum view_kind k, const char *instead) {
        view_read(v, k, NULL);
        if (instead)
                view_read(v, k, instead);
}

void view_read_one(struct view *v, enum view_kind k, const char *ns, const char *name) {
        if (!view_all_read(v, k) && !view_list_of(v, k, ns, NULL) && !view_list_of(v, k, ns, name))
                view_read_list(v, k, ns, name);
}

/* The list that decides about a namespace: of all namespaces, unless the user may not read that one. */
static const struct view_list *view_deciding(const struct view *v, enum view_kind k, const char *ns) {
        const struct view_list *all = view_list_of(v, k, NULL, NULL),
                               *one = ns ? view_list_of(v, k, ns, NULL) : NULL;
        return one && (!all || one->state <= all->state) ? one : all;
}

enum view_state view_state(const struct view *v, enum view_kind k, const char *ns) {
        const struct view_list *l = view_deciding(v, k, ns);
        return l ? l->state : VIEW_UNREADABLE;
}

enum view_state view_state_one(const struct view *v, enum view_kind k, const char *ns, const char *name) {
        const struct view_list *one = view_list_of(v, k, ns, name);
        enum view_state whole = view_state(v, k, ns);
        return one && one->state < whole ? one->state : whole;
}

const char *view_why(const struct view *v, enum view_kind k, const char *ns) {
        const struct view_list *l = view_deciding(v, k, ns);
        return l ? l->why : NULL;
}

const char *view_failed(const struct view *v, enum view_kind k) {
        for (size_t i = 0; i < v->kinds[k].n_lists; i++)
                if (v->kinds[k].lists[i].state == VIEW_PARTIAL)
                        return str_or(v->kinds[k].lists[i].why, "the list is not complete");
        return NULL;
}

bool view_not_served(const struct view *v, enum view_kind k) {
        for (size_t i = 0; i < v->kinds[k].n_lists; i++)
                if (v->kinds[k].lists[i].not_served)
                        return true;
        return false;
}

/* ---- finding ---- */

const void *view_find(const struct view *v, enum view_kind k, const char *ns, const char *name) {
        for (size_t i = 0; name && i < v->kinds[k].n; i++) {
                const struct kube_object *o = v->kinds[k].items[i];
                if (streq(o->meta.name, name) && streq(o->meta.ns, ns))
                        return o;
        }
        return NULL;
}

const struct compute_domain *view_domain(const struct view *v, const char *uid) {
        VIEW_EACH (v, VIEW_DOMAINS, struct compute_domain, cd)
                if (uid && streq(cd->o.meta.uid, uid))
                        return cd;
        return NULL;
}

static int events_by_time(const void *x, const void *y) {
        int64_t a = event_object_time(*(const struct event_object *const *)x),
                b = event_object_time(*(const struct event_object *const *)y);
        return a < b ? 1 : a > b ? -1 : 0;
}

static bool event_is_about(const struct event_object *e, const char *kind, const char *ns, const char *name,
                           const char *uid) {
        /* A kubelet names its Node as the UID. Events of an object without a namespace name none, and are in
         * the namespace "default", where no tenant may create them. */
        bool in_place = ns ? streq(e->ns, ns) : !*str_or(e->ns, "") && streq(e->o.meta.ns, "default");
        return (!name || streq(e->name, name)) && streq(e->kind, kind) && in_place &&
               (!uid || !e->uid || streq(e->uid, uid) || streq(kind, "Node"));
}

size_t view_events(const struct view *v, const char *kind, const char *ns, const char *name, const char *uid,
                   const struct event_object ***ret) {
        size_t n = 0, cap = 0;
        const struct event_object **list = NULL;
        VIEW_EACH(v, VIEW_EVENTS, struct event_object, e)
        if (event_is_about(e, kind, ns, name, uid)) {
                ARENA_GROW(v->a, list, n, cap);
                list[n++] = e;
        }
        if (n)
                qsort(list, n, sizeof *list, events_by_time);
        *ret = list;
        return n;
}

const struct event_object *view_event(const struct view *v, const char *kind, const char *ns,
                                      const char *name, const char *uid, const char *reason) {
        const struct event_object **list;
        size_t n = view_events(v, kind, ns, name, uid, &list);
        for (size_t i = 0; i < n; i++)
                if (streq(list[i]->reason, reason))
                        return list[i];
        return NULL;
}

/* The mode and the feature gate are two ways to set the same. */
static bool view_is_host_managed(const struct workload_object *d) {
        struct str gates = str_from(
                           str_or(workload_object_env(d, "compute-domain-controller", "FEATURE_GATES"), "")),
                   gate;
        while (str_next_field(&gates, ',', &gate))
                if (str_eq(str_trim(gate), STR("HostManagedIMEX=true")))
                        return true;
        return streq(workload_object_env(d, "compute-domain-controller", "IMEX_MODE"), "hostManaged");
}

/* ---- the driver ---- */

enum { NAMESPACES_MAX = 16 };

/* Names of namespaces, each once. Those beyond the maximum are left out: two are already too many. */
struct view_namespaces {
        const char *names[NAMESPACES_MAX];
        size_t n;
};

static void namespaces_add(struct view_namespaces *x, const char *ns) {
        if (ns && x->n < NAMESPACES_MAX && !has_string(x->names, x->n, ns))
                x->names[x->n++] = ns;
}

static const char *namespaces_text(const struct view_namespaces *x, struct arena *a) {
        struct message_list list = { 0 };
        for (size_t i = 0; i < x->n; i++)
                message_add(&list, "%s", x->names[i]);
        return message_end(&list, a);
}

/* The namespaces of all workloads that look like the driver. */
static void view_candidates(const struct view *v, struct view_namespaces *ret) {
        static const char *const plugins[] = { "compute-domain-kubelet-plugin", "gpu-kubelet-plugin" };
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, d)
        if (workload_object_is_ours(d, "compute-domain-controller"))
                namespaces_add(ret, d->o.meta.ns);
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, d)
        for (size_t i = 0; i < ARRAY_LEN(plugins); i++)
                if (workload_object_is_ours(d, plugins[i]))
                        namespaces_add(ret, d->o.meta.ns);
}

/* Those of `x` that are in `of`. */
static struct view_namespaces namespaces_in(const struct view_namespaces *x,
                                            const struct view_namespaces *of) {
        struct view_namespaces ret = { 0 };
        for (size_t i = 0; i < x->n; i++)
                if (has_string(of->names, of->n, x->names[i]))
                        namespaces_add(&ret, x->names[i]);
        return ret;
}

static void view_set_driver(struct view *v, enum view_driver how, const char *ns) {
        v->driver = how;
        v->driver_ns = ns;
}

/* The policies name several namespaces. Those of an earlier installation may remain, and another release may
 * allocate only GPUs. Only the release of ComputeDomains has policies for a controller (`controllers`). */
static void view_choose_policy(struct view *v, const struct view_namespaces *policies,
                               const struct view_namespaces *controllers,
                               const struct view_namespaces *candidates) {
        struct view_namespaces both = namespaces_in(policies, candidates),
                               control = namespaces_in(both.n ? &both : policies, controllers);
        if (has_string(both.names, both.n, str_or(v->named_ns, "")))
                view_set_driver(v, VIEW_DRIVER_VERIFIED, v->named_ns);
        else if (both.n == 1)
                view_set_driver(v, VIEW_DRIVER_VERIFIED, both.names[0]);
        else if (control.n == 1)
                view_set_driver(v, VIEW_DRIVER_VERIFIED, control.names[0]);
        else if (both.n && !control.n && view_state(v, VIEW_ADMISSION, NULL) == VIEW_COMPLETE) {
                v->gpu_releases = namespaces_text(&both, v->a);
                v->driver_doubt = arena_printf(
                        v->a,
                        "Releases in several namespaces allocate only GPUs: %s. "
                        "`doctor --namespace NAMESPACE` examines one of them.",
                        v->gpu_releases);
        } else {
                view_set_driver(v, VIEW_DRIVER_UNCLEAR, NULL);
                v->driver_doubt = arena_printf(
                        v->a,
                        "The admission policies name several namespaces of the driver: %s. Delete the "
                        "policies of the installation that no longer exists.",
                        namespaces_text(control.n ? &control
                                        : both.n  ? &both
                                                  : policies,
                                        v->a));
        }
}

/* No policy names a namespace: none exists, or they may not be read. */
static void view_choose_candidate(struct view *v, const struct view_namespaces *candidates) {
        static const char *const whys[] = {
                [VIEW_COMPLETE] = "no admission policy of the chart names it",
                [VIEW_PARTIAL] = "the admission policies that name it could not be read",
                [VIEW_UNREADABLE] = "the admission policies that name it may not be read",
        };
        static const char *const fixes[] = {
                [VIEW_COMPLETE] = "Run `helm upgrade` with the values of the release, which creates them.",
                [VIEW_PARTIAL] = "Try again.",
                [VIEW_UNREADABLE] = ("Ask a cluster admin, or for permission to list "
                                     "validatingadmissionpolicies."),
        };
        enum view_state state = view_state(v, VIEW_ADMISSION, NULL);
        const char *why = whys[state], *fix = fixes[state];
        if (has_string(candidates->names, candidates->n, str_or(v->named_ns, ""))) {
                view_set_driver(v, VIEW_DRIVER_VERIFIED, v->named_ns);
        } else if (candidates->n == 1) {
                view_set_driver(v, VIEW_DRIVER_ASSUMED, candidates->names[0]);
                v->driver_doubt = arena_printf(v->a, "The namespace %s of the driver is not verified: %s. %s",
                                               v->driver_ns, why, fix);
        } else if (candidates->n) {
                view_set_driver(v, VIEW_DRIVER_UNCLEAR, NULL);
                v->driver_doubt = arena_printf(
                        v->a,
                        "Workloads in several namespaces look like the driver: %s. Which one is the driver's "
                        "is not known: %s. %s",
                        namespaces_text(candidates, v->a), why, fix);
        }
}

bool view_is_driver(const struct view *v, const struct workload_object *w, const char *program) {
        return v->driver_ns && streq(w->o.meta.ns, v->driver_ns) && workload_object_is_ours(w, program);
}

bool view_lacks_plugins(const struct view *v) {
        if (v->driver == VIEW_DRIVER_UNCLEAR ||
            view_state(v, VIEW_DAEMON_SETS, v->driver_ns) != VIEW_COMPLETE)
                return false;
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, d)
        if (view_is_driver(v, d, "compute-domain-kubelet-plugin"))
                return false;
        /* A DaemonSet that is deleted with --cascade=orphan leaves its Pods. */
        VIEW_EACH(v, VIEW_PODS, struct pod_object, p)
        if (p->plugin)
                return false;
        return true;
}

bool view_lacks_definition(const struct view *v) {
        if (!view_not_served(v, VIEW_DOMAINS))
                return false;
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, d)
        if (view_is_driver(v, d, "compute-domain-controller"))
                return true;
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, d)
        if (view_is_driver(v, d, "compute-domain-kubelet-plugin"))
                return true;
        return false;
}

const char *view_gpus_only(const struct view *v) {
        const struct workload_object *gpus = NULL;
        if (v->gpu_releases)
                return arena_printf(v->a, "the releases in the namespaces %s allocate only GPUs",
                                    v->gpu_releases);
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, d) {
                if (view_is_driver(v, d, "compute-domain-kubelet-plugin"))
                        return NULL;
                if (view_is_driver(v, d, "gpu-kubelet-plugin"))
                        gpus = d;
        }
        return gpus ? arena_printf(v->a, "DaemonSet %s in %s allocates only GPUs", gpus->o.meta.name,
                                   gpus->o.meta.ns)
                    : NULL;
}

const char *view_no_driver(const struct view *v) {
        const char *gpus = view_gpus_only(v);
        return gpus ? gpus
               : view_state(v, VIEW_DAEMON_SETS, NULL) == VIEW_COMPLETE
                       ? "the driver is not installed"
                       : "the driver, or only its CustomResourceDefinition, is not installed";
}

static void view_read_settings(struct view *v) {
        static const char program[] = "compute-domain-controller";
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, d) {
                if (!view_is_driver(v, d, program))
                        continue;
                v->own_channels = streq(workload_object_env(d, program, "IMEX_ISOLATION"), "channel");
                v->hosts = view_is_host_managed(d);
                v->auto_domains = streq(workload_object_env(d, program, "AUTO_DOMAINS"), "true");
        }
}

void view_find_driver(struct view *v) {
        struct view_namespaces policies = { 0 }, controllers = { 0 }, candidates = { 0 };
        if (v->looked_for_driver)
                return;
        v->looked_for_driver = true;
        view_read(v, VIEW_DAEMON_SETS, NULL);
        view_read(v, VIEW_DEPLOYMENTS, NULL);
        view_read(v, VIEW_ADMISSION, NULL);
        VIEW_EACH(v, VIEW_ADMISSION, struct admission_object, x) {
                bool controller;
                const char *ns = admission_object_driver(x, v->a, &controller);
                namespaces_add(&policies, ns);
                if (controller)
                        namespaces_add(&controllers, ns);
        }
        view_candidates(v, &candidates);
        if (policies.n == 1)
                view_set_driver(v, VIEW_DRIVER_VERIFIED, policies.names[0]);
        else if (policies.n)
                view_choose_policy(v, &policies, &controllers, &candidates);
        else
                view_choose_candidate(v, &candidates);
        view_read_settings(v);
}
