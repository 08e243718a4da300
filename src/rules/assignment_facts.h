/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_facts: what rules/assignment has to know of a partition, made from cached objects and from what
 * the API server confirms. Pure: all that it knows comes from its source, which the controller implements
 * over its caches, and which the search for broken promises implements over its own world. */
#pragma once

#include "api/kinds.h"
#include "model/domain.h"
#include "model/grant.h"
#include "rules/assignment.h"

/* A Node object may be missing for so long before its daemon counts as gone: kubelets recreate it. */
enum { ASSIGNMENT_NODE_GONE_S = 60 };

/* What the API server itself is asked, because a cache may be stale. */
enum assignment_question {
        ASSIGNMENT_ASK_NODE,   /* is there a Node of this name that is not out of service? */
        ASSIGNMENT_ASK_BOOT,   /* is there a Node of this name with this boot ID? */
        ASSIGNMENT_ASK_CLAIM,  /* is a claim of this domain allocated on this node? */
        ASSIGNMENT_ASK_DOMAIN, /* does this ComputeDomain exist? */
};

typedef void(assignment_daemon_fn)(void *v, const struct daemon_pod *p);
typedef void(assignment_plugin_fn)(void *v, const struct plugin_pod *p);
typedef void(assignment_grant_fn)(void *v, const struct grant *x);

/* What is returned is borrowed, and lives as long as the source does not change. */
struct assignment_source {
        const char *clique;                         /* id of the partition */
        const struct compute_domain_fabric *object; /* NULL: it has none */
        const char *const *names;                   /* of Nodes that may belong to it; sorted, each once */
        size_t n_names;
        bool stands; /* isolation: one domain stands in the partition, for all ComputeDomains */
        bool fresh_pod_per_domain;
        bool stale;     /* a cache may miss something: nothing is concluded from absence */
        bool went_back; /* the version of the object went back, and no recount has begun since */
        bool settling;  /* what ran on Nodes that are gone may still run */
        bool vanished;  /* the same, and the object is so new that it may not list what ran there */
        int64_t slots;  /* of a new domain */

        const struct node *(*node)(void *u, const char *name); /* NULL: there is no such object */
        /* The Node object has been missing for ASSIGNMENT_NODE_GONE_S. */
        bool (*node_gone)(void *u, const char *name);
        /* The partition that the node's ResourceSlice names: "" without NVLink, NULL: there is no slice. */
        const char *(*slice)(void *u, const char *node);
        /* UID of the ComputeDomainFabric of another partition, NULL: it has none. */
        const char *(*fabric)(void *u, const char *clique);
        void (*daemons)(void *u, const char *node, assignment_daemon_fn *fn, void *v);
        void (*plugins)(void *u, const char *node, assignment_plugin_fn *fn, void *v);
        /* Claims with channels that are allocated on the node. */
        void (*grants)(void *u, const char *node, assignment_grant_fn *fn, void *v);
        const struct compute_domain *(*domain)(void *u, const char *uid);
        /* Do daemons serve the ComputeDomain, and may the node join it, which is in `current` now (NULL: in
         * none)? */
        bool (*takes)(void *u, const struct compute_domain *cd, const char *current);
        /* No node has been assigned to the listed domain for ASSIGNMENT_IDLE_S. */
        bool (*idle)(void *u, const struct fabric_domain *d);
        /* The daemon Pod that the controller wants to remove from the node: its UID, NULL: none. */
        const char *(*removes)(void *u, const char *node);
        /* True: the API server has answered no since `object` had this version. False: it has answered yes,
         * or has yet to answer. `other`: boot ID or node, where the question has one. */
        bool (*absent)(void *u, enum assignment_question q, const char *name, const char *other);
        void *u;
};

struct assignment_facts {
        struct assignment_input input;
        bool hold; /* something should end, and is kept because a cache is stale */
};

/* All is in the arena, or borrowed from the source. */
void assignment_facts_make(const struct assignment_source *s, struct arena *a, struct assignment_facts *ret);
