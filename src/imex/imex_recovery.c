/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_recovery.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/stderr.h"

enum { NAMED_AT_MOST = 3 };

static bool imex_recovery_has(const char *const *list, size_t n, const char *node) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i], node))
                        return true;
        return false;
}

static const struct imex_peer *imex_recovery_find(const struct imex_members *m, const char *node) {
        for (size_t i = 0; i < m->n_peers; i++)
                if (m->peers[i].index != m->own_index && streq(m->peers[i].node, node))
                        return &m->peers[i];
        return NULL;
}

static bool rebooted(const struct imex_peer *before, const struct imex_peer *now) {
        const char *was = str_or(before->boot_id, ""), *is = str_or(now->boot_id, "");

        return *was && *is && !streq(was, is);
}

static void name(struct imex_recovery_verdict *v, const char *node) {
        size_t n = strlen(v->awaited);

        if (v->n_awaited++ < NAMED_AT_MOST)
                snprintf(v->awaited + n, sizeof v->awaited - n, "%s%.40s", n ? ", " : "", node);
}

void imex_recovery_evaluate(const struct imex_recovery_facts *f, struct imex_recovery_verdict *ret) {
        const struct imex_members *base = f->before ? f->before : f->now;
        struct imex_recovery_verdict v = { 0 };

        BUG_ON(!base || (f->n_seen && !f->seen));
        if (f->waited_ms < f->limit_ms) {
                *ret = (struct imex_recovery_verdict){ .again_ms = f->limit_ms - f->waited_ms };
                return;
        }
        v.settled = !f->before && f->informed_ms >= f->limit_ms;
        if (!f->before && !v.settled && f->informed_ms)
                v.again_ms = f->limit_ms - f->informed_ms;
        for (size_t i = 0; i < base->n_peers; i++) {
                const struct imex_peer *p = &base->peers[i], *now;

                if (p->index == base->own_index || imex_recovery_has(f->seen, f->n_seen, p->node))
                        continue;
                now = imex_recovery_find(f->now, p->node);
                if (now && !rebooted(p, now))
                        name(&v, p->node);
        }
        if (v.n_awaited > NAMED_AT_MOST) {
                size_t n = strlen(v.awaited);

                snprintf(v.awaited + n, sizeof v.awaited - n, " and %zu more", v.n_awaited - NAMED_AT_MOST);
        }
        v.restart = !v.n_awaited && f->informed_ms && (f->before || v.settled);
        *ret = v;
}

void imex_recovery_begin(struct imex_recovery *r, uint64_t now_ms) {
        if (r->since_ms)
                return;
        r->since_ms = now_ms;
        r->a = arena_new(1024);
        r->seen = arena_alloc(r->a, IMEX_SLOTS_MAX * sizeof *r->seen);
}

void imex_recovery_end(struct imex_recovery *r) {
        arena_free(r->a);
        *r = (struct imex_recovery){ 0 };
}

void imex_recovery_connected(struct imex_recovery *r, const char *node) {
        if (!r->since_ms || r->n_seen == IMEX_SLOTS_MAX || imex_recovery_has(r->seen, r->n_seen, node))
                return;
        r->seen[r->n_seen++] = arena_strdup(r->a, node);
}

void imex_recovery_update(struct imex_recovery *r, const struct imex_members *members, uint64_t now_ms,
                          uint64_t informed_since_ms, uint64_t limit_ms, struct imex_recovery_verdict *ret) {
        BUG_ON(!r->since_ms);
        imex_recovery_evaluate(
                &(struct imex_recovery_facts){
                        .waited_ms = now_ms - r->since_ms,
                        .informed_ms = informed_since_ms ? now_ms - informed_since_ms : 0,
                        .limit_ms = limit_ms,
                        .now = members,
                        .before = r->before,
                        .seen = r->seen,
                        .n_seen = r->n_seen,
                },
                ret);
        if (ret->settled)
                r->before = imex_members_copy(r->a, members);
}

static int forget_one(const char *path, const struct stat *st, int type, struct FTW *f) {
        return f->level > 0 && remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int imex_recovery_forget(const char *run_dir, struct err *e) {
        if (nftw(run_dir, forget_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT)
                return err_errno(e, errno, "remove the files of nvidia-imex in '%s'", run_dir);
        return 0;
}
