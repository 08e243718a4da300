/* SPDX-License-Identifier: Apache-2.0 */
/* assignment: decides which node of an NVLink partition has which index in which IMEX domain. One daemon per
 * node runs nvidia-imex for the IMEX domain that the node is in. Pure.
 *
 * The daemon reads its assignment from the fabric object of the partition (ComputeDomainFabric). Only the
 * daemon starts and stops IMEX. The controller may reuse an index only after proof that nothing runs with it.
 * So an assignment that is no longer wanted stays in the object as Leaving until there is proof.
 *
 * Each assignment has an epoch, a number that its node never gets again within a boot. The assignment names
 * the claim and the boot ID of the daemon that may use it. An epoch ends in one of these ways:
 *   - A daemon of the node reports that the epoch does not run there (`left`). The daemon that had the epoch
 *     reports this after it has stopped IMEX. Its successor reports it at once, because the kubelet can
 *     prepare the successor's claim only after it has unprepared the earlier claim.
 *   - The kubelet plugin reports that it has unprepared the claim.
 *   - The node has another boot ID, is out of service, or has had no Node object for a minute.
 * A node can stay a member after its epoch has ended: while claims of the ComputeDomain are allocated on the
 * node, the node keeps the index, and the next daemon gets it with a new epoch.
 *
 * With isolation `channel` there is one standing domain. It belongs to the partition, and all nodes of the
 * partition that are not cordoned are wanted in it. An IMEX domain gets its number of slots with its first
 * node and keeps it, because nvidia-imex needs the same node list on all nodes.
 *
 * A report can add an assignment to the object, because the object may have been lost. But a report alone
 * never publishes the address of its node, to which the other nodes connect. The address is added only while
 * the node is wanted in the IMEX domain. An address that the object shows stays as long as the assignment is
 * active, its epoch is the same, and the Pod of its daemon exists and has not ended. Afterwards another Pod
 * may have the address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/daemon_report.h"
#include "model/fabric.h"

/* How far the controller trusts a report. Anyone with the token of a node can write a report. */
enum assignment_trust {
        ASSIGNMENT_TRUST_NONE, /* there is no report, or the report is the only evidence that the node is in
                                  this partition */
        /* the node has no ResourceSlice, or the fabric object lists the node although its slice names another
         * partition. The report keeps an index from other nodes, but frees no index */
        ASSIGNMENT_TRUST_RESERVE,
        ASSIGNMENT_TRUST_FULL /* the node's slice names this partition */
};

/* The report of a daemon on its own Pod. */
struct assignment_report {
        const char *pod_uid, *claim, *boot_id; /* the daemon's Pod and claim, and the boot of its node */
        const char *object;   /* UID of the fabric object that the daemon watches; "": none yet */
        const char *domain;   /* UID of the owner of the IMEX domain that the daemon runs; NULL: none */
        int64_t index, epoch; /* those of its assignment */
        const int64_t *left;  /* left epochs: IMEX does not run in them on this node, and never will again */
        size_t n_left;
        int64_t seen;    /* the highest epoch that the daemon has seen */
        int64_t recount; /* the recount of the object that the daemon has answered */
        bool ready;      /* IMEX has been READY in this assignment, and the Pod has not ended */
        bool served;     /* IMEX has been READY in this Pod, in any IMEX domain, or may have been: a
                            stale cache has an earlier report */
};

/* The facts about a node. */
struct assignment_node {
        const char *name;
        const char *ip;      /* IP address of its daemon; "": unknown, or its Pod has ended */
        const char *boot_id; /* confirmed by the API server; NULL: not asked or not known */
        const char *wanted;  /* UID of the owner of the IMEX domain that its claims need; NULL: none */
        bool released;       /* the API server confirms that no claim for its present IMEX domain is allocated
                                on the node */
        bool dead;           /* confirmed: out of service, or no Node object for a minute */
        bool moved;          /* its daemon has left this partition and serves another one */
        /* the cache shows that the node is dead, or in another boot than its daemon reports, but the API
         * server has not confirmed this yet. During a recount it cannot confirm another boot, because the
         * Node may be from a backup. Until then, the report adds nothing to the object, and answers no
         * recount */
        bool doubtful;
        bool expected; /* a daemon may run here, whether or not it has reported */
        bool ending;   /* its daemon is terminating: the node keeps its assignments, and gets no new ones */
        const char *remove;     /* UID of a daemon Pod that the controller wants to delete; NULL: none */
        const char *unprepared; /* the daemon claim that the kubelet plugin unprepared last; NULL: none */
        enum assignment_trust trust;
        struct assignment_report report; /* the report of the newest daemon Pod that has one; pod_uid NULL: no
                                            Pod has one */
        /* The left epochs of the node's other daemon Pods that have not ended. They count, too. */
        const int64_t *more_left;
        size_t n_more_left;
};

/* The owner of an IMEX domain: a ComputeDomain, or the partition for the standing domain. */
struct assignment_domain {
        struct fabric_owner owner;
        struct imex_domain imex; /* its settings when it is new, without infix and port */
        bool is_standing;
        bool gone;   /* the API server confirms that the owner does not exist */
        bool idle;   /* no node has been assigned to it for ASSIGNMENT_IDLE_S */
        bool ending; /* the owner is being deleted: its nodes leave even while claims are prepared */
};

enum {
        ASSIGNMENT_IDLE_S = 60, /* an IMEX domain without assignments stays listed for this time, so that a
                                   node that returns does not get an index that was just freed */
        ASSIGNMENT_DOMAINS_MAX = 1000, /* the maximum number of IMEX domains in a fabric object */
        ASSIGNMENT_NODE_MAX =
                16, /* reports add no assignment of a node that this number of IMEX domains list,
                       so that no node can make the object too large. Normally, one or two do */
};
/* An epoch in a report counts only if it is at most DAEMON_REPORT_EPOCHS_AHEAD above a base. The base is the
 * object's epoch, or the second highest epoch that nodes of the partition have seen, if that is higher. A
 * higher epoch is ignored: the controller assumes that the node runs nothing, and gives the node no
 * assignment, because a daemon accepts no epoch below one that it has seen. So a single node can neither use
 * up the epochs nor cause the reports of others to be ignored. A node with false reports can raise the
 * object's epoch step by step. But the other nodes see each step, so their epochs still count if the object
 * is deleted and its epoch begins at 0 again.
 *
 * If only one node reports, its own epoch replaces the second highest, up to ASSIGNMENT_EPOCH_ALONE. While
 * the object's epoch is 0, nodes that have seen no epoch are not counted.
 *
 * If two nodes report, the lower epoch counts. A node with false reports can then raise the object's epoch
 * beyond the bound, and report a low epoch after the object was deleted. The controller then ignores the
 * report of the honest node: it may give the index of the honest node to the other one, and the honest node
 * gets no assignment until it reboots. The same can happen to a node of a larger partition if all other
 * honest nodes have rebooted. */
#define ASSIGNMENT_EPOCH_ALONE (INT64_MAX / 2)

struct assignment_input {
        const struct fabric_domain *old; /* the IMEX domains in the object */
        size_t n_old;
        const struct fabric_removal *removals;
        size_t n_removals;
        int64_t epoch;      /* the last epoch that was assigned */
        int64_t recount;    /* a recount has been running since this epoch; 0: there is none */
        const char *object; /* UID of the fabric object; NULL: it does not exist yet */
        bool rolled_back;   /* the object was deleted, or its resource version decreased because etcd was
                               restored, and no recount has begun since */
        bool copy;          /* the object is a copy of another one */
        bool settling;      /* IMEX may still run on nodes whose Node object was deleted */
        bool vanished;      /* as `settling`, and the object is so new that it may not list the assignments of
                               these nodes */
        const struct assignment_node *nodes; /* sorted by name, without duplicates */
        size_t n_nodes;
        const struct assignment_domain *domains; /* without duplicates */
        size_t n_domains;
        int64_t slots;             /* slots of a new IMEX domain that is not in `domains` */
        bool fresh_pod_per_domain; /* a daemon that has served an IMEX domain, or may have done so, gets no
                                      assignment in another one */
};

struct assignment {
        struct fabric_domain *domains;
        size_t n_domains;
        struct fabric_removal *removals;
        size_t n_removals;
        int64_t epoch, recount;
        bool changed;
        const char *ahead;   /* the running recount begins again, because this node reports a later epoch than
                                the object; NULL: it does not */
        const char **silent; /* nodes that a recount waits for */
        size_t n_silent;
        const char **full; /* nodes that are wanted in the standing domain, which has no free index */
        size_t n_full;
        bool unsure;      /* the object does not list the assignment in a report, and the API server is being
                             asked whether this report still counts. Until it has answered, nothing is
                             assigned */
        int64_t slots;    /* slots of the standing domain; 0: there is none */
        size_t n_refused; /* number of IMEX domains in which nodes are wanted although the object has no room
                             for them */
};

/* Decides the assignments of one partition. The result is in the arena and uses strings of the input. If no
 * index is free, a wanted node gets no assignment. */
void assignment_make(const struct assignment_input *in, struct arena *a, struct assignment *ret);

/* Checks the invariants of every fabric object that the controller writes: no index is used twice, except
 * where both nodes ran with it before; no node is active in two IMEX domains; no IMEX domain has more nodes
 * than slots. Returns NULL if they hold, otherwise a description of the violation, in the arena. */
const char *assignment_check(const struct assignment_input *in, const struct assignment *out,
                             struct arena *a);

/* Returns the port of nvidia-imex in an IMEX domain. Most IMEX domains have different ports, so that a late
 * packet for an earlier IMEX domain finds no listener. The ports are below those of outgoing connections
 * (32768 to 60999), because IMEX cannot listen on a port that a connection uses. */
enum { ASSIGNMENT_PORT_FIRST = 28000, ASSIGNMENT_PORT_LAST = 32095 };
int64_t assignment_port(const char *infix);
