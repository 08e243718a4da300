/* SPDX-License-Identifier: Apache-2.0 */
/* config: reads the settings of the controller from flags and environment variables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/gates.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/mode.h"
#include "render/objects.h"

struct config {
        const char *pod_name, *ns, *kubeconfig;
        const char *plugin_selector; /* label selector of the kubelet plugin's Pods; "": none, so the
                                        controller does not know the state of IMEX on the hosts */
        const char *http_endpoint, *metrics_path;
        const char *lease_name, *lease_ns;
        int64_t verbosity, daemon_verbosity, max_nodes, qps, burst;
        int64_t lease_duration_ms, renew_deadline_ms, retry_period_ms;
        int64_t evict_after_min; /* evict pods from a node whose IMEX has failed for so long; 0: never */
        bool leader_election, apply_crds, gpu_clique_label, racks, help;
        bool auto_domains; /* create ComputeDomains for workloads whose pods have the label CD_LABEL_AUTO */
        bool fresh_pods; /* replace a daemon's Pod before its node joins another ComputeDomain */
        struct gates gates;
        struct objects_settings daemon; /* without resource_api, which depends on the API server */

        /* Derived from the above. */
        const struct imex_mode *mode;
        struct arena *arena;
        const char *const *namespaces; /* without duplicates; the first is the driver's namespace */
        size_t n_namespaces;
};

/* Reads the flags and the environment. An error names the flag and the variable. */
int config_load(struct config *c, int argc, char **argv, struct err *e);
void config_done(struct config *c);
void config_usage(void);
