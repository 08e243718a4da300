/* SPDX-License-Identifier: Apache-2.0 */
/* channels_state: defines the state of a world with assigned channels, for channels.c and shared.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "channels.h"

enum {
        HOSTS = 2,
        OWNERS = 3,
        PODS = 2, /* that share a claim on a node */
        IDS = 2,  /* channels 1 and 2 */
        ENTRIES = 6,
        TICK_S = 40,
        OLD = 5,
        NOW = 1000000,
        DEAD_TICKS = 2, /* 60 s: the pods on a deleted Node have ended */
        CUT_TICKS = 2,  /* 44 s: a Prepare has ended */
};

/* An age is the number of passed ticks plus one; 0: never. */
struct entry {
        uint8_t id, owner, releasing;
};

struct table {
        uint8_t n;
        struct entry e[ENTRIES];
};

/* The report of a node's plugin; `held` has a bit for each pair of a channel ID and an owner. */
struct reported {
        uint8_t is_there, is_settled, seen, held;
        uint8_t asks; /* a bit for each owner whose shared claim waits */
};
enum seen { SEEN_NOTHING, SEEN_THIS, SEEN_ANOTHER }; /* which fabric object */

/* The shared claim of an owner on a node, and its kubelet's entry: see test/simulate/claim_info.h. All
 * members except `prepared` and `call` have a bit for each pod. */
struct sharing {
        uint8_t reserved; /* status.reservedFor of the claim names the pod */
        uint8_t ends;     /* the pod is being deleted */
        uint8_t refers;   /* the entry names the pod; 0: there is no entry */
        uint8_t ready;    /* Prepare has succeeded, and the container does not run yet */
        uint8_t runs;     /* with the channel in `id` */
        uint8_t prepared; /* the entry is prepared */
        uint8_t call;     /* of Unprepare */
        uint8_t caller;   /* the pod for which Unprepare was called */
        uint8_t id[PODS];
};
/* CALL_LOST: the kubelet does not know the result, and calls again. */
enum { CALL_NONE, CALL_BEGUN, CALL_DONE, CALL_LOST };

struct machine {
        uint8_t is_there; /* the Node exists */
        uint8_t deleted;  /* the age of its deletion */
        uint8_t gone;     /* the age of its deletion for the leader */
        uint8_t held, coming;
        uint8_t claims; /* a bit for each owner */
        uint8_t older;  /* the claims that are older than the object */
        uint8_t alive_after;
        uint8_t cut;    /* it has no network: the number of passed ticks plus one, if `offers` is not 0 */
        uint8_t offers; /* while it is cut off: the channels that it may still give, see channels_bit() */
        struct sharing sharing[OWNERS];
        struct reported reported;
};

struct state {
        uint8_t object, created, is_own, is_lost, next, counted, members;
        struct table table;
        uint8_t leads, remembers, watches, leases_at, leases_before;
        struct table remembered;
        struct machine machines[HOSTS];
        uint8_t owners; /* a bit for each ComputeDomain that exists */
        uint8_t changes, gone, deletes, leaders;
        /* With shared claims. */
        uint8_t forces, lost, cuts, reboots;
};

/* ---- channels.c ---- */

static inline bool channels_take(uint8_t *budget) {
        return *budget && (*budget)--;
}

/* The bit of an owner and a channel ID, and the bits of an owner, for all channel IDs. */
static inline unsigned channels_bit(unsigned id, unsigned owner) {
        return 1U << ((id - 1) * OWNERS + owner);
}

static inline unsigned channels_bits_of(unsigned owner) {
        return channels_bit(1, owner) | channels_bit(2, owner);
}

/* Returns whether the plugin may give the channel of the owner to a pod, and the ID. */
bool channels_may_prepare(const struct channels_row *row, const struct state *s, unsigned o,
                          unsigned *ret_id);

/* The plugin reports. Returns false if there is no news, or the node has no network. */
bool channels_report(struct machine *m, bool object);

/* ---- shared.c ---- */

/* Returns a bit for each owner whose shared claim a pod uses, according to the API server. */
unsigned shared_in_use(const struct state *s);
/* Returns a bit for each owner whose shared claim waits on the node. */
unsigned shared_asks(const struct machine *m);
/* Returns true if nothing happens on the nodes that lasts less than a tick. */
bool shared_is_quiet(const struct state *s);
/* Makes the step with this number, of the kinds from SHARED_FIRST on. */
bool shared_step(const struct channels_row *row, struct state *s, unsigned step);
bool shared_is_progress(unsigned step);
/* The numbers of the steps. */
size_t shared_steps(const struct channels_row *row, const uint16_t **ret);
const char *shared_check(const struct channels_row *row, const struct state *s);
/* Returns the promise that a decision of the controller breaks, or NULL. */
const char *shared_check_decision(const struct state *before, const struct state *after);
bool shared_is_served(const struct channels_row *row, const struct state *s);
void shared_print(unsigned step, FILE *out);
enum { SHARED_FIRST = 1000 };
