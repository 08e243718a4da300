/* SPDX-License-Identifier: Apache-2.0 */
/* turns: which seat of its fabric an agent takes, keeps or leaves: one domain at a time. Pure.
 *
 * The object of the fabric may start IMEX. It ends IMEX only when nobody on the node uses it, or when the
 * ComputeDomain is being deleted: an object that is missing, emptied, restored from yesterday, or that names
 * another index changes nothing while there is a grant.
 *
 * What an agent has said that it left it never takes again: the controller gives the index to somebody else
 * on that word. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "imex/imex_files.h"
#include "model/fabric.h"

struct turns_seat {
        const char *domain; /* UID; NULL: no seat */
        const char *infix;
        int64_t index, epoch, port, slots;
};

/* What an agent remembers, over a restart of its container, too. */
struct turns_memory {
        struct turns_seat now; /* that it runs, or is about to run, or is about to end */
        int64_t entered;       /* the highest epoch that it has taken */
        int64_t seen;          /* the highest that it has been told */
        const int64_t *left;   /* those that are listed for the node and that it never takes (again) */
        size_t n_left;
};

enum turns_step {
        TURNS_STAY,  /* with `now`, whatever that is */
        TURNS_LEAVE, /* withdraw readiness, and then end IMEX if no grant is there */
        TURNS_END,   /* the same whatever grants there are: the ComputeDomain is being deleted */
        TURNS_ENTER  /* take `seat` */
};

struct turns {
        enum turns_step step;
        struct turns_seat seat;     /* to be entered; its strings are the fabric's */
        const char *why;            /* of STAY without a seat, or against the object; "" else; static */
        struct turns_memory memory; /* as it shall be from now on, but for `now`; in the arena */
};

/* f NULL: the object is not there, or not known. */
void turns_decide(const struct compute_domain_fabric *f, const char *node, const struct turns_memory *m,
                  struct arena *a, struct turns *ret);

/* The other nodes in the IMEX domain of the seat `now`, in the arena, with the object's strings. Who is
 * leaving may map the memory of those that stay until it has left, and is found at no address any more.
 * False: the object does not say. */
bool turns_peers(const struct compute_domain_fabric *f, const char *node, const struct turns_seat *now,
                 struct arena *a, struct imex_peer **ret, size_t *ret_n);

/* IMEX has ended: `now` is left for good. In the arena. */
void turns_left(const struct turns_memory *m, struct arena *a, struct turns_memory *ret);
