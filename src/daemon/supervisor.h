/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: what `compute-domain-daemon run` does: membership from the clique, IMEX by the agent, its state
 * to the plugin and to the own Pod. */
#ifndef DAEMON_SUPERVISOR_H
#define DAEMON_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct supervisor_config {
        const char *clique_id; /* "": a node without fabric */
        const char *domain_uid, *domain_name, *domain_ns;
        const char *claim_uid; /* of the daemon's claim; "" when the plugin does not tell */
        const char *node, *pod_ip, *pod_uid, *pod, *pod_ns;
        const char *kubeconfig; /* "": in the cluster */
        int64_t max_nodes;
        bool dns_names;

        const char *dir;        /* "/imexd" */
        const char *hosts_path; /* "/etc/hosts" */
        const char *run_dir;    /* "/var/run/nvidia-imex" */
        const char *imex_path, *ctl_path;
        unsigned term_grace_ms; /* for nvidia-imex, within the pod's own */
        unsigned recovery_ms;   /* 0: as imex_agent.h says */
};

/* Returns after SIGTERM or SIGINT, when nvidia-imex has ended: 0. -1: it could not start. */
int supervisor_run(const struct supervisor_config *c, struct err *e);

#endif
