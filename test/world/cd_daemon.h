/* SPDX-License-Identifier: Apache-2.0 */
/* cd_daemon: the IMEX daemons on node n0: ours, which shares the folder of the plugin, and the Go driver's.
 */
#pragma once

#include <stdbool.h>

/* Our daemon's claim driver/daemon-claim of this UID, and its Prepare and Unprepare. */
void daemon_comes(const char *uid);
void daemon_goes(const char *uid);
/* It writes its state file in the domain's folder, with index 3 and epoch 1; *lock_fd keeps it "alive". */
void daemon_says(const char *domain, const char *claim_uid, const char *boot_id, bool ready,
                 const char *status, int *lock_fd);
/* The same with an assignment, in this boot, and the plugin looks, or not yet; w.lock_fd keeps it alive.
 * daemon_dies(): it does not live any more. */
void daemon_writes_state(const char *uid, const char *domain, bool ready, const char *status,
                         const char *assignment);
void daemon_state(const char *uid, const char *domain, bool ready, const char *status,
                  const char *assignment);
void daemon_dies(void);
/* Prepares DAEMON_1, assigns the node to DOMAIN_A, and lets the daemon report READY; w.lock_fd keeps it
 * alive. */
void daemon_ready(void);

/* Prepares GO_DAEMON; the daemon starts with this address; both, with GO_ADDRESS. */
void go_prepared(void);
void go_starts(const char *address);
void go_comes(void);
