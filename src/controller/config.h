/* SPDX-License-Identifier: Apache-2.0 */
/* config: the settings of the controller, from flags and environment variables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/gates.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/mode.h"

struct config {
        const char *pod_name, *ns, *image, *kubeconfig;
        const char *plugin_selector; /* label selector of the kubelet plugin's Pods; "": none, and the
                                        controller knows nothing about IMEX on the hosts */
        const char *http_endpoint, *metrics_path;
        const char *lease_name, *lease_ns;
        int64_t verbosity, daemon_verbosity, max_nodes, qps, burst;
        int64_t lease_duration_ms, renew_deadline_ms, retry_period_ms;
        bool leader_election, apply_crds, gpu_clique_label, racks, json_log, help;
        bool fresh_pods;                          /* replace a daemon's Pod between two ComputeDomains */
        const char *priority_class, *pull_policy; /* of the daemons' Pods */
        const char *imex_config;                  /* settings of nvidia-imex, as JSON; "": none */
        struct gates gates;

        /* Derived from the above. */
        const struct imex_mode *mode;
        struct arena *arena;
        const char *gates_text, *daemon_verbosity_text;
        const char **pull_secrets, **namespaces; /* the driver's namespace is first; no duplicates */
        size_t n_pull_secrets, n_namespaces;
        struct str requests, limits;          /* of the daemon container, as JSON */
        struct jd_pair *labels, *annotations; /* of the daemons' Pods, besides the driver's own */
        size_t n_labels, n_annotations;
        unsigned leases_pause_ms; /* LEASES_PAUSE_MS (controller/leases.h) */
};

/* Reads the flags and the environment. Errors name the flag and the variable. */
int config_load(struct config *c, int argc, char **argv, struct err *e);
void config_done(struct config *c);
void config_usage(void);
