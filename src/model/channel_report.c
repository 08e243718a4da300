/* SPDX-License-Identifier: Apache-2.0 */
#include "model/channel_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

struct wire {
        const char *uid, *imex, *withheld;
        int64_t count;
        struct jd_pair *held;
        size_t n_held;
        const char **asks;
        size_t n_asks;
};
static const struct jd_field f_fabric[] = { JD_STR(struct wire, "uid", uid, .required = true),
                                            JD_INT(struct wire, "channelCount", count),
                                            JD_STR(struct wire, "imexVersion", imex),
                                            JD_STR(struct wire, "withheld", withheld),
                                            JD_MAP(struct wire, "held", held),
                                            JD_STRS(struct wire, "asks", asks),
                                            JD_END };

/* Only digits without leading zeros, as the plugin writes it, so that each ID has one text. */
static int decode_id(const char *s, int64_t *ret) {
        int64_t n = 0;
        if (!*s || (*s == '0' && s[1]))
                return -1;
        for (; *s; s++) {
                if (*s < '0' || *s > '9')
                        return -1;
                n = n * 10 + (*s - '0');
                if (n >= CHANNEL_REPORT_IDS_MAX)
                        return -1;
        }
        *ret = n;
        return 0;
}

bool channel_report_is_token(const char *s) {
        size_t n = strspn(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._+~-");
        return n && n < 64 && !s[n];
}

static int check_word(const char *word, const char *clique, const char *member, struct err *e) {
        if (!word || channel_report_is_token(word))
                return 0;
        return err_set(e, ERR_INVALID, 0, "%.100s.%s: \"%.100s\" is not a word", clique, member, word);
}

static int decode_fabric(const struct wire *w, struct arena *a, struct channel_report_fabric *f,
                         struct err *e) {
        if (*w->uid && !str_is_uuid(w->uid))
                return err_set(e, ERR_INVALID, 0, "%.100s.uid: \"%.100s\" is not a UID", f->clique_id,
                               w->uid);
        if (w->count < -1 || w->count > CHANNEL_REPORT_IDS_MAX)
                return err_set(e, ERR_INVALID, 0, "%.100s.count: %" PRId64 " is not a number of channels",
                               f->clique_id, w->count);
        if (check_word(w->imex, f->clique_id, "imexVersion", e) < 0 ||
            check_word(w->withheld, f->clique_id, "withheld", e) < 0)
                return -1;
        f->uid = w->uid;
        f->count = w->count;
        f->imex = w->imex;
        f->withheld = w->withheld;
        if (w->n_held > CHANNEL_REPORT_HELD_MAX)
                return err_set(e, ERR_INVALID, 0, "%.100s.held: %zu channels, more than %d", f->clique_id,
                               w->n_held, CHANNEL_REPORT_HELD_MAX);
        f->held = arena_alloc(a, (w->n_held + 1) * sizeof *f->held);
        for (size_t i = 0; i < w->n_held; i++) {
                struct channel_report_hold *h = &f->held[f->n_held++];
                if (decode_id(w->held[i].key, &h->id) < 0)
                        return err_set(e, ERR_INVALID, 0, "%.100s.held: \"%.100s\" is not a channel ID",
                                       f->clique_id, w->held[i].key);
                if (!str_is_uuid(w->held[i].value))
                        return err_set(e, ERR_INVALID, 0, "%.100s.held.%s: \"%.100s\" is not a UID",
                                       f->clique_id, w->held[i].key, w->held[i].value);
                h->owner = w->held[i].value;
        }
        if (w->n_asks > CHANNEL_REPORT_ASKS_MAX)
                return err_set(e, ERR_INVALID, 0, "%.100s.asks: %zu ComputeDomains, more than %d",
                               f->clique_id, w->n_asks, CHANNEL_REPORT_ASKS_MAX);
        for (size_t i = 0; i < w->n_asks; i++)
                if (!str_is_uuid(w->asks[i]))
                        return err_set(e, ERR_INVALID, 0, "%.100s.asks: \"%.100s\" is not a UID",
                                       f->clique_id, w->asks[i]);
        f->asks = w->asks;
        f->n_asks = w->n_asks;
        return 0;
}

int channel_report_decode(struct str text, struct arena *a, struct channel_report *ret, struct err *e) {
        yyjson_doc *doc = json_parse(text, YYJSON_READ_NOFLAG, e);
        if (!doc)
                return -1;
        yyjson_val *root = yyjson_doc_get_root(doc), *key;
        yyjson_obj_iter it = yyjson_obj_iter_with(root);
        int r = 0;
        if (!yyjson_is_obj(root))
                r = err_set(e, ERR_INVALID, 0, "not a JSON object");
        else if (yyjson_obj_size(root) > CHANNEL_REPORT_FABRICS_MAX)
                r = err_set(e, ERR_INVALID, 0, "%zu partitions, more than %d", yyjson_obj_size(root),
                            CHANNEL_REPORT_FABRICS_MAX);
        *ret = (struct channel_report){ .fabrics = arena_alloc(a, (yyjson_obj_size(root) + 1) *
                                                                          sizeof *ret->fabrics) };
        while (r == 0 && (key = yyjson_obj_iter_next(&it))) {
                struct wire w = { .count = -1 };
                const char *clique_id = arena_strndup(a, yyjson_get_str(key), yyjson_get_len(key));
                if (channel_report_of(ret, clique_id)) {
                        r = err_set(e, ERR_INVALID, 0, "%.100s is listed twice", clique_id);
                        break;
                }
                struct channel_report_fabric *f = &ret->fabrics[ret->n_fabrics++];
                *f = (struct channel_report_fabric){ .clique_id = clique_id };
                r = jd_decode(f_fabric, yyjson_obj_iter_get_val(key), f->clique_id, a, &w, e);
                if (r == 0)
                        r = decode_fabric(&w, a, f, e);
        }
        yyjson_doc_free(doc);
        return r;
}

void channel_report_render(const struct channel_report *r, struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        for (size_t i = 0; i < r->n_fabrics; i++) {
                const struct channel_report_fabric *f = &r->fabrics[i];
                jw_obj(&w, f->clique_id);
                jw_str(&w, "uid", f->uid);
                if (f->count >= 0)
                        jw_int(&w, "channelCount", f->count);
                if (f->imex)
                        jw_str(&w, "imexVersion", f->imex);
                if (f->withheld)
                        jw_str(&w, "withheld", f->withheld);
                jw_obj(&w, "held");
                for (size_t k = 0; k < f->n_held; k++) {
                        char id[24];
                        snprintf(id, sizeof id, "%" PRId64, f->held[k].id);
                        jw_str(&w, id, f->held[k].owner);
                }
                jw_end_obj(&w);
                if (f->n_asks)
                        jw_arr(&w, "asks");
                for (size_t k = 0; k < f->n_asks; k++)
                        jw_str(&w, NULL, f->asks[k]);
                if (f->n_asks)
                        jw_end_arr(&w);
                jw_end_obj(&w);
        }
        jw_end_obj(&w);
}

const struct channel_report_fabric *channel_report_of(const struct channel_report *r, const char *clique_id) {
        for (size_t i = 0; i < r->n_fabrics; i++)
                if (streq(r->fabrics[i].clique_id, clique_id))
                        return &r->fabrics[i];
        return NULL;
}

static bool has_held(const struct channel_report_held *list, const struct channel_report_hold *h) {
        for (size_t i = 0; i < list->n; i++)
                if (list->list[i].id == h->id && streq(list->list[i].owner, h->owner))
                        return true;
        return false;
}

void channel_report_add_held(const struct channel_report_fabric *f, struct arena *a,
                             struct channel_report_held *ret) {
        for (size_t i = 0; f && i < f->n_held; i++) {
                if (has_held(ret, &f->held[i]))
                        continue;
                ret->too_many = ret->n == CHANNEL_REPORT_HELD_MAX;
                if (ret->too_many)
                        return;
                ARENA_GROW(a, ret->list, ret->n, ret->cap);
                ret->list[ret->n++] = f->held[i];
        }
}
