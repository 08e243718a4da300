/* SPDX-License-Identifier: Apache-2.0 */
/* search: visits every state that a world can reach, breadth first, and remembers each by a hash of 128 bits.
 *
 * Safety: a transition or a state that breaks a promise ends the search with the shortest history that leads
 * to it. Progress: when all states are known, each of them must have a continuation without faults to a state
 * in which nobody waits. To reach the limit of memory is a failure, because then nothing is proved.
 *
 * A state is a block of bytes. Transitions are numbered, and one of them changes a state in one way. */
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
        /* Changes a copy of a state. False: the transition is not possible, or changes nothing. *broken is
         * the promise that it breaks, NULL: none; the text lives until the next call. */
        bool (*step)(void *u, void *state, unsigned step, const char **broken);
        /* Gives states one form that cannot be told apart, or differ only in names of things that are alike.
         */
        void (*rename)(void *u, void *state);
        /* The promise that the state breaks, NULL: none. */
        const char *(*check)(void *u, const void *state);
        /* Happens by itself, so that progress may count on it. */
        bool (*is_progress)(void *u, unsigned step);
        bool (*is_served)(void *u, const void *state); /* nobody waits */
        void (*tell)(void *u, const void *before, unsigned step, const void *after, FILE *out); /* one line */
        void *u;
};

struct search_limits {
        size_t bytes; /* of memory */
        bool quiet;   /* no word about how far it is */
};

enum search_end {
        SEARCH_HOLDS,
        SEARCH_BROKEN, /* the history is written */
        SEARCH_STUCK,  /* a state from which somebody waits for ever; the history is written */
        SEARCH_LIMIT,  /* out of memory: nothing is proved */
};

struct search_result {
        enum search_end end;
        const char *broken; /* of SEARCH_BROKEN; lives until the next search */
        uint64_t states, transitions;
        unsigned depth; /* the longest shortest history */
        double seconds;
};

enum { SEARCH_HASH_BITS = 128 };

void search_run(const struct search_world *w, const struct search_limits *l, FILE *out,
                struct search_result *ret);

/* The probability that two of so many states have one hash, so that one of them was not visited. */
double search_missed(uint64_t states);

/* A hash of a block of bytes: two independent halves. */
struct search_hash {
        uint64_t a, b;
};
struct search_hash search_hash(const void *p, size_t n);
