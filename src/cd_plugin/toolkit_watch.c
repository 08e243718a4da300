/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/toolkit_watch.h"

#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/watch_file.h"

enum { PLACES_MAX = TOOLKIT_PATHS * TOOLKIT_ROOTS_MAX, WHY_MAX = 300, AGAIN_MS = 30000 };

struct toolkit_watch {
        uv_loop_t *loop;
        struct driver_root roots[TOOLKIT_ROOTS_MAX];
        size_t n_roots;
        void (*changed)(void *u);
        void *u;
        struct watch_file places[PLACES_MAX];
        struct loop_timer again;
        enum toolkit_answer answer;
        char why[WHY_MAX];
        bool reported; /* that it cannot be watched */
};

static void toolkit_watch_on_place(struct watch_file *place) {
        struct toolkit_watch *w = place->u;
        loop_timer_start(&w->again, 0);
}

/* Starts all watches again, because folders on the way may have been created or removed. */
static void toolkit_watch_watch(struct toolkit_watch *w) {
        bool failed = false;
        struct err e;
        size_t n = 0;
        for (size_t i = 0; i < w->n_roots; i++) {
                for (const char *const *path = toolkit_paths; *path; path++) {
                        _cleanup_(freep) char *there = file_join(w->roots[i].here, *path + 1);
                        BUG_ON(n == PLACES_MAX);
                        struct watch_file *place = &w->places[n++];
                        watch_file_stop(place);
                        place->u = w;
                        if (watch_file_start_below(place, w->loop, w->roots[i].here, there,
                                                   toolkit_watch_on_place, &e) == 0)
                                continue;
                        if (!w->reported)
                                log_warn("cannot watch the container toolkit's configuration: the plugin "
                                         "reads it every 30 s",
                                         kv_err(&e));
                        w->reported = failed = true;
                }
        }
        if (failed)
                loop_timer_start(&w->again, AGAIN_MS);
        w->reported = failed;
}

static void read_configuration(struct toolkit_watch *w) {
        w->answer = toolkit_check(w->roots, w->n_roots, w->why, sizeof w->why);
}

static void on_again(void *u) {
        struct toolkit_watch *w = u;
        enum toolkit_answer before = w->answer;
        char why[WHY_MAX];
        memcpy(why, w->why, sizeof why);
        toolkit_watch_watch(w); /* first, so that no change is missed */
        read_configuration(w);
        if (w->answer != before || !streq(why, w->why))
                w->changed(w->u);
}

struct toolkit_watch *toolkit_watch_new(uv_loop_t *loop, const struct toolkit_watch_options *o) {
        struct toolkit_watch *w = xnew(struct toolkit_watch);
        BUG_ON(o->n_roots > TOOLKIT_ROOTS_MAX);
        w->loop = loop;
        memcpy(w->roots, o->roots, o->n_roots * sizeof *o->roots);
        w->n_roots = o->n_roots;
        w->changed = o->changed;
        w->u = o->u;
        loop_timer_init(&w->again, loop, on_again, w);
        toolkit_watch_watch(w);
        read_configuration(w);
        return w;
}

enum toolkit_answer toolkit_watch_get(const struct toolkit_watch *w, const char **ret_why) {
        *ret_why = w->why;
        return w->answer;
}

void toolkit_watch_free(struct toolkit_watch *w) {
        if (!w)
                return;
        for (size_t i = 0; i < PLACES_MAX; i++)
                watch_file_stop(&w->places[i]);
        loop_timer_done(&w->again);
        free(w);
}
