/* SPDX-License-Identifier: Apache-2.0 */
/* claim: the parts of a ResourceClaim that the driver needs. resource.k8s.io v1, v1beta2 and v1beta1 have the
 * same form in status.allocation. */
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
/* The PodGroup (scheduling.k8s.io, from Kubernetes 1.36 on) of the Pods that share a claim, and the
 * ComputeDomain that the claim names. */
struct claim_group {
        const char *api_version, *name, *uid;
        const char *domain_uid;
};

/* The claim is allocated. The results are in struct claim. */
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
        struct claim_owner *owners; /* the pod for which it was made from a template; none: a person created
                                       it by name */
        size_t n_owners;
        struct jd_pair *annotations;
        size_t n_annotations;
        const struct claim_allocated *allocated; /* not NULL: status.allocation is present */
};
extern const struct jd_field claim_fields[];

/* Is this result a channel device, or a daemon device, of this driver? */
bool claim_result_is_channel(const struct claim_result *r);
bool claim_result_is_daemon(const struct claim_result *r);

/* Finds the configuration of a result. Configurations of the claim come before those of the class, and later
 * ones before earlier ones. The first one counts that names the request, or that names no request and has the
 * kind of the device. A configuration that names "request" also matches "request/subrequest". ERR_INVALID:
 * the message names the fault: the configuration cannot be decoded, it names the request but has the wrong
 * kind, only configurations without a request and with the wrong kind exist, or there is none. From
 * Kubernetes 1.37 on, the scheduler omits the names in a configuration that names all requests of the
 * claim. */
int claim_config_for(const struct claim *c, const struct claim_result *r, bool strict, struct arena *a,
                     struct opaque_config *ret, struct err *e);

/* The ComputeDomain and the node that a claim connects, by the labelling rule. True if the claim is
 * allocated, has a channel of this driver without admin access, and has a strictly valid configuration: for
 * the shared channel, or with `own_channels` for an assigned channel. The ComputeDomain need not exist in the
 * claim's namespace. */
struct claim_place {
        const char *domain_uid, *node;
};
bool claim_place(const struct claim *c, bool own_channels, struct arena *a, struct claim_place *ret);

/* True: the claim requests a channel of a ComputeDomain, and all Pods of a PodGroup share it, whether it is
 * allocated or not. The kube-controller-manager makes such a claim from a template, with the PodGroup as its
 * owner. A claim that a person created by name is reserved for the PodGroup instead of a Pod. */
bool claim_of_group(const struct claim *c, struct arena *a, struct claim_group *ret);
