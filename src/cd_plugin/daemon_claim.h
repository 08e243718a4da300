/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_claim: makes the CDI edits for the container of this node's IMEX daemon, keeps them current, and
 * reports the name of the edits to the daemon in a folder that the plugin and the daemon share.
 *
 * A daemon's Pod may be as old as the last reboot of its node, while drivers, device numbers and clique IDs
 * change. The plugin then rewrites the CDI file under the same CDI IDs. The daemon notices this and exits
 * when its IMEX is not in use. The kubelet then starts a new container, which gets the new edits. */
#pragma once

#include "cd_plugin/state.h"

/* Makes the edits for the daemon's container. `id` receives the name of these edits, which the container gets
 * as COMPUTE_DOMAIN_DAEMON_EDITS. Also passes the clique ID to the daemon. */
int daemon_claim_edits(struct cd *cd, const char *uid, struct arena *a, struct cdi_edits *ret,
                       char id[static 17], struct err *e);
/* Reports the name of the edits to the daemon. Call it when the CDI file contains them. */
void daemon_claim_written(struct cd *cd, const char *uid, const char *id);

/* Decides whether the claim may be unprepared. Unpreparing it proves to the controller that the daemon no
 * longer runs (unprepared_claims.h). -1: the daemon is still alive, for example after a force-delete of its
 * Pod. For struct node_driver. */
int daemon_claim_unprepare(void *u, const struct checkpoint_claim *entry, struct err *e);
/* Reports unprepared daemon claims to the controller. Call it after a change of the table of claims. */
void daemon_claim_report(const struct cd *cd);

/* These functions handle changes: daemon_claim_facts() those of the facts of the node, and
 * daemon_claim_follow() those of the table of claims. daemon_claim_follow() removes the files for the daemon
 * if our daemon has no claim. */
void daemon_claim_facts(struct cd *cd);
void daemon_claim_follow(struct cd *cd);

void daemon_claim_init(struct cd *cd);
void daemon_claim_done(struct cd *cd);
