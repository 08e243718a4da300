/* SPDX-License-Identifier: Apache-2.0 */
/* channel_report: decodes and renders the report of the channels that a node holds, by partition. The kubelet
 * plugin writes this report for the controller into the annotation IMEX_ANNOTATION_HOST_CHANNELS of its Pod:
 *
 *     {"<clique ID>": {"uid": "<UID of the fabric object, or \"\">", "channelCount": 2048, "imexVersion":
 * "580.95.05", "withheld": "HostIMEXNotUp", "held": {"7": "<UID of the owner>"}, "asks": ["<UID>"]}}
 *
 * The node's own partition always has an entry. Another partition has one as long as the node holds one of
 * its channels. The controller treats the text as untrusted input: if it cannot read any part, it ignores the
 * whole report. It assumes that a node without a report may hold any channel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* Channel IDs are below this limit, which is the maximum of the NVIDIA driver's parameter
 * NVreg_ImexChannelCount. */
enum { CHANNEL_REPORT_IDS_MAX = 1 << 20 };
/* The maximum number of partitions in a report. No node is in so many partitions during the life of its
 * pods. */
enum { CHANNEL_REPORT_FABRICS_MAX = 64 };
/* The maximum number of channels of a partition that a node holds. Each has a pod on the node. The fabric
 * object lists them all, so a larger number could make it too large. */
enum { CHANNEL_REPORT_HELD_MAX = 512 };
/* The maximum number of ComputeDomains that a node asks for. A node with more of them waits until some have
 * their channel. */
enum { CHANNEL_REPORT_ASKS_MAX = 64 };

struct channel_report_hold {
        int64_t id;
        const char *owner; /* UID */
};

struct channel_report_fabric {
        const char *clique_id;
        const char *uid; /* UID of the fabric object that the plugin sees; "": none */
        int64_t count;   /* ImexChannelCount of the node, only in the entry of the node's own partition; -1:
                            not reported */
        struct channel_report_hold *held;
        size_t n_held;
        /* Only in the entry of the node's own partition: `imex` is the version of the node's nvidia-imex, and
         * `withheld` is the reason why the node offers no devices. NULL: not reported. */
        const char *imex, *withheld;
        /* Only in the entry of the node's own partition: UIDs of ComputeDomains with a shared claim that
         * waits on this node. The allocation of such a claim names no node. */
        const char **asks;
        size_t n_asks;
};

struct channel_report {
        struct channel_report_fabric *fabrics;
        size_t n_fabrics;
};

/* Returns whether a report may contain the text as a version or a reason. Such a text becomes part of
 * messages and of the fabric object. */
bool channel_report_is_token(const char *s);

/* Decodes a report into the arena. ERR_INVALID: the message names the fault, for example that a partition is
 * listed twice. Unknown members are ignored, because a newer plugin may report more. A channel ID with two
 * owners is listed twice. */
int channel_report_decode(struct str text, struct arena *a, struct channel_report *ret, struct err *e);
/* Renders a report, in the order of the lists. */
void channel_report_render(const struct channel_report *r, struct buf *out);

/* Returns the entry of a partition; NULL: it has none. */
const struct channel_report_fabric *channel_report_of(const struct channel_report *r, const char *clique_id);

/* The channels of a partition that a node holds by the reports of several Pods. Zeroed: none. */
struct channel_report_held {
        struct channel_report_hold *list;
        size_t n, cap;
        bool too_many; /* CHANNEL_REPORT_HELD_MAX are in the list, and the node reports more */
};
/* Adds the channels of an entry that are not in the list yet. f NULL: there is no entry. The list is in the
 * arena. */
void channel_report_add_held(const struct channel_report_fabric *f, struct arena *a,
                             struct channel_report_held *ret);
