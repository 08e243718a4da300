/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/rollout.h"

#include "base/stderr.h"

struct count {
        size_t idle;     /* nodes with an idle daemon, which the template may reach */
        size_t healthy;  /* daemons with the newest template */
        size_t coming;   /* daemons that are being replaced, or that have the newest template and are not
                            healthy yet */
        size_t proven;   /* daemons with the newest template that are healthy or have served */
        size_t starting; /* those of `coming` that are being replaced, or that have not reported yet and do
                            not crash */
};

/* How many more daemons may be replaced now. One of the numbers is 0, unless the template is proven. */
struct room {
        size_t outdated;
        size_t used; /* daemons with the newest template that have served an IMEX domain */
};

static int64_t healthy_in_s(const struct rollout_daemon *d, int64_t now) {
        return d->started + ROLLOUT_HEALTHY_S - now;
}

static bool may_become_healthy(const struct rollout_daemon *d) {
        return d->reported && d->imex_starts && d->started > 0 && !d->crashing && !d->hangs;
}

static bool is_healthy(const struct rollout_daemon *d, int64_t now) {
        return may_become_healthy(d) && healthy_in_s(d, now) <= 0;
}

/* A daemon with an earlier template that crashes serves no claim, so it is replaced at once. The newest
 * template is tried on it first. */
static bool is_broken(const struct rollout_daemon *d) {
        return d->outdated && d->crashing && d->idle;
}

bool rollout_is_replaced(const struct rollout_daemon *d) {
        return d->spent || (d->removed && d->idle);
}

bool rollout_fails(const struct rollout_daemon *d) {
        return rollout_is_replaced(d) ? d->hangs : !d->outdated && !d->removed && (d->crashing || d->hangs);
}

static void count_one(const struct rollout_daemon *d, int64_t now, struct count *c, struct rollout *ret) {
        bool counts = !d->outdated && !rollout_is_replaced(d), healthy = counts && is_healthy(d, now);
        c->idle += d->idle;
        c->healthy += healthy;
        c->proven += healthy || (counts && d->served && may_become_healthy(d));
        c->coming += rollout_is_replaced(d) || is_broken(d) || (!d->outdated && !healthy);
        c->starting += rollout_is_replaced(d) || is_broken(d) ||
                       (!d->outdated && !d->crashing && !d->hangs && !(d->reported && d->started > 0));
        ret->n_outdated += d->outdated;
        ret->n_busy += d->outdated && !d->idle && !d->removed;
        ret->n_crashing += rollout_fails(d);
        if (d->outdated || rollout_is_replaced(d) || healthy || !may_become_healthy(d))
                return;
        if (!ret->recheck_s || healthy_in_s(d, now) < ret->recheck_s)
                ret->recheck_s = healthy_in_s(d, now);
}

/* Until one is healthy, they are tried one by one. A daemon that crashes is not waited for, because the node
 * may be the cause, but it counts. */
static size_t room_for_outdated(const struct count *c, size_t crashing, size_t tenth) {
        size_t reached = c->coming + c->healthy;
        if (reached >= tenth || (!c->healthy && c->coming > crashing))
                return 0;
        return c->healthy ? tenth - reached : 1;
}

/* The replacement of a used daemon does not bring the template to another node, so it does not matter how
 * many daemons crash, and a daemon that has served is as good as a healthy one. But while a rollout can still
 * prove the template, the replacement would delay the proof. */
static size_t room_for_used(const struct count *c, const struct rollout *r, size_t tenth) {
        bool few_crash = r->n_crashing <= tenth;
        if (few_crash && (r->n_outdated || c->proven >= tenth))
                return r->n_outdated ? 0 : SIZE_MAX;
        return c->starting >= tenth ? 0 : tenth - c->starting;
}

static enum rollout_choice choose(const struct rollout_daemon *d, struct room *room) {
        size_t *left = d->outdated ? &room->outdated : &room->used;
        if (!d->node_ready || d->withheld)
                return d->outdated ? ROLLOUT_SKIP : ROLLOUT_KEEP;
        if (d->spent && !d->removed)
                return ROLLOUT_REPLACE;
        if (d->removed || !(d->outdated || d->fresh_wanted))
                return ROLLOUT_KEEP;
        if (!d->idle)
                return ROLLOUT_BUSY;
        if (is_broken(d))
                return ROLLOUT_REPLACE;
        if (!*left)
                return ROLLOUT_WAIT;
        --*left;
        return ROLLOUT_REPLACE;
}

void rollout_make(const struct rollout_daemon *list, size_t n, int64_t now, enum rollout_choice *choices,
                  struct rollout *ret) {
        BUG_ON(n && (!list || !choices));
        struct count c = { 0 };
        *ret = (struct rollout){ 0 };
        for (size_t i = 0; i < n; i++)
                if (list[i].node_ready)
                        count_one(&list[i], now, &c, ret);
        size_t tenth = c.idle / 10 > 1 ? c.idle / 10 : 1;
        ret->proven = c.healthy >= tenth && ret->n_crashing <= tenth;
        struct room room = { SIZE_MAX, SIZE_MAX };
        if (!ret->proven)
                room = (struct room){ room_for_outdated(&c, ret->n_crashing, tenth),
                                      room_for_used(&c, ret, tenth) };
        /* Daemons with a requested mark come first, because the mark may be under way. */
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; i < n; i++)
                        if (list[i].asked == (pass == 0))
                                choices[i] = choose(&list[i], &room);
}
