/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agent_memory.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "imex/imex_files.h"
#include "model/agent_seat.h"

enum { FILE_LIMIT = 256 * 1024, LEFT_MAX = 16 * 1024 };

static bool same_left(const struct turns_memory *a, const struct turns_memory *b) {
        return a->n_left == b->n_left &&
               (!a->n_left || memcmp(a->left, b->left, a->n_left * sizeof *a->left) == 0);
}

bool agent_memory_same(const struct agent_memory *a, const struct agent_memory *b) {
        return streq(a->turns.now.domain, b->turns.now.domain) && a->turns.now.epoch == b->turns.now.epoch &&
               a->turns.entered == b->turns.entered && a->turns.seen == b->turns.seen &&
               a->served == b->served && a->inherited == b->inherited && same_left(&a->turns, &b->turns);
}

void agent_memory_copy(const struct agent_memory *m, struct arena *a, struct agent_memory *ret) {
        int64_t *left = arena_alloc(a, (m->turns.n_left + 1) * sizeof *left);

        if (m->turns.n_left)
                memcpy(left, m->turns.left, m->turns.n_left * sizeof *left);
        *ret = *m;
        ret->turns.left = left;
        ret->turns.now.domain = m->turns.now.domain ? arena_strdup(a, m->turns.now.domain) : NULL;
        ret->turns.now.infix = m->turns.now.infix ? arena_strdup(a, m->turns.now.infix) : NULL;
}

int agent_memory_save(const char *dir, const struct agent_identity *of, const struct agent_memory *m,
                      struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, AGENT_MEMORY_FILE);
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_LIMIT), left = BUF_INIT(LEFT_MAX);
        struct jw w = JW(&text);

        agent_epochs_render(m->turns.left, m->turns.n_left, &left);
        jw_obj(&w, NULL);
        jw_str(&w, "bootID", of->boot_id);
        jw_str(&w, "fabric", of->fabric);
        jw_int(&w, "entered", m->turns.entered);
        jw_int(&w, "seen", m->turns.seen);
        jw_str(&w, "left", buf_str(&left));
        if (m->turns.now.domain) {
                jw_obj(&w, "now");
                jw_str(&w, "podUID", of->pod_uid);
                jw_str(&w, "domain", m->turns.now.domain);
                jw_str(&w, "infix", str_or(m->turns.now.infix, ""));
                jw_int(&w, "index", m->turns.now.index);
                jw_int(&w, "epoch", m->turns.now.epoch);
                jw_int(&w, "port", m->turns.now.port);
                jw_int(&w, "slots", m->turns.now.slots);
                jw_bool(&w, "served", m->served);
                jw_end_obj(&w);
        }
        jw_end_obj(&w);
        buf_addc(&text, '\n');
        if (text.failed || left.failed)
                return err_set(e, ERR_INVALID, 0, "too much to remember");
        return file_replace_volatile(path, text.p, text.n, 0600, e);
}

struct now_doc {
        const char *pod_uid, *domain, *infix;
        int64_t index, epoch, port, slots;
        bool served;
};

struct memory_doc {
        const char *boot_id, *fabric, *left;
        int64_t entered, seen;
        struct now_doc *now;
};

static const struct jd_field f_now[] = {
        JD_STR(struct now_doc, "podUID", pod_uid),
        JD_STR(struct now_doc, "domain", domain, .required = true),
        JD_STR(struct now_doc, "infix", infix, .required = true),
        JD_INT(struct now_doc, "index", index, .required = true),
        JD_INT(struct now_doc, "epoch", epoch, .required = true),
        JD_INT(struct now_doc, "port", port, .required = true),
        JD_INT(struct now_doc, "slots", slots, .required = true),
        JD_BOOL(struct now_doc, "served", served),
        JD_END,
};

static const struct jd_field f_memory[] = {
        JD_STR(struct memory_doc, "bootID", boot_id, .required = true),
        JD_STR(struct memory_doc, "fabric", fabric, .required = true),
        JD_INT(struct memory_doc, "entered", entered, .required = true),
        JD_INT(struct memory_doc, "seen", seen, .required = true),
        JD_STR(struct memory_doc, "left", left),
        JD_OPTOBJ(struct memory_doc, "now", now, struct now_doc, f_now),
        JD_END,
};

int agent_memory_parse(struct str text, const struct agent_identity *of, struct arena *a,
                       struct agent_memory *ret, struct err *e) {
        struct memory_doc d = { 0 };
        int64_t *left;

        if (jd_decode_text(f_memory, text.p, text.n, false, "", a, &d, e) < 0)
                return -1;
        if (!streq(d.boot_id, of->boot_id) || !streq(d.fabric, of->fabric))
                return err_set(e, ERR_NOT_FOUND, 0, "what is remembered is of another boot or fabric");
        if (d.now && (!str_is_uuid(d.now->domain) || !imex_infix_valid(d.now->infix) || d.now->index < 0 ||
                      d.now->slots <= d.now->index || d.now->slots > FABRIC_SLOTS_MOST || d.now->port < 1 ||
                      d.now->port > 65535))
                return err_set(e, ERR_INVALID, 0, "the seat cannot be ours");
        *ret = (struct agent_memory){ .turns = { .entered = d.entered, .seen = d.seen } };
        ret->turns.n_left = agent_epochs_parse(d.left, a, &left);
        ret->turns.left = left;
        if (d.now) {
                ret->turns.now = (struct turns_seat){ d.now->domain, d.now->infix, d.now->index,
                                                      d.now->epoch,  d.now->port,  d.now->slots };
                ret->served = d.now->served;
                ret->inherited = !streq(d.now->pod_uid, of->pod_uid);
        }
        return 0;
}

static int tidy_one(void *u, int folder, const char *name, struct err *e) {
        if (str_starts(name, "." AGENT_MEMORY_FILE ".tmp."))
                (void)unlinkat(folder, name, 0);
        return 0;
}

/* What stays is in nobody's way. */
void agent_memory_tidy(const char *dir) {
        struct err e;

        (void)file_each(dir, tidy_one, NULL, &e);
}

int agent_memory_load(const char *dir, const struct agent_identity *of, struct arena *a,
                      struct agent_memory *ret, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, AGENT_MEMORY_FILE);
        _cleanup_(freep) char *text = NULL;
        size_t n;

        if (file_read(path, FILE_LIMIT, &text, &n, e) < 0)
                return -1;
        if (agent_memory_parse((struct str){ text, n }, of, a, ret, e) < 0)
                return err_wrap(e, "'%s'", path);
        return 0;
}
