/* SPDX-License-Identifier: Apache-2.0 */
/* fabric: an NVLink partition, whose object is the ComputeDomainFabric: which ComputeDomain has which IMEX
 * channel there, and which IMEX domains there are.
 *
 * The object is cluster-scoped and has the name of the partition's clique. Only the leading controller writes
 * it; it has no status subresource, because what a backup leaves out of it would be assigned a second time.
 */
#pragma once

#include "api/kinds.h"
#include "api/reasons.h"
#include "api/states.h"
#include "base/json.h"
#include "kube/kube_object.h"

/* Ids of channels are below this, whatever more the driver was told to have: an object that lists them all
 * still fits into the store. 0 is never a ComputeDomain's own. */
enum { FABRIC_CHANNELS_MOST = 2048 };

/* No IMEX domain has room for more nodes. */
enum { FABRIC_SLOTS_MOST = 4096 };

/* Whose it is: found by `uid`, the rest is for people. */
struct fabric_owner {
        const char *kind, *ns, *name, *uid;
};

struct fabric_channel {
        int64_t id;
        struct fabric_owner owner;
        int64_t releasing; /* since when its owner needs it no more, seconds since 1970; 0: it is in use */
};

/* A node's place in an IMEX domain of the fabric. */
struct fabric_assignment {
        const char *node;
        int64_t index, epoch; /* no other assignment of the fabric ever has this epoch */
        const char *state;    /* FABRIC_RESERVED, FABRIC_LEAVING or FABRIC_ENDING; NULL or "": active */
        /* Only the daemon of this claim may use it, in this boot of the node. Absent while it is reserved. */
        const char *claim, *boot_id;
        const char *ip; /* "" or NULL while another IMEX domain lists the node, and unless it is active */
};

bool fabric_is_active(const struct fabric_assignment *a);
bool fabric_is_reserved(const struct fabric_assignment *a);
bool fabric_is_leaving(const struct fabric_assignment *a); /* Leaving or Ending */

struct fabric_domain {
        struct fabric_owner owner;
        const char *infix; /* of the names by which its daemons find each other */
        int64_t slots, port;
        struct fabric_assignment *assignments;
        size_t n_assignments;
        const char *freed; /* the indices that were used before, longest free first, by comma */
};

/* A daemon that the controller is about to delete. It gets no assignment any more. */
struct fabric_removal {
        const char *node, *pod_uid;
};

struct compute_domain_fabric {
        struct kube_object o;
        const char *rack;                             /* id, NULL: none */
        const char *empty_since;                      /* annotation CD_ANNOTATION_FABRIC_EMPTY, NULL: none */
        int64_t nodes, domain_count, channels_in_use; /* for people: the columns */
        /* The Nodes that may hold channels of it, sorted. Slices do not tell: kubelets delete those of
         * plugins that are down. */
        const char **members;
        size_t n_members;
        /* The UID of the object that its table was begun in: its own, NULL while it has none. A copy that
         * somebody puts back has another's. */
        const char *table_of;
        int64_t channel_count;    /* what most plugins report; 0: nobody has */
        const char *imex_version; /* what most plugins report of their nodes' IMEX; NULL: nobody has */
        int64_t next;             /* where the search for a free id begins */
        int64_t epoch;            /* the last that an assignment was given */
        /* Each daemon is asked to report again, with this number, because the object may lack assignments;
         * 0: no. */
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

/* The IMEX domain that stands in a fabric for all ComputeDomains, and is nobody's but the fabric's: what
 * takes the place of a ComputeDomain's UID. It is made of the clique's id, because the object's own UID
 * changes when somebody deletes it, and nothing may restart for that. An UUID of version 8 (RFC 9562, 5.8),
 * so that it is none that an API server gives an object. */
void fabric_standing_uid(const char *clique_id, char ret[static 37]);
/* Is it a fabric's own? Else a ComputeDomain's. */
bool fabric_domain_stands(const struct fabric_domain *d);

/* Its table was begun in this object: what somebody has put back, or made by hand, says nothing. */
bool fabric_is_own(const struct compute_domain_fabric *f);
/* The IMEX domain of a ComputeDomain, NULL: it has none, or the table says nothing. */
const struct fabric_domain *fabric_domain_of(const struct compute_domain_fabric *f, const char *owner_uid);
/* The same, whether or not the table is the object's own. */
const struct fabric_domain *fabric_domain_at(const struct compute_domain_fabric *f, const char *owner_uid);
/* The assignment of a node in an IMEX domain, in whatever state, NULL: none. */
const struct fabric_assignment *fabric_assignment_of(const struct fabric_domain *d, const char *node);
/* The entry of an owner, one that is not `releasing` if it has such a one, NULL: it has none, or the table is
 * not this object's own and says nothing. */
const struct fabric_channel *fabric_channel_of(const struct compute_domain_fabric *f, const char *owner_uid);
