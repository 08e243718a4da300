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
        struct gpu_conflicts_options o;
        /* The Node. */
        struct kube_informer *informer;
        bool was_cordoned; /* as last notified */
        char *offers;      /* as last reported; NULL: not yet */
        /* The container toolkit. */
        struct driver_root roots[ROOTS_MAX];
        size_t n_places;
        struct watch_file places[PLACES_MAX];
        struct loop_turn check;
        bool known, unwatched;
        enum toolkit_gpus answer;
        char why[WHY_MAX];
};

/* ---- the Node ---- */

struct node_capacity {
        struct kube_object o;
        bool unschedulable; /* it is cordoned */
        struct jd_pair *capacity;
        size_t n_capacity;
};
static const struct jd_field fields[] = {
        JD_OBJ(struct node_capacity, "metadata", o.meta, kube_f_meta),
        JD_BOOL(struct node_capacity, "spec>unschedulable", unschedulable),
        JD_MAP(struct node_capacity, "status>capacity", capacity),
        JD_END,
};

/* The resource names of NVIDIA's device plugin: GPUs, shared GPUs, and MIG devices by their profile. */
static bool is_of_gpus(const char *resource) {
        return streq(resource, "nvidia.com/gpu") || streq(resource, "nvidia.com/gpu.shared") ||
               str_starts(resource, "nvidia.com/mig-");
}

static void check_capacity(struct gpu_conflicts *v, const struct node_capacity *n) {
        struct buf offers = BUF_INIT(OFFERS_MAX);
        for (size_t i = 0; n && i < n->n_capacity; i++)
                if (is_of_gpus(n->capacity[i].key) && !streq(n->capacity[i].value, "0"))
                        buf_addf(&offers, "%s%s: %s", offers.n ? ", " : "", n->capacity[i].key,
                                 n->capacity[i].value);
        if (!streq(v->offers, buf_str(&offers))) {
                free(v->offers);
                v->offers = xstrdup(buf_str(&offers));
                gpu_report_device_plugin(v->o.report, v->offers);
        }
        buf_done(&offers);
}

static void gpu_conflicts_on_node(void *u, const struct kube_object *old, const struct kube_object *now) {
        const struct node_capacity *n = (const struct node_capacity *)now;
        struct gpu_conflicts *v = u;
        bool cordoned = n && n->unschedulable;
        check_capacity(v, n);
        if (cordoned == v->was_cordoned)
                return;
        v->was_cordoned = cordoned;
        v->o.cordoned(v->o.u, cordoned);
}

static void gpu_conflicts_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        const struct gpu_conflicts *v = u;
        if (e)
                log_warn("cannot watch the Node: it is not noticed that it is cordoned, or that a device "
                         "plugin also gives its GPUs to pods",
                         kv_str("node", v->o.report->node), kv_err(e));
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
        if (watch_file_start_below(place, v->o.loop, root->here, there, on_place, &e) == 0)
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
        for (size_t i = 0; i < v->o.n_roots; i++) {
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
        enum toolkit_gpus answer = toolkit_gives_gpus(v->roots, v->o.n_roots, why, sizeof why);
        if (v->known && answer == v->answer && streq(why, v->why))
                return;
        v->known = true;
        v->answer = answer;
        memcpy(v->why, why, sizeof why);
        gpu_report_toolkit(v->o.report, answer, v->why);
}

/* ---- both ---- */

struct gpu_conflicts *gpu_conflicts_new(const struct gpu_conflicts_options *o) {
        struct gpu_conflicts *v = xnew(struct gpu_conflicts);
        BUG_ON(o->n_roots > ROOTS_MAX);
        v->o = *o;
        memcpy(v->roots, o->roots, o->n_roots * sizeof *o->roots);
        v->o.roots = v->roots;
        v->informer = kube_informer_new(o->kube, &(struct kube_informer_options){
                                                         .res = &kube_nodes,
                                                         .name = o->report->node,
                                                         .fields = fields,
                                                         .size = sizeof(struct node_capacity),
                                                         .first_from_cache = true,
                                                         .changed = gpu_conflicts_on_node,
                                                         .failing = gpu_conflicts_on_failing,
                                                         .u = v,
                                                 });
        loop_turn_init(&v->check, o->loop, on_check, v);
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
