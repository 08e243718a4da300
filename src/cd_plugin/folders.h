/* SPDX-License-Identifier: Apache-2.0 */
/* folders: the folders of domains. The folder of a domain that the Go driver formed is a resource of this
 * driver (node/driver.h) while the Go driver's daemon is prepared here; its ID is the UID of the
 * ComputeDomain. Our daemon removes the folders of the domains that it leaves. For node_driver. readiness.h
 * describes the content of a folder. */
#pragma once

#include "cd_plugin/state.h"

/* Calls fn for each domain for which the entry has a daemon of the Go driver: by its devices if they are
 * recorded, otherwise by the configuration in its status. Invalid data is ignored. */
void folders_each(const struct checkpoint_claim *entry, node_resource_fn *fn, void *fn_u);
void folders_undo_failed(const char *domain, const struct err *e);
/* False for the claim of a daemon that holds the lock of its state file, whatever the API reports. */
bool folders_may_collect(void *u, const struct checkpoint_claim *entry);
/* The parent of all these folders, which our daemon has mounted; caller frees. */
char *folders_shared(const char *plugin_dir);
/* Does a living process of the node's daemon, which has one claim for all of the folders, hold one of their
 * state files? Also true if that cannot be determined. */
bool folders_daemon_lives(const struct cd *cd, const char *claim_uid);
/* Removes folders without an entry and without a living daemon. */
void folders_remove_unused(void *u, const struct checkpoint *table);
