/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_members.h"

#include "base/file.h"
#include "base/json.h"

#define FILE_LIMIT ((size_t)1024 * 1024)

struct imex_members *imex_members_copy(struct arena *a, const struct imex_members *m) {
        struct imex_members *c = arena_alloc(a, sizeof *c);
        struct imex_peer *peers = arena_alloc(a, (m->n_peers + 1) * sizeof *peers);

        for (size_t i = 0; i < m->n_peers; i++) {
                peers[i] = m->peers[i];
                peers[i].ip = arena_strdup(a, str_or(m->peers[i].ip, ""));
                peers[i].node = arena_strdup(a, str_or(m->peers[i].node, ""));
                peers[i].boot_id = arena_strdup(a, str_or(m->peers[i].boot_id, ""));
        }
        c->own_index = m->own_index;
        c->infix = arena_strdup(a, str_or(m->infix, ""));
        c->peers = peers;
        c->n_peers = m->n_peers;
        return c;
}

bool imex_members_equal(const struct imex_members *x, const struct imex_members *y) {
        if (x->own_index != y->own_index || x->n_peers != y->n_peers ||
            !streq(str_or(x->infix, ""), str_or(y->infix, "")))
                return false;
        for (size_t i = 0; i < x->n_peers; i++) {
                const struct imex_peer *a = &x->peers[i], *b = &y->peers[i];

                if (a->index != b->index || a->ready != b->ready ||
                    !streq(str_or(a->ip, ""), str_or(b->ip, "")) ||
                    !streq(str_or(a->node, ""), str_or(b->node, "")) ||
                    !streq(str_or(a->boot_id, ""), str_or(b->boot_id, "")))
                        return false;
        }
        return true;
}

static void imex_members_render(const char *identity, const struct imex_members *m, struct buf *out) {
        struct jw w = JW(out);

        jw_obj(&w, NULL);
        jw_str(&w, "identity", identity);
        jw_int(&w, "index", m->own_index);
        jw_str(&w, "infix", str_or(m->infix, ""));
        jw_arr(&w, "peers");
        for (size_t i = 0; i < m->n_peers; i++) {
                jw_obj(&w, NULL);
                jw_int(&w, "index", m->peers[i].index);
                jw_str(&w, "ip", str_or(m->peers[i].ip, ""));
                jw_str(&w, "node", str_or(m->peers[i].node, ""));
                jw_bool(&w, "ready", m->peers[i].ready);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        buf_addc(out, '\n');
}

int imex_members_save(const char *dir, const char *identity, const struct imex_members *m, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, IMEX_MEMBERS_FILE);
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_LIMIT);

        imex_members_render(identity, m, &text);
        if (text.failed)
                return err_set(e, ERR_INVALID, 0, "too many members to remember");
        return file_replace_volatile(path, text.p, text.n, 0644, e);
}

struct members_doc {
        const char *identity, *infix;
        int64_t index;
        struct imex_peer *peers;
        size_t n_peers;
};

static const struct jd_field f_peer[] = {
        JD_INT(struct imex_peer, "index", index, .required = true),
        JD_STR(struct imex_peer, "ip", ip, .required = true),
        JD_STR(struct imex_peer, "node", node, .required = true),
        JD_BOOL(struct imex_peer, "ready", ready),
        JD_END,
};

static const struct jd_field f_members[] = {
        JD_STR(struct members_doc, "identity", identity, .required = true),
        JD_INT(struct members_doc, "index", index, .required = true),
        JD_STR(struct members_doc, "infix", infix, .required = true),
        JD_LIST(struct members_doc, "peers", peers, struct imex_peer, f_peer),
        JD_END,
};

int imex_members_parse(struct str text, const char *identity, struct arena *a, struct imex_members **ret,
                       struct err *e) {
        struct members_doc d = { 0 };

        if (jd_decode_text(f_members, text, "", a, &d, e) < 0)
                return -1;
        if (!streq(d.identity, identity))
                return err_set(e, ERR_NOT_FOUND, 0, "the members belong to another daemon");
        if (!imex_infix_valid(str_or(d.infix, "")) || d.n_peers > IMEX_MEMBERS_MAX)
                return err_set(e, ERR_INVALID, 0, "the members are not valid for this daemon");
        struct imex_members *m = arena_alloc(a, sizeof *m);
        m->own_index = d.index;
        m->infix = str_or(d.infix, "");
        m->peers = d.peers;
        m->n_peers = d.n_peers;
        *ret = m;
        return 0;
}

int imex_members_load(const char *dir, const char *identity, struct arena *a, struct imex_members **ret,
                      struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, IMEX_MEMBERS_FILE);
        _cleanup_(freep) char *text = NULL;
        size_t n;

        if (file_read(path, FILE_LIMIT, &text, &n, e) < 0)
                return -1;
        if (imex_members_parse((struct str){ text, n }, identity, a, ret, e) < 0)
                return err_wrap(e, "'%s'", path);
        return 0;
}
