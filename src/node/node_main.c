/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_main.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "nvidia/nvml_worker.h"

enum { FLUSH_LIMIT_MS = 2000, IDLE_MS = 5000 };

/* ---- /proc/driver/nvidia ---- */

/* Finds /proc/driver/nvidia as the kernel shows it, without mounts on top of it. */

enum { MOUNTINFO_MAX = 4 << 20 };

static void uncover(void) {
        _cleanup_(freep) char *text = NULL;
        char *covers[64];
        size_t n = 0;
        struct err e;
        if (file_read("/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL, &e) < 0) {
                log_warn("cannot read the mounts", kv_err(&e));
                return;
        }
        struct str rest = str_from(text), line, field = { 0 };
        while (n < ARRAY_LEN(covers) && str_next_line(&rest, &line)) {
                for (int i = 0; i < 5 && str_next_field(&line, ' ', &field); i++)
                        ; /* the fifth is the mount point */
                char *path = xstrndup(field.p, field.n);
                if (streq(path, "/proc/driver/nvidia") || str_starts(path, "/proc/driver/nvidia/"))
                        covers[n++] = path;
                else
                        free(path);
        }
        while (n--) { /* the last mount first */
                if (umount2(covers[n], MNT_DETACH) < 0) {
                        err_errno(&e, errno, "unmount '%s'", covers[n]);
                        log_warn("a mount covers the driver's files in /proc", kv_err(&e));
                }
                free(covers[n]);
        }
}

/* Returns the path of the folder; the caller frees it. A container runtime may have made mounts over the
 * folder or over its files, which hide the capabilities of IMEX and of MIG devices. The function removes
 * these mounts, and logs a mount that it cannot remove. `alt_proc_devices`: "", except in tests without GPUs,
 * where the NVIDIA driver is simulated. In such tests, the returned path is below the driver root
 * `root_here`, and nothing is removed. */
static char *proc_driver_folder(const char *alt_proc_devices, const char *root_here) {
        if (*alt_proc_devices)
                return file_join(root_here, "proc/driver/nvidia");
        uncover();
        return xstrdup("/proc/driver/nvidia");
}

/* ---- the kubelet ---- */

/* Requests, and the lists that they need, fragment the heap. Returns unused pages to the system. */
static void node_main_on_idle(void *u) {
        malloc_trim(0);
}

static void node_main_on_prepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        struct node_main *m = u;
        loop_timer_start(&m->idle, IDLE_MS);
        claims_prepare(m->claims, op, claim);
}

static void node_main_on_unprepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        struct node_main *m = u;
        loop_timer_start(&m->idle, IDLE_MS);
        claims_unprepare(m->claims, op, claim);
}

static void on_cancelled(void *u, struct dra_op *op, void *op_data) {
        const struct node_main *m = u;
        claims_cancelled(m->claims, op, op_data);
}

static void on_registered(void *u, bool ok, const char *error) {
        struct node_main *m = u;
        m->registered = ok;
        if (!ok) {
                log_error("the kubelet refuses this plugin", kv_str("err", error));
                return;
        }
        log_info("registered with the kubelet", kv_str("driver", m->driver->name));
        slice_start(m->slices);
        loop_timer_start(&m->idle, IDLE_MS);
        if (m->flags->retries)
                registration_announce(m->plugin_dir);
        claims_registered(m->claims);
}

static void on_peer_registered(void *u) {
        const struct node_main *m = u;
        if (!m->registered) /* then requests have no effect yet */
                return;
        log_info("the kubelet has registered the other plugin of this node",
                 kv_str("driver", m->driver->peer));
        claims_registered(m->claims);
}

/* Why the kubelet must restart the container; NULL: it need not. The call itself shows that the loop runs. */
static const char *liveness_fault(const struct node_main *m) {
        return m->dra ? dra_plugin_fault(m->dra) : NULL;
}

/* The first missing step, without which pods cannot use the devices of this node; NULL: none. */
static const char *missing_step(const struct node_main *m) {
        const char *wrong = liveness_fault(m);
        return wrong                         ? wrong
               : !m->dra                     ? "the sockets are not open yet"
               : !m->registered              ? "not registered with the kubelet yet"
               : !slice_published(m->slices) ? "the ResourceSlice is not published yet"
                                             : NULL;
}

static const struct dra_plugin_ops dra_ops = {
        .prepare = node_main_on_prepare,
        .unprepare = node_main_on_unprepare,
        .cancelled = on_cancelled,
        .registered = on_registered,
};

static void on_health(void *u, struct arena *a, struct dra_health_list *ret) {
        const struct node_main *m = u;
        m->driver->health(m->claims->o.u, a, ret);
}

static int answer_probe(const char *wrong, struct buf *out) {
        if (wrong)
                log_v(4, "a probe fails", kv_str("reason", wrong));
        buf_addf(out, "%s\n", wrong ? wrong : "ok");
        return wrong ? 503 : 200;
}

static int on_probe(void *u, const char *path, struct buf *out, const char **ret_content_type) {
        const struct node_main *m = u;
        return streq(path, "/healthz")  ? answer_probe(liveness_fault(m), out)
               : streq(path, "/readyz") ? answer_probe(missing_step(m), out)
                                        : 404;
}

/* The startup probe succeeds from here on. */
static int serve_probes(struct node_main *m, struct err *e) {
        _cleanup_(freep) char *endpoint = xasprintf(":%lld", (long long)m->flags->health_port);
        if (m->flags->health_port < 0)
                return 0;
        if (http_server_new(&m->loop,
                            &(struct http_server_options){ .endpoint = endpoint, .fn = on_probe, .u = m },
                            &m->probes, e) < 0)
                return err_wrap(e, "--healthcheck-port (HEALTHCHECK_PORT)");
        return 0;
}

static void node_main_stop(struct node_main *m, int status);

static void node_main_on_started(void *u, const struct err *error) {
        struct node_main *m = u;
        struct err e;
        if (error) {
                log_error("cannot read the prepared claims of this node", kv_err(error));
                node_main_stop(m, 1);
                return;
        }
        const struct dra_plugin_options o = {
                .driver_name = m->driver->name,
                .plugin_dir = m->plugin_dir,
                .registrar_dir = m->flags->registrar_dir,
                .ops = &dra_ops,
                .health = m->driver->health ? on_health : NULL,
                .u = m,
        };
        if (dra_plugin_new(&m->loop, &o, &m->dra, &e) < 0 || serve_probes(m, &e) < 0) {
                log_error("cannot serve the kubelet", kv_err(&e));
                node_main_stop(m, 1);
                return;
        }
        if (m->flags->retries && m->driver->peer)
                m->peer = registration_watch_new(&m->loop, m->flags->plugins_dir, m->driver->peer,
                                                 on_peer_registered, m);
}

/* ---- HTTP ---- */

static int node_main_on_http(void *u, const char *path, struct buf *out, const char **ret_content_type) {
        struct node_main *m = u;
        if (streq(path, m->flags->metrics_path)) {
                kube_client_metrics(m->kube);
                metrics_render(m->metrics->registry, out);
                *ret_content_type = METRICS_CONTENT_TYPE;
                return 200;
        }
        return on_probe(m, path, out, ret_content_type);
}

/* ---- stopping ---- */

static void node_main_on_flushed(void *u) {
        struct node_main *m = u;
        event_recorder_free(m->events);
        kube_client_free(m->kube);
        for (size_t i = 0; i < ARRAY_LEN(m->signals); i++)
                loop_signal_done(&m->signals[i]);
}

/* Sockets first, so that the kubelet connects to the successor. Waiting claims are cancelled, and the kubelet
 * requests them again there. */
static void node_main_stop(struct node_main *m, int status) {
        if (m->stopping)
                return;
        m->stopping = true;
        m->status = status;
        loop_timer_done(&m->idle);
        plugin_shutdown_free(TAKE(m->leaving));
        registration_watch_free(TAKE(m->peer));
        dra_plugin_free(m->dra);
        m->dra = NULL;
        if (claims_stuck(m->claims)) {
                log_warn("ending while another process holds the node lock");
                _exit(status);
        }
        claims_free(m->claims);
        http_server_free(m->http);
        http_server_free(m->probes);
        slice_publisher_free(m->slices);
        m->stop(m);
        event_recorder_flush(m->events, FLUSH_LIMIT_MS, node_main_on_flushed, m);
}

static void on_stays(void *u) {
        struct node_main *m = u;
        m->leaves = true;
        m->withdraw(m);
}

static void on_ends(void *u) {
        node_main_stop(u, 0);
}

static void node_main_on_claims(void *u) {
        const struct node_main *m = u;
        plugin_shutdown_claims(m->leaving);
}

/* True: the plugin does not end yet. */
static bool may_stay(struct node_main *m) {
        if (m->leaving) /* a restarted kubelet repeats the signal */
                return true;
        if (!*m->flags->selector || !m->dra ||
            !plugin_shutdown_is_used(claims_table(m->claims), m->own_device))
                return false;
        m->leaving = plugin_shutdown_new(&(struct plugin_shutdown_options){
                .loop = &m->loop,
                .kube = m->kube,
                .events = m->events,
                .node = m->flags->node,
                .driver = m->driver->name,
                .own_device = m->own_device,
                .table = claims_table(m->claims),
                .selector = &m->selector,
                .stays = on_stays,
                .ends = on_ends,
                .u = m,
        });
        return true;
}

static void node_main_on_signal(void *u, int signum) {
        struct node_main *m = u;
        if (signum == SIGUSR2) {
                if (!m->stopping)
                        claims_dump(m->claims);
                return;
        }
        if (m->stopping)
                _exit(128 + signum);
        if (signum == SIGTERM && may_stay(m))
                return;
        log_info("stopping", kv_int("signal", signum));
        node_main_stop(m, 0);
}

/* ---- starting ---- */

static int start_client(struct node_main *m, struct err *e) {
        const struct node_flags *f = m->flags;
        struct kube_config config = { 0 };
        if (kube_config_load(f->kubeconfig, &config, e) < 0)
                return -1;
        const struct kube_client_options k = { .config = &config,
                                               .user_agent = m->program,
                                               .qps = (double)f->qps,
                                               .burst = (unsigned)f->burst,
                                               .metrics = m->metrics->registry,
                                               .metrics_prefix = CD_METRICS_PREFIX };
        int r = kube_client_new(&m->loop, &k, &m->kube, e);
        kube_config_done(&config);
        return r;
}

static int node_main_start(struct node_main *m, struct err *e) {
        const struct node_flags *f = m->flags;
        if (file_boot_id(FILE_BOOT_ID_PATH, m->boot_id, e) < 0 || file_mkdirs(m->plugin_dir, 0750, e) < 0 ||
            file_mkdirs(f->cdi_root, 0750, e) < 0 || start_client(m, e) < 0)
                return -1;
        m->events = event_recorder_new(m->kube, m->program, f->node);
        if (*f->http_endpoint &&
            http_server_new(&m->loop,
                            &(struct http_server_options){
                                    .endpoint = f->http_endpoint, .fn = node_main_on_http, .u = m },
                            &m->http, e) < 0)
                return -1;
        m->slices = slice_publisher_new(m->kube, m->driver->name, f->node);
        m->root = (struct driver_root){ .host = f->root_host, .here = f->root_here };
        m->proc_devices = *f->alt_proc_devices ? f->alt_proc_devices : "/proc/devices";
        m->proc_driver = proc_driver_folder(f->alt_proc_devices, f->root_here);
        const struct claims_options c = {
                .loop = &m->loop,
                .kube = m->kube,
                .events = m->events,
                .metrics = m->metrics,
                .driver = m->driver,
                .u = m->start(m),
                .node = f->node,
                .plugin_dir = m->plugin_dir,
                .cdi_root = f->cdi_root,
                .boot_id = m->boot_id,
                .checkpoint_dialect = m->checkpoint_dialect,
                .retries = f->retries,
                .changed = node_main_on_claims,
                .changed_u = m,
        };
        if (claims_new(&c, &m->claims, e) < 0)
                return -1;
        claims_start(m->claims, node_main_on_started, m);
        return 0;
}

static int run_plugin(struct node_main *m) {
        static const int signums[ARRAY_LEN(m->signals)] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR2 };
        struct err e;
        signal(SIGPIPE, SIG_IGN);
        uv_loop_init(&m->loop);
        for (size_t i = 0; i < ARRAY_LEN(m->signals); i++)
                (void)loop_signal_init(&m->signals[i], &m->loop, signums[i], node_main_on_signal, m);
        loop_timer_init(&m->idle, &m->loop, node_main_on_idle, m);
        m->plugin_dir = file_join(m->flags->plugins_dir, m->driver->name);
        if (node_main_start(m, &e) < 0) {
                log_error("cannot start", kv_err(&e));
                return 1;
        }
        uv_run(&m->loop, UV_RUN_DEFAULT);
        uv_loop_close(&m->loop);
        free(m->plugin_dir);
        free(m->proc_driver);
        arena_free(m->selector_arena);
        return m->status;
}

/* ---- the command line ---- */

static int read_selector(struct node_main *m, struct err *e) {
        if (!*m->flags->selector)
                return 0;
        m->selector_arena = arena_new(4096);
        if (node_selector_parse(m->flags->selector, m->selector_arena, &m->selector, e) < 0)
                return err_wrap(e, "--pod-node-selector");
        return 0;
}

static int check_flags(const struct node_flags *f, struct err *e) {
        const char *const folders[][2] = {
                { "--cdi-root (CDI_ROOT)", f->cdi_root },
                { "--kubelet-registrar-directory-path (KUBELET_REGISTRAR_DIRECTORY_PATH)", f->registrar_dir },
                { "--kubelet-plugins-directory-path (KUBELET_PLUGINS_DIRECTORY_PATH)", f->plugins_dir },
        };
        for (size_t i = 0; i < ARRAY_LEN(folders); i++)
                if (!*folders[i][1])
                        return err_set(e, ERR_INVALID, 0, "%s is empty: give a folder, or leave it out",
                                       folders[i][0]);
        if (!streq(f->log_format, "text") && !streq(f->log_format, "json"))
                return err_set(e, ERR_INVALID, 0, "--logging-format: text or json, not '%s'", f->log_format);
        return 0;
}

static int check_all(struct node_main *m, struct err *e) {
        if (check_flags(m->flags, e) < 0 || read_selector(m, e) < 0)
                return -1;
        gates_init(&m->gates);
        if (gates_parse(&m->gates, m->flags->gates, e) < 0)
                return err_wrap(e, "--feature-gates");
        return m->check(m, e);
}

int node_main_flags(struct node_main *m, const struct flag *flags, int argc, char **argv) {
        int rest;
        bool help;
        struct err e;
        int r = flags_parse(flags, argc, argv, &rest, &help, &e);
        if (r == 0 && help) {
                flags_usage(flags, stdout);
                return 0;
        }
        if (r == 0 && rest < argc)
                r = err_set(&e, ERR_INVALID, 0, "unexpected argument '%s'", argv[rest]);
        if (r == 0)
                r = check_all(m, &e);
        if (r < 0) {
                fprintf(stderr, "%s: %s\n", m->program, e.msg);
                return 2;
        }
        log_setup(streq(m->flags->log_format, "json") ? LOG_JSON : LOG_TEXT, (int)m->flags->verbosity);
        return -1;
}

int node_main(struct node_main *m, const struct flag *flags, int argc, char **argv) {
        if (argc > 1 && streq(argv[1], NVML_WORKER))
                return nvml_worker_main(argc - 2, argv + 2);
        if (version_asked(argc, argv, m->program))
                return 0;
        int r = node_main_flags(m, flags, argc, argv);
        if (r >= 0)
                return r;
        m->begin(m, flags);
        r = run_plugin(m);
        node_metrics_done(m->metrics);
        return r;
}
