/* SPDX-License-Identifier: Apache-2.0 */
/* states: the states that users see (states.def). A state that the code compares is an enumerator, with one
 * function that decodes its name and one that returns it. A state that is only shown is a string constant.
 * This header needs no library, so that each layer can include it. */
#pragma once

#include <stddef.h>
#include <string.h>

#define STATE_TABLE(...)

#define STATE(table, constant, word, meaning) static const char constant[] = word;
#define STATES_MEMBER
#define STATES_CHANNEL
#define STATES_TOOLKIT
#include "api/states.def"
#undef STATE

#define STATE(table, constant, word, meaning) constant,

/* The state of an assignment. */
enum fabric_state {
        FABRIC_ACTIVE, /* it has no state */
        FABRIC_STATE_UNKNOWN,
#define STATES_ASSIGNMENT
#include "api/states.def"
        FABRIC_STATES
};

/* The state of nvidia-imex, as it reports it or as its daemon does. */
enum imex_status {
        IMEX_STATE_NONE, /* not reported */
        IMEX_STATE_UNKNOWN,
#define STATES_DAEMON
#include "api/states.def"
        IMEX_STATES
};

/* The state of IMEX on a host; HOST_UNKNOWN is 0. nvidia-imex uses the same words for the state of an IMEX
 * domain. */
enum host_state {
#define STATES_HOST
#include "api/states.def"
        HOST_STATES
};
#undef STATE

/* Returns the index of a name, 0 for NULL and "", and `unknown` for any other name. */
static inline int states_decode(const char *const *names, int n, int unknown, const char *name) {
        if (!name || !*name)
                return 0;
        for (int i = unknown + 1; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return i;
        return unknown;
}

#define STATE(table, constant, word, meaning) [constant] = word,

static inline const char *const *states_of_fabric(void) {
        static const char *const names[FABRIC_STATES] = {
                [FABRIC_ACTIVE] = NULL,
                [FABRIC_STATE_UNKNOWN] = "unknown",
#define STATES_ASSIGNMENT
#include "api/states.def"
        };
        return names;
}

static inline const char *const *states_of_imex(void) {
        static const char *const names[IMEX_STATES] = {
                [IMEX_STATE_NONE] = "",
                [IMEX_STATE_UNKNOWN] = "unknown",
#define STATES_DAEMON
#include "api/states.def"
        };
        return names;
}

static inline const char *const *states_of_host(void) {
        static const char *const names[HOST_STATES] = {
#define STATES_HOST
#include "api/states.def"
        };
        return names;
}
#undef STATE
#undef STATE_TABLE

/* Returns NULL for FABRIC_ACTIVE: then the object has no state. */
static inline const char *fabric_state_name(enum fabric_state s) {
        return states_of_fabric()[s];
}

static inline enum fabric_state fabric_state_decode(const char *name) {
        return (enum fabric_state)states_decode(states_of_fabric(), FABRIC_STATES, FABRIC_STATE_UNKNOWN,
                                                name);
}

static inline const char *imex_status_name(enum imex_status s) {
        return states_of_imex()[s];
}

static inline enum imex_status imex_status_decode(const char *name) {
        return (enum imex_status)states_decode(states_of_imex(), IMEX_STATES, IMEX_STATE_UNKNOWN, name);
}

static inline const char *host_state_name(enum host_state s) {
        return states_of_host()[s];
}

static inline enum host_state host_state_decode(const char *name) {
        return (enum host_state)states_decode(states_of_host(), HOST_STATES, HOST_UNKNOWN, name);
}
