/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_members.h"

#include "base/file.h"
#include "base/json.h"

#define FILE_LIMIT ((size_t)1024 * 1024)

/* The file has no boot IDs. */
static const struct jd_field f_saved_peer[] = {
        JD_INT(struct imex_peer, "index", index, .required = true),
        JD_STR(struct imex_peer, "ip", ip, .required = true),
        JD_STR(struct imex_peer, "node", node, .required = true),
        JD_END,
};

static const struct jd_field f_peer[] = {
        { .name = "", .type = JD_T_INLINE, .sub = f_saved_peer },
        JD_STR(struct imex_peer, "bootID", boot_id, .omit_empty = true),
        JD_END,
};

static const struct jd_field f_members[] = {
        JD_INT(struct imex_members, "index", own_index, .required = true),
        JD_STR(struct imex_members, "infix", infix, .required = true),
        JD_LIST(struct imex_members, "peers", peers, struct imex_peer, f_peer),
        JD_END,
};

static const struct jd_field f_saved_members[] = {
        JD_INT(struct imex_members, "index", own_index, .required = true),
        JD_STR(struct imex_members, "infix", infix, .required = true),
        JD_LIST(struct imex_members, "peers", peers, struct imex_peer, f_saved_peer),
        JD_END,
};

struct members_file {
        const char *identity;
        struct imex_members members;
};

static const struct jd_field f_file[] = {
        JD_STR(struct members_file, "identity", identity, .required = true),
        JD_INLINE(struct members_file, members, f_saved_members),
        JD_END,
};

struct imex_members *imex_members_copy(struct arena *a, const struct imex_members *m) {
        struct imex_members *c = arena_alloc(a, sizeof *c);

        jd_copy(f_members, m, a, c);
        return c;
}

bool imex_members_equal(const struct imex_members *x, const struct imex_members *y) {
        return jd_equal(f_members, x, y);
}

int imex_members_save(const char *dir, const char *identity, const struct imex_members *m, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, IMEX_MEMBERS_FILE);
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_LIMIT);

        jd_encode(f_file, &(struct members_file){ identity, *m }, &JW(&text), NULL);
        buf_addc(&text, '\n');
        if (text.failed)
                return err_set(e, ERR_INVALID, 0, "too many members to remember");
        return file_replace_volatile(path, text.p, text.n, 0644, e);
}

int imex_members_parse(struct str text, const char *identity, struct arena *a, struct imex_members **ret,
                       struct err *e) {
        struct members_file *f = arena_alloc(a, sizeof *f);

        if (jd_decode_text(f_file, text, "", a, f, e) < 0)
                return -1;
        if (!streq(f->identity, identity))
                return err_set(e, ERR_NOT_FOUND, 0, "the members belong to another daemon");
        if (!imex_infix_valid(f->members.infix) || f->members.n_peers > IMEX_SLOTS_MAX)
                return err_set(e, ERR_INVALID, 0, "the members are not valid for this daemon");
        *ret = &f->members;
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
