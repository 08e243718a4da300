/* SPDX-License-Identifier: Apache-2.0 */
/* cd_daemon: simulates the daemons on node n0: the daemon of this driver, which shares the folder of the
 * plugin, and the daemon of the Go driver. */
#pragma once

#include <stdbool.h>

/* daemon_comes() creates the claim driver/daemon-claim of this driver's daemon, with this UID, and prepares
 * it. daemon_ends() unprepares it. */
void daemon_comes(const char *uid);
void daemon_ends(const char *uid);
/* Writes the daemon's state file in the folder of the IMEX domain, with index 3 and epoch 1. Sets *lock_fd to
 * a descriptor with the lock that a running daemon holds. */
void daemon_reports(const char *domain, const char *claim_uid, const char *boot_id, bool ready,
                    const char *status, int *lock_fd);
/* Sets the lost peers in the state files that are written from now on, as "3,7"; NULL: an old
 * daemon, which reports none. */
void daemon_loses(const char *peers);
/* Like daemon_reports(), but with an assignment, in this boot, with w.lock_fd. After daemon_writes_state()
 * the plugin has read the file; after daemon_state() it has not. daemon_dies() releases the lock. */
void daemon_writes_state(const char *uid, const char *domain, bool ready, const char *status,
                         const char *assignment);
void daemon_state(const char *uid, const char *domain, bool ready, const char *status,
                  const char *assignment);
void daemon_dies(void);
/* Prepares DAEMON_1, assigns the node to DOMAIN_A, and lets the daemon report READY. w.lock_fd holds its
 * lock. */
void daemon_ready(void);

/* go_prepared() labels the Node with DOMAIN_A and prepares GO_DAEMON. go_starts() starts the daemon with this
 * address. go_comes() does both, with GO_ADDRESS. */
void go_prepared(void);
void go_starts(const char *address);
void go_comes(void);
