/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_token.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { TOKEN_AGE_MS = 60000, TOKEN_BYTES = 64 << 10 };

void kube_token_init(struct kube_token *t, const char *text, const char *file) {
        *t = (struct kube_token){ .text = xstrdup_or_null(text),
                                  .file = xstrdup_or_null(file),
                                  .stale = true };
}

void kube_token_done(struct kube_token *t) {
        wipe(t->text);
        free(t->file);
}

bool kube_token_is_clean(const char *s) {
        for (; *s; s++)
                if ((unsigned char)*s <= ' ' || *s == 0x7f)
                        return false;
        return true;
}

static void kube_token_read_file(struct kube_token *t, uint64_t now_ms) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        size_t n;

        t->stale = false;
        t->read_ms = now_ms;
        if (file_read(t->file, TOKEN_BYTES, &text, &n, &e) < 0) {
                log_warn("the token cannot be read, so the last one stays in use: make its file "
                         "readable again",
                         kv_err(&e));
                return;
        }
        struct str s = str_trim((struct str){ text, n });
        _cleanup_(freep) char *fresh = xstrndup(s.p, s.n);
        if (*fresh && kube_token_is_clean(fresh)) {
                free(t->text);
                t->text = TAKE(fresh);
        } else {
                log_warn("the token file contains no token, so the last one stays in use: put one line of "
                         "text there",
                         kv_str("file", t->file));
        }
}

const char *kube_token_get(struct kube_token *t, uint64_t now_ms) {
        if (t->file && (!t->text || t->stale || now_ms - t->read_ms >= TOKEN_AGE_MS))
                kube_token_read_file(t, now_ms);
        return t->text;
}
