/* SPDX-License-Identifier: Apache-2.0 */
/* fabric: the fabric object (ComputeDomainFabric) of an NVLink partition. It records which ComputeDomain has
 * which IMEX channel there, and which IMEX domains exist.
 *
 * The object is cluster-scoped, and its name is the clique ID of the partition. Only the leading controller
 * writes it. It has no status subresource: a backup may omit a status, and the controller would assign its
 * channels and indices a second time. */
#pragma once

#include "api/kinds.h"
#include "api/reasons.h"
#include "api/states.h"
#include "base/json.h"
#include "kube/kube_object.h"

/* Assigned channel IDs are below this, even if the NVIDIA driver has more channels, so that an object with
 * all of them fits into etcd. Channel 0 is never assigned. */
enum { FABRIC_CHANNELS_MAX = 2048 };

/* The maximum of slots of an IMEX domain. */
enum { FABRIC_SLOTS_MAX = 4096 };

/* The owner of a channel or an IMEX domain. `uid` identifies it, the rest is for people. */
struct fabric_owner {
        const char *kind, *ns, *name, *uid;
};

struct fabric_channel {
        int64_t id;
        struct fabric_owner owner;
        int64_t releasing; /* since when its owner no longer needs it, seconds since 1970; 0: it is in use */
};

/* An assignment of a node in an IMEX domain of the partition. */
struct fabric_assignment {
        const char *node;
        int64_t index, epoch; /* no other assignment in the partition ever has this epoch */
        const char *state;    /* FABRIC_RESERVED, FABRIC_LEAVING or FABRIC_ENDING; NULL or "": active */
        /* Only the daemon with this claim may use it, in this boot of the node. Absent while it is
         * reserved. */
        const char *claim, *boot_id;
        const char *ip; /* "" or NULL unless it is active, and while another IMEX domain lists the node */
};

bool fabric_is_active(const struct fabric_assignment *a);
bool fabric_is_reserved(const struct fabric_assignment *a);
bool fabric_is_leaving(const struct fabric_assignment *a); /* Leaving or Ending */

struct fabric_domain {
        struct fabric_owner owner;
        const char *infix; /* part of the names that its daemons have for each other */
        int64_t slots, port;
        struct fabric_assignment *assignments;
        size_t n_assignments;
        const char *freed; /* the indices that were used before, comma-separated, the longest free first */
};

/* A mark: the controller is about to delete this daemon. It gets no assignment any more. */
struct fabric_removal {
        const char *node, *pod_uid;
};
extern const struct jd_field fabric_removal_fields[];

struct compute_domain_fabric {
        struct kube_object o;
        const char *rack;                             /* its name; NULL: none */
        const char *empty_since;                      /* annotation CD_ANNOTATION_FABRIC_EMPTY, NULL: none */
        int64_t nodes, domain_count, channels_in_use; /* for people, as columns of kubectl */
        /* The Nodes that may hold channels of the partition, sorted. ResourceSlices are not enough, because
         * kubelets delete the slices of plugins that do not run. */
        const char **members;
        size_t n_members;
        /* The UID of the object in which the table began: normally this object's own, NULL while it has no
         * table. In a copy that somebody restored, it is another object's. */
        const char *table_of;
        int64_t channel_count;    /* the number that most plugins report; 0: none has */
        const char *imex_version; /* the version of nvidia-imex that most plugins report; NULL: none has */
        int64_t next;             /* the search for a free channel ID begins here */
        int64_t epoch;            /* the last epoch that was given */
        /* The number of a recount: each daemon must report again with this number, because the object may
         * lack assignments; 0: no recount. */
        int64_t recount;
        struct condition *conditions;
        size_t n_conditions;
        struct fabric_domain *domains;
        size_t n_domains;
        struct fabric_removal *removals;
        size_t n_removals;
        struct fabric_channel *channels;
        size_t n_channels;
};
extern const struct jd_field compute_domain_fabric_fields[];

/* The UID of the standing domain of a partition, which all its ComputeDomains use. It is used where other
 * IMEX domains have the UID of their ComputeDomain. It is derived from the clique ID, because the fabric
 * object's UID changes when somebody deletes the object, and IMEX must not restart then. It is a UUID of
 * version 8 (RFC 9562, 5.8), so no API server gives it to an object. */
void fabric_standing_uid(const char *clique_id, char ret[static 37]);
/* Is this the standing domain of the partition? Otherwise it belongs to a ComputeDomain. */
bool fabric_domain_is_standing(const struct fabric_domain *d);

/* The table began in this object. The table of a restored copy, or of an object that a person made, does not
 * count. */
bool fabric_is_own(const struct compute_domain_fabric *f);
/* The IMEX domain of a ComputeDomain; NULL: it has none, or the table does not count. */
const struct fabric_domain *fabric_domain_of(const struct compute_domain_fabric *f, const char *owner_uid);
/* The same, even if the table does not count. */
const struct fabric_domain *fabric_domain_at(const struct compute_domain_fabric *f, const char *owner_uid);
/* The assignment of a node in an IMEX domain, in any state; NULL: none. */
const struct fabric_assignment *fabric_assignment_of(const struct fabric_domain *d, const char *node);
/* The channel of an owner, preferably one that is not releasing; NULL: it has none, or the table does not
 * count. */
const struct fabric_channel *fabric_channel_of(const struct compute_domain_fabric *f, const char *owner_uid);
