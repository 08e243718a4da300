/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's report: every readable one is within its limits, and means the same after it is written and read
 * again. An assignment is written as it was read. */
#include <stdlib.h>
#include <string.h>

#include "model/daemon_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_within_limits(const struct daemon_report *r) {
        bool is = str_is_uuid(r->claim) && str_is_uuid(r->boot_id) &&
                  (!*r->fabric || str_is_uuid(r->fabric)) && r->n_left <= DAEMON_REPORT_LEFT_MAX &&
                  r->seen >= 0 && r->recount >= 0 && strlen(r->waits_for) < 1024;
        for (size_t i = 0; is && i < r->n_left; i++)
                is = r->left[i] >= 0;
        if (is && r->has_assignment)
                is = str_is_uuid(r->assignment.domain_uid) && *r->assignment.clique_id &&
                     !strchr(r->assignment.clique_id, '/') && r->assignment.index >= 0 &&
                     r->assignment.epoch >= 0;
        return is;
}

static bool is_same(const struct daemon_report *x, const struct daemon_report *y) {
        if (!streq(x->claim, y->claim) || !streq(x->boot_id, y->boot_id) || !streq(x->fabric, y->fabric) ||
            x->has_assignment != y->has_assignment || x->seen != y->seen || x->recount != y->recount ||
            x->served != y->served || !streq(x->waits_for, y->waits_for) || x->n_left != y->n_left)
                return false;
        for (size_t i = 0; i < x->n_left; i++)
                if (x->left[i] != y->left[i])
                        return false;
        /* Without an assignment the rest is not used. */
        return !x->has_assignment || (streq(x->assignment.clique_id, y->assignment.clique_id) &&
                                      streq(x->assignment.domain_uid, y->assignment.domain_uid) &&
                                      x->assignment.index == y->assignment.index &&
                                      x->assignment.epoch == y->assignment.epoch && x->ready == y->ready);
}

static void write_again(const struct daemon_report *r, struct arena *a) {
        struct buf b = BUF_INIT(1 << 20);
        struct daemon_report back;
        struct err e;
        daemon_report_render(r, &b);
        if (b.failed || daemon_report_decode((struct str){ buf_str(&b), b.n }, a, &back, &e) < 0 ||
            !is_same(r, &back))
                abort();
        buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(1024);
        struct daemon_report r;
        struct assignment_id id;
        struct err e;
        if (daemon_report_decode((struct str){ (const char *)data, n }, a, &r, &e) == 0) {
                if (!is_within_limits(&r))
                        abort();
                write_again(&r, a);
        }
        char *text = arena_printf(a, "%.*s", (int)n, (const char *)data);
        if (assignment_id_parse(text, &id)) {
                struct buf b = BUF_INIT(ASSIGNMENT_ID_MAX);
                struct assignment_id again;
                assignment_id_render(id.clique_id, id.domain_uid, id.index, id.epoch, &b);
                if (b.failed || !assignment_id_parse(buf_str(&b), &again) || again.epoch != id.epoch ||
                    again.index != id.index || !streq(again.clique_id, id.clique_id))
                        abort();
                buf_done(&b);
        }
        arena_free(a);
        return 0;
}
