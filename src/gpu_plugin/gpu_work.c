/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_work.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/gpu_config.h"
#include "api/names.h"
#include "api/reasons.h"
#include "base/child.h"
#include "base/log.h"
#include "base/loop.h"
#include "gpu_plugin/gpu_record.h"
#include "gpu_plugin/gpu_state.h"
#include "node/ops.h"
#include "nvidia/driver_root.h"
#include "nvidia/nvml_session.h"

/* ---- nvidia-smi ---- */

/* Sets the time slice of a GPU (how long it runs one process before it switches to the next) and
 * its compute mode.
 *
 * NVML has no call for the time slice, so the driver's own nvidia-smi sets both, as with the Go driver: first
 * the mode of all GPUs (`-i <uuid> -c DEFAULT`), then the slice (`compute-policy -i <uuid> --set-timeslice
 * <0..3>`). One nvidia-smi runs at a time, with a time-out. Loop thread only. */

/* Called once, after timeslice_start() has returned. The module frees the object after the call. e NULL: all
 * GPUs are set. Otherwise e is the first failure, with the output of nvidia-smi. */
typedef void(timeslice_done_fn)(void *u, const struct err *e);

struct timeslice_gpu {
        const char *uuid; /* UUID of a whole GPU */
        enum gpu_interval interval;
        bool mode_only; /* set only the compute mode, not the time slice */
};
struct timeslice_options {
        struct driver_root root;          /* borrowed until done() */
        const struct timeslice_gpu *gpus; /* copied */
        size_t n;
        /* True: after a failure, GPUs that were already changed are reset to the default, and the others are
         * not changed. False: a failure does not stop the module from setting the other GPUs, except a
         * time-out. */
        bool all_or_none;
        unsigned timeout_ms; /* for each run of nvidia-smi */
        timeslice_done_fn *done;
        void *u;
};

struct timeslice;

enum { OUTPUT_MAX = 16384, LAST_LINE_MAX = 160 };
/* environment LD_PRELOAD of gpu-kubelet-plugin: nvidia-smi is started with libnvidia-ml added to it */
#define PRELOAD "LD_PRELOAD"

extern char **environ;

struct timeslice {
        struct timeslice_options o; /* except the GPUs */
        uv_loop_t *loop;
        struct arena *arena;
        struct timeslice_gpu *gpus;
        size_t n;
        size_t at; /* the step: first the mode of each GPU, then the slice of each GPU */
        bool back; /* a step has failed, and the GPUs before it get the default */
        struct err failed;
        const char *smi;
        const char **env;
        struct child *child;
        struct loop_turn turn;
};

static void timeslice_end(struct timeslice *t) {
        child_cancel(t->child);
        loop_turn_done(&t->turn);
        arena_free(t->arena);
        free(t);
}

static void timeslice_finish(struct timeslice *t) {
        struct err e = t->failed;
        timeslice_done_fn *done = t->o.done;
        void *u = t->o.u;
        timeslice_end(t);
        done(u, e.kind ? &e : NULL);
}

/* Our environment, with NVML's library preloaded: nvidia-smi needs it, and our container's loader does not
 * search its folder. */
static const char **environment(struct arena *a, const char *library) {
        size_t n = 0, at = 0;
        while (environ[n])
                n++;
        const char **env = arena_alloc(a, (n + 2) * sizeof *env), *before = getenv(PRELOAD);
        for (size_t i = 0; i < n; i++) {
                if (!str_starts(environ[i], PRELOAD "="))
                        env[at++] = arena_strdup(a, environ[i]);
        }
        env[at] = before && *before ? arena_printf(a, PRELOAD "=%s:%s", library, before)
                                    : arena_printf(a, PRELOAD "=%s", library);
        return env;
}

static int timeslice_find(struct timeslice *t, struct err *e) {
        struct driver_file smi, library;
        if (driver_root_find_binary(&t->o.root, "nvidia-smi", t->arena, &smi, e) < 0 ||
            driver_root_find_library(&t->o.root, "libnvidia-ml.so.1", t->arena, &library, e) < 0)
                return -1;
        t->smi = smi.here;
        t->env = environment(t->arena, library.here);
        return 0;
}

/* The last line has the reason. */
static struct str last_line(struct str out) {
        struct str rest = out, line, last = { 0 };
        while (str_next_line(&rest, &line)) {
                line = str_trim(line);
                if (line.n)
                        last = line;
        }
        if (last.n > LAST_LINE_MAX)
                last.n = LAST_LINE_MAX;
        return last;
}

static bool sets_mode(const struct timeslice *t) {
        return t->at < t->n;
}

static int timeslice_check(const struct timeslice *t, const struct child_result *r, struct err *e) {
        struct str why = last_line(r->out);
        if (r->err)
                *e = *r->err;
        else if (r->timed_out)
                err_set(e, ERR_RETRY, 0, "error running nvidia-smi: it has not ended within %u s",
                        t->o.timeout_ms / 1000);
        else if (r->term_signal)
                err_set(e, ERR_RETRY, 0, "error running nvidia-smi: signal %d", r->term_signal);
        else if (r->exit_status)
                err_set(e, ERR_RETRY, 0, "error running nvidia-smi: exit status %d: %.*s", r->exit_status,
                        (int)why.n, why.p);
        else
                return 0;
        e->kind = ERR_RETRY;
        return err_wrap(e, "error setting %s: GPU %s", sets_mode(t) ? "compute mode" : "time slice",
                        t->gpus[t->at % t->n].uuid);
}

static void timeslice_next(struct timeslice *t);

/* The driver hangs, and would hang at each further step. */
static void timeslice_skip_rest(struct timeslice *t) {
        struct buf rest = BUF_INIT(4096);
        const struct err e = t->failed;
        for (size_t i = sets_mode(t) ? 0 : t->at - t->n; i < t->n; i++)
                buf_addf(&rest, " %s", t->gpus[i].uuid);
        err_set(&t->failed, e.kind, e.code, "%s; not set:%s", e.msg, buf_str(&rest));
        buf_done(&rest);
        t->at = 2 * t->n;
}

static void timeslice_on_ended(void *u, const struct child_result *r) {
        struct timeslice *t = u;
        struct err e;
        t->child = NULL;
        if (timeslice_check(t, r, &e) == 0) {
                t->at++;
        } else if (t->back) {
                log_warn("cannot reset the time slice of a GPU", kv_err(&e));
                t->at = r->timed_out ? 2 * t->n : t->at + 1;
        } else {
                if (!t->failed.kind)
                        t->failed = e;
                if (!t->o.all_or_none && r->timed_out) {
                        timeslice_skip_rest(t);
                } else if (!t->o.all_or_none) {
                        t->at++;
                } else if (sets_mode(t)) {
                        t->at = 2 * t->n; /* no slice has been set */
                } else {
                        t->back = true;
                        t->n = t->at - t->n + 1; /* also this GPU, which may have been set in part */
                        t->at = t->n;
                }
        }
        timeslice_next(t);
}

static void timeslice_next(struct timeslice *t) {
        while (!sets_mode(t) && t->at < 2 * t->n && t->gpus[t->at % t->n].mode_only)
                t->at++;
        if (t->at == 2 * t->n) {
                timeslice_finish(t);
                return;
        }
        const struct timeslice_gpu *gpu = &t->gpus[t->at % t->n];
        const char *slice = arena_printf(t->arena, "%d", t->back ? GPU_INTERVAL_DEFAULT : gpu->interval);
        const char *const mode[] = { t->smi, "-i", gpu->uuid, "-c", "DEFAULT", NULL };
        const char *const policy[] = { t->smi, "compute-policy", "-i", gpu->uuid, "--set-timeslice", slice,
                                       NULL };
        t->child = child_run(t->loop, &(struct child_options){ .argv = sets_mode(t) ? mode : policy,
                                                               .env = t->env,
                                                               .timeout_ms = t->o.timeout_ms,
                                                               .max_output = OUTPUT_MAX,
                                                               .done = timeslice_on_ended,
                                                               .u = t });
}

static void timeslice_begin(void *u) {
        struct timeslice *t = u;
        if (timeslice_find(t, &t->failed) < 0) {
                t->failed.kind = ERR_RETRY;
                timeslice_finish(t);
        } else {
                timeslice_next(t);
        }
}

static struct timeslice *timeslice_start(uv_loop_t *loop, const struct timeslice_options *o) {
        struct timeslice *t = xnew(struct timeslice);
        t->o = *o;
        t->loop = loop;
        t->arena = arena_new(1024);
        t->n = o->n;
        t->gpus = arena_alloc(t->arena, (t->n + 1) * sizeof *t->gpus);
        for (size_t i = 0; i < t->n; i++)
                t->gpus[i] = (struct timeslice_gpu){ arena_strdup(t->arena, o->gpus[i].uuid),
                                                     o->gpus[i].interval, o->gpus[i].mode_only };
        loop_turn_init(&t->turn, loop, timeslice_begin, t);
        loop_turn_start(&t->turn);
        return t;
}

/* Kills the running nvidia-smi and frees the object; done() is not called. NULL is allowed. */
static void timeslice_cancel(struct timeslice *t) {
        if (t)
                timeslice_end(t);
}

/* ---- work ---- */

enum { PATIENCE_MS = 10000 };

struct gpu_work {
        TAILQ_ENTRY(gpu_work) link; /* while it waits until the GPUs are known */
        struct gpu *g;
        struct op *op;
        struct timeslice *running; /* NULL: it waits */
        const char *requests;      /* of a Prepare: the requests whose GPUs are set */
        char *status;              /* of the claim, while it waits */
        struct loop_timer patience;
};

bool gpu_work_slices(const struct node_request *w) {
        const struct gpu_request *own = gpu_want_of(w);
        return own->kind == GPU_CONFIG_GPU && own->config.sharing == GPU_TIME_SLICING &&
               !w->result->admin_access;
}

/* nvidia-smi may attach all GPUs of the node while it searches for a UUID. If it is killed during this, a GPU
 * can become unusable. So the limits are those of NVML's process. Each GPU is a device, has MIG devices, or
 * is left out. */
static unsigned smi_timeout_ms(const struct gpu *g) {
        size_t gpus = g->devices ? g->devices->n + g->devices->n_left_out : INVENTORY_GPUS_MAX;
        return NVML_LIMITS.start_ms + (unsigned)gpus * NVML_LIMITS.silent_ms;
}

static void gpu_work_start(struct gpu *g, struct op *op, const struct timeslice_gpu *gpus, size_t n,
                           const char *requests, timeslice_done_fn *done) {
        struct gpu_work *w = op->work;
        if (!w)
                w = op->work = xnew(struct gpu_work);
        w->g = g;
        w->op = op;
        w->requests = requests;
        w->running = timeslice_start(g->claims->o.loop,
                                     &(struct timeslice_options){ .root = g->o.root,
                                                                  .gpus = gpus,
                                                                  .n = n,
                                                                  .all_or_none = requests != NULL,
                                                                  .timeout_ms = smi_timeout_ms(g),
                                                                  .done = done,
                                                                  .u = w });
}

static void stop_waiting(struct gpu_work *w) {
        if (!w->status)
                return;
        TAILQ_REMOVE(&w->g->waiting, w, link);
        loop_timer_done(&w->patience);
        free(TAKE(w->status));
}

static struct op *ended(struct gpu_work *w) {
        struct op *op = w->op;
        op->work = NULL;
        stop_waiting(w);
        free(w);
        return op;
}

void gpu_work_cancel(void *u, struct op *op) {
        struct gpu_work *w = op->work;
        timeslice_cancel(w->running);
        ended(w);
}

/* ---- preparing ---- */

static void on_set(void *u, const struct err *error) {
        struct gpu_work *w = u;
        const char *requests = w->requests;
        struct op *op = ended(w);
        struct err e;
        if (!error) {
                op_worked(op, NULL);
                return;
        }
        e = *error;
        err_wrap(&e, "error setting timeslice config for requests '[%s]' in claim '%s'", requests, op->uid);
        op_worked(op, &e);
}

static void report_admin_claim(const struct gpu *g, const struct op *op, const struct node_request *w) {
        const struct event_about claim = { "resource.k8s.io/v1", "ResourceClaim", op->ns, op->name, op->uid };
        event_record(
                g->claims->o.events, &claim, EVENT_WARNING, REASON_TIME_SLICE_NOT_SET,
                "the time slice of '%s' on node %s is not changed, because request '%s' has admin access: "
                "leave the configuration out; it belongs to the claim that uses the GPU",
                w->result->device, g->o.node, w->result->request);
}

static bool is_first(const struct timeslice_gpu *gpus, size_t n, const char *uuid) {
        for (size_t i = 0; i < n; i++) {
                if (streq(gpus[i].uuid, uuid))
                        return false;
        }
        return true;
}

bool gpu_work_begin(void *u, struct op *op) {
        struct gpu *g = u;
        struct timeslice_gpu *gpus = arena_alloc(op->arena, (op->n_requests + 1) * sizeof *gpus);
        const char *requests = "";
        size_t n = 0;
        if (op_prepared_before(op)) /* the time slices are set already */
                return false;
        for (size_t i = 0; i < op->n_requests; i++) {
                const struct node_request *w = &op->requests[i];
                const struct gpu_device *d = gpu_device_find(g->devices, w->result->device);
                if (w->result->admin_access && gpu_want_of(w)->config.sharing == GPU_TIME_SLICING)
                        report_admin_claim(g, op, w);
                if (!gpu_work_slices(w) || !d || !is_first(gpus, n, d->uuid))
                        continue;
                gpus[n] = (struct timeslice_gpu){ .uuid = d->uuid,
                                                  .interval = gpu_want_of(w)->config.interval };
                requests = arena_printf(op->arena, "%s%s%s", requests, n++ ? " " : "", w->result->request);
        }
        if (n)
                gpu_work_start(g, op, gpus, n, requests, on_set);
        return n > 0;
}

/* ---- unpreparing ---- */

/* Unprepare succeeds even if nvidia-smi fails. */
static void on_set_back(void *u, const struct err *e) {
        struct gpu_work *w = u;
        struct gpu *g = w->g;
        struct op *op = ended(w);
        if (e) {
                log_warn("GPUs keep the time slice or compute mode of an unprepared claim",
                         kv_str("uid", op->uid), kv_err(e));
                event_record(g->claims->o.events, EVENT_NODE(g->o.node), EVENT_WARNING,
                             REASON_TIME_SLICE_NOT_RESET,
                             "a GPU may keep the time slice or compute mode of the unprepared claim %s: "
                             "%s; on the node: nvidia-smi compute-policy -i <UUID> --set-timeslice 0; "
                             "nvidia-smi -i <UUID> -c DEFAULT",
                             op->uid, e->msg);
        }
        op_worked(op, NULL);
}

static struct claim claim_of(struct str status, struct arena *a) {
        const char *text = arena_printf(a,
                                        "{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"1\"},"
                                        "\"status\":%.*s}",
                                        (int)status.n, status.p);
        struct claim claim = { 0 };
        struct err ignored;
        return jd_decode_text(claim_fields, str_from(text), "", a, &claim, &ignored) == 0
                       ? claim
                       : (struct claim){ 0 };
}

static enum gpu_sharing sharing_of(const struct claim *claim, const struct claim_result *r) {
        struct gpu_config_choice choice;
        struct gates all = { 0 };
        struct err ignored;
        all.on[GATE_TIME_SLICING_SETTINGS] = all.on[GATE_MPS_SUPPORT] = true; /* perhaps on then */
        bool ours = streq(r->driver, GPU_DRIVER) && !r->admin_access;
        return ours && gpu_config_for(claim, r, GPU_CONFIG_GPU, &all, &choice, &ignored) == 0
                       ? choice.config.sharing
                       : GPU_EXCLUSIVE;
}

/* Releases of the Go driver do not record that they have set a time slice. The oldest ones do not record the
 * claim's allocation. A record that was rebuilt from a CDI file of this driver has no requests. */
static bool may_be_sliced(const struct claim *claim, const struct node_device *d) {
        for (size_t i = 0; i < claim->n_results; i++) {
                const struct claim_result *r = &claim->results[i];
                if (streq(r->device, d->name) && sharing_of(claim, r) == GPU_TIME_SLICING)
                        return true;
        }
        return !claim->n_results && d->requests && *d->requests;
}

/* What a completed claim has set on a GPU. */
static enum gpu_sharing set_by(const struct checkpoint_claim *entry, const struct node_device *d,
                               struct arena *a) {
        if (!streq(str_or(d->type, GPU_TYPE_FULL), GPU_TYPE_FULL) || d->admin || !d->group_info)
                return GPU_EXCLUSIVE;
        /* The Go driver gives a GPU with an MPS daemon the mode EXCLUSIVE_PROCESS. */
        bool mps = foreign_mps_daemon(d, a);
        const struct claim claim = claim_of(entry->status, a);
        return strstr(d->group_info, "\"timeSliceApplied\":true") ? GPU_TIME_SLICING
               : mps                                              ? GPU_MPS
               : may_be_sliced(&claim, d)                         ? GPU_TIME_SLICING
                                                                  : GPU_EXCLUSIVE;
}

/* Returns true if another claim has set the GPU, or may be setting it. A claim that was never completed does
 * not hold its devices. A claim that sets nothing may have got the GPU with the time slice of one that was
 * never completed. */
static bool set_by_another(const struct gpu *g, const char *uid, const char *device, struct arena *a) {
        CHECKPOINT_EACH_DEVICE (&g->claims->journal.table, e, d) {
                if (!streq(e->uid, uid) && streq(d->name, device) && set_by(e, d, a) != GPU_EXCLUSIVE)
                        return true;
        }
        return ops_working_on(g->claims, uid, device);
}

/* For a claim that was never completed, only its allocation is recorded. */
static size_t begun(const struct gpu *g, const char *uid, struct str status, struct arena *a,
                    struct timeslice_gpu **ret) {
        const struct claim claim = claim_of(status, a);
        size_t n = 0;
        struct timeslice_gpu *gpus = arena_alloc(a, (claim.n_results + 1) * sizeof *gpus);
        for (size_t i = 0; i < claim.n_results; i++) {
                const struct claim_result *r = &claim.results[i];
                const struct gpu_device *d = gpu_device_find(g->devices, str_or(r->device, ""));
                enum gpu_sharing sharing = sharing_of(&claim, r);
                if (d && d->kind == GPU_FULL && sharing != GPU_EXCLUSIVE &&
                    !set_by_another(g, uid, d->name, a))
                        gpus[n++] =
                                (struct timeslice_gpu){ .uuid = d->uuid, .mode_only = sharing == GPU_MPS };
        }
        *ret = gpus;
        return n;
}

static size_t completed(const struct checkpoint_claim *entry, struct arena *a, struct timeslice_gpu **ret) {
        struct timeslice_gpu *gpus = arena_alloc(a, (entry->n_devices + 1) * sizeof *gpus);
        size_t n = 0;
        for (size_t i = 0; i < entry->n_devices; i++) {
                const struct node_device *d = &entry->devices[i];
                enum gpu_sharing set = set_by(entry, d, a);
                const char *uuid = gpu_record_uuid(d, a);
                if (uuid && *uuid && set != GPU_EXCLUSIVE)
                        gpus[n++] = (struct timeslice_gpu){ .uuid = uuid, .mode_only = set == GPU_MPS };
        }
        *ret = gpus;
        return n;
}

bool gpu_work_resets(const struct gpu *g, const char *uuid) {
        const struct op *op;
        TAILQ_FOREACH (op, &g->claims->ops, link) {
                const struct gpu_work *w = op->work;
                if (!w || w->requests || !w->running)
                        continue;
                for (size_t i = 0; i < w->running->n; i++) {
                        if (streq(w->running->gpus[i].uuid, uuid))
                                return true;
                }
        }
        return false;
}

static void gpu_work_on_patience(void *u) {
        struct gpu_work *w = u;
        struct err e;
        err_set(&e, ERR_RETRY, 0, "%s", str_or(w->g->why, "the GPUs of this node are not known"));
        on_set_back(w, &e);
}

/* A plugin that has just started will know the GPUs soon. */
static void wait_for_gpus(struct gpu *g, struct op *op, struct str status) {
        struct gpu_work *w = op->work = xnew(struct gpu_work);
        w->g = g;
        w->op = op;
        w->status = xstrndup(status.p, status.n);
        TAILQ_INSERT_TAIL(&g->waiting, w, link);
        loop_timer_init(&w->patience, g->claims->o.loop, gpu_work_on_patience, w);
        loop_timer_start(&w->patience, PATIENCE_MS);
}

void gpu_work_known(struct gpu *g) {
        struct gpu_work *w;
        while (g->devices && (w = TAILQ_FIRST(&g->waiting))) {
                _cleanup_(arena_freep) struct arena *a = arena_new(1024);
                struct timeslice_gpu *gpus;
                size_t n = begun(g, w->op->uid, str_from(w->status), a, &gpus);
                stop_waiting(w);
                if (n)
                        gpu_work_start(g, w->op, gpus, n, NULL, on_set_back);
                else
                        op_worked(ended(w), NULL);
        }
}

static bool may_be_set(const char *status) {
        return strstr(status, "\"TimeSlicing\"") || strstr(status, "\"MPS\"");
}

bool gpu_work_undo(void *u, struct op *op, const struct checkpoint_claim *entry) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct gpu *g = u;
        struct timeslice_gpu *gpus = NULL;
        size_t n = 0;
        if (entry->state == CHECKPOINT_COMPLETED) {
                n = completed(entry, a, &gpus);
        } else if (may_be_set(arena_strndup(a, entry->status.p, entry->status.n))) {
                if (!g->devices) {
                        wait_for_gpus(g, op, entry->status);
                        return true;
                }
                n = begun(g, op->uid, entry->status, a, &gpus);
        }
        if (n)
                gpu_work_start(g, op, gpus, n, NULL, on_set_back);
        return n > 0;
}
