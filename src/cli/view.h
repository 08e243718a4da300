/* SPDX-License-Identifier: Apache-2.0 */
/* view: the objects that a command has read, and for each kind and namespace whether the list is complete.
 *
 * Nothing may be concluded from the absence of an object unless view_state() returns VIEW_COMPLETE. Lists are
 * read when they are first needed. All objects and strings live as long as the view. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/names.h"
#include "cli/tool_kinds.h"
#include "cli/source.h"
#include "model/domain.h"
#include "model/fabric.h"

enum view_kind {
        VIEW_PODS,
        VIEW_EVENTS,
        VIEW_CLAIMS,
        VIEW_TEMPLATES,
        VIEW_DOMAINS,
        VIEW_FABRICS,
        VIEW_NODES,
        VIEW_SLICES,
        VIEW_DAEMON_SETS,
        VIEW_DEPLOYMENTS,
        VIEW_CLASSES,
        VIEW_QUOTAS,
        VIEW_POLICIES,
        VIEW_NAMESPACES,
        VIEW_CRDS,
        VIEW_ADMISSION, /* ValidatingAdmissionPolicies */
        VIEW_BINDINGS,  /* of these */
        VIEW_LEASES,
        VIEW_CLIQUES, /* of the Go driver */
        VIEW_KINDS
};

enum view_state {
        VIEW_COMPLETE,
        VIEW_PARTIAL,   /* the list failed, or an object cannot be decoded */
        VIEW_UNREADABLE /* the user may not list the objects */
};

/* One list: of all namespaces (ns NULL), of one namespace, or one object (name). */
struct view_list {
        const char *ns, *name;
        enum view_state state;
        const char *why; /* the error, if the list is not complete */
        bool not_served; /* the server does not know the kind: a complete list without objects */
};

struct view_objects {
        const void **items;
        size_t n, cap;
        struct view_list *lists;
        size_t n_lists, cap_lists;
};

/* How the namespace of the driver is known. A tenant can create a Deployment that looks like the driver's,
 * but no cluster-scoped object. */
enum view_driver {
        VIEW_DRIVER_NONE,     /* no object that was read belongs to the driver */
        VIEW_DRIVER_VERIFIED, /* from the chart's admission policies, or chosen by the user (named_ns) */
        VIEW_DRIVER_ASSUMED,  /* from Deployments and DaemonSets, which are all in one namespace */
        VIEW_DRIVER_UNCLEAR   /* several namespaces are possible. None counts as the driver's */
};

struct view {
        struct arena *a;
        struct source *source;
        struct view_objects kinds[VIEW_KINDS];
        const char *named_ns;  /* the driver's namespace, as the user states it; NULL: not stated */
        const char *driver_ns; /* the namespace of the driver; NULL: not known */
        enum view_driver driver;
        const char *gpu_releases; /* namespaces of several releases, which all allocate only GPUs, so that the
                                   * driver is VIEW_DRIVER_NONE; NULL: there are not several */
        const char *driver_doubt; /* why the namespace is only assumed, unclear or not chosen, and the remedy:
                                   * sentences, or NULL */
        bool looked_for_driver;
        bool own_channels; /* the installation has imex.isolation=channel */
        bool hosts;        /* the installation has imex.mode=hostManaged or the feature gate */
        bool auto_domains; /* the installation has autoDomains.enabled */
};

void view_init(struct view *v, struct source *s);
void view_done(struct view *v);

const struct kube_resource *view_resource(enum view_kind k);
/* Reads the objects of a namespace, or of all namespaces (ns NULL), unless they were read before. */
void view_read(struct view *v, enum view_kind k, const char *ns);
/* Reads the objects of all namespaces. If the user may not, reads those of `instead`, unless it is NULL. */
void view_read_all(struct view *v, enum view_kind k, const char *instead);
/* Reads one object. */
void view_read_one(struct view *v, enum view_kind k, const char *ns, const char *name);
/* Whether the objects of a namespace (NULL: of all) were read, and all of them. */
enum view_state view_state(const struct view *v, enum view_kind k, const char *ns);
/* The same for one object, which view_read_one() has read. */
enum view_state view_state_one(const struct view *v, enum view_kind k, const char *ns, const char *name);
/* Why the state is not complete; NULL: no error is known. */
const char *view_why(const struct view *v, enum view_kind k, const char *ns);
/* The error of a list of the kind that failed, whatever its namespace; NULL: none failed. Missing permissions
 * are no failure. */
const char *view_failed(const struct view *v, enum view_kind k);
/* Whether the server does not serve the kind. */
bool view_not_served(const struct view *v, enum view_kind k);

/* Finds the namespace of the driver, and the settings in its Deployment. Pods are read after that: only those
 * in the driver's namespace can be plugins and daemons (struct pod_object). The source of the namespace are
 * the admission policies that restrict the driver's accounts. Only cluster admins can write them, the chart
 * renders them in every mode, and bundles contain them. ClusterRoleBindings also name the namespace, but the
 * chart creates none with serviceAccount.create=false, and no bundle contains them. */
void view_find_driver(struct view *v);
/* Whether the Deployment or DaemonSet is the driver's, and runs this program. Needs view_find_driver(). */
bool view_is_driver(const struct view *v, const struct workload_object *w, const char *program);
/* Whether the installation is known to have no plugin for ComputeDomains, as one that allocates only GPUs.
 * Needs view_find_driver(). */
bool view_lacks_plugins(const struct view *v);
#define DEFINITION "CustomResourceDefinition computedomains." CD_GROUP
#define DEFINITION_FIX                                                                                       \
        "Apply deploy/chart/compute-domains/crds, or set `crds.applyAtStart=true`, with which the "          \
        "controller creates it."
#define DEFINITION_OLD_FIX                                                                                   \
        "Apply deploy/chart/compute-domains/crds of the installed version, or set `crds.applyAtStart=true`."
/* Whether the server does not serve ComputeDomains although the driver for them is installed: their
 * CustomResourceDefinition is missing. Needs view_find_driver(). */
bool view_lacks_definition(const struct view *v);
/* What is installed instead of ComputeDomains: "DaemonSet x in y allocates only GPUs", or the same about
 * several releases; NULL: nothing is known. Needs view_find_driver(). */
const char *view_gpus_only(const struct view *v);
/* The same, or that the driver is not installed: a clause. */
const char *view_no_driver(const struct view *v);

/* Visits the objects of a kind in the order of their lists. */
#define VIEW_EACH(v, kind, type, var)                                                                        \
        for (size_t var##_i = 0; var##_i < (v)->kinds[kind].n; var##_i++)                                    \
                for (const type *var = (v)->kinds[kind].items[var##_i]; var; var = NULL)

/* Find an object by its namespace and name, or a ComputeDomain by its UID; NULL: it was not read. */
const void *view_find(const struct view *v, enum view_kind k, const char *ns, const char *name);
const struct compute_domain *view_domain(const struct view *v, const char *uid);
/* The Events of an object, the newest first. Returns their number; *ret is in the arena. `uid` may be NULL.
 * `name` NULL: of all objects of the kind. */
size_t view_events(const struct view *v, const char *kind, const char *ns, const char *name, const char *uid,
                   const struct event_object ***ret);
/* The newest Event of an object with this reason; NULL: none. */
const struct event_object *view_event(const struct view *v, const char *kind, const char *ns,
                                      const char *name, const char *uid, const char *reason);
