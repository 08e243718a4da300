/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/health.h"

#include <string.h>
#include <sys/queue.h>

#include "api/names.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "nvidia/nvml_abi.h"

/* ---- XIDs of programs ---- */

bool xids_add(struct xids *x, const char *list, struct str *ret_bad) {
        struct str rest = str_from(list), word;
        bool ok = true;
        while (str_next_field(&rest, ',', &word)) {
                int64_t xid;
                word = str_trim(word);
                if (!word.n)
                        continue;
                if (x->n < XIDS_ADDED_MAX && str_to_i64(word, &xid) && xid >= 0) {
                        x->added[x->n++] = (uint64_t)xid;
                } else if (ok) {
                        *ret_bad = word;
                        ok = false;
                }
        }
        return ok;
}

bool xids_of_programs(const struct xids *x, uint64_t xid) {
        static const uint64_t always[] = { 13, 31, 43, 45, 68, 109 };
        for (size_t i = 0; i < ARRAY_LEN(always); i++) {
                if (always[i] == xid)
                        return true;
        }
        for (size_t i = 0; i < x->n; i++) {
                if (x->added[i] == xid)
                        return true;
        }
        return false;
}

/* ---- health ---- */

enum { TAINTS_MAX = 3, REPORTS_MAX = 1024 };

/* The UUID identifies the device, because another device may have its name later. */
struct xid_report {
        TAILQ_ENTRY(xid_report) link;
        char *uuid; /* of a GPU or a MIG device */
        uint64_t xid;
        bool of_program;
};

struct watched_gpu {
        char *uuid; /* "": NVML did not name the GPU */
        int64_t error;
};

struct health {
        struct xids of_programs;
        TAILQ_HEAD(, xid_report) reports; /* the oldest first */
        size_t n_reports;
        enum { NOT_YET, WATCHED, UNWATCHED } state;
        struct watched_gpu *gpus; /* the last answer, or GPUs that were lost before the start */
        size_t n_gpus, gpus_room;
};

struct health *health_new(const struct xids *of_programs) {
        struct health *h = xnew(struct health);
        h->of_programs = *of_programs;
        TAILQ_INIT(&h->reports);
        return h;
}

static void forget_report(struct health *h, struct xid_report *r) {
        TAILQ_REMOVE(&h->reports, r, link);
        h->n_reports--;
        free(r->uuid);
        free(r);
}

static void forget_gpus(struct health *h) {
        for (size_t i = 0; i < h->n_gpus; i++)
                free(h->gpus[i].uuid);
        free(h->gpus);
        h->gpus = NULL;
        h->n_gpus = h->gpus_room = 0;
}

static void add_gpu(struct health *h, const char *uuid, int64_t error) {
        GROW(h->gpus, h->n_gpus, h->gpus_room);
        h->gpus[h->n_gpus++] = (struct watched_gpu){ xstrdup(uuid), error };
}

void health_forget_xids(struct health *h) {
        while (!TAILQ_EMPTY(&h->reports))
                forget_report(h, TAILQ_FIRST(&h->reports));
}

void health_free(struct health *h) {
        if (!h)
                return;
        health_forget_xids(h);
        forget_gpus(h);
        free(h);
}

/* ---- watched GPUs ---- */

static bool health_same(const struct health *h, const struct nvml_watched *w) {
        if (h->state != WATCHED || h->n_gpus != w->n_gpus)
                return false;
        for (size_t i = 0; i < w->n_gpus; i++) {
                if (!streq(h->gpus[i].uuid, w->gpus[i].uuid) || h->gpus[i].error != w->gpus[i].error)
                        return false;
        }
        return true;
}

bool health_watched(struct health *h, const struct nvml_watched *w) {
        if (health_same(h, w))
                return false;
        forget_gpus(h);
        h->state = WATCHED;
        for (size_t i = 0; i < w->n_gpus; i++)
                add_gpu(h, w->gpus[i].uuid, w->gpus[i].error);
        return true;
}

/* A lost GPU stays lost when the watch ends. */
bool health_unwatched(struct health *h) {
        bool news = h->state != UNWATCHED;
        h->state = UNWATCHED;
        return news;
}

void health_stopped(struct health *h) {
        h->state = NOT_YET;
}

bool health_settled(const struct health *h) {
        return h->state != NOT_YET;
}

static const char *gpu_of(const struct gpu_device *d) {
        return d->kind == GPU_MIG ? d->parent_uuid : d->uuid;
}

/* NVML's result for the device's GPU; 0: the GPU is watched. A result without a UUID applies to the GPUs that
 * have no other result. */
static int64_t health_error_of(const struct health *h, const struct gpu_device *d) {
        int64_t nameless = h->state != NOT_YET && h->n_gpus ? NVML_NOT_FOUND : NVML_OK;
        for (size_t i = 0; i < h->n_gpus; i++) {
                if (streq(h->gpus[i].uuid, gpu_of(d)))
                        return h->gpus[i].error;
                if (!*h->gpus[i].uuid && nameless != NVML_GPU_IS_LOST)
                        nameless = h->gpus[i].error;
        }
        return nameless;
}

/* ---- XIDs ---- */

static struct xid_report *health_find(const struct health *h, const char *uuid) {
        struct xid_report *r;
        TAILQ_FOREACH (r, &h->reports, link) {
                if (streq(r->uuid, uuid))
                        return r;
        }
        return NULL;
}

static bool concerns(const struct nvml_event *ev, const struct gpu_device *d) {
        const char *gpu = gpu_of(d);
        if (!gpu || !str_eq(ev->uuid, str_from(gpu)))
                return false;
        return d->kind != GPU_MIG ||
               ((ev->gpu_instance < 0 || ev->gpu_instance == (int64_t)d->gpu_instance) &&
                (ev->compute_instance < 0 || ev->compute_instance == (int64_t)d->compute_instance));
}

/* An error of a program replaces no earlier XID. Otherwise a program that causes different errors in turn
 * could cause a write of the file and of the slice for each of them. */
static bool health_note(struct health *h, const char *uuid, uint64_t xid, bool of_program) {
        struct xid_report *r = health_find(h, uuid);
        if (r && (of_program || (r->xid == xid && !r->of_program)))
                return false;
        if (!r) {
                r = xnew(struct xid_report);
                r->uuid = xstrdup(uuid);
                TAILQ_INSERT_TAIL(&h->reports, r, link);
                h->n_reports++;
        }
        r->xid = xid;
        r->of_program = of_program;
        if (h->n_reports > REPORTS_MAX) /* usually of MIG devices that no longer exist */
                forget_report(h, TAILQ_FIRST(&h->reports));
        return true;
}

/* An XID of the whole GPU is recorded once for the GPU: MIG may be reconfigured later. */
bool health_xid(struct health *h, const struct gpu_devices *devices, const struct nvml_event *ev,
                health_report_fn *report, void *u) {
        bool of_program = xids_of_programs(&h->of_programs, ev->xid), of_gpu = ev->gpu_instance < 0;
        bool any = false, listed = false;
        for (size_t i = 0; i < devices->n; i++) {
                const struct gpu_device *d = &devices->items[i];
                if (!concerns(ev, d))
                        continue;
                listed = true;
                if (!(any && of_gpu) && !health_note(h, of_gpu ? gpu_of(d) : d->uuid, ev->xid, of_program))
                        continue;
                any = true;
                report(u, d, ev->xid, of_program);
        }
        /* The GPU is left out now, and may be listed again. */
        if (of_gpu && !listed) {
                _cleanup_(freep) char *uuid = xstrndup(ev->uuid.p, ev->uuid.n);
                any = health_note(h, uuid, ev->xid, of_program);
                if (any)
                        log_warn("a GPU that is not offered has reported an error", kv_str("uuid", uuid),
                                 kv_int("xid", (int64_t)ev->xid));
        }
        return any;
}

/* Returns the XID of the device or of its GPU. An error of a program hides no error of the other. */
static const struct xid_report *health_report_of(const struct health *h, const struct gpu_device *d) {
        const struct xid_report *own = health_find(h, d->uuid), *gpus = health_find(h, gpu_of(d));
        return gpus && (!own || own->of_program || !gpus->of_program) ? gpus : own;
}

/* ---- state across a restart ---- */

struct kept_xid {
        const char *uuid;
        int64_t xid;
        bool of_program;
};
struct kept {
        const char *boot_id;
        struct kept_xid *xids;
        size_t n_xids;
        const char **lost;
        size_t n_lost;
};
static const struct jd_field f_xid[] = { JD_STR(struct kept_xid, "uuid", uuid, .required = true),
                                         JD_INT(struct kept_xid, "xid", xid, .required = true),
                                         JD_BOOL(struct kept_xid, "ofProgram", of_program), JD_END };
static const struct jd_field f_kept[] = { JD_STR(struct kept, "bootID", boot_id, .required = true),
                                          JD_LIST(struct kept, "xids", xids, struct kept_xid, f_xid),
                                          JD_STRS(struct kept, "lost", lost), JD_END };

void health_render(const struct health *h, const char *boot_id, struct buf *out) {
        const struct xid_report *r;
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_str(&w, "bootID", boot_id);
        jw_arr(&w, "xids");
        TAILQ_FOREACH (r, &h->reports, link) {
                jw_obj(&w, NULL);
                jw_str(&w, "uuid", r->uuid);
                jw_int(&w, "xid", (int64_t)r->xid);
                jw_bool(&w, "ofProgram", r->of_program);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_arr(&w, "lost");
        for (size_t i = 0; i < h->n_gpus; i++) {
                if (h->gpus[i].error == NVML_GPU_IS_LOST && *h->gpus[i].uuid)
                        jw_str(&w, NULL, h->gpus[i].uuid);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
}

int health_restore(struct health *h, struct str text, const char *boot_id, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct kept k = { 0 };
        if (jd_decode_text(f_kept, text, "", a, &k, e) < 0)
                return -1;
        if (!streq(k.boot_id, boot_id))
                return 0;
        for (size_t i = 0; i < k.n_xids; i++) {
                if (k.xids[i].xid >= 0)
                        health_note(h, k.xids[i].uuid, (uint64_t)k.xids[i].xid, k.xids[i].of_program);
        }
        for (size_t i = 0; i < k.n_lost; i++)
                add_gpu(h, k.lost[i], NVML_GPU_IS_LOST);
        return 0;
}

/* ---- taints ---- */

size_t health_taints(const struct health *h, const struct gpu_device *d, struct arena *a,
                     const struct offered_taint **ret) {
        struct offered_taint *t = arena_alloc(a, TAINTS_MAX * sizeof *t);
        int64_t error = health_error_of(h, d);
        const struct xid_report *r = health_report_of(h, d);
        size_t n = 0;
        if (error == NVML_GPU_IS_LOST)
                t[n++] = (struct offered_taint){ GPU_TAINT_LOST, "", EFFECT_NO_SCHEDULE };
        if (h->state == UNWATCHED || (error && error != NVML_GPU_IS_LOST))
                t[n++] = (struct offered_taint){ GPU_TAINT_UNMONITORED, "", EFFECT_NONE };
        if (r)
                t[n++] = (struct offered_taint){ GPU_TAINT_XID,
                                                 arena_printf(a, "%llu", (unsigned long long)r->xid),
                                                 r->of_program ? EFFECT_NONE : EFFECT_NO_SCHEDULE };
        *ret = t;
        return n;
}

size_t health_count(const struct health *h, const struct gpu_devices *devices, const char *key,
                    const char *effect) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        size_t count = 0;
        for (size_t i = 0; i < devices->n; i++) {
                const struct offered_taint *taints;
                size_t n = health_taints(h, &devices->items[i], a, &taints);
                for (size_t j = 0; j < n; j++)
                        count += streq(taints[j].key, key) && streq(taints[j].effect, effect);
        }
        return count;
}
