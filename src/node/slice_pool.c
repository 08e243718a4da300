/* SPDX-License-Identifier: Apache-2.0 */
#include "node/slice_pool.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"

enum { INDEX_DIGITS = 5, INDEX_DIGITS_MAX = 8 };

static size_t part_max(const struct slice_content *want) {
        return want->part_max ? want->part_max : SLICE_DEVICES_MAX;
}

size_t slice_pool_size(const struct slice_content *want) {
        size_t n = (want->n_devices + part_max(want) - 1) / part_max(want);
        return n ? n : 1;
}

struct slice_part slice_pool_part(const struct slice_content *want, size_t place) {
        size_t first = place * part_max(want), left = want->n_devices - first;
        return (struct slice_part){ .place = place,
                                    .of = slice_pool_size(want),
                                    .first = first,
                                    .n = left < part_max(want) ? left : part_max(want) };
}

/* The place in a slice's name; `places` if it has none. */
static size_t place_of(const char *name, size_t places) {
        size_t digits = 0;
        while (isxdigit((unsigned char)name[digits]) && !isupper((unsigned char)name[digits]))
                digits++;
        if (digits < INDEX_DIGITS || digits > INDEX_DIGITS_MAX || name[digits] != '-')
                return places;
        unsigned long place = strtoul(name, NULL, 16);
        return place < places ? place : places;
}

struct pool {
        const struct slice_content *want;
        const char *node;
        const struct own_slice **at; /* by place; NULL: missing */
        size_t places;
        const struct own_slice *surplus;
        size_t wrong; /* places with a slice that is missing or wrong */
        size_t last_wrong;
        int64_t newest;
        bool mixed; /* several generations */
        bool newest_right;
};

static bool is_right(const struct pool *p, size_t place) {
        struct slice_part part = slice_pool_part(p->want, place);
        return p->at[place] && slice_part_matches(p->at[place], p->node, p->want, &part);
}

static void slice_pool_place(struct pool *p, const struct own_slice *s) {
        /* A single slice may have any name. */
        size_t at = p->places == 1 ? 0 : place_of(s->o.meta.name, p->places);
        if (at == p->places) {
                p->surplus = s;
        } else if (!p->at[at]) {
                p->at[at] = s;
        } else if (slice_outranks(s, p->at[at])) {
                p->surplus = p->at[at];
                p->at[at] = s;
        } else {
                p->surplus = s;
        }
}

static void slice_pool_evaluate(struct pool *p) {
        const struct own_slice *any = NULL;
        for (size_t i = 0; i < p->places; i++) {
                const struct own_slice *s = p->at[i];
                if (s) {
                        p->mixed |= any && any->generation != s->generation;
                        p->newest = s->generation > p->newest ? s->generation : p->newest;
                        any = s;
                }
                if (!is_right(p, i)) {
                        p->wrong++;
                        p->last_wrong = i;
                }
        }
        p->newest_right = true;
        for (size_t i = 0; i < p->places; i++)
                if (p->at[i] && p->at[i]->generation == p->newest && !is_right(p, i))
                        p->newest_right = false;
}

static struct slice_step write_place(const struct pool *p, size_t at, int64_t generation) {
        struct slice_step step = { .kind = p->at[at] ? SLICE_UPDATE : SLICE_CREATE,
                                   .slice = p->at[at],
                                   .part = slice_pool_part(p->want, at) };
        step.part.generation = generation > 0 ? generation : 1;
        return step;
}

/* Updates before creations: a reader in between sees no more slices than there will be. */
static struct slice_step write_generation(const struct pool *p, int64_t *target) {
        for (size_t i = 0; i < p->places; i++)
                if (p->at[i] && (p->at[i]->generation != *target || !is_right(p, i)))
                        return write_place(p, i, *target);
        for (size_t i = 0; i < p->places; i++)
                if (!p->at[i])
                        return write_place(p, i, *target);
        *target = 0;
        return (struct slice_step){ .kind = SLICE_DONE };
}

static struct slice_step slice_pool_next_step(const struct pool *p, int64_t *target) {
        if (p->surplus)
                return (struct slice_step){ .kind = SLICE_DELETE, .slice = p->surplus };
        if (!*target) {
                if (!p->wrong && !p->mixed)
                        return (struct slice_step){ .kind = SLICE_DONE };
                if (p->wrong == 1 && !p->mixed)
                        return write_place(p, p->last_wrong, p->newest);
                /* An unfinished generation: its last write is continued, unless it is not the desired
                 * content. */
                *target = p->mixed && p->newest_right ? p->newest : p->newest + 1;
        }
        return write_generation(p, target);
}

struct slice_step slice_pool_next(const struct own_slice *const *have, size_t n, const char *node,
                                  const struct slice_content *want, int64_t *target) {
        struct pool p = { .want = want, .node = node, .places = slice_pool_size(want) };
        p.at = xnew_n(const struct own_slice *, p.places);
        for (size_t i = 0; i < n; i++)
                slice_pool_place(&p, have[i]);
        slice_pool_evaluate(&p);
        struct slice_step step = slice_pool_next_step(&p, target);
        free(p.at);
        return step;
}
