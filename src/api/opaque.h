/* SPDX-License-Identifier: Apache-2.0 */
/* opaque: the kinds of configurations in the resource claims of ComputeDomains. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum opaque_kind {
        OPAQUE_CHANNEL,
        OPAQUE_DAEMON /* with domainID CD_DAEMON_DOMAIN for this driver's daemon, with another one for the Go
                         driver's */
};

struct opaque_config {
        enum opaque_kind kind;
        const char *domain_id;       /* a UID if decoded strictly; otherwise any text, "" when absent */
        const char *allocation_mode; /* of a channel: "", "Single" or "All" if decoded strictly; never NULL */
        /* of a channel, "isolation": "Channel": the assigned channel of the ComputeDomain, and no other.
         * Plugins without assigned channels do not know this member, so they refuse the claim instead of
         * preparing channel 0. */
        bool own_channel;
};

/* Decodes a configuration. Strict (Prepare, labelling): unknown and duplicate fields, another apiVersion or
 * kind, a domainID that is not a UID and an unknown allocationMode are ERR_INVALID, with a sentence for the
 * user. Lenient (Unprepare): decodes every readable member, and fails only if the text is not a JSON object
 * of one of these kinds. */
int opaque_decode(struct str json, bool strict, struct arena *a, struct opaque_config *ret, struct err *e);
