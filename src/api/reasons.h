/* SPDX-License-Identifier: Apache-2.0 */
/* reasons: the catalogue of the reasons that the programs put into Events and conditions, and of the messages
 * by which a plugin refuses or delays a claim. What each means and who can fix it is in reasons.def, from
 * which docs/reference/reasons.md is generated. Pure.
 *
 * The constants are the only place where the programs take the word of a reason from: REASON_DOMAIN_FULL is
 * "DomainFull". Messages with facts are where the facts are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* The kinds of objects on which a reason appears. One reason may mean something else on another kind. */
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
        REASON_FIX_CLUSTER_ADMIN, /* also of the driver's installation and of the host's software */
        REASON_FIX_HARDWARE,      /* the operator of the GPUs, switches and disks */
        REASON_FIXERS,
};
extern const char *const reason_fixer_names[REASON_FIXERS]; /* "user", "namespace admin", ... */

struct reason {
        const char *name;  /* the reason, or a part of a message that is always the same */
        unsigned objects;  /* of enum reason_object */
        const char *under; /* the conditions, or Events with a reason in their message, that have it as their
                              reason: "Ready", "Ready, IMEXHealthy"; its own name: it is the type of a
                              condition; "": it is the reason of an Event alone. Of a message: the driver */
        const char *meaning, *remedy; /* sentences; remedy "": nothing has to be done */
        enum reason_fixer fixer;
        const char *anchor; /* of docs/reference/reasons.md, without '#'; no other entry has it */
        bool is_message;    /* the name is a part of a message */
};

extern const struct reason reason_list[];
extern const size_t reason_count;

/* The reason of this name on one of these kinds of objects, of enum reason_object; NULL: there is none. */
const struct reason *reason_find(unsigned objects, const char *name);
/* The entry of a message of a plugin or a daemon, such as the kubelet puts into the Event
 * FailedPrepareDynamicResources; NULL: there is none. */
const struct reason *reason_find_message(const char *text);

#define REASON(constant, name, ...) static const char constant[] = name;
#define REFUSAL(...)
#include "api/reasons.def"
#undef REASON
#undef REFUSAL
