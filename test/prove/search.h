/* SPDX-License-Identifier: Apache-2.0 */
/* search: visits every state that a world can reach, breadth first, and records each by a hash of 128 bits.
 *
 * Safety: a transition or a state that breaks a promise ends the search with the shortest history that leads
 * to it. Progress: when all states are known, each of them must have a continuation without faults to a state
 * in which nothing waits. If the memory is not enough, the search fails, because then nothing is proved.
 *
 * A state is a block of bytes. Transitions have numbers, and each changes a state in one way. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct search_world {
        const char *name;
        size_t size;           /* of a state, in bytes */
        const uint16_t *steps; /* the numbers of the transitions */
        size_t n_steps;
        void (*begin)(void *u, void *state);
        /* Changes a copy of a state. Returns false if the transition is not possible or changes nothing. Sets
         * *broken to the promise that the transition breaks, or NULL; the text is valid until the next
         * call. */
        bool (*step)(void *u, void *state, unsigned step, const char **broken);
        /* Gives one form to all states that cannot be distinguished, or that differ only in the names of
         * equivalent things. */
        void (*rename)(void *u, void *state);
        /* Returns the promise that the state breaks, or NULL. */
        const char *(*check)(void *u, const void *state);
        /* Returns true if the transition happens without an event, so that progress may rely on it. */
        bool (*is_progress)(void *u, unsigned step);
        bool (*is_served)(void *u, const void *state); /* true: nothing waits */
        void (*print)(void *u, const void *before, unsigned step, const void *after, FILE *out); /* a line */
        void *u;
};

struct search_limits {
        size_t bytes; /* of memory */
        bool quiet;   /* do not print how far the search is */
};

enum search_end {
        SEARCH_HOLDS,
        SEARCH_BROKEN, /* the history is printed */
        SEARCH_STUCK,  /* something waits forever from a state on; the history is printed */
        SEARCH_LIMIT,  /* out of memory: nothing is proved */
};

struct search_result {
        enum search_end end;
        const char *broken; /* the promise, for SEARCH_BROKEN; valid until the next search */
        uint64_t states, transitions;
        unsigned depth; /* the length of the longest of the shortest histories to a state */
        double seconds;
};

enum { SEARCH_HASH_BITS = 128 };

void search_run(const struct search_world *w, const struct search_limits *l, FILE *out,
                struct search_result *ret);

/* Returns the probability that two of this many states have the same hash, so that one of them was not
 * visited. */
double search_missed(uint64_t states);

/* The hash of a block of bytes, in two independent halves. */
struct search_hash {
        uint64_t a, b;
};
struct search_hash search_hash(const void *p, size_t n);
