/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_claim: what the node has for its IMEX daemon, and shows it in the folder that both have.
 *
 * A daemon's Pod is as old as its node's last reboot, while drivers, device numbers and cliques change under
 * it. Its CDI file is then written again, under the same ids, and the daemon sees that, and exits when nobody
 * uses its IMEX: the container that the kubelet starts in its place has what the file says. */
#pragma once

#include "cd_plugin/state.h"

/* The edits for the daemon's container, and in `id` the name of these edits, which the container has as
 * COMPUTE_DOMAIN_DAEMON_EDITS. Shows the daemon the clique. */
int daemon_claim_edits(struct cd *cd, const char *uid, struct arena *a, struct cdi_edits *ret,
                       char id[static 17], struct err *e);
/* The CDI file holds these edits from now on: shows the daemon their name. */
void daemon_claim_written(struct cd *cd, const char *uid, const char *id);

/* The claim is about to be unprepared, which is the controller's proof that its daemon does not run any more
 * (released.h). -1: the daemon lives, as after its Pod has been deleted by force. For node_driver. */
int daemon_claim_unprepare(void *u, const struct checkpoint_claim *entry, struct err *e);
/* The table of the claims has changed: reports what was unprepared. */
void daemon_claim_report(const struct cd *cd);

/* The facts of the node have changed; or the table of the claims. Without a claim of our daemon, what it was
 * shown is removed. */
void daemon_claim_facts(struct cd *cd);
void daemon_claim_follow(struct cd *cd);

void daemon_claim_init(struct cd *cd);
void daemon_claim_done(struct cd *cd);
