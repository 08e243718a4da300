/* SPDX-License-Identifier: Apache-2.0 */
/* folders: the folders of domains. That of one that the Go driver formed is a thing of this driver while its
 * daemon is prepared here, by the UID of the ComputeDomain; our daemon removes those that it leaves. For
 * node_driver; what is in a folder is in readiness.h. */
#pragma once

#include "cd_plugin/state.h"

/* The domains whose daemon of the Go driver an entry is: by its devices when they are recorded, else by what
 * its status asks for. Anything that makes no sense is no domain. */
void folders_each(const struct checkpoint_claim *entry, node_thing_fn *fn, void *fn_u);
void folders_undo_failed(const char *domain, const struct err *e);
/* The claim of a daemon that holds its state file's lock stays whatever the API says. */
bool folders_may_go(void *u, const struct checkpoint_claim *entry);
/* The folder that holds them all, and that our daemon has; caller frees. */
char *folders_shared(const char *plugin_dir);
/* Does a living process of the node's daemon, which has one claim for all of the folders, hold one of their
 * state files; or can nobody know? */
bool folders_daemon_lives(const struct cd *cd, const char *claim_uid);
/* Removes those that no entry stands for and in which no daemon lives. */
void folders_sweep(void *u, const struct checkpoint *table);
