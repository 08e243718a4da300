/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_claim: the edits that the node has for the container of its IMEX daemon. It shows their name to the
 * daemon in the folder that both share.
 *
 * A daemon's Pod may be as old as its node's last reboot, while drivers, device numbers and cliques change.
 * The plugin then rewrites the CDI file under the same IDs. The daemon notices this, and exits when its IMEX
 * is not in use: the container that the kubelet starts next has the content of the file. */
#pragma once

#include "cd_plugin/state.h"

/* The edits for the daemon's container, and in `id` the name of these edits, which the container has as
 * COMPUTE_DOMAIN_DAEMON_EDITS. Shows the clique ID to the daemon. */
int daemon_claim_edits(struct cd *cd, const char *uid, struct arena *a, struct cdi_edits *ret,
                       char id[static 17], struct err *e);
/* The CDI file now has these edits: shows their name to the daemon. */
void daemon_claim_written(struct cd *cd, const char *uid, const char *id);

/* The claim is about to be unprepared, which proves to the controller that its daemon no longer runs
 * (unprepared_claims.h). -1: the daemon is alive, for example after a force-delete of its Pod. For
 * node_driver. */
int daemon_claim_unprepare(void *u, const struct checkpoint_claim *entry, struct err *e);
/* The table of the claims has changed: reports unprepared daemon claims. */
void daemon_claim_report(const struct cd *cd);

/* The facts of the node have changed; or the table of the claims. Without a claim of our daemon, the files
 * shown to it are removed. */
void daemon_claim_facts(struct cd *cd);
void daemon_claim_follow(struct cd *cd);

void daemon_claim_init(struct cd *cd);
void daemon_claim_done(struct cd *cd);
