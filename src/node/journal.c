/* SPDX-License-Identifier: Apache-2.0 */
#include "node/journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "base/file.h"
#include "node/checkpoint_layouts.h"

static int read_stat(const char *path, struct stat *ret, struct err *e) {
        *ret = (struct stat){ 0 };
        if (stat(path, ret) < 0 && errno != ENOENT)
                return err_errno(e, errno, "stat '%s'", path);
        return 0;
}

static void empty_table(struct journal *j) {
        checkpoint_done(&j->table);
        memcpy(j->table.boot_id, j->boot_id, sizeof j->boot_id);
}

void journal_init(struct journal *j, const struct device_codec *codec, int dialect, const char *plugin_dir,
                  const char *boot_id) {
        *j = (struct journal){ .path = file_join(plugin_dir, "checkpoint.json"),
                               .stale = true,
                               .table = { .codec = codec, .dialect = dialect } };
        snprintf(j->boot_id, sizeof j->boot_id, "%s", boot_id);
        empty_table(j);
}

/* Adds a second name by a hard link: until a complete table has replaced the file, the file shows that there
 * is something to rebuild, whenever the process is killed and however often a write fails. A folder can have
 * only one name: it then becomes a missing file. */
static int set_aside(const struct journal *j, const struct stat *st, char **ret_aside, struct err *e) {
        /* From the file's time, so that each try finds the same name. */
        _cleanup_(freep) char *aside = xasprintf("%s.corrupt-%lld.%09ld", j->path,
                                                 (long long)st->st_mtim.tv_sec, (long)st->st_mtim.tv_nsec);
        int r = link(j->path, aside);
        if (r < 0 && errno == EEXIST)
                r = 0;
        if (r < 0 && errno == EPERM)
                r = rename(j->path, aside);
        if (r < 0)
                return err_errno(e, errno, "keep '%s' as '%s'", j->path, aside);
        *ret_aside = TAKE(aside);
        return 0;
}

/* ERR_INVALID: this cannot be a checkpoint. */
static int read_table(const struct journal *j, const struct stat *st, struct checkpoint *ret, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        if (!S_ISREG(st->st_mode))
                return err_set(e, ERR_INVALID, 0, "checkpoint '%s' is not a file", j->path);
        if (file_read(j->path, CHECKPOINT_MAX_BYTES, &text, &n, e) < 0)
                return err_wrap(e, "checkpoint");
        if (checkpoint_decode((struct str){ text, n }, ret, e) < 0)
                return err_wrap(e, "checkpoint '%s'", j->path);
        return 0;
}

int journal_sync(struct journal *j, enum journal_event *ret, char **ret_aside, struct err *e) {
        struct stat now;
        struct checkpoint table = { .codec = j->table.codec, .dialect = j->table.dialect };
        struct err why;
        *ret = JOURNAL_SAME;
        if (read_stat(j->path, &now, e) < 0)
                return -1;
        if (!j->stale && file_same(&now, &j->seen))
                return 0;
        if (!now.st_ino) {
                j->seen = now;
                j->stale = true;
                *ret = JOURNAL_MISSING;
                return 0;
        }
        if (read_table(j, &now, &table, &why) < 0) {
                if (why.kind != ERR_INVALID) {
                        *e = why;
                        return -1;
                }
                if (set_aside(j, &now, ret_aside, e) < 0)
                        return -1;
                j->seen = now;
                j->stale = true;
                *ret = JOURNAL_CORRUPT;
                return 0;
        }
        bool first = !j->was_read;
        j->seen = now;
        j->stale = false;
        j->was_read = true;
        if (table.boot_id[0] && !streq(table.boot_id, j->boot_id)) {
                if (first)
                        j->earlier = table;
                else
                        checkpoint_done(&table);
                empty_table(j);
                *ret = JOURNAL_REBOOTED;
                return 0;
        }
        /* Old versions wrote no boot ID: their claims count as claims of this boot. */
        for (struct checkpoint_claim *claim = table.claims; claim; claim = claim->hh.next) {
                const struct checkpoint_claim *old = checkpoint_find(&j->table, claim->uid);
                claim->answered_ms = old ? old->answered_ms : 0;
        }
        checkpoint_done(&j->table);
        j->table = table;
        memcpy(j->table.boot_id, j->boot_id, sizeof j->boot_id);
        *ret = JOURNAL_READ;
        return 0;
}

static int no_record(struct err *e) {
        return err_wrap(e, "record the claims of this node");
}

int journal_begin(struct journal *j, struct buf *ret_text, struct err *e) {
        BUG_ON(j->storing);
        j->storing = true;
        *ret_text = BUF_INIT(CHECKPOINT_MAX_BYTES);
        checkpoint_encode(&j->table, ret_text);
        if (ret_text->failed) {
                buf_done(ret_text);
                journal_end(j, NULL);
                err_set(e, ERR_INTERNAL, 0, "it would be larger than %d bytes", CHECKPOINT_MAX_BYTES);
                return no_record(e);
        }
        return 0;
}

int journal_store(const char *path, struct str text, struct stat *ret, struct err *e) {
        return file_replace_known(path, text.p, text.n, ret, e) < 0 ? no_record(e) : 0;
}

static void journal_on_change(struct watch_file *w) {
        struct journal *j = w->u;
        struct stat now;
        struct err e;
        j->touched = j->storing; /* by this or another process: journal_end() checks */
        if (!j->storing && (read_stat(j->path, &now, &e) < 0 || !file_same(&now, &j->seen)))
                j->changed(j->u);
}

void journal_end(struct journal *j, const struct stat *stored) {
        enum journal_event event;
        struct err ignored;
        _cleanup_(freep) char *aside = NULL;
        j->storing = false;
        j->stale = !stored;
        if (stored)
                j->seen = *stored;
        else
                (void)journal_sync(j, &event, &aside, &ignored); /* otherwise the next call does it */
        if (j->touched)
                journal_on_change(&j->watch);
}

int journal_watch(struct journal *j, uv_loop_t *loop, void (*changed)(void *u), void *u, struct err *e) {
        j->changed = changed;
        j->u = u;
        j->watch.u = j;
        return watch_file_start(&j->watch, loop, j->path, journal_on_change, e);
}

void journal_done(struct journal *j) {
        watch_file_stop(&j->watch);
        checkpoint_done(&j->table);
        checkpoint_done(&j->earlier);
        free(j->path);
        j->path = NULL;
}
