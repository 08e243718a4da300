/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/monitor.h"

#include "base/loop.h"
#include "gpu_plugin/health_file.h"

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

static void on_watched(void *u, const struct nvml_watched *w) {
        struct monitor *m = u;
        loop_timer_stop(&m->patience);
        bool news = health_watched(m->health, w);
        m->o.watch(m->o.u, NULL);
        if (news)
                monitor_notify(m);
}

static void monitor_on_xid(void *u, const struct nvml_event *ev) {
        struct monitor *m = u;
        if (m->devices && health_xid(m->health, m->devices, ev, m->o.xid, m->o.u))
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
        m->o.watch(m->o.u, &m->why);
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
        if (!s->library) /* no GPU is offered, so there is nothing to watch */
                loop_timer_stop(&m->patience);
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
