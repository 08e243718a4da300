/* SPDX-License-Identifier: Apache-2.0 */
/* claim: decodes the parts of a ResourceClaim that the driver needs, and finds the configuration of an
 * allocated device. status.allocation has the same form in resource.k8s.io v1, v1beta2 and v1beta1. */
#pragma once

#include <stdbool.h>

#include "api/opaque.h"
#include "base/json.h"
#include "kube/kube_object.h"

struct claim_result {
        const char *request, *driver, *pool, *device;
        bool admin_access;
};

struct claim_config {
        const char *source; /* "FromClass" or "FromClaim" */
        const char **requests;
        size_t n_requests;
        const char *driver;    /* opaque.driver; NULL: there is no opaque part */
        struct str parameters; /* opaque.parameters as compact JSON, with the original order of keys */
};

struct claim_consumer {
        const char *api_group; /* NULL: the core group */
        const char *resource, *name, *uid;
};
extern const struct jd_field claim_consumer_fields[];
bool claim_consumer_is_group(const struct claim_consumer *c); /* a PodGroup with a name */

struct claim_owner {
        const char *api_version, *kind, *name, *uid;
};

struct claim_request {
        const char *name;
        const char *device_class; /* NULL: the request has alternatives */
};

#define CLAIM_GROUP_KIND "PodGroup"
#define CLAIM_GROUP_API "scheduling.k8s.io"
#define CLAIM_GROUP_RESOURCE "podgroups" /* in status.reservedFor */
/* A PodGroup (scheduling.k8s.io, Kubernetes 1.36 and later) whose Pods share a claim, and the ComputeDomain
 * that the claim names. */
struct claim_group {
        const char *api_version, *name, *uid;
        const char *domain_uid;
};

/* Marks a claim as allocated. The results of the allocation are in struct claim. */
struct claim_allocated {
        char unused;
};

struct claim {
        struct kube_object o;
        struct claim_result *results;
        size_t n_results;
        struct claim_config *configs;
        size_t n_configs;
        struct claim_config *asked; /* spec.devices.config, which has no `source` */
        size_t n_asked;
        struct claim_request *asked_requests; /* spec.devices.requests */
        size_t n_asked_requests;
        struct claim_consumer *consumers; /* status.reservedFor */
        size_t n_consumers;
        struct claim_owner *owners; /* the pod for which the claim was created from a claim template; no
                                       owner: a user created the claim by name */
        size_t n_owners;
        const char **finalizers;
        size_t n_finalizers;
        struct jd_pair *annotations;
        size_t n_annotations;
        const struct claim_allocated *allocated; /* not NULL: status.allocation is present */
};
extern const struct jd_field claim_fields[];

/* Returns whether the result is a device of this driver: a channel device, or a daemon device. */
bool claim_result_is_channel(const struct claim_result *r);
bool claim_result_is_daemon(const struct claim_result *r);
/* Returns whether the result is the shared channel device, which is in its own pool and not on a node.
 * claim_result_is_channel() is then true, too. */
bool claim_result_is_shared(const struct claim_result *r);

/* Returns whether the controller created this claim for the ComputeDomain `uid`, or the
 * kube-controller-manager created it from a claim template for a Pod or a PodGroup. Other clients can set the
 * same owner references. */
bool claim_is_made_for(const struct claim *c, const char *uid);

/* Finds the configuration of a result. Searches the configurations of the claim before those of the class,
 * and later ones before earlier ones. Uses the first one that names the request, or that names no request and
 * has the kind of the device. A configuration that names "request" also matches "request/subrequest".
 * ERR_INVALID: the configuration cannot be decoded, it names the request but has the wrong kind, the only
 * configurations name no request and have the wrong kind, or there is no configuration. The message states
 * which. From Kubernetes 1.37 on, the scheduler omits the names of the requests in a configuration that names
 * all requests of the claim. */
int claim_config_for(const struct claim *c, const struct claim_result *r, bool strict, struct arena *a,
                     struct opaque_config *ret, struct err *e);

/* The ComputeDomain and the node that a claim connects, by the labelling rule. claim_place() returns true if
 * the claim is allocated, has a channel of this driver without admin access, and has a strictly valid
 * configuration: for an assigned channel if `own_channels` is true, otherwise for the shared channel. The
 * ComputeDomain need not exist in the claim's namespace. The `node` of a claim for the shared device is
 * CD_POOL_SHARED, because its allocation names no node. Such a claim also needs a Pod or a PodGroup in
 * status.reservedFor, because the controller allocates it in advance. The scheduler writes that entry before
 * it binds a Pod, so no node can prepare an allocated claim without it. */
struct claim_place {
        const char *domain_uid, *node;
};
bool claim_place(const struct claim *c, bool own_channels, struct arena *a, struct claim_place *ret);

/* Returns the UID of the ComputeDomain for which the controller created this claim, from its owner
 * reference; NULL: it is another claim. The string belongs to the claim. */
const char *claim_domain_owner(const struct claim *c);

/* The limit of status.reservedFor (ResourceClaimReservedForMaxSize in k8s.io/api, resource/v1). */
enum { CLAIM_PODS_MAX = 256 };

/* Returns the UID of the ComputeDomain that a claim for the shared device names, if the spec of the claim is
 * the one that the controller writes into claims and claim templates; otherwise NULL. The claim need not be
 * allocated. The result is in the arena. */
const char *claim_asks_for_shared(const struct claim *c, struct arena *a);
/* Returns whether the claim was created from a claim template for a PodGroup, and the PodGroup in *ret,
 * without domain_uid. */
bool claim_group_owner(const struct claim *c, struct claim_group *ret);
/* Returns whether status.reservedFor lists this UID. */
bool claim_is_reserved_for(const struct claim_consumer *list, size_t n, const char *uid);

/* Returns the UID of the ComputeDomain for a channel of which a Pod waits: the claim belongs to the Pod, and
 * is neither allocated nor being deleted. NULL: it is another claim, or one for the shared device. The result
 * is in the arena. */
const char *claim_awaits(const struct claim *c, struct arena *a);

/* Returns the UID of the ComputeDomain for a channel device of which a user created the claim by name: no
 * Pod, PodGroup or ComputeDomain owns it. The claim need not be allocated. NULL: it is another claim. The
 * result is in the arena. */
const char *claim_named_for(const struct claim *c, struct arena *a);

/* Returns true if the claim requests a channel device of a node and all Pods of a PodGroup share it. The
 * claim need not be allocated. If the kube-controller-manager created the claim from a claim template, the
 * PodGroup is its owner. If a user created the claim by name, it is reserved for the PodGroup instead of a
 * Pod. */
bool claim_of_group(const struct claim *c, struct arena *a, struct claim_group *ret);
