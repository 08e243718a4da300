/* SPDX-License-Identifier: Apache-2.0 */
/* withhold: whether this node offers its devices to the scheduler, and the reason when it does not: the facts
 * of its driver, and, where each ComputeDomain has a channel of its own, what that isolation takes. Pure. */
#pragma once

#include "cd_plugin/facts.h"
#include "nvidia/toolkit.h"

struct withhold_input {
        const struct facts *facts;
        bool own_channels; /* each ComputeDomain has one; else nothing below counts */
        enum toolkit_answer toolkit;
        const char *toolkit_why;
        bool trust_toolkit;   /* imex.trustContainerToolkit */
        bool of_daemon;       /* our daemon runs IMEX, and not the host */
        bool terminating;     /* and has got SIGTERM: it ends after the last pod with a channel */
        bool apart;           /* and this node is not in the IMEX domain of its fabric */
        const char *no_place; /* why that domain has no place for it, in its fabric's words; or NULL */
        /* These count when they have lasted (withhold_steady): */
        bool imex_down;       /* IMEX stands before pods come, and that of this node is not READY */
        const char *imex_why; /* what it is instead, or why it is apart */
        bool counts_differ;   /* the node's number of channels from the fabric's */
        bool versions_differ; /* the version of the node's IMEX from the fabric's */
        int64_t fabric_count; /* what most nodes of the fabric have */
        const char *imex_version, *fabric_imex;
};

struct offering {
        bool offered;
        const char *reason; /* a word for Events and metrics; "" when they are offered */
        char message[500];  /* for people */
};

void withhold_judge(const struct withhold_input *in, struct offering *ret);
/* The reasons that only isolation by channel has, NULL-terminated. */
extern const char *const withhold_channel_reasons[];

/* A truth that others decide about by majority, as in a fabric of two that differ, may turn at each of their
 * reports, and so may an IMEX that crashes in a loop; each turn would wake all pods that wait for devices. So
 * it counts when it has lasted; the first that is known counts at once. */
enum { WITHHOLD_LASTS_MS = 30000, WITHHOLD_DOWN_MS = 10000 };
struct withhold_steady {
        unsigned true_ms; /* for how long it has to be true to count; 0: WITHHOLD_LASTS_MS, as when false */
        bool known, value;
        bool turning;
        uint64_t turned_ms; /* since when it is said to be otherwise */
};
/* What counts now. *ret_due_ms: when to ask again, by the same clock; UINT64_MAX: not before it changes. */
bool withhold_steady(struct withhold_steady *s, bool now, uint64_t now_ms, uint64_t *ret_due_ms);
