/* SPDX-License-Identifier: Apache-2.0 */
/* disks: implements node/disk.h in virtual time, without a thread. Each task takes some time. When a process
 * is killed, its tasks that have not begun never run. */
#pragma once

#include <stdint.h>

#include "node/disk.h"

/* Kills the process: its remaining tasks do not run, and no callback is called. */
void disk_kill(struct disk *d);
/* Returns the number of tasks that have run on all disks. While it stays the same, CDI files do not
 * change. */
uint64_t disks_tasks(void);
