/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/message.h"

#include <stdarg.h>

#include "base/str.h"

const char *message_of(struct arena *a, const char *fmt, ...) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        return arena_strdup(a, buf_str(&b));
}

void message_add(struct message_list *l, const char *fmt, ...) {
        va_list ap;
        if (!l->n)
                l->text = BUF_INIT(4096);
        if (l->n++ >= MESSAGE_NAMES_MAX)
                return;
        if (l->n > 1)
                buf_addf(&l->text, "%s", str_or(l->between, ", "));
        va_start(ap, fmt);
        buf_vaddf(&l->text, fmt, ap);
        va_end(ap);
}

const char *message_end(struct message_list *l, struct arena *a) {
        if (l->n > MESSAGE_NAMES_MAX)
                buf_addf(&l->text, " and %zu more", l->n - MESSAGE_NAMES_MAX);
        const char *text = arena_strdup(a, l->n ? buf_str(&l->text) : "");
        buf_done(&l->text);
        return text;
}
