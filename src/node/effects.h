/* SPDX-License-Identifier: Apache-2.0 */
/* effects: changes the node when a claim is prepared or unprepared: its CDI file, the driver's resources, and
 * its entry in the table. Disk tasks change the files; the table changes before or after them. This module
 * does not write the checkpoint. */
#pragma once

#include "node/ops.h"

/* A resource of an entry that has been removed. */
struct effects_unused {
        STAILQ_ENTRY(effects_unused) link;
        char *resource;
        struct disk_task *task; /* undoes the resource; NULL: another claim has it */
};
STAILQ_HEAD(effects_unused_list, effects_unused);

/* Adds the side effects to the disk's job as op->task, and sets the entry to PrepareCompleted (not written
 * yet). If the side effects fail, the caller calls effects_revoke() to restore the entry. */
int effects_prepare(struct op *op, struct disk *disk, struct err *e);
void effects_revoke(struct op *op);

/* The steps of an Unprepare. effects_remove() adds the removal of the CDI file to the disk's job. Then
 * effects_unprepare() changes the table; true: it has changed. When the change is recorded, effects_undo()
 * undoes the resources that no other entry has. effects_undone() reports failures and frees the list;
 * effects_forget() only frees the list. */
struct disk_task *effects_remove(struct claims *c, struct disk *disk, const char *uid);
bool effects_unprepare(struct claims *c, const char *uid, struct effects_unused_list *unused);
void effects_undo(struct claims *c, struct disk *disk, struct effects_unused_list *unused);
void effects_undone(struct claims *c, struct effects_unused_list *unused);
void effects_forget(struct effects_unused_list *unused);
/* Returns true if an entry has this resource. */
bool effects_in_use(const struct claims *c, const char *resource);
