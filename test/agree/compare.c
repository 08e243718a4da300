/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "pairs.h"

enum { CLOSE_S = 10, SHOWN = 120, MOST_PATH = 512 };

struct side {
        enum compare_what what;
        const char *kind;
        bool custom;
        char path[MOST_PATH];
        struct buf *out;
};

/* ---- members that the simulated server may lack ---- */

static struct rule {
        char *kind, *path;
        bool used;
} * rules;
static size_t n_rules, cap_rules;

int compare_load(const char *file, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        struct str rest, line;
        if (file_read(file, 1 << 20, &text, NULL, e) < 0)
                return -1;
        rest = str_from(text);
        while (rest.n && str_next_line(&rest, &line)) {
                struct str kind;
                line = str_trim(line);
                if (!line.n || *line.p == '#')
                        continue;
                str_next_field(&line, ' ', &kind);
                if (!line.n)
                        return err_set(e, ERR_INVALID, 0, "%s: a line without a path: %.*s", file,
                                       (int)kind.n, kind.p);
                GROW(rules, n_rules, cap_rules);
                rules[n_rules++] = (struct rule){ xstrndup(kind.p, kind.n), xstrndup(line.p, line.n), false };
        }
        return 0;
}

void compare_done(void) {
        for (size_t i = 0; i < n_rules; i++) {
                free(rules[i].kind);
                free(rules[i].path);
        }
        free(rules);
}

void compare_unused(struct buf *out) {
        for (size_t i = 0; i < n_rules; i++)
                if (!rules[i].used)
                        buf_addf(out, "%s %s\n", rules[i].kind, rules[i].path);
}

static bool path_matches(const char *pattern, const char *path) {
        struct str p = str_from(pattern), q = str_from(path), a, b;
        while (p.n && q.n) {
                str_next_field(&p, '.', &a);
                str_next_field(&q, '.', &b);
                if (!str_eq(a, STR("*")) && !str_eq(a, b))
                        return false;
        }
        return !p.n && !q.n;
}

static bool may_lack(const struct side *s) {
        /* The path within an item of a list is that of an object. */
        const char *path = s->path;
        if (s->what == COMPARE_LIST && str_starts(path, "items.") && strchr(path + 6, '.'))
                path = strchr(path + 6, '.') + 1;
        for (size_t i = 0; i < n_rules; i++)
                if (streq(rules[i].kind, s->kind) && path_matches(rules[i].path, path))
                        return rules[i].used = true;
        return false;
}

/* ---- values ---- */

static bool is_nothing(yyjson_val *v) {
        yyjson_val *key, *x;
        size_t i, max;
        if (!v || yyjson_is_null(v) || (yyjson_is_str(v) && !yyjson_get_len(v)))
                return true;
        yyjson_obj_foreach (v, i, max, key, x)
                if (!is_nothing(x))
                        return false;
        return yyjson_is_obj(v) || (yyjson_is_arr(v) && !yyjson_arr_size(v));
}

static void show(struct buf *out, yyjson_val *v) {
        size_t n = 0;
        _cleanup_(freep) char *json = v ? yyjson_val_write(v, 0, &n) : NULL;
        if (!v)
                buf_adds(out, "nothing");
        else
                buf_addf(out, "%.*s%s", n > SHOWN ? SHOWN : (int)n, json, n > SHOWN ? "..." : "");
}

/* Member `key` of some metadata. */
static bool is_meta(const struct side *s, const char *key) {
        size_t path = strlen(s->path), folder = strlen("metadata."), wanted = folder + strlen(key);
        const char *tail = path >= wanted ? s->path + path - wanted : "";
        return str_starts(tail, "metadata.") && streq(tail + folder, key);
}

static void differ(struct side *s, yyjson_val *sim, yyjson_val *real) {
        buf_addf(s->out, "  %s: simulated ", *s->path ? s->path : ".");
        show(s->out, sim);
        if (is_meta(s, "resourceVersion") && sim)
                buf_addf(s->out, " (which is %" PRId64 ")",
                         pairs_real_version(strtoll(yyjson_get_str(sim), NULL, 10)));
        buf_adds(s->out, ", real ");
        show(s->out, real);
        buf_adds(s->out, "\n");
}

static bool same_text(struct side *s, const char *sim, const char *real) {
        bool list = s->what == COMPARE_LIST && str_starts(s->path, "metadata.");
        int64_t a, b;
        if (is_meta(s, "resourceVersion")) {
                a = strtoll(sim, NULL, 10);
                b = strtoll(real, NULL, 10);
                return list ? pairs_match_list(a, b) : pairs_match_version(a, b);
        }
        if (list && is_meta(s, "continue")) {
                pairs_note_token(sim, real);
                return true;
        }
        if (is_meta(s, "uid") || pairs_know_uid(sim, real))
                return pairs_match_uid(sim, real);
        if (is_meta(s, "creationTimestamp") || is_meta(s, "deletionTimestamp"))
                return jd_time(sim, &a) && jd_time(real, &b) && llabs(a - b) <= CLOSE_S;
        return streq(sim, real);
}

/* Members that are not compared. */
static bool is_ignored(const struct side *s) {
        return is_meta(s, "managedFields") ||
               (streq(s->kind, "Status") && (streq(s->path, "message") || streq(s->path, "details.causes")));
}

static void values(struct side *s, yyjson_val *sim, yyjson_val *real);

static void member(struct side *s, const char *key, size_t index, yyjson_val *sim, yyjson_val *real) {
        size_t n = strlen(s->path);
        if (key)
                snprintf(s->path + n, sizeof s->path - n, "%s%s", n ? "." : "", key);
        else
                snprintf(s->path + n, sizeof s->path - n, "%s%zu", n ? "." : "", index);
        values(s, sim, real);
        s->path[n] = '\0';
}

static void objects(struct side *s, yyjson_val *sim, yyjson_val *real) {
        yyjson_val *key, *x;
        size_t i, max;
        yyjson_obj_foreach (sim, i, max, key, x)
                member(s, yyjson_get_str(key), 0, x, yyjson_obj_get(real, yyjson_get_str(key)));
        yyjson_obj_foreach (real, i, max, key, x)
                if (!yyjson_obj_get(sim, yyjson_get_str(key)))
                        member(s, yyjson_get_str(key), 0, NULL, x);
}

static void arrays(struct side *s, yyjson_val *sim, yyjson_val *real) {
        size_t n = yyjson_arr_size(sim), m = yyjson_arr_size(real);
        for (size_t i = 0; i < n || i < m; i++)
                member(s, NULL, i, yyjson_arr_get(sim, i), yyjson_arr_get(real, i));
}

static void values(struct side *s, yyjson_val *sim, yyjson_val *real) {
        bool typed = !s->custom || str_starts(s->path, "metadata") || strstr(s->path, ".metadata.");
        if (is_ignored(s) || (typed && is_nothing(sim) && is_nothing(real)))
                return;
        if (typed && is_nothing(sim) && !is_nothing(real) && may_lack(s))
                return;
        if (yyjson_is_obj(sim) && (yyjson_is_obj(real) || (typed && !real))) {
                objects(s, sim, real);
        } else if (typed && !sim && yyjson_is_obj(real)) {
                objects(s, sim, real);
        } else if (yyjson_is_arr(sim) && yyjson_is_arr(real)) {
                arrays(s, sim, real);
        } else if (yyjson_is_str(sim) && yyjson_is_str(real)) {
                if (!same_text(s, yyjson_get_str(sim), yyjson_get_str(real)))
                        differ(s, sim, real);
        } else if (!sim || !real || !yyjson_equals(sim, real)) {
                differ(s, sim, real);
        }
}

void compare_values(enum compare_what what, const char *kind, bool custom, yyjson_val *sim, yyjson_val *real,
                    struct buf *out) {
        const char *shown = yyjson_get_str(yyjson_obj_get(real, "kind"));
        bool status = what == COMPARE_OBJECT && streq(shown, "Status");
        struct side s = {
                .what = what, .kind = status ? "Status" : kind, .custom = custom && !status, .out = out
        };
        values(&s, sim, real);
}
