/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/timeslice.h"

#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "base/loop.h"

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
                err_set(e, ERR_RETRY, 0, "error running nvidia-smi: it has not ended within %d s",
                        TIMESLICE_TIMEOUT_MS / 1000);
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

static void timeslice_on_ended(void *u, const struct child_result *r) {
        struct timeslice *t = u;
        struct err e;
        t->child = NULL;
        if (timeslice_check(t, r, &e) == 0) {
                t->at++;
        } else if (t->back) {
                log_warn("cannot reset the time slice of a GPU", kv_err(&e));
                t->at++;
        } else {
                if (!t->failed.kind)
                        t->failed = e;
                if (!t->o.all_or_none) {
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
                                                               .timeout_ms = TIMESLICE_TIMEOUT_MS,
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

struct timeslice *timeslice_start(uv_loop_t *loop, const struct timeslice_options *o) {
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

void timeslice_cancel(struct timeslice *t) {
        if (t)
                timeslice_end(t);
}
