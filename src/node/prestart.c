/* SPDX-License-Identifier: Apache-2.0 */
#include "node/prestart.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/watch_file.h"
#include "nvidia/driver_root.h"

enum {
        FIRST_MS = 250,
        LAST_MS = 5000, /* a driver root that is mounted later causes no event here */
        HINT_EVERY_MS = 60000,
};

/* Folders of the root in which files may appear, each after its parent. Watches of missing folders are
 * retried each time. */
static const char *const watched[] = { "/",
                                       "/usr/",
                                       "/usr/bin/",
                                       "/usr/lib64/",
                                       "/usr/lib/",
                                       "/usr/lib/x86_64-linux-gnu/",
                                       "/usr/lib/aarch64-linux-gnu/",
                                       "/opt/",
                                       "/opt/bin/" };

struct prestart {
        uv_loop_t loop;
        struct loop_timer timer;
        struct loop_signal signals[2];
        struct watch_file root_itself, folders[ARRAY_LEN(watched)];
        struct driver_root root;
        unsigned interval_ms, since_hint_ms;
        int status;
};

static bool prestart_found(struct prestart *p, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(512);
        struct driver_file library, smi;
        bool ok = driver_root_find_library(&p->root, "libnvidia-ml.so.1", a, &library, e) == 0 &&
                  driver_root_find_binary(&p->root, "nvidia-smi", a, &smi, e) == 0;
        if (ok)
                log_info("found the NVIDIA driver", kv_str("library", library.host),
                         kv_str("nvidia-smi", smi.host));
        return ok;
}

static void prestart_hint(const struct prestart *p, const struct err *e) {
        log_warn("waiting for the NVIDIA driver", kv_str("driverRoot", p->root.host), kv_err(e));
        if (streq(p->root.host, "/"))
                log_info("hint: if the GPU operator manages the driver, set the chart value "
                         "nvidiaDriverRoot=/run/nvidia/driver");
        else
                log_info("hint: is the driver container running, and is the chart value nvidiaDriverRoot the "
                         "folder where it mounts its root? Drivers installed on the host need "
                         "nvidiaDriverRoot=/");
}

static void prestart_on_change(struct watch_file *w);

static void prestart_watch(struct prestart *p, struct watch_file *w, const char *path) {
        struct err e;
        w->u = p;
        if (!w->active && watch_file_start(w, &p->loop, path, prestart_on_change, &e) < 0)
                log_v(5, "nothing to watch yet", kv_err(&e));
}

static void prestart_check(void *u) {
        struct prestart *p = u;
        struct err e;
        if (prestart_found(p, &e)) {
                p->status = 0;
                uv_stop(&p->loop);
                return;
        }
        if (p->since_hint_ms == 0)
                prestart_hint(p, &e);
        p->since_hint_ms += p->interval_ms;
        if (p->since_hint_ms >= HINT_EVERY_MS)
                p->since_hint_ms = 0;
        prestart_watch(p, &p->root_itself, p->root.here);
        for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
                _cleanup_(freep) char *path = xasprintf("%s%s", p->root.here, watched[i]);
                prestart_watch(p, &p->folders[i], path);
        }
        p->interval_ms = p->interval_ms * 2 < LAST_MS ? p->interval_ms * 2 : LAST_MS;
        loop_timer_start(&p->timer, p->interval_ms);
}

static void prestart_on_change(struct watch_file *w) {
        struct prestart *p = w->u;
        loop_timer_start(&p->timer, 0);
}

static void prestart_on_signal(void *u, int signum) {
        struct prestart *p = u;
        p->status = 128 + signum;
        uv_stop(&p->loop);
}

static void prestart_run(struct prestart *p) {
        static const int signums[] = { SIGTERM, SIGINT };
        uv_loop_init(&p->loop);
        loop_timer_init(&p->timer, &p->loop, prestart_check, p);
        for (size_t i = 0; i < ARRAY_LEN(signums); i++)
                (void)loop_signal_init(&p->signals[i], &p->loop, signums[i], prestart_on_signal, p);
        loop_timer_start(&p->timer, 0);
        uv_run(&p->loop, UV_RUN_DEFAULT);
        watch_file_stop(&p->root_itself);
        for (size_t i = 0; i < ARRAY_LEN(watched); i++)
                watch_file_stop(&p->folders[i]);
        for (size_t i = 0; i < ARRAY_LEN(signums); i++)
                loop_signal_done(&p->signals[i]);
        loop_timer_done(&p->timer);
        uv_run(&p->loop, UV_RUN_DEFAULT);
        uv_loop_close(&p->loop);
}

int prestart_main(const char *program, int argc, char **argv) {
        const char *host = "/", *parent = "/driver-root-parent";
        int64_t verbosity = 0;
        int rest;
        bool help;
        struct err e;
        const struct flag flags[] = {
                FLAG(STR, "nvidia-driver-root", &host, "root of the NVIDIA driver on the host",
                     .alt_env = "HOST_DRIVER_ROOT"),
                FLAG(STR, "driver-root-parent-path", &parent,
                     "path in the container of the folder that contains this root"),
                FLAG(INT, "v", &verbosity, "log verbosity, 0 to 7", .alt_env = "LOG_VERBOSITY"),
                { 0 },
        };
        if (flags_parse(flags, argc, argv, &rest, &help, &e) < 0) {
                fprintf(stderr, "%s prestart: %s\n", program, e.msg);
                return 2;
        }
        if (help) {
                flags_usage(flags, stdout);
                return 0;
        }
        log_setup(LOG_TEXT, (int)verbosity);
        /* "/run/nvidia/driver" is "driver" in the folder that is mounted at `parent`; "/" is that folder
         * itself. */
        const char *base = strrchr(host, '/');
        _cleanup_(freep) char *here = base && base[1] ? xasprintf("%s%s", parent, base) : xstrdup(parent);
        struct prestart p = { .root = { .host = host, .here = here }, .interval_ms = FIRST_MS, .status = 1 };
        prestart_run(&p);
        return p.status;
}
