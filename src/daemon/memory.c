/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "imex/imex_files.h"
#include "model/daemon_report.h"

enum { FILE_LIMIT = 256 * 1024, LEFT_MAX = 16 * 1024 };

static bool same_left(const struct decision_memory *a, const struct decision_memory *b) {
        return a->n_left == b->n_left &&
               (!a->n_left || memcmp(a->left, b->left, a->n_left * sizeof *a->left) == 0);
}

bool memory_same(const struct memory *a, const struct memory *b) {
        return streq(a->decision.now.domain, b->decision.now.domain) &&
               a->decision.now.epoch == b->decision.now.epoch && a->decision.closed == b->decision.closed &&
               a->decision.ready == b->decision.ready && a->served == b->served &&
               a->inherited == b->inherited && same_left(&a->decision, &b->decision);
}

void memory_copy(const struct memory *m, struct arena *a, struct memory *ret) {
        int64_t *left = arena_alloc(a, (m->decision.n_left + 1) * sizeof *left);

        if (m->decision.n_left)
                memcpy(left, m->decision.left, m->decision.n_left * sizeof *left);
        *ret = *m;
        ret->decision.left = left;
        ret->decision.now.domain = arena_strdup_or_null(a, m->decision.now.domain);
        ret->decision.now.imex = (struct imex_domain){ 0 };
        jd_copy(imex_domain_fields, &m->decision.now.imex, a, &ret->decision.now.imex);
}

struct now_doc {
        const char *pod_uid;
        struct decision_assignment assignment;
        bool ready;
};

struct memory_doc {
        const char *boot_id, *fabric, *left, *served_pod;
        int64_t closed, seen, recount;
        struct now_doc *now;
};

static const struct jd_field f_now[] = {
        JD_STR(struct now_doc, "podUID", pod_uid),
        JD_STR(struct now_doc, "domain", assignment.domain, .required = true),
        JD_INT(struct now_doc, "index", assignment.index, .required = true),
        JD_INT(struct now_doc, "epoch", assignment.epoch, .required = true),
        JD_INLINE(struct now_doc, assignment.imex, imex_domain_fields),
        JD_BOOL(struct now_doc, "ready", ready),
        JD_END,
};

static const struct jd_field f_memory[] = {
        JD_STR(struct memory_doc, "bootID", boot_id, .required = true),
        JD_STR(struct memory_doc, "fabric", fabric, .required = true),
        JD_INT(struct memory_doc, "closed", closed, .required = true),
        JD_INT(struct memory_doc, "seen", seen, .required = true),
        JD_INT(struct memory_doc, "recount", recount),
        JD_STR(struct memory_doc, "servedPodUID", served_pod),
        JD_STR(struct memory_doc, "left", left),
        JD_OPTOBJ(struct memory_doc, "now", now, struct now_doc, f_now),
        JD_END,
};

int memory_save(const char *dir, const struct memory_identity *of, const struct memory *m, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, MEMORY_FILE);
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_LIMIT), left = BUF_INIT(LEFT_MAX);
        struct now_doc now = { of->pod_uid, m->decision.now, m->decision.ready };

        for (size_t i = 0; i < m->decision.n_left; i++)
                buf_addf(&left, "%s%lld", i ? "," : "", (long long)m->decision.left[i]);
        const struct memory_doc d = { .boot_id = of->boot_id,
                                      .fabric = of->fabric,
                                      .closed = m->decision.closed,
                                      .seen = m->decision.seen,
                                      .recount = m->decision.recount,
                                      .served_pod = m->served ? of->pod_uid : NULL,
                                      .left = buf_str(&left),
                                      .now = now.assignment.domain ? &now : NULL };
        jd_encode(f_memory, &d, &JW(&text), NULL);
        buf_addc(&text, '\n');
        if (text.failed || left.failed)
                return err_set(e, ERR_INVALID, 0, "the memory is too large");
        return file_replace_volatile(path, text.p, text.n, 0600, e);
}

/* Ignores text that is not a number. */
static size_t parse_epochs(const char *text, struct arena *a, int64_t **ret) {
        struct str rest = str_from(str_or(text, "")), part;
        size_t n = 0;

        *ret = arena_alloc(a, DAEMON_REPORT_LEFT_MAX * sizeof **ret);
        while (rest.n && n < DAEMON_REPORT_LEFT_MAX && str_next_field(&rest, ',', &part))
                if (str_to_i64(part, &(*ret)[n]))
                        n++;
        return n;
}

int memory_parse(struct str text, const struct memory_identity *of, struct arena *a, struct memory *ret,
                 struct err *e) {
        struct memory_doc d = { 0 };
        int64_t *left;

        if (jd_decode_text(f_memory, text, "", a, &d, e) < 0)
                return -1;
        if (!streq(d.boot_id, of->boot_id) || !streq(d.fabric, of->fabric))
                return err_set(e, ERR_NOT_FOUND, 0, "the memory belongs to another boot or partition");
        if (d.now && (!decision_assignment_valid(&d.now->assignment) || d.now->assignment.epoch > d.closed))
                return err_set(e, ERR_INVALID, 0, "the assignment is not valid");
        *ret = (struct memory){ .decision = { .closed = d.closed, .seen = d.seen, .recount = d.recount },
                                .served = streq(d.served_pod, of->pod_uid) };
        ret->decision.n_left = parse_epochs(d.left, a, &left);
        ret->decision.left = left;
        if (d.now) {
                ret->decision.now = d.now->assignment;
                ret->decision.ready = d.now->ready;
                ret->inherited = !streq(d.now->pod_uid, of->pod_uid);
        }
        return 0;
}

void memory_remove_temporary(const char *dir) {
        file_remove_temporary(dir, MEMORY_FILE);
}

int memory_load(const char *dir, const struct memory_identity *of, struct arena *a, struct memory *ret,
                struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, MEMORY_FILE);
        _cleanup_(freep) char *text = NULL;
        size_t n;

        if (file_read(path, FILE_LIMIT, &text, &n, e) < 0)
                return -1;
        /* memory_save() does not sync the file, so a power loss can leave it without content, or with NUL
         * bytes. Within a boot nobody sees such a file. */
        if (!*text)
                return err_set(e, ERR_NOT_FOUND, 0, "'%s' was emptied by a power loss", path);
        if (memory_parse((struct str){ text, n }, of, a, ret, e) < 0)
                return err_wrap(e, "'%s'", path);
        return 0;
}
