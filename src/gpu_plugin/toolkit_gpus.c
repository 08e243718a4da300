/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/toolkit_gpus.h"

#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/watch_file.h"

enum { ROOTS_MAX = 2, PLACES_MAX = 10 * ROOTS_MAX, WHY_MAX = 400 };

struct toolkit_gpus_watch {
        uv_loop_t *loop;
        struct driver_root roots[ROOTS_MAX];
        size_t n_roots, n_places;
        void (*changed)(void *u, enum toolkit_gpus answer, const char *why);
        void *u;
        struct watch_file places[PLACES_MAX];
        struct loop_turn check;
        bool known, unwatched;
        enum toolkit_gpus answer;
        char why[WHY_MAX];
};

static void toolkit_gpus_on_place(struct watch_file *place) {
        struct toolkit_gpus_watch *w = place->u;
        loop_turn_start(&w->check);
}

static void watch_place(struct toolkit_gpus_watch *w, const struct driver_root *root, const char *path) {
        const char *star = strchr(path, '*');
        _cleanup_(freep) char *plain =
                xstrndup(path + 1, star ? (size_t)(star - path - 1) : strlen(path + 1));
        _cleanup_(freep) char *there = file_join(root->here, plain);
        struct err e;
        BUG_ON(w->n_places == PLACES_MAX);
        struct watch_file *place = &w->places[w->n_places++];
        watch_file_stop(place);
        place->u = w;
        if (watch_file_start_below(place, w->loop, root->here, there, toolkit_gpus_on_place, &e) == 0)
                return;
        if (!w->unwatched)
                log_warn(
                        "cannot watch the configuration of the container runtime: a change is noticed at the "
                        "next "
                        "start only",
                        kv_err(&e));
        w->unwatched = true;
}

/* Watches all of them again, because folders in the paths may have been created or removed. */
static void toolkit_gpus_watch(struct toolkit_gpus_watch *w) {
        w->n_places = 0;
        for (size_t i = 0; i < w->n_roots; i++) {
                for (const char *const *path = toolkit_paths; *path; path++)
                        watch_place(w, &w->roots[i], *path);
                for (const char *const *path = toolkit_runtime_paths; *path; path++)
                        watch_place(w, &w->roots[i], *path);
        }
}

static void on_check(void *u) {
        struct toolkit_gpus_watch *w = u;
        char why[WHY_MAX];
        toolkit_gpus_watch(w); /* first, so that no change is missed */
        enum toolkit_gpus answer = toolkit_gives_gpus(w->roots, w->n_roots, why, sizeof why);
        if (w->known && answer == w->answer && streq(why, w->why))
                return;
        w->known = true;
        w->answer = answer;
        memcpy(w->why, why, sizeof why);
        w->changed(w->u, answer, w->why);
}

struct toolkit_gpus_watch *
toolkit_gpus_new(uv_loop_t *loop, const struct driver_root *roots, size_t n_roots,
                 void (*changed)(void *u, enum toolkit_gpus answer, const char *why), void *u) {
        struct toolkit_gpus_watch *w = xnew(struct toolkit_gpus_watch);
        BUG_ON(n_roots > ROOTS_MAX);
        w->loop = loop;
        memcpy(w->roots, roots, n_roots * sizeof *roots);
        w->n_roots = n_roots;
        w->changed = changed;
        w->u = u;
        loop_turn_init(&w->check, loop, on_check, w);
        loop_turn_start(&w->check);
        return w;
}

void toolkit_gpus_free(struct toolkit_gpus_watch *w) {
        if (!w)
                return;
        for (size_t i = 0; i < PLACES_MAX; i++)
                watch_file_stop(&w->places[i]);
        loop_turn_done(&w->check);
        free(w);
}
