/* SPDX-License-Identifier: Apache-2.0 */
/* reasons: lists the reasons in Events and conditions, the messages with which a plugin refuses or delays a
 * claim, the causes that only the kubectl plugin names, and the alerts of the chart. reasons.def defines the
 * meaning of each entry, and the role that can fix its cause. docs/reference/reasons.md is generated from
 * reasons.def. Pure.
 *
 * The programs use only the constants for reasons: REASON_DOMAIN_FULL is "DomainFull". A message with facts
 * is formatted by the code that knows the facts. */
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
        REASON_OF_ALERT = 1 << 8, /* no object: an alert of the chart */
};

/* The role that can fix the cause. */
enum reason_fixer {
        REASON_FIX_NONE, /* nothing has to be fixed, or the cause ends without action */
        REASON_FIX_USER, /* the owner of the pod */
        REASON_FIX_NAMESPACE_ADMIN,
        REASON_FIX_CLUSTER_ADMIN, /* also for the installation of the driver and the software of the hosts */
        REASON_FIX_HARDWARE,      /* the operator of the GPUs, switches and disks */
        REASON_FIXERS,
};
extern const char *const reason_fixer_names[REASON_FIXERS]; /* "user", "namespace admin", ... */

struct reason {
        const char *name;  /* the reason, or the constant part of a message */
        unsigned objects;  /* of enum reason_object */
        /* Where the reason appears: the types of the conditions that have it, or the reasons of the Events
         * whose message contains it, for example "Ready, IMEXHealthy". Equal to `name`: the entry is the type
         * of a condition. "": the entry is only the reason of an Event. For a message: the name of the
         * driver */
        const char *under;
        const char *meaning, *remedy; /* sentences; remedy "": nothing has to be done */
        enum reason_fixer fixer;
        const char *anchor; /* in docs/reference/reasons.md, without '#'; unique */
        bool is_message;    /* the name is part of a message */
        bool is_cause;      /* only the kubectl plugin uses the name */
};

extern const struct reason reason_list[];
extern const size_t reason_count;

/* Returns the reason with this name that appears on one of these kinds of objects (bits of enum
 * reason_object); NULL: there is none. */
const struct reason *reason_find(unsigned objects, const char *name);
/* Returns the entry for a message of a plugin or a daemon, for example from the Event
 * FailedPrepareDynamicResources of the kubelet; NULL: there is none. */
const struct reason *reason_find_message(const char *text);
/* Returns the entry with this anchor; NULL: there is none. */
const struct reason *reason_find_anchor(const char *anchor);
/* Returns the cause that the kubectl plugin names so. The name must exist. */
const struct reason *reason_cause(const char *name);

#define REASON(constant, name, ...) static const char constant[] = name;
#define REFUSAL(...)
#define CAUSE(constant, name, ...) static const char constant[] = name;
#define ALERT(...)
#include "api/reasons.def"
#undef REASON
#undef REFUSAL
#undef CAUSE
#undef ALERT
