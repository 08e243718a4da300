/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/monitor.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "gpu_plugin/health.h"
#include "nvidia/nvml_abi.h"
#include "nvidia/nvml_session.h"

/* ---- the file ---- */

/* Keeps the health of the GPUs in a file in the plugin's folder, so that it survives a restart
 * of the plugin. The ResourceSlices cannot replace the file, because the kubelet deletes them when it starts
 * and while the plugin is down. The module does not sync the file, because a file of an earlier boot is not
 * used. Loop thread only. */

struct health_file {
        char *path, *boot_id;
        char *text;  /* the last written text; NULL: not written yet */
        char *error; /* the last logged error, so that a full disk is logged once; NULL: none */
};

enum { TEXT_MAX = 1024 * 1024 };

static int health_file_load(struct health_file *f, struct health *h, struct err *e) {
        size_t n;
        if (file_read(f->path, TEXT_MAX, &f->text, &n, e) < 0)
                return e->kind == ERR_NOT_FOUND ? 0 : -1;
        return health_restore(h, (struct str){ f->text, n }, f->boot_id, e);
}

/* Reads the file into `h`, a new object. If the file cannot be read, the module logs this and later
 * overwrites the file. */
static void health_file_init(struct health_file *f, const char *folder, const char *boot_id,
                             struct health *h) {
        struct err e;
        *f = (struct health_file){ .path = file_join(folder, "health.json"), .boot_id = xstrdup(boot_id) };
        if (health_file_load(f, h, &e) < 0)
                log_error("earlier errors of GPUs are not known: check the kernel log for XIDs",
                          kv_str("file", f->path), kv_err(&e));
}

/* Writes the file if its text has changed. The caller calls it on each change of the health. A failure is
 * logged, and the write is retried on the next call. */
static void health_file_keep(struct health_file *f, const struct health *h) {
        struct buf b = BUF_INIT(TEXT_MAX);
        struct err e;
        health_render(h, f->boot_id, &b);
        if (streq(f->text, buf_str(&b))) {
                buf_done(&b);
                return;
        }
        if (file_replace_volatile(f->path, b.p, b.n, 0600, &e) == 0) {
                free(f->text);
                f->text = buf_steal(&b);
                free(TAKE(f->error));
                return;
        }
        if (!streq(f->error, e.msg)) {
                log_error("errors of GPUs will be lost at a restart of this plugin", kv_err(&e));
                free(f->error);
                f->error = xstrdup(e.msg);
        }
        buf_done(&b);
}

static void health_file_done(struct health_file *f) {
        free(f->path);
        free(f->boot_id);
        free(f->text);
        free(f->error);
}

/* ---- watching ---- */

enum { SILENT_MS = 4 * NVML_EVENT_WAIT_MS };

struct monitor {
        struct monitor_options o; /* except the XIDs and the members for the file */
        struct nvml_watch *watch;
        struct health *health;
        struct health_file file;
        const struct gpu_devices *devices; /* NULL: not known yet */
        struct loop_timer patience;
        struct err why; /* why the watch has failed */
};

/* Writes the file before the taints are published, so that the next process knows all published taints. */
static void monitor_notify(struct monitor *m) {
        health_file_keep(&m->file, m->health);
        m->o.changed(m->o.u);
}

/* A lost GPU has a taint. NVML_NOT_SUPPORTED: the GPU works, but has no events for XIDs. */
static bool is_doubtful(const struct nvml_watched *w) {
        for (size_t i = 0; i < w->n_gpus; i++) {
                int64_t error = w->gpus[i].error;
                if (error != NVML_OK && error != NVML_GPU_IS_LOST && error != NVML_NOT_SUPPORTED)
                        return true;
        }
        return false;
}

static void on_watched(void *u, const struct nvml_watched *w) {
        struct monitor *m = u;
        loop_timer_stop(&m->patience);
        bool news = health_watched(m->health, w);
        gpu_report_watch(m->o.report, NULL);
        if (!news)
                return;
        monitor_notify(m);
        if (is_doubtful(w))
                m->o.doubt(m->o.u);
}

static void report_xid(void *u, const struct gpu_device *d, uint64_t xid, bool of_program) {
        gpu_report_xid(u, d, xid, of_program);
}

static void monitor_on_xid(void *u, const struct nvml_event *ev) {
        struct monitor *m = u;
        if (m->devices && health_xid(m->health, m->devices, ev, report_xid, m->o.report))
                monitor_notify(m);
}

static void on_broken(void *u, const struct err *e) {
        struct monitor *m = u;
        m->why = *e;
        if (!loop_timer_waits(&m->patience))
                loop_timer_start(&m->patience, MONITOR_RESTART_MS);
}

static void monitor_on_patience(void *u) {
        struct monitor *m = u;
        bool news = health_unwatched(m->health);
        gpu_report_watch(m->o.report, &m->why);
        if (news)
                monitor_notify(m);
}

struct monitor *monitor_new(uv_loop_t *loop, const struct monitor_options *o) {
        struct monitor *m = xnew(struct monitor);
        m->o = *o;
        m->health = health_new(o->of_programs);
        health_file_init(&m->file, o->folder, o->boot_id, m->health);
        m->watch = nvml_watch_new(loop, &(struct nvml_watch_options){ .limits = NVML_LIMITS,
                                                                      .silent_ms = SILENT_MS,
                                                                      .watched = on_watched,
                                                                      .xid = monitor_on_xid,
                                                                      .broken = on_broken,
                                                                      .u = m });
        loop_timer_init(&m->patience, loop, monitor_on_patience, m);
        return m;
}

void monitor_follow(struct monitor *m, const struct gpus_state *s, const struct gpu_devices *d) {
        m->devices = d;
        nvml_watch_with(m->watch, s->library, s->fingerprint);
        if (!s->library) {
                loop_timer_stop(&m->patience);
                health_stopped(m->health);
        }
}

void monitor_forget_xids(struct monitor *m) {
        health_forget_xids(m->health);
        monitor_notify(m);
}

const struct health *monitor_health(const struct monitor *m) {
        return m->health;
}

void monitor_free(struct monitor *m) {
        if (!m)
                return;
        nvml_watch_free(m->watch);
        loop_timer_done(&m->patience);
        health_file_done(&m->file);
        health_free(m->health);
        free(m);
}
