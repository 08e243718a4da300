/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_freshness.h"

#include "base/stderr.h"

enum {
        EARLY_MS = 1000,  /* an end that is earlier by this was not caused by the time limit */
        ERROR_EVENTS = 3, /* in a row without another event: then a list is needed */
        /* Between two lists of many pages, while watches break. Under load, a healthy API server ends watches
         * whose events it cannot send fast enough. */
        PAUSE_SHARE = 4, /* times the duration of a list */
        PAUSE_MIN_MS = 1000,
        PAUSE_MAX_MS = 60000,
};

/* The watch has ended, and not at its time limit. */
static void doubt(struct kube_freshness *f) {
        f->unproven = true;
        f->current = f->relist = false;
}

static void doubt_version(struct kube_freshness *f) {
        doubt(f);
        f->listed = false;
}

static uint64_t pause_after(uint64_t list_ms) {
        uint64_t ms = PAUSE_SHARE * list_ms;
        return ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : ms;
}

static void list_ended(struct kube_freshness *f, const struct kube_observation *o) {
        f->listed = true;
        f->listed_ms = o->now_ms;
        f->pause_ms = o->one_page ? 0 : pause_after(o->now_ms - f->began_ms);
        f->unproven = o->interrupted;
}

static void watch_accepted(struct kube_freshness *f, const struct kube_observation *o) {
        if (!f->unproven) {
                f->current = true;
                return;
        }
        f->relist = true;
        if (f->relist_at_ms)
                return;
        if (!o->urgent)
                f->relist_at_ms = o->now_ms + o->relist_ms;
        else if (f->pause_ms)
                f->relist_at_ms = f->listed_ms + f->pause_ms;
}

static void freshness_observe(struct kube_freshness *f, const struct kube_observation *o) {
        switch (o->sign) {
        case KUBE_LIST_BEGAN:
                f->relist = false;
                f->relist_at_ms = 0;
                f->began_ms = o->now_ms;
                break;
        case KUBE_LIST_ENDED:
                list_ended(f, o);
                break;
        case KUBE_WATCH_ACCEPTED:
                watch_accepted(f, o);
                break;
        case KUBE_WATCH_EVENT:
                f->error_events = 0;
                break;
        case KUBE_WATCH_ENDED: /* early: such as by an API server that shuts down */
                if (o->lasted_ms + EARLY_MS < o->asked_ms)
                        doubt(f);
                break;
        case KUBE_ERROR_EVENT:
                if (++f->error_events % ERROR_EVENTS == 0)
                        doubt_version(f);
                else
                        doubt(f);
                break;
        case KUBE_REQUEST_FAILED:
                doubt(f);
                break;
        case KUBE_WATCH_UNREADABLE: /* a watch from the same version would send the same event again */
        case KUBE_WATCH_SILENT:     /* another watch might be as silent */
        case KUBE_HISTORY_GONE:
        case KUBE_HISTORY_CHANGED:
                doubt_version(f);
                break;
        case KUBE_RELIST_DUE:
                f->listed = f->relist = false;
                break;
        }
}

struct kube_freshness kube_freshness_after(const struct kube_freshness *f, const struct kube_observation *o) {
        struct kube_freshness next = *f;

        BUG_ON(o->sign == KUBE_WATCH_ACCEPTED && !f->listed);
        freshness_observe(&next, o);
        BUG_ON(next.current && (!next.listed || next.unproven || next.relist));
        return next;
}
