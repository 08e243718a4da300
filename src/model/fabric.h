/* SPDX-License-Identifier: Apache-2.0 */
/* fabric: decodes the fabric object (ComputeDomainFabric) of an NVLink partition, and finds its entries. The
 * object records which ComputeDomain has which IMEX channel in the partition, and which IMEX domains exist.
 *
 * The object is cluster-scoped, and its name is the clique ID of the partition. Only the leading controller
 * writes it. It has no status subresource, because a backup may omit the status: after a restore, the
 * controller would assign the channels and indices a second time. */
#pragma once

#include "api/kinds.h"
#include "api/reasons.h"
#include "api/states.h"
#include "base/json.h"
#include "imex/imex_domain.h"
#include "kube/kube_object.h"

/* Assigned channel IDs are below this limit, even if the NVIDIA driver has more channels, so that an object
 * with all channels fits into etcd. Channel 0 is never assigned. */
enum { FABRIC_CHANNELS_MAX = 2048 };

/* The owner of a channel or an IMEX domain. `uid` identifies it; the other members are for people. */
struct fabric_owner {
        const char *kind, *ns, *name, *uid;
};

struct fabric_channel {
        int64_t id;
        struct fabric_owner owner;
        int64_t releasing; /* since when the owner no longer needs the channel, in seconds since 1970; 0: it
                              is in use */
};
extern const struct jd_field fabric_channel_fields[];

/* An assignment of a node in an IMEX domain of the partition. */
struct fabric_assignment {
        const char *node;
        int64_t index, epoch; /* within a boot, no other assignment of the node ever has this epoch */
        const char *state;    /* the name of an enum fabric_state; NULL or "": active */
        /* Only the daemon with this claim may use the assignment, and only in this boot of the node. Both
         * members are absent while the assignment is reserved. */
        const char *claim, *boot_id;
        const char *ip; /* "" or NULL if the assignment is not active, or while another IMEX domain lists the
                           node */
};

bool fabric_is_active(const struct fabric_assignment *a);
bool fabric_is_reserved(const struct fabric_assignment *a);
bool fabric_is_leaving(const struct fabric_assignment *a); /* the state is Leaving or Ending */
bool fabric_is_ending(const struct fabric_assignment *a);

struct fabric_domain {
        struct fabric_owner owner;
        struct imex_domain imex;
        struct fabric_assignment *assignments;
        size_t n_assignments;
        const char *freed; /* the indices that were used before, comma-separated; the index that has been free
                              the longest is first */
};
extern const struct jd_field fabric_domain_fields[];

/* A mark: the controller is about to delete this daemon, and gives it no assignment any more. */
struct fabric_removal {
        const char *node, *pod_uid;
};
extern const struct jd_field fabric_removal_fields[];

struct compute_domain_fabric {
        struct kube_object o;
        const char *rack;                             /* the name of the rack; NULL: none */
        const char *empty_since;                      /* annotation CD_ANNOTATION_FABRIC_EMPTY, NULL: none */
        int64_t nodes, domain_count, channels_in_use; /* for people, as columns of kubectl */
        /* The Nodes that may hold channels of the partition, sorted. ResourceSlices are not enough, because
         * kubelets delete the slices of plugins that do not run. */
        const char **members;
        size_t n_members;
        /* The UID of the object in which the table was created: normally the UID of this object; NULL: it has
         * no table yet. In a copy that somebody restored, it is the UID of another object. */
        const char *table_of;
        int64_t channel_count;    /* the number of channels that most plugins report; 0: no plugin has
                                     reported it */
        const char *imex_version; /* the version of nvidia-imex that most plugins report; NULL: no plugin has
                                     reported it */
        int64_t next;             /* the search for a free channel ID begins here */
        int64_t epoch;            /* the last epoch that was assigned */
        /* The number of the present recount: each daemon must report again with this number, because the
         * object may lack assignments. 0: there is no recount. */
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
extern const struct jd_field compute_domain_fabric_fields[], fabric_condition_fields[];

/* Computes the UID of a partition's standing domain, which all ComputeDomains of the partition use. Other
 * IMEX domains have the UID of their ComputeDomain instead. The UID is derived from the clique ID and not
 * from the UID of the fabric object: that UID changes when somebody deletes the object, and IMEX must not
 * restart in this case. The result is a UUID of version 8 (RFC 9562, 5.8), so no API server gives it to an
 * object. */
void fabric_standing_uid(const char *clique_id, char ret[static 37]);
/* Returns whether this is the standing domain of the partition. Any other IMEX domain belongs to a
 * ComputeDomain. */
bool fabric_domain_is_standing(const struct fabric_domain *d);

/* Returns whether the table was created in this object. The table of a restored copy, or of an object that a
 * person created, does not count. */
bool fabric_is_own(const struct compute_domain_fabric *f);
/* Returns the IMEX domain of a ComputeDomain; NULL: it has none, or the table does not count. */
const struct fabric_domain *fabric_domain_of(const struct compute_domain_fabric *f, const char *owner_uid);
/* Returns the same IMEX domain, even if the table does not count; NULL: there is none. */
const struct fabric_domain *fabric_domain_at(const struct compute_domain_fabric *f, const char *owner_uid);
/* Returns the assignment of a node in an IMEX domain, in any state; NULL: it has none. */
const struct fabric_assignment *fabric_assignment_of(const struct fabric_domain *d, const char *node);
/* Returns the channel of an owner, preferably one that is not releasing; NULL: the owner has none, or the
 * table does not count. */
const struct fabric_channel *fabric_channel_of(const struct compute_domain_fabric *f, const char *owner_uid);
