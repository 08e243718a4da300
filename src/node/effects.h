/* SPDX-License-Identifier: Apache-2.0 */
/* effects: what preparing and unpreparing a claim changes on the node: its CDI file, the driver's things, and
 * its entry in the table. The files are changed by tasks for the disk, the table before or after them;
 * nothing here writes the checkpoint. */
#pragma once

#include "node/ops.h"

/* A thing that an entry which is gone had. */
struct effects_leaving {
        STAILQ_ENTRY(effects_leaving) link;
        char *thing;
        struct disk_task *task; /* undoes it; NULL: another claim has it */
};
STAILQ_HEAD(effects_leavings, effects_leaving);

/* Hands the side effects to the disk, as op->task, and turns the entry into PrepareCompleted (not written
 * yet); takes that back when the side effects have failed. */
int effects_prepare(struct op *op, struct disk *disk, struct err *e);
void effects_revoke(struct op *op);

/* Removes the CDI file, then changes the table (true: it is another now), and when that is recorded undoes
 * the things that no other entry has. */
struct disk_task *effects_remove(struct claims *c, struct disk *disk, const char *uid);
bool effects_unprepare(struct claims *c, const char *uid, struct effects_leavings *leavings);
void effects_undo(struct claims *c, struct disk *disk, struct effects_leavings *leavings);
void effects_undone(struct claims *c, struct effects_leavings *leavings);
void effects_forget(struct effects_leavings *leavings);
/* An entry has this thing. */
bool effects_in_use(const struct claims *c, const char *thing);
