/* SPDX-License-Identifier: Apache-2.0 */
#include "model/daemon_report.h"

#include <string.h>

#include "base/json.h"
#include "base/stderr.h"

enum { TEXT_MAX = 1024, VERSION_MAX = 40 };

struct wire {
        const char *claim, *boot_id, *fabric, *assignment, *left, *waits_for, *imex_version;
        int64_t seen, recount;
        bool ready, served;
};
static const struct jd_field f_report[] = {
        JD_STR(struct wire, "claimUID", claim, .required = true),
        JD_STR(struct wire, "bootID", boot_id, .required = true),
        JD_STR(struct wire, "fabricUID", fabric),
        JD_STR(struct wire, "assignment", assignment, .omit_empty = true),
        JD_BOOL(struct wire, "ready", ready, .omit_empty = true),
        JD_STR(struct wire, "left", left, .omit_empty = true),
        JD_INT(struct wire, "seen", seen),
        JD_INT(struct wire, "recount", recount, .omit_empty = true),
        JD_BOOL(struct wire, "served", served),
        JD_STR(struct wire, "waitsFor", waits_for, .omit_empty = true),
        JD_STR(struct wire, "imexVersion", imex_version, .omit_empty = true),
        JD_END,
};

static int decode_left(const char *text, struct arena *a, struct daemon_report *ret, struct err *e) {
        struct str rest = str_from(str_or(text, "")), part;
        int64_t *left = NULL, epoch;
        size_t cap = 0;
        while (rest.n && str_next_field(&rest, ',', &part)) {
                if (ret->n_left == DAEMON_REPORT_LEFT_MAX || !str_to_i64(part, &epoch) || epoch < 0)
                        return err_set(e, ERR_INVALID, 0,
                                       "left: \"%.*s\" is not an epoch, or is one too many",
                                       (int)(part.n < 40 ? part.n : 40), part.p);
                ARENA_GROW(a, left, ret->n_left, cap);
                left[ret->n_left++] = epoch;
        }
        ret->left = left;
        return 0;
}

int daemon_report_decode(struct str text, struct arena *a, struct daemon_report *ret, struct err *e) {
        struct wire w = { 0 };
        *ret = (struct daemon_report){ 0 };
        if (jd_decode_text(f_report, text, "", a, &w, e) < 0)
                return -1;
        if (!str_is_uuid(w.claim))
                return err_set(e, ERR_INVALID, 0, "claimUID: \"%.60s\" is not a UID", w.claim);
        if (!str_is_uuid(w.boot_id))
                return err_set(e, ERR_INVALID, 0, "bootID: \"%.60s\" is not a UUID", w.boot_id);
        if (w.fabric && *w.fabric && !str_is_uuid(w.fabric))
                return err_set(e, ERR_INVALID, 0, "fabricUID: \"%.60s\" is not a UID", w.fabric);
        if (w.seen < 0 || w.recount < 0)
                return err_set(e, ERR_INVALID, 0, "seen and recount must not be negative");
        if (w.assignment && *w.assignment && !assignment_id_parse(w.assignment, &ret->assignment))
                return err_set(e, ERR_INVALID, 0, "assignment: \"%.160s\" is not readable", w.assignment);
        if (w.waits_for && strnlen(w.waits_for, TEXT_MAX) == TEXT_MAX)
                return err_set(e, ERR_INVALID, 0, "waitsFor: longer than %d bytes", TEXT_MAX - 1);
        if (w.imex_version && strnlen(w.imex_version, VERSION_MAX) == VERSION_MAX)
                return err_set(e, ERR_INVALID, 0, "imexVersion: longer than %d bytes", VERSION_MAX - 1);
        ret->claim = w.claim;
        ret->boot_id = w.boot_id;
        ret->fabric = str_or(w.fabric, "");
        ret->has_assignment = w.assignment && *w.assignment;
        ret->ready = w.ready;
        ret->seen = w.seen;
        ret->recount = w.recount;
        ret->served = w.served;
        ret->waits_for = str_or(w.waits_for, "");
        ret->imex_version = str_or(w.imex_version, "");
        return decode_left(w.left, a, ret, e);
}

void daemon_report_render(const struct daemon_report *r, struct buf *out) {
        BUG_ON(r->n_left > DAEMON_REPORT_LEFT_MAX);
        _cleanup_(buf_done) struct buf id = BUF_INIT(ASSIGNMENT_ID_MAX), left = BUF_INIT(1 << 16);
        if (r->has_assignment)
                assignment_id_render(r->assignment.clique_id, r->assignment.domain_uid, r->assignment.index,
                                     r->assignment.epoch, &id);
        for (size_t i = 0; i < r->n_left; i++)
                buf_addf(&left, "%s%lld", i ? "," : "", (long long)r->left[i]);
        const struct wire w = { .claim = r->claim,
                                .boot_id = r->boot_id,
                                .fabric = r->fabric,
                                .assignment = buf_str(&id),
                                .ready = r->has_assignment && r->ready,
                                .left = buf_str(&left),
                                .seen = r->seen,
                                .recount = r->recount,
                                .served = r->served,
                                .waits_for = r->waits_for,
                                .imex_version = r->imex_version };
        jd_encode(f_report, &w, &JW(out), NULL);
}

bool daemon_report_has_epoch(const int64_t *epochs, size_t n, int64_t epoch) {
        for (size_t i = 0; i < n; i++)
                if (epochs[i] == epoch)
                        return true;
        return false;
}
