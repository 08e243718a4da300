/* SPDX-License-Identifier: Apache-2.0 */
/* seats: the nodes of each domain and what is known of each, kept from one plan to the next.
 *
 * Whoever sees a change says which node of which domain it may concern ("touch"), before he lets go of what
 * was there: a seat points into cached objects. Only what was touched is looked at anew, and what may change
 * without anybody's word: a node that another domain holds, that is gone, or that nobody wants any more. */
#pragma once

#include "rules/formation.h"

struct seats;

typedef void(seats_add_fn)(void *seats, const char *node);
struct seats_source {
        /* Names all nodes that may have a place in the domain, in any order, any number of times. */
        void (*names)(void *u, const char *uid, seats_add_fn *add, void *seats);
        /* Fills in what is known of seat->name; false: it has no place in the domain. held_by is copied. */
        bool (*look)(void *u, const char *uid, struct seat_facts *seat, struct arena *a);
        void *u;
};

struct seats *seats_new(const struct seats_source *source);
void seats_free(struct seats *s);

/* Something about this node may have changed for the domain, or it may have come into it. NULL or "" for
 * nobody. */
void seats_touch(struct seats *s, const char *uid, const char *node);
/* The same for all domains in which the node has a place. */
void seats_touch_node(struct seats *s, const char *node);
/* The domain is gathered from nothing the next time; NULL: all domains are. */
void seats_touch_all(struct seats *s, const char *uid);

/* The nodes of a domain as they are now, sorted by name; valid until the next call about this domain. */
size_t seats_of(struct seats *s, const char *uid, const struct seat_facts **ret);
/* What the domain's last formation came to; it lives as long as the domain is known here. */
struct formation_memory *seats_memory(struct seats *s, const char *uid);
void seats_forget(struct seats *s, const char *uid);
