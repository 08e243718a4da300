/* SPDX-License-Identifier: Apache-2.0 */
/* cd_daemon: the daemons on node n0: this driver's, which shares the folder of the plugin, and the Go
 * driver's. */
#pragma once

#include <stdbool.h>

/* Creates the claim driver/daemon-claim of this driver's daemon with this UID and prepares it, or unprepares
 * it. */
void daemon_comes(const char *uid);
void daemon_goes(const char *uid);
/* The daemon writes its state file in the folder of the IMEX domain, with index 3 and epoch 1. *lock_fd holds
 * the lock of a living daemon. */
void daemon_says(const char *domain, const char *claim_uid, const char *boot_id, bool ready,
                 const char *status, int *lock_fd);
/* The same with an assignment, in this boot, with w.lock_fd. After daemon_writes_state() the plugin has read
 * the file, after daemon_state() it has not. daemon_dies() releases the lock. */
void daemon_writes_state(const char *uid, const char *domain, bool ready, const char *status,
                         const char *assignment);
void daemon_state(const char *uid, const char *domain, bool ready, const char *status,
                  const char *assignment);
void daemon_dies(void);
/* Prepares DAEMON_1, assigns the node to DOMAIN_A, and lets the daemon report READY. w.lock_fd holds its
 * lock. */
void daemon_ready(void);

/* go_prepared() prepares GO_DAEMON. go_starts() starts the daemon with this address. go_comes() does both,
 * with GO_ADDRESS. */
void go_prepared(void);
void go_starts(const char *address);
void go_comes(void);
