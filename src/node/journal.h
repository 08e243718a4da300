/* SPDX-License-Identifier: Apache-2.0 */
/* journal: the table of prepared claims, in memory and in checkpoint.json.
 *
 * The file is the truth, because two plugin processes share it during an update: whoever holds the node lock
 * calls journal_sync() first, which reads the file again if somebody else wrote it. A write replaces the file
 * durably; when it fails (disk full), the table goes back to what the file holds.
 *
 * A file that is missing, or cannot be a checkpoint, says nothing about claims, least of all that there are
 * none: the table stays what it was (empty at the start), and each sync says so again until a write has
 * succeeded. The caller adds what he can find out. */
#pragma once

#include <sys/stat.h>
#include <uv.h>

#include "base/watch_file.h"
#include "node/checkpoint.h"

struct journal {
        char *path;
        struct checkpoint table; /* valid since the last sync or write */
        char boot_id[37];        /* of this boot */
        struct stat seen;        /* the file that `table` stands for; st_ino 0: none */
        bool stale;              /* the table is not what the file holds, or nobody can tell */
        bool storing;            /* between journal_begin() and journal_end() */
        bool touched;            /* the file changed meanwhile */
        struct watch_file watch;
        void (*changed)(void *u);
        void *u;
};

/* What journal_sync found. */
enum journal_event {
        JOURNAL_SAME,     /* nobody else wrote */
        JOURNAL_READ,     /* read (again) */
        JOURNAL_REBOOTED, /* of another boot: the table is empty now, and nothing that it held exists any more
                           */
        JOURNAL_MISSING,  /* there is none: the table is as it was, and must be written */
        JOURNAL_CORRUPT,  /* the same of one that cannot be read as a checkpoint, whatever it is; kept under a
                           * name of its own (*ret_aside,  caller frees) */
};

/* `dialect`: in which the file is written; 0: the codec has no dialects. */
void journal_init(struct journal *j, const struct device_codec *codec, int dialect, const char *plugin_dir,
                  const char *boot_id);
/* With the node lock held. A file of another boot, of none or a corrupt one is not written over yet: that is
 * the caller's next write. An error means that the disk or this process fails, and the
 * table as before. */
int journal_sync(struct journal *j, enum journal_event *ret, char **ret_aside, struct err *e);

/* A write has three parts, with the node lock held from journal_sync() to the last of them. The middle one
 * waits for the disk, knows nothing of the journal and may run in any thread; meanwhile the table may be
 * looked at, and changed only by who writes it next. */
/* The text to store, the caller's to release. After an error there is nothing to store nor to end. */
int journal_begin(struct journal *j, struct buf *ret_text, struct err *e);
/* Replaces the file, durably; *ret: the new one. */
int journal_store(const char *path, struct str text, struct stat *ret, struct err *e);
/* stored NULL: it failed, and the table goes back to what the file holds. */
void journal_end(struct journal *j, const struct stat *stored);

/* Calls back when somebody else has replaced the file. */
int journal_watch(struct journal *j, uv_loop_t *loop, void (*changed)(void *u), void *u, struct err *e);
void journal_done(struct journal *j);
