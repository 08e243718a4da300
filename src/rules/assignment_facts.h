/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_facts: collects the input of rules/assignment for one partition, from cached objects and from
 * the answers of the API server. Pure: all facts come from a source, which the caller implements. The source
 * of the controller reads its caches, and the source of test/prove reads its simulated world. */
#pragma once

#include "api/kinds.h"
#include "model/domain.h"
#include "model/allocation.h"
#include "rules/assignment.h"

/* After a Node object has been missing for this time, the controller assumes that its daemon does not run any
 * more. A shorter absence does not count, because kubelets recreate their Node objects. */
enum { ASSIGNMENT_NODE_MISSING_S = 60 };

/* Questions that the API server has to answer, because a cache may be stale. */
enum assignment_question {
        ASSIGNMENT_ASK_NODE,   /* does a Node with this name exist that is not out of service? */
        ASSIGNMENT_ASK_BOOT,   /* does a Node with this name and this boot ID exist? */
        ASSIGNMENT_ASK_CLAIM,  /* is a claim of this ComputeDomain allocated on this node? */
        ASSIGNMENT_ASK_DOMAIN, /* does this ComputeDomain exist? */
};

typedef void(assignment_daemon_fn)(void *v, const struct daemon_pod *p);
typedef void(assignment_plugin_fn)(void *v, const struct plugin_pod *p);
typedef void(assignment_allocation_fn)(void *v, const struct allocation *x);

/* All results of the functions are borrowed, and valid until the source changes. */
struct assignment_source {
        const char *clique;                         /* clique ID of the partition */
        const struct compute_domain_fabric *object; /* NULL: the partition has none */
        const char *const *names;                   /* names of Nodes that may belong to the partition;
                                                       sorted, without duplicates */
        size_t n_names;
        bool is_standing; /* isolation `channel`: the partition has one standing domain for all ComputeDomains
                           */
        bool fresh_pod_per_domain;
        bool stale;       /* a cache may be stale, so the absence of an object proves nothing */
        bool rolled_back; /* as in assignment_input */
        bool settling;    /* IMEX may still run on nodes whose Node object was deleted */
        bool vanished;    /* as `settling`, and the object is so new that it may not list the assignments of
                             these nodes */
        int64_t slots;    /* slots of a new IMEX domain */

        const struct node *(*node)(void *u, const char *name); /* NULL: the Node does not exist */
        /* Returns whether the Node object has been missing for ASSIGNMENT_NODE_MISSING_S. */
        bool (*node_missing)(void *u, const char *name);
        /* Returns the clique ID in the node's ResourceSlice; "": the node has no NVLink; NULL: there is no
         * slice. */
        const char *(*slice)(void *u, const char *node);
        /* Returns the UID of the fabric object of another partition; NULL: it has none. */
        const char *(*fabric)(void *u, const char *clique);
        void (*daemons)(void *u, const char *node, assignment_daemon_fn *fn, void *v);
        void (*plugins)(void *u, const char *node, assignment_plugin_fn *fn, void *v);
        /* Calls `fn` for each claim with a channel that is allocated on the node. */
        void (*allocations)(void *u, const char *node, assignment_allocation_fn *fn, void *v);
        const struct compute_domain *(*domain)(void *u, const char *uid);
        /* Returns whether daemons serve the ComputeDomain and the node may join it. `current`: UID of the
         * owner of the IMEX domain that the node is in now; NULL: none. */
        bool (*takes)(void *u, const struct compute_domain *cd, const char *current);
        /* Returns whether no node has been assigned to the listed IMEX domain for ASSIGNMENT_IDLE_S. */
        bool (*idle)(void *u, const struct fabric_domain *d);
        /* Returns the UID of the daemon Pod that the controller wants to remove from the node; NULL: none. */
        const char *(*removes)(void *u, const char *node);
        /* Returns true if the API server has answered the question with "no" since `object` has had its
         * present version. Returns false if it has answered "yes", or has not answered yet. `other` is the
         * boot ID or the node, if the question contains one. */
        bool (*absent)(void *u, enum assignment_question q, const char *name, const char *other);
        void *u;
};

struct assignment_facts {
        struct assignment_input input;
        bool pause; /* an entry should be removed, or a fresh Pod should get an assignment, but a cache is
                       stale */
};

/* Collects the facts. They are in the arena, or borrowed from the source. */
void assignment_facts_make(const struct assignment_source *s, struct arena *a, struct assignment_facts *ret);
