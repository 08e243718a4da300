/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gojson.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"

enum { DEPTH_MAX = 60 /* the writer keeps a bit per level in 64 */ };

/* ---- checksums ---- */

static uint32_t fnv(uint32_t h, const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                h = (h ^ (uint8_t)p[i]) * 16777619U;
        return h;
}

static uint32_t fnv_byte(uint32_t h, unsigned b) {
        return (h ^ b) * 16777619U;
}

/* Go prints each byte as a decimal number, separated by spaces. */
uint32_t gojson_checksum(const struct str *parts, size_t n) {
        static const char begin[] = "([]uint8)[";
        uint32_t h = fnv(2166136261U, begin, strlen(begin));
        bool first = true;
        for (size_t part = 0; part < n; part++) {
                for (size_t i = 0; i < parts[part].n; i++) {
                        unsigned b = (uint8_t)parts[part].p[i];
                        if (!first)
                                h = fnv_byte(h, ' ');
                        if (b >= 100)
                                h = fnv_byte(h, '0' + b / 100);
                        if (b >= 10)
                                h = fnv_byte(h, '0' + b / 10 % 10);
                        h = fnv_byte(h, '0' + b % 10);
                        first = false;
                }
        }
        return fnv(h, "]", 1);
}

/* ---- canonical JSON ---- */

static bool is_empty(yyjson_val *v, enum gojson_empty rule) {
        return !v || yyjson_is_null(v) || (yyjson_is_str(v) && !yyjson_get_len(v)) ||
               (yyjson_is_arr(v) && !yyjson_arr_size(v)) ||
               (rule == GOJSON_MAP_LEFT_OUT && yyjson_is_obj(v) && !yyjson_obj_size(v));
}

static void write_empty(struct jw *w, const struct gojson_member *m) {
        switch (m->empty) {
        case GOJSON_TEXT:
                jw_str(w, m->name, "");
                break;
        case GOJSON_OBJECT:
                jw_obj(w, m->name);
                for (const struct gojson_member *i = m->inside; i && i->name; i++)
                        write_empty(w, i);
                jw_end_obj(w);
                break;
        case GOJSON_ANY:
                jw_null(w, m->name);
                break;
        case GOJSON_LEFT_OUT:
        case GOJSON_MAP_LEFT_OUT:
                break;
        }
}

static bool canonical(struct jw *w, const char *key, yyjson_val *v, const struct gojson_member *known,
                      unsigned depth) {
        size_t i, max;
        yyjson_val *k, *item;
        bool ok = true;
        if (depth > DEPTH_MAX)
                return false;
        switch (yyjson_get_type(v)) {
        case YYJSON_TYPE_OBJ:
                jw_obj(w, key);
                for (const struct gojson_member *m = known; m && m->name; m++) {
                        item = yyjson_obj_get(v, m->name);
                        if (is_empty(item, m->empty))
                                write_empty(w, m);
                        else
                                ok = ok && canonical(w, m->name, item, m->inside, depth + 1);
                }
                if (!known) {
                        yyjson_obj_foreach (v, i, max, k, item)
                                ok = ok && canonical(w, yyjson_get_str(k), item, NULL, depth + 1);
                }
                jw_end_obj(w);
                return ok;
        case YYJSON_TYPE_ARR:
                jw_arr(w, key);
                yyjson_arr_foreach (v, i, max, item)
                        ok = ok && canonical(w, NULL, item, known, depth + 1);
                jw_end_arr(w);
                return ok;
        case YYJSON_TYPE_STR:
                jw_strn(w, key, (struct str){ yyjson_get_str(v), yyjson_get_len(v) });
                return true;
        case YYJSON_TYPE_RAW: /* a number in a document that keeps numbers as text */
                jw_raw(w, key, (struct str){ yyjson_get_raw(v), yyjson_get_len(v) });
                return true;
        case YYJSON_TYPE_BOOL:
                jw_bool(w, key, yyjson_get_bool(v));
                return true;
        case YYJSON_TYPE_NUM: {
                size_t n = 0;
                _cleanup_(freep) char *text = yyjson_val_write(v, 0, &n);
                jw_raw(w, key, (struct str){ text ? text : "0", text ? n : 1 });
                return true;
        }
        default:
                jw_null(w, key);
                return true;
        }
}

bool gojson_canonical(yyjson_val *v, const struct gojson_member *known, struct buf *out) {
        struct jw w = { .out = out, .go_escape = true };
        return canonical(&w, NULL, v, known, 0) && !out->failed;
}

/* ---- members as text ---- */

bool gojson_next_member(struct str *rest, struct str *ret_key, struct str *ret_value) {
        size_t i = 0, start, depth = 0;
        bool quoted = false, have_key = false;
        *rest = str_trim(*rest);
        if (rest->n && rest->p[0] == ',')
                *rest = str_trim((struct str){ rest->p + 1, rest->n - 1 });
        for (start = 0; i < rest->n; i++) {
                char c = rest->p[i];
                if (quoted) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                quoted = false;
                        continue;
                }
                if (c == '"')
                        quoted = true;
                else if (c == '{' || c == '[')
                        depth++;
                else if (c == '}' || c == ']')
                        depth -= depth > 0;
                else if (c == ':' && !have_key && !depth) {
                        *ret_key = str_trim((struct str){ rest->p, i });
                        have_key = true;
                        start = i + 1;
                } else if (c == ',' && !depth)
                        break;
        }
        if (!have_key)
                return false;
        i = i < rest->n ? i : rest->n;
        *ret_value = str_trim((struct str){ rest->p + start, i - start });
        *rest = (struct str){ rest->p + i, rest->n - i };
        return true;
}

struct str gojson_inside(struct str object) {
        return object.n >= 2 ? (struct str){ object.p + 1, object.n - 2 } : (struct str){ 0 };
}
