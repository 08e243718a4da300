/* SPDX-License-Identifier: Apache-2.0 */
/* effects: the changes on the node when a claim is prepared or unprepared: its CDI file, the driver's
 * resources, and its entry in the table. Disk tasks change the files; the table changes before or after them.
 * Nothing here writes the checkpoint. */
#pragma once

#include "node/ops.h"

/* A resource of an entry that has been removed. */
struct effects_unused {
        STAILQ_ENTRY(effects_unused) link;
        char *resource;
        struct disk_task *task; /* undoes it; NULL: another claim has it */
};
STAILQ_HEAD(effects_unused_list, effects_unused);

/* Adds the side effects to the disk's job as op->task, and sets the entry to PrepareCompleted (not written
 * yet). effects_revoke() undoes this after failed side effects. */
int effects_prepare(struct op *op, struct disk *disk, struct err *e);
void effects_revoke(struct op *op);

/* Removes the CDI file, then changes the table (true: it has changed). When the change is recorded, undoes
 * the resources that no other entry has. */
struct disk_task *effects_remove(struct claims *c, struct disk *disk, const char *uid);
bool effects_unprepare(struct claims *c, const char *uid, struct effects_unused_list *unused);
void effects_undo(struct claims *c, struct disk *disk, struct effects_unused_list *unused);
void effects_undone(struct claims *c, struct effects_unused_list *unused);
void effects_forget(struct effects_unused_list *unused);
/* True if an entry has this resource. */
bool effects_in_use(const struct claims *c, const char *resource);
