/* SPDX-License-Identifier: Apache-2.0 */
#include "node/check_list.h"

#include <stdarg.h>
#include <string.h>

#include "api/reasons.h"
#include "base/flags.h"
#include "base/json.h"

enum { TEXT_MAX = 16384, JSON_VERSION = 1 };

static const char *const state_names[] = {
        [CHECK_OK] = "ok", [CHECK_PROBLEM] = "problem", [CHECK_SKIPPED] = "skipped"
};

void check_list_init(struct check_list *l) {
        *l = (struct check_list){ .arena = arena_new(4096) };
}

void check_list_done(struct check_list *l) {
        arena_free(l->arena);
        *l = (struct check_list){ 0 };
}

/* Takes `text`. Messages of libraries and programs may have several lines. */
static void add_item(struct check_list *l, const char *name, enum check_state state, const char *remedy,
                     struct buf *text) {
        char *line = arena_strndup(l->arena, buf_str(text), text->n);
        buf_done(text);
        for (char *c = line; *c; c++)
                if ((unsigned char)*c < ' ')
                        *c = ' ';
        ARENA_GROW(l->arena, l->items, l->n, l->cap);
        l->items[l->n++] = (struct check_item){
                .name = name, .state = state, .text = line, .remedy = arena_strdup_or_null(l->arena, remedy)
        };
}

/* Formats a text, as the last arguments of the calling function. */
#define FORMATTED(text)                                                                                      \
        struct buf text = BUF_INIT(TEXT_MAX);                                                                \
        va_list ap;                                                                                          \
        va_start(ap, fmt);                                                                                   \
        buf_vaddf(&text, fmt, ap);                                                                           \
        va_end(ap)

void check_list_ok(struct check_list *l, const char *name, const char *fmt, ...) {
        FORMATTED(text);
        add_item(l, name, CHECK_OK, NULL, &text);
}

void check_list_skipped(struct check_list *l, const char *name, const char *fmt, ...) {
        FORMATTED(text);
        add_item(l, name, CHECK_SKIPPED, NULL, &text);
}

void check_list_problem(struct check_list *l, const char *name, const char *remedy, const char *fmt, ...) {
        FORMATTED(text);
        add_item(l, name, CHECK_PROBLEM, remedy, &text);
}

void check_list_reason(struct check_list *l, const char *name, const char *reason, const char *text) {
        const struct reason *r = reason_find(REASON_OF_NODE, reason);
        /* The remedies are Markdown. */
        _cleanup_(freep) char *remedy = xstrdup(r ? r->remedy : "");
        char *to = remedy;
        for (const char *c = remedy; *c; c++)
                if (*c != '`')
                        *to++ = *c;
        *to = '\0';
        check_list_problem(l, name, remedy, "%s", text);
}

int check_list_status(const struct check_list *l) {
        for (size_t i = 0; i < l->n; i++)
                if (l->items[i].state == CHECK_PROBLEM)
                        return 1;
        return 0;
}

void check_list_text(const struct check_list *l, struct buf *out) {
        for (size_t i = 0; i < l->n; i++) {
                const struct check_item *it = &l->items[i];
                bool sentence = str_ends(it->text, ".") || str_ends(it->text, "?");
                buf_addf(out, "%-7s  %-18s  %s", state_names[it->state], it->name, it->text);
                if (it->remedy && *it->remedy)
                        buf_addf(out, "%s Fix: %s", sentence ? "" : ".", it->remedy);
                buf_addc(out, '\n');
        }
}

void check_list_json(const struct check_list *l, const char *program, const char *node, struct buf *out) {
        struct jw w = JW(out);
        int64_t problems = 0;
        for (size_t i = 0; i < l->n; i++)
                problems += l->items[i].state == CHECK_PROBLEM;
        jw_obj(&w, NULL);
        jw_int(&w, "version", JSON_VERSION);
        jw_str(&w, "program", program);
        jw_str(&w, "programVersion", program_version);
        jw_str(&w, "node", node);
        jw_int(&w, "problems", problems);
        jw_arr(&w, "items");
        for (size_t i = 0; i < l->n; i++) {
                const struct check_item *it = &l->items[i];
                jw_obj(&w, NULL);
                jw_str(&w, "name", it->name);
                jw_str(&w, "state", state_names[it->state]);
                jw_str(&w, "text", it->text);
                if (it->state == CHECK_PROBLEM)
                        jw_str(&w, "remedy", str_or(it->remedy, ""));
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        buf_addc(out, '\n');
}
