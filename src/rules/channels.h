/* SPDX-License-Identifier: Apache-2.0 */
/* channels: decides which ComputeDomain has which IMEX channel of a partition. Pure.
 *
 * A ComputeDomain has an assigned channel from its first claim in a partition on. The channel ID is the same
 * on all nodes. No other ComputeDomain gets it while anything may still hold it:
 *
 * - Reports of held channels take precedence over the table in the fabric object. A channel that a plugin
 *   reports and the table lacks is added to the table, if its ID is one that can be assigned.
 * - A table counts only if `table_of` names the object that contains the table. In a copy that somebody
 *   restored, it names another object, so neither the plugins nor the controller use the entries of the copy.
 * - A table is suspect if it was a copy, if it is younger than a claim on its nodes, if it is much younger
 *   than a node that does not report, if a report names another object, or if it went back to an earlier
 *   version. A suspect table assigns nothing until each Node has reported to it, has been deleted or is out
 *   of service. Channels that nodes report are confirmed at once. The table of a new partition does not wait
 *   for reports.
 * - After the table went back to an earlier version, reports may be those of the backup, too. So it assigns
 *   and frees nothing until all plugins must have noticed the restore. The reason of its condition states
 *   that for the next controller.
 * - A new table assigns and frees nothing for a minute after a Node was deleted. On such a node, containers
 *   may still run with channels that no report names, and the new table does not list the Node as a member.
 *   If no controller remembers the previous table, and the table is younger than the plugins of its Nodes, a
 *   Node may also have been deleted before this controller started. In this case, the table assigns and frees
 *   nothing in the first minute of the controller.
 * - An entry is `releasing` before it is freed, and plugins refuse it. An entry becomes releasing when its
 *   owner is deleted, or when its owner does not need it and no channel is free. It is removed when all of
 *   this holds: a minute has passed; the API server has confirmed that no claim names the owner; and each
 *   node has reported without the channel and has shown life since, or is deleted or out of service. A node
 *   shows life when its kubelet renews its Lease between two lists of Leases that both began after the
 *   release. The condition Ready of a Node proves nothing, because it stays True for a while after the node
 *   is cut off.
 * - IDs are assigned in turn, so that each ID is reused as late as possible, and never in the write that
 *   frees it.
 *
 * If the controller cannot find out whether these conditions hold, the ID stays assigned, because there are
 * many IDs. Times are seconds since 1970 by the clock of the controller that decides. A duration begins when
 * this controller first saw the fact. The clocks of nodes, of the API server and of other controllers may be
 * wrong. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/channel_report.h"
#include "model/fabric.h"
#include "rules/assignment.h"

enum {
        CHANNELS_QUARANTINE_S = 60,
        CHANNELS_LIFE_S = 30, /* a Lease shows life if it was renewed at least this long after the release
                                 began, because the plugin has seen the release by then */
        /* A plugin reports within a second of its start. Until then, its Pod shows the channels that an
         * earlier run of the plugin reported. */
        CHANNELS_SETTLED_S = 30,
        CHANNELS_RETRY_S = 60, /* the pause before the Leases are listed again */
        CHANNELS_EMPTY_S = 24 * 3600,
        /* the maximum time from the start of the first plugin of a new partition to the creation of its
         * fabric object */
        CHANNELS_NEW_S = 60,
        /* the maximum time until a plugin has noticed that etcd was restored, and has reported again
         * (kube/kube_freshness.h) */
        CHANNELS_RESTORED_S = 180
};

/* A node that belongs to the partition according to its ResourceSlice, its Node object, the table, or a
 * report of its plugin. */
struct channels_node {
        const char *name;
        bool gone;        /* nothing can run on it: it is out of service, or has had no Node for a minute */
        bool states;      /* its ResourceSlice states this partition */
        int64_t stated;   /* when that slice was created, or when its plugin started, if that was earlier; 0:
                             unknown */
        bool moved;       /* its slice states another partition, or none */
        bool marked;      /* the annotation CD_ANNOTATION_CLIQUE of the Node names this partition */
        bool is_ready;    /* the Node is Ready, so it may be useful to read its Lease */
        const char *rack; /* from its devices; NULL: none */
        /* The report of its kubelet plugin. If the node has several plugin Pods, the report of the newest
         * counts, and the held channels in all their reports. */
        bool reported;   /* there is a readable report */
        bool settled;    /* there is a report, and the plugin's Pod has been Ready for CHANNELS_SETTLED_S */
        const char *uid; /* UID of the fabric object that the plugin sees; NULL: it reports nothing about this
                            partition */
        int64_t count;   /* number of channels of the node; -1: not reported */
        const char *imex, *withheld; /* the version of its nvidia-imex, and the reason why it offers no
                                        devices; NULL: not reported */
        const struct channel_report_hold *held; /* channels of this partition that it holds */
        size_t n_held;
        int64_t alive_after; /* its kubelet renewed its Lease after this time; 0: unknown */
};

/* A ComputeDomain that has an entry, or an allocated claim on a node of the partition. */
struct channels_owner {
        const char *uid;
        const char *ns, *name; /* NULL: unknown */
        bool lives;            /* it exists, is not being deleted, and was formed in this mode */
        bool ends;             /* it exists and is being deleted, which cannot be revoked */
        bool claimed;   /* a claim of the ComputeDomain is allocated on one of the nodes, or on a node whose
                           partition is unknown */
        bool wants;     /* one of these claims is on a node whose ResourceSlice states the partition */
        int64_t oldest; /* when the oldest of these claims was created; 0: there is none */
        bool confirmed; /* the API server has confirmed lately that the ComputeDomain has no claim on the
                           nodes and, if it does not live, that it is deleted */
};

struct channels_facts {
        const char *fabric;                      /* clique ID */
        const struct compute_domain_fabric *old; /* NULL: there is none */
        /* The entries of a deleted fabric object. They are remembered until another object contains them. */
        const struct fabric_channel *remembered;
        size_t n_remembered;
        int64_t complete_since; /* when the caches of this controller were first complete, so that it has seen
                                   all later deletions of Nodes */
        const int64_t *releasing_since; /* when this controller first saw each entry of `old` releasing */
        bool remembers; /* the controller knows the previous object, which was complete, or knows that there
                           was none */
        bool was_older; /* an earlier decision of this process found the object younger than the plugins of
                           its Nodes */
        int64_t restored_s; /* for how many seconds reports may still be those of a backup, because the object
                               went back to an earlier version; 0: they are current */
        int64_t vanished_s; /* for how many seconds containers may still run on Nodes that were deleted
                               lately; 0: on none */
        const struct channels_node *nodes; /* sorted by name, without duplicates */
        size_t n_nodes;
        const struct channels_owner *owners; /* sorted by uid, without duplicates */
        size_t n_owners;
        /* The IMEX domains that the driver's daemons run in the partition; NULL: they run none. */
        const struct assignment *assignments;
        const char *recount_why; /* why no node gets an assignment, for people; NULL: all nodes get one */
        const char *full_why;    /* which nodes get no assignment in the standing domain; NULL: all nodes get
                                    one */
        const char *wrong;       /* why the decision about assignments failed its check; NULL: it passed */
        bool stale;              /* a cache from which these facts come may be stale */
        /* The times of the last list of Leases and of the list before it; 0: there was none. */
        int64_t leases_at, leases_before;
        int64_t now;
};

enum channels_step { CHANNELS_KEEP, CHANNELS_CREATE, CHANNELS_PATCH, CHANNELS_DELETE };

struct channels_decision {
        enum channels_step step;
        bool urgent;     /* a pod may wait for this write */
        bool pause;      /* an entry should be removed, but stays because a cache is stale */
        bool ask_leases; /* list the Leases of the nodes, then decide again */
        /* Owners about which the API server has to be asked whether they are deleted and have no claim. */
        const struct channels_owner **ask;
        size_t n_ask;
        struct fabric_channel *assigned; /* new entries of `fabric` */
        size_t n_assigned;
        int64_t recheck_s; /* decide again after this time, even if nothing changes; 0: no need */
        size_t waiting;    /* ComputeDomains that want a channel and have none */
        size_t releasing;
        /* The object as it should be. Its strings belong to the facts or to the arena. */
        struct compute_domain_fabric fabric;
};

/* Returns for how many more seconds containers may run on a deleted Node with channels that a new or restored
 * table does not list. 0: none can. */
int64_t channels_unreported_s(const struct channels_facts *f);
/* The same for Nodes that were deleted before this controller started, because the table is younger than the
 * plugins of its Nodes, and this controller has not seen the table before it. */
int64_t channels_older_s(const struct channels_facts *f);
/* The same while the table is new. 0: none can, or an earlier leader has waited for them. */
int64_t channels_unlisted_s(const struct channels_facts *f);

void channels_decide(const struct channels_facts *f, struct arena *a, struct channels_decision *ret);

/* Checks the invariants of every fabric object that the controller writes: no ComputeDomain has channel 0; a
 * newly assigned channel is not in the table, and no node holds it; an entry is removed only if it was being
 * released, except from an object whose entries do not count. Returns NULL if they hold, otherwise a
 * description of the violation, in the arena. */
const char *channels_check(const struct channels_facts *f, const struct channels_decision *d,
                           struct arena *a);
/* Makes the decision that replaces one that failed its check: the object stays as it is, and gets the
 * condition DecisionWrong with the message `why`. */
void channels_keep(const struct channels_facts *f, const char *why, struct arena *a,
                   struct channels_decision *ret);
