/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_metrics.h"

#include "api/names.h"
#include "api/reasons.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/withhold.h"

void cd_metrics_init(struct cd_metrics *m, const char *node) {
        static const char *const by_reason[] = { "reason", NULL }, *const by_state[] = { "state", NULL },
                                 *const by_host[] = { "status", "domain", "version", NULL };
        static const char *const types[] = { DEVICE_CHANNEL, DEVICE_DAEMON, NULL };
        *m = (struct cd_metrics){ 0 };
        struct metrics *r = node_metrics_init(
                &m->node, &(struct node_metrics_options){
                                  .node = node,
                                  .driver = CD_DRIVER,
                                  .types = types,
                                  .inside = "nvidia_dra_prepare_attempt_seconds",
                                  .pending = "nvidia_dra_compute_domain_claims_pending",
                                  .total = "nvidia_dra_compute_domain_claim_seconds",
                                  .failures = "nvidia_dra_compute_domain_claim_failures_total" });
        m->offered = metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_devices_offered",
                                "1 while this node offers its devices to the scheduler.", NULL);
        m->not_offered = metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_devices_withheld",
                                    "1 for the reason why this node withholds its devices.", by_reason);
        m->host_state = metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_host_imex_state",
                                   "1 for the state of the host's own nvidia-imex: UP, DEGRADED, DOWN, "
                                   "UNKNOWN. With driver-managed IMEX, UP and DEGRADED are a conflict.",
                                   by_state);
        m->host_info = metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_host_imex_info",
                                  "1 for the status and the version of the host's own nvidia-imex, and "
                                  "the status of its IMEX domain.",
                                  by_host);
        m->host_nodes = metric_add(r, METRIC_GAUGE, "nvidia_dra_compute_domain_host_imex_nodes",
                                   "Nodes of the IMEX domain of the host's own nvidia-imex: listed, "
                                   "and those of them that are ready.",
                                   by_state);
        metric_set(m->offered, 0, NULL);
}

void cd_metrics_offered(struct cd_metrics *m, const char *reason) {
        static const char *const reasons[] = { REASON_DRIVER_NOT_QUERIED, REASON_DRIVER_NOT_FOUND,
                                               REASON_DRIVER_NOT_READY,   REASON_DRIVER_TOO_OLD,
                                               REASON_NO_IMEX_CHANNELS,   REASON_FABRIC_REGISTERING,
                                               REASON_FABRIC_ERROR,       REASON_NO_GPUS };
        metric_set(m->offered, *reason ? 0 : 1, NULL);
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                metric_set(m->not_offered, streq(reason, reasons[i]) ? 1 : 0, LABELS(reasons[i]));
        for (const char *const *r = withhold_channel_reasons; *r && m->toolkit; r++)
                metric_set(m->not_offered, streq(reason, *r) ? 1 : 0, LABELS(*r));
}

void cd_metrics_own_channels(struct cd_metrics *m) {
        static const char *const by_state[] = { "state", NULL };
        m->toolkit = metric_add(m->node.registry, METRIC_GAUGE, "nvidia_dra_compute_domain_container_toolkit",
                                "1 for what the NVIDIA container toolkit of this node does with requests for "
                                "IMEX channels: ignores_requests, gives_channels, not_found. Only with "
                                "imex.isolation=channel.",
                                by_state);
}

void cd_metrics_toolkit(struct cd_metrics *m, enum toolkit_answer answer) {
        for (int i = 0; i < TOOLKIT_ANSWERS; i++)
                metric_set(m->toolkit, (int)answer == i, LABELS(toolkit_answer_names[i]));
}

void cd_metrics_host(struct cd_metrics *m, const struct host_imex_status *s) {
        for (int i = 0; i < HOST_STATES; i++)
                metric_set(m->host_state, (int)s->state == i, LABELS(host_state_name((enum host_state)i)));
        metric_forget(m->host_info, LABELS(imex_status_name(m->host.imex), m->host.domain, m->host.version));
        metric_set(m->host_info, 1, LABELS(imex_status_name(s->imex), s->domain, s->version));
        metric_set(m->host_nodes, s->nodes, LABELS("listed"));
        metric_set(m->host_nodes, s->nodes_ready, LABELS("ready"));
        m->host = *s;
}
