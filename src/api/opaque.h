/* SPDX-License-Identifier: Apache-2.0 */
/* opaque: the configuration kinds that travel in resource claims (reference 2.4 to 2.6). */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum opaque_kind {
        OPAQUE_CHANNEL,
        OPAQUE_DAEMON /* with the domain CD_DAEMON_DOMAIN our daemon; with another one, the Go driver's */
};

struct opaque_config {
        enum opaque_kind kind;
        const char *domain_id;       /* a UID when decoded strictly; lenient: any text, "" when absent */
        const char *allocation_mode; /* channel: "", "Single" or "All" when strict; never NULL */
        /* channel, "isolation": "Channel": a channel of the ComputeDomain's own, and no other. A member that
         * plugins without such channels do not know, so that they refuse the claim instead of giving it
         * channel 0. */
        bool own_channel;
};

/* Strict (Prepare, labelling): unknown and duplicate fields, foreign apiVersion or kind, a domainID that is
 * no UID and an unknown allocationMode are ERR_INVALID with a sentence for the user. Lenient (Unprepare):
 * whatever can be read is; fails only when it is no JSON object of our kinds. */
int opaque_decode(struct str json, bool strict, struct arena *a, struct opaque_config *ret, struct err *e);
