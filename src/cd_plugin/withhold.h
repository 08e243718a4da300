/* SPDX-License-Identifier: Apache-2.0 */
/* withhold: decides whether this node offers its devices to the scheduler, and if not, states why: because of
 * the facts of its NVIDIA driver, or because of a requirement of isolation by channel. Pure. */
#pragma once

#include "cd_plugin/facts.h"
#include "nvidia/toolkit.h"

struct withhold_input {
        const struct facts *facts;
        bool own_channels; /* isolation by channel is enabled; otherwise the members below are ignored */
        enum toolkit_answer toolkit;
        const char *toolkit_why;
        bool trust_toolkit;   /* imex.trustContainerToolkit */
        bool of_daemon;       /* our daemon runs IMEX, not the host */
        bool terminating; /* our daemon has received SIGTERM, and ends after the last pod with a channel */
        bool not_joined;  /* with our daemon: this node is not in the standing domain of its partition */
        /* Why the standing domain has no index for this node, as the fabric object states it; or NULL. */
        const char *no_index;
        /* These count only after they have lasted for a while (withhold_steady()): */
        bool imex_down;       /* IMEX must be READY before pods start, and IMEX of this node is not READY */
        const char *imex_why; /* the state of IMEX, or why the node is not in the standing domain */
        bool counts_differ;   /* the node's number of channels differs from the partition's */
        bool versions_differ; /* the version of the node's IMEX differs from the partition's */
        int64_t fabric_count; /* the number that most nodes of the partition have */
        const char *imex_version, *fabric_imex;
};

struct offering {
        bool offered;
        const char *reason; /* for Events and metrics; "" when devices are offered */
        char message[500];  /* an explanation for users */
};

void withhold_evaluate(const struct withhold_input *in, struct offering *ret);
/* The reasons that exist only with isolation by channel; NULL-terminated. */
extern const char *const withhold_channel_reasons[];

/* A condition that depends on a majority may change with each report, for example in a partition of two nodes
 * that differ. The state of an IMEX that crashes in a loop also changes repeatedly. Each change would wake
 * all pods that wait for devices. So a change counts only after it has lasted for the time below; the first
 * known state counts at once. */
enum { WITHHOLD_LASTS_MS = 30000, WITHHOLD_DOWN_MS = 10000 };
struct withhold_steady {
        unsigned true_ms; /* how long the input must be true before true counts; 0: WITHHOLD_LASTS_MS, the
                             same as for false */
        bool known, value;
        bool turning;
        uint64_t turned_ms; /* the time since which the input has differed from `value` */
};
/* Returns the state that counts now. Sets *ret_due_ms to the time of the next call that is needed, by the
 * same clock as now_ms; UINT64_MAX: none until the input changes. */
bool withhold_steady(struct withhold_steady *s, bool now, uint64_t now_ms, uint64_t *ret_due_ms);
