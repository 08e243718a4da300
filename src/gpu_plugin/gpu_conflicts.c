/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_conflicts.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/stderr.h"
#include "base/watch_file.h"
#include "kube/kube_informer.h"

enum {
        OFFERS_MAX = 1024,
        ROOTS_MAX = 2,
        PLACES_MAX = (TOOLKIT_PATHS + TOOLKIT_RUNTIME_PATHS) * ROOTS_MAX,
        WHY_MAX = 400,
};

struct gpu_conflicts {
        uv_loop_t *loop;
        struct gpu_report *report;
        /* The device plugin. */
        struct kube_informer *informer;
        char *offers; /* as last reported; NULL: not yet */
        /* The container toolkit. */
        struct driver_root roots[ROOTS_MAX];
        size_t n_roots, n_places;
        struct watch_file places[PLACES_MAX];
        struct loop_turn check;
        bool known, unwatched;
        enum toolkit_gpus answer;
        char why[WHY_MAX];
};

/* ---- a device plugin ---- */

struct node_capacity {
        struct kube_object o;
        struct jd_pair *capacity;
        size_t n_capacity;
};
static const struct jd_field fields[] = {
        JD_OBJ(struct node_capacity, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct node_capacity, "status>capacity", capacity),
        JD_END,
};

/* The resource names of NVIDIA's device plugin: GPUs, shared GPUs, and MIG devices by their profile. */
static bool is_of_gpus(const char *resource) {
        return streq(resource, "nvidia.com/gpu") || streq(resource, "nvidia.com/gpu.shared") ||
               str_starts(resource, "nvidia.com/mig-");
}

static void on_capacity(void *u, const struct kube_object *old, const struct kube_object *now) {
        const struct node_capacity *n = (const struct node_capacity *)now;
        struct gpu_conflicts *v = u;
        struct buf offers = BUF_INIT(OFFERS_MAX);
        for (size_t i = 0; n && i < n->n_capacity; i++)
                if (is_of_gpus(n->capacity[i].key) && !streq(n->capacity[i].value, "0"))
                        buf_addf(&offers, "%s%s: %s", offers.n ? ", " : "", n->capacity[i].key,
                                 n->capacity[i].value);
        if (!streq(v->offers, buf_str(&offers))) {
                free(v->offers);
                v->offers = xstrdup(buf_str(&offers));
                gpu_report_device_plugin(v->report, v->offers);
        }
        buf_done(&offers);
}

static void on_capacity_failing(void *u, const struct kube_resource *res, const struct err *e) {
        const struct gpu_conflicts *v = u;
        if (e)
                log_warn("cannot watch the Node to detect a device plugin that also gives its GPUs to pods",
                         kv_str("node", v->report->node), kv_err(e));
}

/* ---- the container toolkit ---- */

static void on_place(struct watch_file *place) {
        struct gpu_conflicts *v = place->u;
        loop_turn_start(&v->check);
}

static void watch_place(struct gpu_conflicts *v, const struct driver_root *root, const char *path) {
        const char *star = strchr(path, '*');
        _cleanup_(freep) char *plain =
                xstrndup(path + 1, star ? (size_t)(star - path - 1) : strlen(path + 1));
        _cleanup_(freep) char *there = file_join(root->here, plain);
        struct err e;
        BUG_ON(v->n_places == PLACES_MAX);
        struct watch_file *place = &v->places[v->n_places++];
        watch_file_stop(place);
        place->u = v;
        if (watch_file_start_below(place, v->loop, root->here, there, on_place, &e) == 0)
                return;
        if (!v->unwatched)
                log_warn(
                        "cannot watch the configuration of the container runtime: a change is noticed at the "
                        "next "
                        "start only",
                        kv_err(&e));
        v->unwatched = true;
}

/* Watches all of them again, because folders in the paths may have been created or removed. */
static void watch_places(struct gpu_conflicts *v) {
        v->n_places = 0;
        for (size_t i = 0; i < v->n_roots; i++) {
                for (const char *const *path = toolkit_paths; *path; path++)
                        watch_place(v, &v->roots[i], *path);
                for (const char *const *path = toolkit_runtime_paths; *path; path++)
                        watch_place(v, &v->roots[i], *path);
        }
}

static void on_check(void *u) {
        struct gpu_conflicts *v = u;
        char why[WHY_MAX];
        watch_places(v); /* first, so that no change is missed */
        enum toolkit_gpus answer = toolkit_gives_gpus(v->roots, v->n_roots, why, sizeof why);
        if (v->known && answer == v->answer && streq(why, v->why))
                return;
        v->known = true;
        v->answer = answer;
        memcpy(v->why, why, sizeof why);
        gpu_report_toolkit(v->report, answer, v->why);
}

/* ---- both ---- */

struct gpu_conflicts *gpu_conflicts_new(uv_loop_t *loop, struct kube_client *c,
                                        const struct driver_root *roots, size_t n_roots,
                                        struct gpu_report *report) {
        struct gpu_conflicts *v = xnew(struct gpu_conflicts);
        BUG_ON(n_roots > ROOTS_MAX);
        v->loop = loop;
        v->report = report;
        memcpy(v->roots, roots, n_roots * sizeof *roots);
        v->n_roots = n_roots;
        v->informer = kube_informer_new(c, &(struct kube_informer_options){
                                                   .res = &kube_nodes,
                                                   .name = report->node,
                                                   .fields = fields,
                                                   .size = sizeof(struct node_capacity),
                                                   .first_from_cache = true,
                                                   .changed = on_capacity,
                                                   .failing = on_capacity_failing,
                                                   .u = v,
                                           });
        loop_turn_init(&v->check, loop, on_check, v);
        loop_turn_start(&v->check);
        return v;
}

void gpu_conflicts_free(struct gpu_conflicts *v) {
        if (!v)
                return;
        kube_informer_free(v->informer);
        for (size_t i = 0; i < PLACES_MAX; i++)
                watch_file_stop(&v->places[i]);
        loop_turn_done(&v->check);
        free(v->offers);
        free(v);
}
