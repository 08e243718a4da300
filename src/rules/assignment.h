/* SPDX-License-Identifier: Apache-2.0 */
/* assignment: which node has which index in which IMEX domain of an NVLink partition, where one daemon per
 * node runs nvidia-imex for whichever domain the node is in. Pure.
 *
 * The daemon reads its assignment from the partition's ComputeDomainFabric. Only the daemon starts and stops
 * IMEX. The controller may reuse an index only after proof that nothing runs with it, so an assignment that
 * is not wanted any more stays in the object as Leaving until there is proof.
 *
 * Each assignment has an epoch, which is never given twice, and names the claim and the boot ID of the daemon
 * that may use it. An epoch ends in one of these ways:
 *   - a daemon of the node reports that the epoch does not run there (`left`). The daemon that had it reports
 *     this after it has stopped IMEX. A successor reports it at once: its own claim could only be prepared
 *     after the earlier claim was unprepared;
 *   - the kubelet plugin reports that it has unprepared the claim;
 *   - the node has another boot ID, is out of service, or has had no Node object for a minute.
 * The end of an epoch is not the end of membership: while claims of the domain are allocated on the node, the
 * node keeps the index, and gets a new epoch for the daemon that comes next.
 *
 * The domain of isolation `channel` stands: it belongs to the partition, and all nodes of the partition that
 * are not cordoned are wanted in it. A domain gets its number of slots with its first node and keeps it,
 * because nvidia-imex needs the same list of nodes everywhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/daemon_report.h"
#include "model/fabric.h"

/* How far a report counts. A node's token is all that it takes to write one. */
enum assignment_trust {
        ASSIGNMENT_TRUST_NONE,    /* there is no report, or nothing but the report names this partition */
        ASSIGNMENT_TRUST_RESERVE, /* there is no slice, or the object lists the node though its slice names
                                     another partition: the report keeps an index from others, and frees none
                                   */
        ASSIGNMENT_TRUST_FULL     /* the slice names this partition */
};

/* What a daemon reports on its own Pod. */
struct assignment_report {
        const char *pod_uid, *claim, *boot_id; /* of the daemon */
        const char *object;   /* UID of the ComputeDomainFabric that it watches, "" none yet */
        const char *domain;   /* UID of the domain that it runs IMEX for; NULL: none */
        int64_t index, epoch; /* of its assignment */
        const int64_t *left;  /* epochs that do not run on the node, and never will again */
        size_t n_left;
        int64_t seen;    /* the highest epoch that it has seen */
        int64_t recount; /* the recount of the object that it has answered */
        bool ready;      /* IMEX has been READY in this assignment, and the Pod has not ended */
        bool served;     /* IMEX has been READY in this Pod, in whatever domain */
};

/* What is known of a node. */
struct assignment_node {
        const char *name;
        const char *ip;      /* of its daemon; "" while unknown */
        const char *boot_id; /* that the API server confirms; NULL: not asked or not known */
        const char *wanted;  /* UID of the domain that its claims bring it into; NULL: none */
        bool released;       /* the API server confirms that no claim of its present domain is on the node */
        bool dead;           /* confirmed: out of service, or no Node object for a minute */
        bool moved;          /* its daemon serves another partition, after it has left this one */
        bool doubtful; /* dead, or in another boot than its daemon reports, as far as a cache shows: the API
                          server has yet to confirm it. What it reports is no news meanwhile */
        bool expected; /* a daemon may run here, whether or not it has reported */
        bool ending;   /* its daemon terminates: it keeps what it has, and gets nothing new */
        const char *remove;     /* UID of a daemon Pod that the controller wants to delete; NULL: none */
        const char *unprepared; /* daemon claim that the kubelet plugin has unprepared last; NULL: none */
        enum assignment_trust trust;
        struct assignment_report report; /* of the newest daemon that has one; pod_uid NULL: none */
        /* Of other daemon Pods of the node that have not ended: what they left counts, too. */
        const int64_t *more_left;
        size_t n_more_left;
};

/* A ComputeDomain, or the partition itself as the owner of the domain that stands. */
struct assignment_domain {
        struct fabric_owner owner;
        bool stands;
        bool gone;   /* the API server confirms that it does not exist */
        bool idle;   /* no node has been assigned to it for ASSIGNMENT_IDLE_S */
        bool ending; /* it is deleted: its nodes leave although claims are prepared */
};

enum {
        ASSIGNMENT_IDLE_S = 60, /* a domain without assignments stays listed for so long, so that a node
                                   that returns gets another index than the one that was just freed */
        ASSIGNMENT_DOMAINS_MAX = 1000, /* domains for which an object has room */
};
/* An epoch in a report counts up to DAEMON_REPORT_EPOCHS_AHEAD above the object's, or above the second
 * highest that nodes of the partition have seen. A later one is ignored: its node runs nothing and gets no
 * assignment, because a daemon takes no epoch below what it has seen. So one node alone can neither use up
 * the epochs nor cause the reports of others to be ignored. A node that lies can raise the object's epoch
 * step by step. The other nodes see each step, so what they run still counts after the object was deleted and
 * begins at 0 again.
 *
 * If only one node reports, its own epoch takes the place of the second highest, up to
 * ASSIGNMENT_EPOCH_ALONE. While the object has given no epoch, nodes that have seen none are not counted.
 *
 * Of two nodes the lower epoch counts. If one of them lies, it can raise the object's epoch beyond the bound
 * and report a low one after the object was deleted. Then the other node's report is ignored: its index may
 * be given to the node that lies, and it gets no assignment until it reboots. The same can happen to a node
 * of a larger partition if all other nodes except the one that lies have rebooted. */
#define ASSIGNMENT_EPOCH_ALONE (INT64_MAX / 2)

struct assignment_input {
        const struct fabric_domain *old; /* as the object has them */
        size_t n_old;
        const struct fabric_removal *removals;
        size_t n_removals;
        int64_t epoch;      /* the last one that was given */
        int64_t recount;    /* under way since this epoch; 0: none */
        const char *object; /* UID of the object; NULL: it does not exist yet */
        bool went_back;     /* the version of the object went back: etcd was restored */
        bool copy;          /* the object is a copy of another one */
        bool settling;      /* what ran on Nodes that are gone may still run */
        bool vanished;      /* the same, and the object is so new that it may not list what ran there */
        const struct assignment_node *nodes; /* sorted by name, each once */
        size_t n_nodes;
        const struct assignment_domain *domains; /* each once */
        size_t n_domains;
        int64_t slots;             /* of a new domain */
        bool fresh_pod_per_domain; /* a daemon that has served a domain, or may have, gets no other one */
};

struct assignment {
        struct fabric_domain *domains;
        size_t n_domains;
        struct fabric_removal *removals;
        size_t n_removals;
        int64_t epoch, recount;
        bool changed;
        bool repaired;       /* a node runs something that the object did not list, or lists for another */
        const char **silent; /* nodes that a recount waits for */
        size_t n_silent;
        const char **full; /* nodes that are wanted in the domain that stands, which has no free index */
        size_t n_full;
        bool unsure;      /* whether what a node reports, and the object does not list, still counts, is being
                             asked: nothing is assigned for the moment */
        int64_t slots;    /* of the domain that stands; 0: there is none */
        size_t n_refused; /* domains that nodes are wanted in and for which the object has no room */
};

/* In the arena, with strings of the input. A node that is wanted and for which no index is free gets no
 * assignment. */
void assignment_make(const struct assignment_input *in, struct arena *a, struct assignment *ret);

/* What must hold of every object that is written: no index twice, except where both nodes ran with it before;
 * no node active in two domains; no domain larger than its slots. NULL: it holds. Otherwise what does not,
 * in the arena. */
const char *assignment_check(const struct assignment_input *in, const struct assignment *out,
                             struct arena *a);

/* The port of nvidia-imex in a domain, which differs for most domains, so that a late packet of an earlier
 * domain finds no listener. Below the ports of outgoing connections (32768 to 60999), because IMEX cannot
 * listen on a port that a connection uses. */
enum { ASSIGNMENT_PORT_FIRST = 28000, ASSIGNMENT_PORT_LAST = 32095 };
int64_t assignment_port(const char *infix);
