/* SPDX-License-Identifier: Apache-2.0 */
/* agent_report: what a resident agent reports on its own Pod, as a merge patch. */
#pragma once

#include "daemon/agent_memory.h"
#include "imex/imex_agent.h"
#include "kube/pod_patch.h"

struct agent_report {
        const char *fabric;     /* the clique's id; "" without */
        const char *fabric_uid; /* of the object that it sees; "" while it sees none */
        const struct agent_memory *memory;
        const char *held;               /* why it stays in a domain that it should leave; "" */
        const struct imex_report *imex; /* NULL: no seat */
        const char *reason;             /* why it is not ready, "" when it is */
};

/* Pure. */

struct pod_patch *agent_report_patch_new(struct kube_client *c, const char *ns, const char *name);
void agent_report_tell(struct pod_patch *p, const struct agent_report *r); /* copied */
