/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/unprepared_claims.h"

#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "base/file.h"

#define FILE_NAME "unprepared-daemon-claims"

enum { LINE_BYTES = 37, FILE_MAX = (UNPREPARED_CLAIMS_MAX + 1) * LINE_BYTES };

struct claims_list {
        char uids[UNPREPARED_CLAIMS_MAX][37]; /* the newest is last */
        size_t n;
};

/* If the list is full, drops the oldest. */
static void append(struct claims_list *l, const char *uid) {
        if (l->n == UNPREPARED_CLAIMS_MAX)
                memmove(l->uids[0], l->uids[1], --l->n * sizeof l->uids[0]);
        snprintf(l->uids[l->n++], sizeof l->uids[0], "%s", uid);
}

/* An invalid file counts as empty: a power loss may have damaged it, and then it is of another boot. */
static int read_list(const char *plugin_dir, const char *boot_id, struct claims_list *ret, struct err *e) {
        _cleanup_(freep) char *path = file_join(plugin_dir, FILE_NAME);
        _cleanup_(freep) char *text = NULL;
        struct str rest, line;
        size_t n = 0;
        ret->n = 0;
        if (file_read(path, FILE_MAX, &text, &n, e) < 0)
                return e->kind == ERR_NOT_FOUND || e->kind == ERR_INVALID
                               ? 0
                               : err_wrap(e, "unprepared daemon claims");
        rest = (struct str){ text, n };
        if (!str_next_line(&rest, &line) || !str_eq(line, str_from(boot_id)))
                return 0;
        while (str_next_line(&rest, &line)) {
                char uid[37];
                snprintf(uid, sizeof uid, "%.*s", (int)line.n, line.p);
                if (str_is_uuid(uid))
                        append(ret, uid);
        }
        return 0;
}

static bool unprepared_claims_lists(const struct claims_list *l, const char *uid) {
        for (size_t i = 0; i < l->n; i++)
                if (streq(l->uids[i], uid))
                        return true;
        return false;
}

static void unprepared_claims_drop(struct claims_list *l, const char *uid) {
        size_t kept = 0;
        for (size_t i = 0; i < l->n; i++)
                if (!streq(l->uids[i], uid))
                        memcpy(l->uids[kept++], l->uids[i], sizeof l->uids[0]);
        l->n = kept;
}

int unprepared_claims_add(const char *plugin_dir, const char *boot_id, const char *claim_uid, struct err *e) {
        _cleanup_(freep) char *path = file_join(plugin_dir, FILE_NAME);
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX + 1);
        struct claims_list l;
        BUG_ON(!str_is_uuid(claim_uid) || !str_is_uuid(boot_id));
        if (read_list(plugin_dir, boot_id, &l, e) < 0)
                return -1;
        if (l.n && streq(l.uids[l.n - 1], claim_uid)) /* an earlier Unprepare was interrupted */
                return 0;
        unprepared_claims_drop(&l, claim_uid);
        append(&l, claim_uid);
        buf_addf(&text, "%s\n", boot_id);
        for (size_t i = 0; i < l.n; i++)
                buf_addf(&text, "%s\n", l.uids[i]);
        return file_replace_volatile(path, text.p, text.n, 0600, e);
}

int unprepared_claims_has(const char *plugin_dir, const char *boot_id, const char *claim_uid, bool *ret,
                          struct err *e) {
        struct claims_list l;
        if (read_list(plugin_dir, boot_id, &l, e) < 0)
                return -1;
        *ret = unprepared_claims_lists(&l, claim_uid);
        return 0;
}

int unprepared_claims_newest(const char *plugin_dir, const char *boot_id, const struct checkpoint *table,
                             char ret[static 37], struct err *e) {
        struct claims_list l;
        *ret = '\0';
        if (read_list(plugin_dir, boot_id, &l, e) < 0)
                return -1;
        for (size_t i = l.n; i-- > 0 && !*ret;)
                if (!checkpoint_find(table, l.uids[i]))
                        memcpy(ret, l.uids[i], sizeof l.uids[i]);
        return 0;
}
