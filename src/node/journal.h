/* SPDX-License-Identifier: Apache-2.0 */
/* journal: keeps the table of prepared claims in memory and in checkpoint.json.
 *
 * The file is authoritative, because two plugin processes share it during an update. The holder of the node
 * lock calls journal_sync() first, which reads the file again if another process has written it. A write
 * replaces the file durably. If it fails (for example because the disk is full), the table returns to the
 * content of the file.
 *
 * A missing or invalid file is no information about claims. In particular, it does not mean that there are
 * none: the table keeps its content (empty at the start), and each sync reports the file again until a write
 * has succeeded. The caller adds the claims that it can find by other means. */
#pragma once

#include <sys/stat.h>
#include <uv.h>

#include "base/watch_file.h"
#include "node/checkpoint.h"

struct journal {
        char *path;
        struct checkpoint table; /* as of the last sync or write */
        /* The claims of the earlier boot, if the first file that this process has read is of that boot.
         * Nothing of them exists any more. The owner empties it when it no longer needs their names. */
        struct checkpoint earlier;
        bool was_read;    /* this process has read a valid file */
        char boot_id[37]; /* the ID of this boot */
        struct stat seen; /* describes the file with the content of `table`; st_ino 0: there is none */
        bool stale;       /* the table differs from the file, or may differ */
        bool storing;     /* a write is in progress, between journal_begin() and journal_end() */
        bool touched;     /* the file changed during the write */
        struct watch_file watch;
        void (*changed)(void *u);
        void *u;
};

/* Results of journal_sync(). */
enum journal_event {
        JOURNAL_SAME,     /* no other process has written the file */
        JOURNAL_READ,     /* the file has been read, possibly again */
        JOURNAL_REBOOTED, /* the file is of another boot: the table is empty now */
        JOURNAL_MISSING,  /* the file does not exist: the table is unchanged and must be written */
        JOURNAL_CORRUPT,  /* as MISSING, but the file exists and is not a valid checkpoint. It is kept under
                             another name (*ret_aside, the caller frees it) */
};

/* Initializes the journal. `dialect` is the dialect in which the file is written; 0: the codec has no
 * dialects. */
void journal_init(struct journal *j, const struct device_codec *codec, int dialect, const char *plugin_dir,
                  const char *boot_id);
/* Updates the table from the file. Called with the node lock held. A file that is missing, corrupt or of
 * another boot is not overwritten yet: the caller's next write does that. An error means that the disk or
 * this process fails; the table is then unchanged. */
int journal_sync(struct journal *j, enum journal_event *ret, char **ret_aside, struct err *e);

/* A write has three parts. The caller holds the node lock from journal_sync() to the last of them. The middle
 * part waits for the disk, does not use the journal, and may run in any thread. During the write, only the
 * code that calls journal_begin() next may change the table; all code may read it. */
/* Returns the text to store; the caller frees it. After an error, there is no text to store, and
 * journal_end() must not be called. */
int journal_begin(struct journal *j, struct buf *ret_text, struct err *e);
/* Replaces the file durably; *ret describes the new file. */
int journal_store(const char *path, struct str text, struct stat *ret, struct err *e);
/* Ends the write. stored NULL: the write failed, and the table returns to the content of the file. */
void journal_end(struct journal *j, const struct stat *stored);

/* Calls `changed` when another process has replaced the file. */
int journal_watch(struct journal *j, uv_loop_t *loop, void (*changed)(void *u), void *u, struct err *e);
void journal_done(struct journal *j);
