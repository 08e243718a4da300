/* SPDX-License-Identifier: Apache-2.0 */
/* opaque: decodes the opaque configurations in the resource claims of ComputeDomains. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum opaque_kind {
        OPAQUE_CHANNEL,
        OPAQUE_DAEMON /* the domainID is CD_DAEMON_DOMAIN for a daemon of this driver, and another one for a
                         daemon of the Go driver */
};

/* Returns the value of `kind` in the configuration. */
const char *opaque_kind_name(enum opaque_kind kind);

/* How many channels a claim gets. */
enum allocation_mode {
        ALLOCATION_DEFAULT,
        ALLOCATION_OTHER,
        ALLOCATION_SINGLE,
        ALLOCATION_ALL,
        ALLOCATION_MODES
};
/* Returns ALLOCATION_DEFAULT for NULL and "", and ALLOCATION_OTHER for an unknown name. */
enum allocation_mode opaque_allocation_mode(const char *name);

struct opaque_config {
        enum opaque_kind kind;
        const char *domain_id;       /* a UID after strict decoding; otherwise any text, "" when absent */
        const char *allocation_mode; /* only for a channel: the name of an enum allocation_mode, known after
                                        strict decoding; never NULL */
        /* Only for a channel: the configuration has the member "isolation": "Channel", so the claim gets the
         * assigned channel of the ComputeDomain and no other. Plugins without assigned channels do not know
         * this member, so they refuse the claim instead of preparing channel 0. */
        bool own_channel;
};

/* Decodes a configuration. With `strict` (for Prepare and labelling), unknown and duplicate fields, another
 * apiVersion or kind, a domainID that is not a UID and an unknown allocationMode are ERR_INVALID, and the
 * message is a sentence for the user. Without `strict` (for Unprepare), decodes every readable member, and
 * fails only if the text is not a JSON object of one of these kinds. */
int opaque_decode(struct str json, bool strict, struct arena *a, struct opaque_config *ret, struct err *e);
