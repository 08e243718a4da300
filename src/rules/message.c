/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A format may have cut a character. The API server would store another text than this one, so the next
 * decision would find a difference, and write it again, without end. */
static void replace_invalid(char *text) {
        struct str s = str_from(text);
        for (size_t i = 0, n; i < s.n; i += n ? n : 1) {
                n = str_utf8_char((struct str){ s.p + i, s.n - i });
                if (!n)
                        text[i] = '?';
        }
}

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
        replace_invalid(text);
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
