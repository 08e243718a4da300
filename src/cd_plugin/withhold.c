/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/withhold.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/str.h"

const char *const withhold_channel_reasons[] = { REASON_NO_NVLINK_CLIQUE,
                                                 REASON_NO_OWN_IMEX_CHANNELS,
                                                 REASON_TOOLKIT_GIVES_CHANNELS,
                                                 REASON_HOST_IMEX_NOT_UP,
                                                 REASON_IMEX_DAEMON_TERMINATING,
                                                 REASON_IMEX_NO_INDEX,
                                                 REASON_IMEX_NOT_JOINED,
                                                 REASON_IMEX_NOT_UP,
                                                 REASON_CHANNEL_COUNT_DIFFERS,
                                                 REASON_IMEX_VERSION_DIFFERS,
                                                 NULL };

static void judge_channels(const struct withhold_input *in, struct offering *ret) {
        const struct facts *f = in->facts;
        if (!*f->fabric.clique_id) {
                ret->reason = REASON_NO_NVLINK_CLIQUE;
                snprintf(ret->message, sizeof ret->message,
                         "with imex.isolation=channel a node needs an NVLink clique, because its nodes share "
                         "their channels; NVML reports none (%s)",
                         f->fabric.reason);
        } else if (f->channel_count < 2) {
                ret->reason = REASON_NO_OWN_IMEX_CHANNELS;
                snprintf(ret->message, sizeof ret->message,
                         "the driver has %u IMEX channels, and channel 0 cannot be assigned to a "
                         "ComputeDomain: set the driver's option NVreg_ImexChannelCount to 2048 on all nodes "
                         "of the partition, and reload the driver",
                         f->channel_count);
        } else if (in->toolkit == TOOLKIT_GIVES && !in->trust_toolkit) {
                ret->reason = REASON_TOOLKIT_GIVES_CHANNELS;
                snprintf(ret->message, sizeof ret->message,
                         "%s, so any container can get any channel by requesting it in its environment: "
                         "set " TOOLKIT_SETTING "=true there (nvidia-ctk config --in-place "
                         "--set " TOOLKIT_SETTING "), or install with "
                         "resources.computeDomains.imex.trustContainerToolkit=true",
                         in->toolkit_why);
        } else if (in->terminating) {
                ret->reason = REASON_IMEX_DAEMON_TERMINATING;
                snprintf(ret->message, sizeof ret->message,
                         "the IMEX daemon of this node is terminating, because its Pod is being deleted: it "
                         "serves the pods that have channels here, and ends after the last of them. Devices "
                         "are offered again when the next daemon of the node is READY");
        } else if (in->not_joined && in->no_index) {
                ret->reason = REASON_IMEX_NO_INDEX;
                snprintf(
                        ret->message, sizeof ret->message,
                        "this node has no index in the IMEX domain of its NVLink partition: %s (on the node: "
                        "%s)",
                        in->no_index, in->imex_why);
        } else if (in->not_joined) {
                ret->reason = REASON_IMEX_NOT_JOINED;
                snprintf(ret->message, sizeof ret->message,
                         "this node is not in the IMEX domain of its NVLink partition, which it joins by "
                         "itself, and leaves while it is cordoned: %s",
                         in->imex_why);
        } else if (in->imex_down && in->of_daemon) {
                ret->reason = REASON_IMEX_NOT_UP;
                snprintf(ret->message, sizeof ret->message,
                         "%s, so pods could not use their channels here: see the log of the Pod of "
                         "DaemonSet " CD_DAEMON_OBJECT
                         " on this node. Devices are offered again when IMEX has been READY for half a "
                         "minute",
                         in->imex_why);
        } else if (in->imex_down) {
                ret->reason = REASON_HOST_IMEX_NOT_UP;
                snprintf(ret->message, sizeof ret->message,
                         "%s, so pods could not use their channels here; the driver does not start "
                         "nvidia-imex on hosts: start it with systemctl, or with the tool that runs it on "
                         "this host. Devices are offered again when it has been READY for half a minute",
                         in->imex_why);
        } else if (in->counts_differ) {
                ret->reason = REASON_CHANNEL_COUNT_DIFFERS;
                snprintf(ret->message, sizeof ret->message,
                         "the driver has %u IMEX channels (NVreg_ImexChannelCount), but most nodes of its "
                         "NVLink partition have "
                         "%" PRId64 ", and a channel must exist on all of them: set the same "
                         "number on all nodes, and reload the driver",
                         f->channel_count, in->fabric_count);
        } else if (in->versions_differ) {
                ret->reason = REASON_IMEX_VERSION_DIFFERS;
                snprintf(
                        ret->message, sizeof ret->message,
                        "nvidia-imex has version %s on this node, but version %s on most nodes of its NVLink "
                        "partition, and IMEX of different versions does not work together: install the same "
                        "version on all nodes",
                        in->imex_version, in->fabric_imex);
        }
}

void withhold_evaluate(const struct withhold_input *in, struct offering *ret) {
        const struct facts *f = in->facts;
        *ret = (struct offering){ .reason = f->reason };
        snprintf(ret->message, sizeof ret->message, "%s", f->message);
        if (f->usable && in->own_channels)
                judge_channels(in, ret);
        ret->offered = f->usable && !*ret->reason;
}

bool withhold_steady(struct withhold_steady *s, bool now, uint64_t now_ms, uint64_t *ret_due_ms) {
        unsigned lasts_ms = now && s->true_ms ? s->true_ms : WITHHOLD_LASTS_MS;
        *ret_due_ms = UINT64_MAX;
        bool turns = s->known && s->value != now;
        if (turns && !s->turning)
                s->turned_ms = now_ms;
        s->turning = turns && now_ms - s->turned_ms < lasts_ms;
        s->known = true;
        if (s->turning)
                *ret_due_ms = s->turned_ms + lasts_ms;
        else
                s->value = now;
        return s->value;
}
