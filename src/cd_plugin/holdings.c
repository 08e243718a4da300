/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/holdings.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/rebuild.h"
#include "cdi/cdi.h"

enum { TOGETHER_MS = 1000, FILE_MAX_BYTES = 4 << 20, REPORT_MAX_BYTES = 256 << 10 };

/* A claim, from its Prepare on, or from the first look-up. */
struct known {
        char *uid, *clique; /* clique NULL: its CDI file has none */
        bool seen;
        UT_hash_handle hh;
};

struct holdings {
        struct holdings_options o;
        struct known *known; /* by uid */
        bool reported;
        /* As of the last complete table, in a separate arena: during a batch the table is not complete. */
        struct arena *a; /* NULL: there was no such table yet */
        struct held_channel *held;
        size_t n_held;
        /* NULL: not known yet */
        char *clique, *fabric_uid, *imex, *withheld;
        unsigned channel_count;
        struct arena *asks_arena;
        const char *const *asks; /* sorted, and ends with NULL; NULL: none yet */
};

/* ---- the report ---- */

static int holdings_by_id(const void *a, const void *b) {
        const struct channel_report_hold *x = a, *y = b;
        return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : strcmp(x->owner, y->owner);
}

static struct channel_report_fabric *holdings_fabric_of(struct channel_report *r, const char *clique) {
        for (size_t i = 0; i < r->n_fabrics; i++) {
                if (streq(r->fabrics[i].clique_id, clique))
                        return &r->fabrics[i];
        }
        return NULL;
}

static struct channel_report_fabric *add_fabric(struct channel_report *r, const char *clique, size_t most,
                                                struct arena *a) {
        struct channel_report_fabric *f = &r->fabrics[r->n_fabrics++];
        *f = (struct channel_report_fabric){ .clique_id = arena_strdup(a, clique),
                                             .uid = "",
                                             .count = -1,
                                             .held = arena_alloc(a, (most + 1) * sizeof *f->held) };
        return f;
}

/* Several claims of a ComputeDomain hold its single channel. */
static void holdings_hold(struct channel_report_fabric *f, int64_t id, const char *owner, struct arena *a) {
        for (size_t i = 0; i < f->n_held; i++) {
                if (f->held[i].id == id && streq(f->held[i].owner, owner))
                        return;
        }
        f->held[f->n_held++] = (struct channel_report_hold){ id, arena_strdup(a, owner) };
}

bool holdings_report(const struct held_channel *held, size_t n, const struct holdings_node *place,
                     struct arena *a, struct channel_report *ret) {
        *ret = (struct channel_report){ .fabrics = arena_alloc(a, (n + 2) * sizeof *ret->fabrics) };
        if (*place->clique) {
                struct channel_report_fabric *own = add_fabric(ret, place->clique, n, a);
                own->uid = arena_strdup(a, place->fabric_uid);
                own->count = place->channel_count;
                own->imex = place->imex ? arena_strdup(a, place->imex) : NULL;
                own->withheld = place->withheld ? arena_strdup(a, place->withheld) : NULL;
                own->asks = arena_strdups(a, place->asks);
                while (own->asks && own->asks[own->n_asks])
                        own->n_asks++;
        }
        for (size_t i = 0; i < n; i++) {
                const char *clique = str_or(held[i].clique, place->clique);
                if (!*clique)
                        return false;
                struct channel_report_fabric *f = holdings_fabric_of(ret, clique);
                holdings_hold(f ? f : add_fabric(ret, clique, n, a), held[i].id, held[i].owner, a);
        }
        for (size_t i = 0; i < ret->n_fabrics; i++)
                qsort(ret->fabrics[i].held, ret->fabrics[i].n_held, sizeof *ret->fabrics[i].held,
                      holdings_by_id);
        return true;
}

/* ---- the partitions of the claims' channels ---- */

static void holdings_drop(struct holdings *h, struct known *k) {
        HASH_DEL(h->known, k);
        free(k->uid);
        free(k->clique);
        free(k);
}

static struct known *holdings_find(const struct holdings *h, const char *uid) {
        struct known *k = NULL;
        HASH_FIND_STR(h->known, uid, k);
        return k;
}

static struct known *holdings_put(struct holdings *h, const char *uid, const char *clique) {
        struct known *k = holdings_find(h, uid);
        if (k)
                holdings_drop(h, k);
        k = xnew(struct known);
        k->uid = xstrdup(uid);
        k->clique = clique ? xstrdup(clique) : NULL;
        HASH_ADD_KEYPTR(hh, h->known, k->uid, strlen(k->uid), k);
        return k;
}

void holdings_note(struct holdings *h, const char *claim_uid, const char *clique) {
        (void)holdings_put(h, claim_uid, clique);
}

static struct known *look_up(struct holdings *h, const char *uid) {
        _cleanup_(freep) char *path = cdi_path(h->o.cdi_root, h->o.cdi_kind, uid), *text = NULL;
        struct arena *a = arena_new(256);
        struct err e;
        const char *clique = NULL;
        if (file_read(path, FILE_MAX_BYTES, &text, NULL, &e) < 0)
                log_warn("the NVLink partition of a channel that is held here is not known: the node's "
                         "partition is assumed",
                         kv_str("claim_uid", uid), kv_err(&e));
        else
                clique = rebuild_clique(text, a);
        struct known *k = holdings_put(h, uid, clique);
        arena_free(a);
        return k;
}

const char *holdings_clique(struct holdings *h, const char *claim_uid) {
        const struct known *k = holdings_find(h, claim_uid);
        return (k ? k : look_up(h, claim_uid))->clique;
}

/* ---- reporting ---- */

static void list_held(struct holdings *h, const struct checkpoint *table) {
        size_t most = 0;
        arena_free(h->a);
        h->a = arena_new(1024);
        h->n_held = 0;
        CHECKPOINT_EACH_DEVICE (table, c, d)
                most++;
        h->held = arena_alloc(h->a, (most + 1) * sizeof *h->held);
        CHECKPOINT_EACH_DEVICE (table, c, d) {
                const char *clique;
                /* Channel 0 is never assigned, so it was granted with isolation by domain. */
                if (cd_device_is_daemon(d) || d->id < 1 || !str_is_uuid(str_or(d->domain, "")))
                        continue;
                clique = holdings_clique(h, c->uid);
                h->held[h->n_held++] = (struct held_channel){ clique ? arena_strdup(h->a, clique) : NULL,
                                                              d->id, arena_strdup(h->a, d->domain) };
        }
}

static void write_report(struct holdings *h, unsigned wait_ms) {
        struct channel_report report;
        if (!h->a || !h->clique)
                return;
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        const struct holdings_node place = { h->clique, h->fabric_uid, h->channel_count,
                                             h->imex,   h->withheld,   h->asks };
        if (!holdings_report(h->held, h->n_held, &place, a, &report))
                return;
        _cleanup_(buf_done) struct buf text = BUF_INIT(REPORT_MAX_BYTES);
        channel_report_render(&report, &text);
        own_pod_set(h->o.own_pod, IMEX_ANNOTATION_HOST_CHANNELS, buf_str(&text), h->reported ? wait_ms : 0);
        h->reported = true;
}

void holdings_follow(struct holdings *h, const struct checkpoint *table) {
        struct known *k, *tmp;
        for (k = h->known; k; k = k->hh.next)
                k->seen = checkpoint_find(table, k->uid);
        HASH_ITER (hh, h->known, k, tmp) {
                if (!k->seen)
                        holdings_drop(h, k);
        }
        list_held(h, table);
        write_report(h, TOGETHER_MS);
}

static int holdings_by_text(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool holdings_asked(const struct holdings *h, const char *uid) {
        for (size_t i = 0; h->asks && h->asks[i]; i++) {
                if (streq(h->asks[i], uid))
                        return true;
        }
        return false;
}

void holdings_asks(struct holdings *h, const char *const *uids) {
        struct arena *a = arena_new(256);
        size_t n = 0, kept = 0, old = 0;
        bool news = false;
        while (uids[n])
                n++;
        const char **list = arena_alloc(a, (n + 1) * sizeof *list);
        for (size_t i = 0; i < n; i++)
                list[i] = arena_strdup(a, uids[i]);
        qsort(list, n, sizeof *list, holdings_by_text);
        for (size_t i = 0; i < n && kept < CHANNEL_REPORT_ASKS_MAX; i++) {
                if (kept && streq(list[kept - 1], list[i]))
                        continue;
                list[kept++] = list[i];
                news = news || !holdings_asked(h, list[kept - 1]);
        }
        list[kept] = NULL;
        while (h->asks && h->asks[old])
                old++;
        if (!news && old == kept) {
                arena_free(a);
                return;
        }
        arena_free(h->asks_arena);
        h->asks_arena = a;
        h->asks = list;
        write_report(h, news ? 0 : TOGETHER_MS);
}

static bool holdings_keep(char **at, const char *now) {
        if (now ? streq(*at, now) : !*at)
                return false;
        free(*at);
        *at = now ? xstrdup(now) : NULL;
        return true;
}

void holdings_node(struct holdings *h, const struct holdings_node *p) {
        bool news = h->channel_count != p->channel_count;
        news |= holdings_keep(&h->clique, p->clique);
        news |= holdings_keep(&h->fabric_uid, p->fabric_uid);
        news |= holdings_keep(&h->imex, p->imex);
        news |= holdings_keep(&h->withheld, p->withheld);
        h->channel_count = p->channel_count;
        if (news)
                write_report(h, TOGETHER_MS);
}

struct holdings *holdings_new(const struct holdings_options *o) {
        struct holdings *h = xnew(struct holdings);
        h->o = *o;
        return h;
}

void holdings_free(struct holdings *h) {
        struct known *k, *tmp;
        if (!h)
                return;
        HASH_ITER (hh, h->known, k, tmp) {
                holdings_drop(h, k);
        }
        free(h->clique);
        free(h->fabric_uid);
        free(h->imex);
        free(h->withheld);
        arena_free(h->a);
        arena_free(h->asks_arena);
        free(h);
}
