/* SPDX-License-Identifier: Apache-2.0 */
/* disks: node/disk.h in virtual time. Takes the place of the thread: each task takes its time, and whoever is
 * killed leaves those undone that have not begun. */
#pragma once

#include <stdint.h>

#include "node/disk.h"

/* Its process ends without a word: what was not done is not done any more, and nobody is told. */
void disk_kill(struct disk *d);
/* How many tasks have run, of all disks: CDI files are as they were while it does not grow. */
uint64_t disks_tasks(void);
