/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/rollout.h"

#include "base/diag.h"

struct count {
        size_t idle;    /* nodes whose daemon is idle: those that the template may reach */
        size_t healthy; /* daemons with the newest template */
        size_t coming;  /* daemons that are replaced, or have the newest template and are not healthy */
};

static int64_t healthy_in_s(const struct rollout_daemon *d, int64_t now) {
        return d->started + ROLLOUT_HEALTHY_S - now;
}

static bool may_become_healthy(const struct rollout_daemon *d) {
        return d->reported && d->imex_starts && d->started > 0 && !d->crashing;
}

static bool is_healthy(const struct rollout_daemon *d, int64_t now) {
        return may_become_healthy(d) && healthy_in_s(d, now) <= 0;
}

/* An earlier template that crashes serves nobody, so nothing is lost. Such a daemon is replaced at once, and
 * is the one on which the newest template is tried. */
static bool is_broken(const struct rollout_daemon *d) {
        return d->outdated && d->crashing && d->idle;
}

/* One that terminates and serves is not being replaced yet: a pod may hold it for weeks. */
static bool is_going(const struct rollout_daemon *d) {
        return d->spent || (d->removed && d->idle);
}

static void count_one(const struct rollout_daemon *d, int64_t now, struct count *c, struct rollout *ret) {
        bool healthy = !d->outdated && !is_going(d) && is_healthy(d, now);
        c->idle += d->idle;
        c->healthy += healthy;
        c->coming += is_going(d) || is_broken(d) || (!d->outdated && !healthy);
        ret->n_outdated += d->outdated;
        ret->n_busy += d->outdated && !d->idle && !d->removed;
        ret->n_crashing += !d->outdated && !d->removed && d->crashing;
        if (d->outdated || is_going(d) || healthy || !may_become_healthy(d))
                return;
        if (!ret->recheck_s || healthy_in_s(d, now) < ret->recheck_s)
                ret->recheck_s = healthy_in_s(d, now);
}

/* How many more daemons may be replaced now. Until one is healthy they are tried one by one; one that crashes
 * is not waited for, because the fault may be its node's, but it counts. */
static size_t room_left(const struct count *c, size_t crashing, size_t tenth, bool proven) {
        size_t reached = c->coming + c->healthy;
        if (proven)
                return SIZE_MAX;
        if (reached >= tenth || (!c->healthy && c->coming > crashing))
                return 0;
        return c->healthy ? tenth - reached : 1;
}

static enum rollout_choice choose(const struct rollout_daemon *d, bool proven, size_t *room) {
        if (!d->node_ready)
                return d->outdated ? ROLLOUT_SKIP : ROLLOUT_KEEP;
        if (d->spent && !d->removed)
                return ROLLOUT_REPLACE;
        if (d->removed || !(d->outdated || d->fresh_wanted))
                return ROLLOUT_KEEP;
        if (!d->idle)
                return ROLLOUT_BUSY;
        if (is_broken(d))
                return ROLLOUT_REPLACE;
        if (!d->outdated && !proven)
                return ROLLOUT_KEEP;
        if (!*room)
                return ROLLOUT_WAIT;
        --*room;
        return ROLLOUT_REPLACE;
}

void rollout_make(const struct rollout_daemon *list, size_t n, int64_t now, enum rollout_choice *choices,
                  struct rollout *ret) {
        struct count c = { 0 };
        *ret = (struct rollout){ 0 };
        for (size_t i = 0; i < n; i++)
                if (list[i].node_ready)
                        count_one(&list[i], now, &c, ret);
        size_t tenth = c.idle / 10 > 1 ? c.idle / 10 : 1;
        ret->proven = c.healthy >= tenth && ret->n_crashing <= tenth;
        size_t room = room_left(&c, ret->n_crashing, tenth, ret->proven);
        /* A mark that is on its way is not withdrawn. */
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; i < n; i++)
                        if (list[i].asked == (pass == 0))
                                choices[i] = choose(&list[i], ret->proven, &room);
}
