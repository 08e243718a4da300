/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *message_of(struct arena *a, const char *fmt, ...) {
        static const char end[] = "...";
        char text[MESSAGE_MAX + 1] = "";
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        if (n > MESSAGE_MAX) {
                size_t kept = str_utf8_cut((struct str){ text, MESSAGE_MAX }, sizeof text - sizeof end);
                memcpy(text + kept, end, sizeof end);
        }
        return arena_strdup(a, text);
}

void message_add(struct message_list *l, const char *fmt, ...) {
        va_list ap;
        if (!l->n)
                l->text = BUF_INIT(MESSAGE_MAX);
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
