/* SPDX-License-Identifier: Apache-2.0 */
/* disks: node/disk.h in virtual time, instead of a thread. Each task takes some time. When a process is
 * killed, its tasks that have not begun never run. */
#pragma once

#include <stdint.h>

#include "node/disk.h"

/* The process is killed: its remaining tasks do not run, and no callback is called. */
void disk_kill(struct disk *d);
/* The number of tasks that have run on all disks. CDI files do not change while it does not grow. */
uint64_t disks_tasks(void);
