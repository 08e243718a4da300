/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/folder.h"

#include <stdio.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { AGAIN_MS = 30000 };

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

static void folder_watch(struct folder *f);

static void folder_on_file(struct watch_file *w) {
        struct folder *f = w->u;

        folder_watch(f);
        f->changed(f->u);
}

static void folder_on_again(void *u) {
        struct folder *f = u;

        folder_watch(f);
        f->changed(f->u);
}

static int folder_watch_file(struct folder *f, struct watch_file *w, const char *name, struct err *e) {
        _cleanup_(freep) char *path = file_join(f->dir, name);

        w->u = f;
        return w->active ? 0 : watch_file_start(w, f->loop, path, folder_on_file, e);
}

static void folder_watch(struct folder *f) {
        struct err e;

        if (folder_watch_file(f, &f->fabric, FOLDER_FABRIC_FILE, &e) == 0 &&
            folder_watch_file(f, &f->edits, FOLDER_EDITS_FILE, &e) == 0) {
                f->unwatched = false;
                return;
        }
        if (!f->unwatched)
                log_warn("cannot watch the files of the kubelet plugin: the daemon reads them every 30 s",
                         kv_err(&e));
        f->unwatched = true;
        loop_timer_start(&f->again, AGAIN_MS);
}

void folder_start(struct folder *f, uv_loop_t *loop, const char *dir, void (*changed)(void *u), void *u) {
        *f = (struct folder){ .dir = dir, .changed = changed, .u = u, .loop = loop };
        loop_timer_init(&f->again, loop, folder_on_again, f);
        folder_watch(f);
}

void folder_stop(struct folder *f) {
        loop_timer_done(&f->again);
        watch_file_stop(&f->fabric);
        watch_file_stop(&f->edits);
}
