/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/health_file.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"

enum { TEXT_MAX = 1024 * 1024 };

static int health_file_load(struct health_file *f, struct health *h, struct err *e) {
        size_t n;
        if (file_read(f->path, TEXT_MAX, &f->text, &n, e) < 0)
                return e->kind == ERR_NOT_FOUND ? 0 : -1;
        return health_restore(h, (struct str){ f->text, n }, f->boot_id, e);
}

void health_file_init(struct health_file *f, const char *folder, const char *boot_id, struct health *h) {
        struct err e;
        *f = (struct health_file){ .path = file_join(folder, "health.json"), .boot_id = xstrdup(boot_id) };
        if (health_file_load(f, h, &e) < 0)
                log_error("earlier errors of GPUs are not known: check the kernel log for XIDs",
                          kv_str("file", f->path), kv_err(&e));
}

void health_file_keep(struct health_file *f, const struct health *h) {
        struct buf b = BUF_INIT(TEXT_MAX);
        struct err e;
        health_render(h, f->boot_id, &b);
        if (streq(f->text, buf_str(&b))) {
                buf_done(&b);
                return;
        }
        if (file_replace_volatile(f->path, b.p, b.n, 0600, &e) == 0) {
                free(f->text);
                f->text = buf_steal(&b);
                free(TAKE(f->error));
                return;
        }
        if (!streq(f->error, e.msg)) {
                log_error("errors of GPUs will be lost at a restart of this plugin", kv_err(&e));
                free(f->error);
                f->error = xstrdup(e.msg);
        }
        buf_done(&b);
}

void health_file_done(struct health_file *f) {
        free(f->path);
        free(f->boot_id);
        free(f->text);
        free(f->error);
}
