/* SPDX-License-Identifier: Apache-2.0 */
/* reasons: the catalogue of the reasons in Events and conditions, and of the messages by which a plugin
 * refuses or delays a claim. reasons.def has their meaning and the role that can fix them;
 * docs/reference/reasons.md is generated from it. Pure.
 *
 * The programs use reasons only by these constants: REASON_DOMAIN_FULL is "DomainFull". The code that knows
 * the facts makes the messages with facts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* The kinds of objects on which a reason appears. A reason may have another meaning on another kind. */
enum reason_object {
        REASON_OF_COMPUTE_DOMAIN = 1 << 0,
        REASON_OF_FABRIC = 1 << 1, /* ComputeDomainFabric */
        REASON_OF_NODE = 1 << 2,
        REASON_OF_POD = 1 << 3,
        REASON_OF_CLAIM = 1 << 4, /* ResourceClaim */
        REASON_OF_POD_GROUP = 1 << 5,
        REASON_OF_DAEMON_SET = 1 << 6,
        REASON_OF_NAMESPACE = 1 << 7,
        REASON_OF_ANY = (1 << 8) - 1,
};

/* The role that can fix the cause. */
enum reason_fixer {
        REASON_FIX_NONE, /* nothing to fix, or it ends without action */
        REASON_FIX_USER, /* the owner of the pod */
        REASON_FIX_NAMESPACE_ADMIN,
        REASON_FIX_CLUSTER_ADMIN, /* also for the driver's installation and the host's software */
        REASON_FIX_HARDWARE,      /* the operator of the GPUs, switches and disks */
        REASON_FIXERS,
};
extern const char *const reason_fixer_names[REASON_FIXERS]; /* "user", "namespace admin", ... */

struct reason {
        const char *name;  /* the reason, or the constant part of a message */
        unsigned objects;  /* of enum reason_object */
        /* the types of the conditions, or the reasons of the Events with this reason in their message:
         * "Ready", "Ready, IMEXHealthy". Its own name: it is the type of a condition. "": it is the reason of
         * an Event only. For a message: the name of the driver */
        const char *under;
        const char *meaning, *remedy; /* sentences; remedy "": nothing has to be done */
        enum reason_fixer fixer;
        const char *anchor; /* of docs/reference/reasons.md, without '#'; no other entry has it */
        bool is_message;    /* the name is part of a message */
};

extern const struct reason reason_list[];
extern const size_t reason_count;

/* Returns the reason of this name on one of these kinds of objects (enum reason_object); NULL: there is
 * none. */
const struct reason *reason_find(unsigned objects, const char *name);
/* Returns the entry for a message of a plugin or a daemon, such as the kubelet puts into the Event
 * FailedPrepareDynamicResources; NULL: there is none. */
const struct reason *reason_find_message(const char *text);

#define REASON(constant, name, ...) static const char constant[] = name;
#define REFUSAL(...)
#include "api/reasons.def"
#undef REASON
#undef REFUSAL
