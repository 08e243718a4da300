/* SPDX-License-Identifier: Apache-2.0 */
/* folders: manages the folders of the ComputeDomains that the Go driver formed. Such a folder is a resource
 * of this driver (node/driver.h) while the Go driver's daemon is prepared here; its ID is the UID of the
 * ComputeDomain. Folders of other domains are removed by our daemon when it leaves the domain. readiness.h
 * describes the content of a folder. For struct node_driver. */
#pragma once

#include "cd_plugin/state.h"

/* Calls fn for each domain for which the entry has a daemon of the Go driver. Uses the devices of the entry
 * if they are recorded, otherwise the configuration in its status. Ignores invalid data. */
void folders_each(const struct checkpoint_claim *entry, node_resource_fn *fn, void *fn_u);
void folders_undo_failed(const char *domain, const struct err *e);
/* Returns whether the claim may be unprepared because the API no longer has it. False if it is the claim of a
 * daemon that is alive, whatever the API reports. */
bool folders_may_collect(void *u, const struct checkpoint_claim *entry);
/* Returns the path of the parent of all these folders, which is mounted into our daemon; the caller frees
 * it. */
char *folders_shared(const char *plugin_dir);
/* Returns whether our daemon with this claim is alive: a process holds the daemon's lock (imex/imex_lock.h),
 * or the lock of one of the state files. Also returns true if that cannot be determined. */
bool folders_daemon_lives(const struct cd *cd, const char *claim_uid);
/* Removes the folders that belong to no entry of the table and have no living daemon. */
void folders_remove_unused(void *u, const struct checkpoint *table);
