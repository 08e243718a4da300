/* SPDX-License-Identifier: Apache-2.0 */
/* claim: a ResourceClaim as we need it (resource.k8s.io v1, v1beta2 and v1beta1 have the same shape below
 * status.allocation). */
#pragma once

#include <stdbool.h>

#include "api/opaque.h"
#include "base/json.h"
#include "kube/kube_object.h"

struct claim_result {
        const char *request, *driver, *pool, *device;
        bool admin_access;
        const char *share_id;
};

struct claim_config {
        const char *source; /* "FromClass" or "FromClaim" */
        const char **requests;
        size_t n_requests;
        const char *driver;    /* opaque.driver, NULL when there is no opaque part */
        struct str parameters; /* opaque.parameters as compact JSON, key order kept */
};

struct claim_consumer {
        const char *resource, *name, *uid;
};

struct claim_owner {
        const char *api_version, *kind, *name, *uid;
};

#define CLAIM_GROUP_KIND "PodGroup"
/* The PodGroup (scheduling.k8s.io, from Kubernetes 1.36 on) whose Pods share a claim, and the ComputeDomain
 * that the claim asks for. */
struct claim_group {
        const char *api_version, *name, *uid;
        const char *domain_uid;
};

/* A claim has been given devices: its members are in struct claim itself. */
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
        struct claim_consumer *consumers; /* status.reservedFor */
        size_t n_consumers;
        struct claim_owner *owners; /* the pod that a template made it for; none: somebody made it by name */
        size_t n_owners;
        struct jd_pair *annotations;
        size_t n_annotations;
        const struct claim_allocated *allocated; /* not NULL: status.allocation is present */
};
extern const struct jd_field claim_fields[];

/* Is this result one of our driver's channels / its daemon device? */
bool claim_result_is_channel(const struct claim_result *r);
bool claim_result_is_daemon(const struct claim_result *r);

/* Reference 7.10: the configuration of a result: claims before classes, later before earlier, and of those
 * the first that names the request or names none and is of the device's kind; "request/subrequest" matches a
 * config that names the request. ERR_INVALID says what is wrong: undecodable, a named one of the wrong kind,
 * only unnamed ones of the wrong kind, none at all. Since 1.37 the scheduler omits the names of a
 * configuration that names all requests of the claim. */
int claim_config_for(const struct claim *c, const struct claim_result *r, bool strict, struct arena *a,
                     struct opaque_config *ret, struct err *e);

/* The domain that a claim brings its node into, by the labelling rule: allocated, a channel of ours, not by
 * admin access, with a strictly valid config for the channel that all share, or with `own_channels` for one
 * of its own. False otherwise. Says nothing about whether that domain exists in the claim's namespace. */
struct claim_place {
        const char *domain_uid, *node;
};
bool claim_place(const struct claim *c, bool own_channels, struct arena *a, struct claim_place *ret);

/* True: the claim asks for a channel of a ComputeDomain, and all Pods of a PodGroup share it, whether it is
 * allocated or not. kube-controller-manager makes such a claim of a template with the PodGroup as its owner;
 * one that was made by name is reserved for the PodGroup instead of a Pod. */
bool claim_of_group(const struct claim *c, struct arena *a, struct claim_group *ret);
