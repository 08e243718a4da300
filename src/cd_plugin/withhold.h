/* SPDX-License-Identifier: Apache-2.0 */
/* withhold: whether this node offers its devices to the scheduler, and if not, why: because of the facts of
 * its driver, or, with isolation by channel, because of that isolation's needs. Pure. */
#pragma once

#include "cd_plugin/facts.h"
#include "nvidia/toolkit.h"

struct withhold_input {
        const struct facts *facts;
        bool own_channels; /* isolation by channel; otherwise nothing below counts */
        enum toolkit_answer toolkit;
        const char *toolkit_why;
        bool trust_toolkit;   /* imex.trustContainerToolkit */
        bool of_daemon;       /* our daemon runs IMEX, not the host */
        bool terminating; /* that daemon has received SIGTERM: it ends after the last pod with a channel */
        bool not_joined;  /* with our daemon: this node is not in the standing domain of its partition */
        const char
                *no_index; /* why that domain has no index for it, as the fabric object states it; or NULL */
        /* These count after they have lasted (withhold_steady): */
        bool imex_down;       /* IMEX starts before pods come, and this node's is not READY */
        const char *imex_why; /* its state, or why the node is not in the domain */
        bool counts_differ;   /* the node's number of channels differs from the partition's */
        bool versions_differ; /* the version of the node's IMEX differs from the partition's */
        int64_t fabric_count; /* the number that most nodes of the partition have */
        const char *imex_version, *fabric_imex;
};

struct offering {
        bool offered;
        const char *reason; /* for Events and metrics; "" when devices are offered */
        char message[500];  /* for people */
};

void withhold_evaluate(const struct withhold_input *in, struct offering *ret);
/* The reasons that exist only with isolation by channel, NULL-terminated. */
extern const char *const withhold_channel_reasons[];

/* A condition that depends on a majority may flip with each report, for example in a partition of two nodes
 * that differ; so may the state of an IMEX that crashes in a loop. Each flip would wake all pods that wait
 * for devices. So a change counts only after it has lasted; the first known state counts at once. */
enum { WITHHOLD_LASTS_MS = 30000, WITHHOLD_DOWN_MS = 10000 };
struct withhold_steady {
        unsigned true_ms; /* how long it must be true to count; 0: WITHHOLD_LASTS_MS, as for false */
        bool known, value;
        bool turning;
        uint64_t turned_ms; /* since when the input has differed from `value` */
};
/* Returns the state that counts now. *ret_due_ms: when to call again, by the same clock; UINT64_MAX: not
 * before the input changes. */
bool withhold_steady(struct withhold_steady *s, bool now, uint64_t now_ms, uint64_t *ret_due_ms);
