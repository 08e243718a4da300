/* SPDX-License-Identifier: Apache-2.0 */
/* agent_claim: what the node has for its resident agent, and tells it in the folder that both have.
 *
 * An agent's Pod is as old as its node's last reboot, while drivers, device numbers and cliques change under
 * it. Its CDI file is written anew then, under the same ids, and the agent told, which ends when nobody uses
 * its IMEX: the container that the kubelet starts in its place has what the file says. */
#pragma once

#include "cd_plugin/state.h"

/* The edits for the agent's container, and in `id` by which it tells them from others; the container has it
 * as COMPUTE_DOMAIN_AGENT_EDITS. Tells the agent of the clique. */
int agent_claim_edits(struct cd *cd, const char *uid, struct arena *a, struct cdi_edits *ret,
                      char id[static 17], struct err *e);
/* The CDI file holds these edits from now on: tells the agent. */
void agent_claim_written(struct cd *cd, const char *uid, const char *id);

/* The facts of the node have changed; or the table of the claims. Without a claim of an agent, what was told
 * goes. */
void agent_claim_facts(struct cd *cd);
void agent_claim_follow(struct cd *cd);

void agent_claim_init(struct cd *cd);
void agent_claim_done(struct cd *cd);
