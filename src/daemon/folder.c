/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/folder.h"

#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

static int read_word(const struct folder *f, const char *name, char ret[static FOLDER_WORD_MAX],
                     struct err *e) {
        _cleanup_(freep) char *path = file_join(f->dir, name);
        _cleanup_(freep) char *text = NULL;
        size_t n;

        if (file_read(path, FOLDER_WORD_MAX - 1, &text, &n, e) < 0)
                return -1;
        struct str word = str_trim((struct str){ text, n });
        snprintf(ret, FOLDER_WORD_MAX, "%.*s", (int)word.n, word.p);
        return 0;
}

int folder_fabric(const struct folder *f, char ret[static FOLDER_WORD_MAX], struct err *e) {
        char word[FOLDER_WORD_MAX];

        if (read_word(f, FOLDER_FABRIC_FILE, word, e) < 0)
                return -1;
        if (*word && !str_is_dns_subdomain(word))
                return err_set(e, ERR_INVALID, 0, "'%s/%s' does not contain a clique ID", f->dir,
                               FOLDER_FABRIC_FILE);
        snprintf(ret, FOLDER_WORD_MAX, "%s", word);
        return 0;
}

bool folder_outdated(const struct folder *f, const char *edits) {
        char now[FOLDER_WORD_MAX];
        struct err e;

        return *edits && read_word(f, FOLDER_EDITS_FILE, now, &e) == 0 && *now && !streq(now, edits);
}

static void folder_on_file(struct watch_file *w) {
        const struct folder *f = w->u;

        f->changed(f->u);
}

int folder_start(struct folder *f, uv_loop_t *loop, const char *dir, void (*changed)(void *u), void *u,
                 struct err *e) {
        _cleanup_(freep) char *fabric = file_join(dir, FOLDER_FABRIC_FILE);
        _cleanup_(freep) char *edits = file_join(dir, FOLDER_EDITS_FILE);

        *f = (struct folder){ .dir = dir, .changed = changed, .u = u };
        f->fabric.u = f->edits.u = f;
        if (watch_file_start(&f->fabric, loop, fabric, folder_on_file, e) < 0)
                return -1;
        if (watch_file_start(&f->edits, loop, edits, folder_on_file, e) < 0) {
                watch_file_stop(&f->fabric);
                return -1;
        }
        return 0;
}

void folder_stop(struct folder *f) {
        watch_file_stop(&f->fabric);
        watch_file_stop(&f->edits);
}
