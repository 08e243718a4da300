/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_facts: collects the input of rules/assignment for one partition, from cached objects and from
 * the answers of the API server. Pure: it knows only what its source returns. The controller implements a
 * source over its caches, and the search for broken promises over its own simulated world. */
#pragma once

#include "api/kinds.h"
#include "model/domain.h"
#include "model/allocation.h"
#include "rules/assignment.h"

/* The time that a Node object may be missing before its daemon counts as gone: kubelets recreate it. */
enum { ASSIGNMENT_NODE_MISSING_S = 60 };

/* Questions to the API server itself, because a cache may be stale. */
enum assignment_question {
        ASSIGNMENT_ASK_NODE,   /* does a Node with this name exist that is not out of service? */
        ASSIGNMENT_ASK_BOOT,   /* does a Node with this name and this boot ID exist? */
        ASSIGNMENT_ASK_CLAIM,  /* is a claim of this ComputeDomain allocated on this node? */
        ASSIGNMENT_ASK_DOMAIN, /* does this ComputeDomain exist? */
};

typedef void(assignment_daemon_fn)(void *v, const struct daemon_pod *p);
typedef void(assignment_plugin_fn)(void *v, const struct plugin_pod *p);
typedef void(assignment_grant_fn)(void *v, const struct allocation *x);

/* All that the functions return is borrowed, and valid as long as the source does not change. */
struct assignment_source {
        const char *clique;                         /* clique ID of the partition */
        const struct compute_domain_fabric *object; /* NULL: the partition has none */
        const char *const *names;                   /* names of Nodes that may belong to the partition;
                                                       sorted, each once */
        size_t n_names;
        bool is_standing; /* isolation `channel`: the partition has one standing domain for all ComputeDomains
                           */
        bool fresh_pod_per_domain;
        bool stale;     /* a cache may be stale: absence proves nothing */
        bool rolled_back; /* the resource version of the object decreased, and no recount has begun since */
        bool settling;  /* IMEX may still run on nodes whose Node object was deleted */
        bool vanished;  /* as `settling`, and the object is so new that it may not list what ran there */
        int64_t slots;  /* slots of a new IMEX domain */

        const struct node *(*node)(void *u, const char *name); /* NULL: the Node does not exist */
        /* The Node object has been missing for ASSIGNMENT_NODE_MISSING_S. */
        bool (*node_missing)(void *u, const char *name);
        /* The clique ID in the node's ResourceSlice. "": without NVLink; NULL: there is no slice. */
        const char *(*slice)(void *u, const char *node);
        /* UID of the fabric object of another partition; NULL: it has none. */
        const char *(*fabric)(void *u, const char *clique);
        void (*daemons)(void *u, const char *node, assignment_daemon_fn *fn, void *v);
        void (*plugins)(void *u, const char *node, assignment_plugin_fn *fn, void *v);
        /* Calls `fn` for each claim with a channel that is allocated on the node. */
        void (*grants)(void *u, const char *node, assignment_grant_fn *fn, void *v);
        const struct compute_domain *(*domain)(void *u, const char *uid);
        /* Do daemons serve the ComputeDomain, and may the node join it? `current`: UID of the owner of the
         * IMEX domain that the node is in now; NULL: none. */
        bool (*takes)(void *u, const struct compute_domain *cd, const char *current);
        /* No node has been assigned to the listed IMEX domain for ASSIGNMENT_IDLE_S. */
        bool (*idle)(void *u, const struct fabric_domain *d);
        /* UID of the daemon Pod that the controller wants to remove from the node; NULL: none. */
        const char *(*removes)(void *u, const char *node);
        /* True: the API server has answered "no" since `object` had this version. False: it has answered
         * "yes", or has not answered yet. `other`: the boot ID or the node, if the question has one. */
        bool (*absent)(void *u, enum assignment_question q, const char *name, const char *other);
        void *u;
};

struct assignment_facts {
        struct assignment_input input;
        bool pause; /* something should end, but stays because a cache is stale */
};

/* Collects the facts. They are in the arena, or borrowed from the source. */
void assignment_facts_make(const struct assignment_source *s, struct arena *a, struct assignment_facts *ret);
