/* SPDX-License-Identifier: Apache-2.0 */
#include "node/checkpoint.h"

#include <string.h>

struct checkpoint_claim *checkpoint_find(const struct checkpoint *c, const char *uid) {
        struct checkpoint_claim *found = NULL;
        HASH_FIND_STR(c->claims, uid, found);
        return found;
}

void checkpoint_drop(struct checkpoint *c, struct checkpoint_claim *claim) {
        HASH_DEL(c->claims, claim);
        arena_free(claim->arena);
}

void checkpoint_done(struct checkpoint *c) {
        struct checkpoint_claim *claim, *tmp;
        HASH_ITER (hh, c->claims, claim, tmp) {
                checkpoint_drop(c, claim);
        }
        *c = (struct checkpoint){ .codec = c->codec, .dialect = c->dialect };
}

struct checkpoint_claim *checkpoint_add(struct checkpoint *c, const char *uid) {
        struct arena *a = arena_new(1024);
        struct checkpoint_claim *claim = arena_alloc(a, sizeof *claim);
        claim->arena = a;
        claim->uid = arena_strdup(a, uid);
        claim->codec = c->codec;
        claim->dialect = c->dialect;
        claim->status = STR("{}");
        HASH_ADD_KEYPTR(hh, c->claims, claim->uid, strlen(claim->uid), claim);
        return claim;
}

struct checkpoint_claim *checkpoint_put(struct checkpoint *c, const char *uid, const char *ns,
                                        const char *name, struct str status) {
        struct checkpoint_claim *old = checkpoint_find(c, uid);
        uint64_t answered_ms = old ? old->answered_ms : 0;
        if (old)
                checkpoint_drop(c, old);
        struct checkpoint_claim *claim = checkpoint_add(c, uid);
        claim->answered_ms = answered_ms;
        claim->ns = arena_strdup(claim->arena, ns);
        claim->name = arena_strdup(claim->arena, name);
        if (status.n)
                claim->status = (struct str){ arena_strndup(claim->arena, status.p, status.n), status.n };
        return claim;
}

void checkpoint_set_devices(struct checkpoint_claim *claim, const struct node_device *devices, size_t n) {
        struct arena *a = claim->arena;
        struct buf text = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct jw w = { .out = &text, .go_escape = true };
        claim->devices = arena_alloc(a, (n + 1) * sizeof *claim->devices);
        claim->n_devices = n;
        for (size_t i = 0; i < n; i++) {
                struct node_device *d = &claim->devices[i];
                *d = devices[i];
                d->name = arena_strdup(a, str_or(d->name, ""));
                d->pool = arena_strdup(a, str_or(d->pool, ""));
                d->type = arena_strdup(a, str_or(d->type, ""));
                d->domain = arena_strdup(a, str_or(d->domain, ""));
                d->info = arena_strdup_or_null(a, d->info);
                d->group_info = arena_strdup_or_null(a, d->group_info);
                d->requests = arena_strdups(a, d->requests);
                d->cdi_ids = arena_strdups(a, d->cdi_ids);
        }
        claim->codec->encode(&w, claim->devices, n, claim->dialect);
        claim->prepared = (struct str){ arena_strndup(a, buf_str(&text), text.n), text.n };
        buf_done(&text);
}
