/* SPDX-License-Identifier: Apache-2.0 */
/* channel_report: which channels a node holds, fabric by fabric, as its kubelet plugin tells the controller
 * in annotation IMEX_ANNOTATION_HOST_CHANNELS of its own Pod:
 *
 *     {"<clique id>": {"uid": "<UID of the fabric's object, or \"\">", "count": 2048, "imex": "580.95.05",
 *                      "withheld": "HostIMEXNotUp", "held": {"7": "<UID of the owner>"}}}
 *
 * The node's own clique is always there, others as long as something of them is held. Foreign bytes to the
 * controller: what cannot be read as a whole is no report, and a node without one may hold anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* An id is below this: as many channels as the driver can be told to have (NVreg_ImexChannelCount). */
enum { REPORT_IDS_MOST = 1 << 20 };
/* So many fabrics a node has not been in since its pods started. */
enum { REPORT_FABRICS_MOST = 64 };

struct report_hold {
        int64_t id;
        const char *owner; /* UID */
};

struct report_fabric {
        const char *clique_id;
        const char *uid; /* of the ComputeDomainFabric that the plugin sees, "": none */
        int64_t count;   /* ImexChannelCount of the node, in the entry of its own clique; -1: not told */
        struct report_hold *held;
        size_t n_held;
        /* In the entry of the node's own clique: the version of its IMEX; why it offers no devices. NULL: not
         * told. */
        const char *imex, *withheld;
};

struct channel_report {
        struct report_fabric *fabrics;
        size_t n_fabrics;
};

/* A version, or a reason, as it may be in a report: it becomes part of messages, and of the fabric's object.
 */
bool channel_report_is_word(const char *s);

/* ERR_INVALID says what of it is wrong, as a fabric that is there twice. Members that it does not know are
 * passed over: a newer plugin may have more to tell. An id with two owners is there twice. All is in the
 * arena. */
int channel_report_decode(struct str text, struct arena *a, struct channel_report *ret, struct err *e);
/* In the order of the lists. */
void channel_report_render(const struct channel_report *r, struct buf *out);

/* What it says of a clique, NULL: nothing. */
const struct report_fabric *channel_report_of(const struct channel_report *r, const char *clique_id);
