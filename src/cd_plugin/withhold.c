/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/withhold.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"

#define NO_CLIQUE "NoNVLinkClique"
#define NO_CHANNELS "NoOwnIMEXChannels"
#define TOOLKIT_GIVES_CHANNELS "ToolkitGivesChannels"
#define COUNTS_DIFFER "ChannelCountDiffers"

const char *const withhold_channel_reasons[] = { NO_CLIQUE, NO_CHANNELS, TOOLKIT_GIVES_CHANNELS,
                                                 COUNTS_DIFFER, NULL };

static void judge_channels(const struct withhold_input *in, struct offering *ret) {
        const struct facts *f = in->facts;
        if (!*f->fabric.clique_id) {
                ret->reason = NO_CLIQUE;
                snprintf(ret->message, sizeof ret->message,
                         "with imex.isolation=channel a node needs an NVLink clique, whose nodes share their "
                         "channels; NVML reports none (%s)",
                         f->fabric.reason);
        } else if (f->channel_count < 2) {
                ret->reason = NO_CHANNELS;
                snprintf(ret->message, sizeof ret->message,
                         "the driver has %u IMEX channels, of which channel 0 is no ComputeDomain's own: set "
                         "its option NVreg_ImexChannelCount to 2048 on all nodes of the fabric and load it "
                         "anew",
                         f->channel_count);
        } else if (in->toolkit == TOOLKIT_GIVES && !in->trust_toolkit) {
                ret->reason = TOOLKIT_GIVES_CHANNELS;
                snprintf(ret->message, sizeof ret->message,
                         "%s, so that any container may have any channel by asking for it in its "
                         "environment: set " TOOLKIT_SETTING "=true there (nvidia-ctk config --in-place "
                         "--set " TOOLKIT_SETTING "), or install with "
                         "resources.computeDomains.imex.trustContainerToolkit=true",
                         in->toolkit_why);
        } else if (in->counts_differ) {
                ret->reason = COUNTS_DIFFER;
                snprintf(ret->message, sizeof ret->message,
                         "the driver has %u IMEX channels (NVreg_ImexChannelCount), but most nodes of its "
                         "fabric have %" PRId64
                         ", and a channel must be there on all of them: set the same number on all, and "
                         "load the driver anew",
                         f->channel_count, in->fabric_count);
        }
}

void withhold_judge(const struct withhold_input *in, struct offering *ret) {
        const struct facts *f = in->facts;
        *ret = (struct offering){ .reason = f->reason };
        snprintf(ret->message, sizeof ret->message, "%s", f->message);
        if (f->usable && in->own_channels)
                judge_channels(in, ret);
        ret->offered = f->usable && !*ret->reason;
}

bool withhold_steady(struct withhold_steady *s, bool now, uint64_t now_ms, uint64_t *ret_due_ms) {
        *ret_due_ms = UINT64_MAX;
        if (!s->known || s->value == now) {
                *s = (struct withhold_steady){ .known = true, .value = now };
                return s->value;
        }
        if (!s->turning) {
                s->turning = true;
                s->turned_ms = now_ms;
        }
        if (now_ms - s->turned_ms >= WITHHOLD_LASTS_MS)
                *s = (struct withhold_steady){ .known = true, .value = now };
        else
                *ret_due_ms = s->turned_ms + WITHHOLD_LASTS_MS;
        return s->value;
}
