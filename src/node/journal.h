/* SPDX-License-Identifier: Apache-2.0 */
/* journal: the table of prepared claims, in memory and in checkpoint.json.
 *
 * The file is the truth, because two plugin processes share it during an update. The holder of the node lock
 * calls journal_sync() first, which reads the file again if another process has written it. A write replaces
 * the file durably. If it fails (disk full), the table returns to the content of the file.
 *
 * A missing or invalid file is no information about claims. In particular it does not mean that there are
 * none: the table keeps its content (empty at the start), and each sync reports the file again until a write
 * has succeeded. The caller adds the claims that it can find out about. */
#pragma once

#include <sys/stat.h>
#include <uv.h>

#include "base/watch_file.h"
#include "node/checkpoint.h"

struct journal {
        char *path;
        struct checkpoint table; /* as of the last sync or write */
        char boot_id[37];        /* of this boot */
        struct stat seen;        /* the file with the content of `table`; st_ino 0: none */
        bool stale;              /* the table differs from the file, or may differ */
        bool storing;            /* between journal_begin() and journal_end() */
        bool touched;            /* the file changed in the meantime */
        struct watch_file watch;
        void (*changed)(void *u);
        void *u;
};

/* Results of journal_sync(). */
enum journal_event {
        JOURNAL_SAME,     /* no other process has written */
        JOURNAL_READ,     /* read (again) */
        JOURNAL_REBOOTED, /* of another boot: the table is empty now, and none of its content exists any more
                           */
        JOURNAL_MISSING,  /* there is no file: the table is unchanged and must be written */
        JOURNAL_CORRUPT,  /* as MISSING, but the file cannot be read as a checkpoint. It is kept under another
                           * name (*ret_aside, caller frees) */
};

/* `dialect`: the dialect in which the file is written; 0: the codec has no dialects. */
void journal_init(struct journal *j, const struct device_codec *codec, int dialect, const char *plugin_dir,
                  const char *boot_id);
/* With the node lock held. Does not yet overwrite a file that is missing, corrupt or of another boot: the
 * caller's next write does. An error means that the disk or this process fails; the table is then
 * unchanged. */
int journal_sync(struct journal *j, enum journal_event *ret, char **ret_aside, struct err *e);

/* A write has three parts, with the node lock held from journal_sync() to the last of them. The middle part
 * waits for the disk, does not use the journal and may run in any thread. In the meantime, only the code that
 * writes the table next may change it; all code may read it. */
/* Returns the text to store; the caller frees it. After an error there is nothing to store or to end. */
int journal_begin(struct journal *j, struct buf *ret_text, struct err *e);
/* Replaces the file durably; *ret describes the new file. */
int journal_store(const char *path, struct str text, struct stat *ret, struct err *e);
/* stored NULL: the write failed, and the table returns to the content of the file. */
void journal_end(struct journal *j, const struct stat *stored);

/* Calls back when another process has replaced the file. */
int journal_watch(struct journal *j, uv_loop_t *loop, void (*changed)(void *u), void *u, struct err *e);
void journal_done(struct journal *j);
