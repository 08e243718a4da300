/* SPDX-License-Identifier: Apache-2.0 */
/* compute-domain-kubelet-plugin: offers a node's IMEX channel and daemon devices and prepares the claims for
 * them.
 *
 *     compute-domain-kubelet-plugin             the plugin
 *     compute-domain-kubelet-plugin prestart    the init container: waits for the driver
 *     compute-domain-kubelet-plugin channels    prints the IMEX channels of the container that it runs in
 *     compute-domain-kubelet-plugin nvml PATH   the child that asks NVML */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/gates.h"
#include "api/names.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/http_server.h"
#include "base/log.h"
#include "base/version.h"
#include "nvidia/nvml.h"
#include "cd_plugin/channels.h"
#include "cd_plugin/cd_driver.h"
#include "cd_plugin/host_report.h"
#include "cd_plugin/metrics.h"
#include "node/claims.h"
#include "node/prestart.h"
#include "node/slice.h"

#define PROGRAM "compute-domain-kubelet-plugin"
enum { FLUSH_LIMIT_MS = 2000, MOUNTINFO_MAX = 4 << 20 };

struct options {
        const char *node, *ns, *http_endpoint, *metrics_path, *cdi_root, *root_host, *root_here, *cdi_hook,
                *registrar_dir, *plugins_dir;
        const char *imex_mode, *imex_isolation, *imex_socket, *alt_proc_devices, *kubeconfig, *gates,
                *log_format;
        const char *pod, *more_ns;
        int64_t health_port, qps, burst, verbosity, host_interval_ms;
        bool clique_label;
};

struct plugin {
        struct options o;
        struct gates gates;
        const struct imex_mode *mode;
        uv_loop_t loop;
        uv_signal_t signals[5];
        char *plugin_dir, *dev_root, *proc_driver;
        char boot_id[37];
        struct kube_client *kube;
        struct event_recorder *events;
        struct plugin_metrics metrics;
        struct http_server *http;
        struct facts_sampler *facts;
        struct slice_publisher *slices;
        struct host_imex *host;
        struct host_report *host_report;
        struct claims *claims;
        struct dra_plugin *dra;
        bool registered, stopping;
        char told[32]; /* the reason of the last Event about withheld devices; "" none */
        int status;
};

/* ---- facts and what is published ---- */

static void tell_facts(struct plugin *p, const struct facts *f) {
        struct event_about node = { "v1", "Node", NULL, p->o.node, p->o.node };
        plugin_metrics_offered(&p->metrics, f->reason);
        if (f->usable) {
                log_info("this node offers its devices", kv_str("driver", f->driver_version),
                         kv_str("clique", *f->fabric.clique_id ? f->fabric.clique_id : "none"),
                         kv_str("why", f->fabric.reason));
                if (p->told[0])
                        event_record(p->events, &node, EVENT_NORMAL, "ComputeDomainDevicesOffered",
                                     "the %s of this node %s offered again",
                                     p->mode->daemons ? "IMEX channel and daemon" : "IMEX channel",
                                     p->mode->daemons ? "are" : "is");
                p->told[0] = '\0';
                return;
        }
        log_warn("this node offers no devices", kv_str("reason", f->reason), kv_str("why", f->message));
        if (!streq(p->told, f->reason))
                event_record(p->events, &node, EVENT_WARNING, "ComputeDomainDevicesWithheld",
                             "no IMEX channel%s is offered on this node (%s): %s",
                             p->mode->daemons ? " or daemon" : "", f->reason, f->message);
        snprintf(p->told, sizeof p->told, "%s", f->reason);
}

static void on_facts(void *u) {
        struct plugin *p = u;
        const struct facts *f = facts_get(p->facts);
        tell_facts(p, f);
        slice_set(p->slices, &(struct slice_content){
                                     .devices = f->usable,
                                     .daemon = p->mode->daemons,
                                     .clique_id = f->usable ? f->fabric.clique_id : "",
                             });
        claims_reevaluate(p->claims);
}

static void on_host(void *u) {
        struct plugin *p = u;
        host_report_tell(p->host_report, host_imex_get(p->host));
        claims_reevaluate(p->claims);
}

/* ---- the kubelet ---- */

static void on_prepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        struct plugin *p = u;
        claims_prepare(p->claims, op, claim);
}

static void on_unprepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        struct plugin *p = u;
        claims_unprepare(p->claims, op, claim);
}

static void on_cancelled(void *u, struct dra_op *op, void *op_data) {
        struct plugin *p = u;
        claims_cancelled(p->claims, op, op_data);
}

static void on_registered(void *u, bool ok, const char *error) {
        struct plugin *p = u;
        p->registered = ok;
        if (ok)
                log_info("registered with the kubelet", kv_str("driver", CD_DRIVER));
        else
                log_error("the kubelet refuses this plugin", kv_str("err", error));
}

static const char *on_health(void *u) {
        const struct plugin *p = u;
        return p->stopping ? "stopping" : NULL;
}

static const char *not_ready(const struct plugin *p) {
        return p->stopping                   ? "stopping"
               : !p->dra                     ? "the sockets are not served yet"
               : !p->registered              ? "not registered with the kubelet yet"
               : !slice_published(p->slices) ? "the ResourceSlice is not published yet"
                                             : NULL;
}

static const char *on_ready(void *u) {
        return not_ready(u);
}

static const struct dra_plugin_ops dra_ops = {
        .prepare = on_prepare,
        .unprepare = on_unprepare,
        .cancelled = on_cancelled,
        .registered = on_registered,
        .health = on_health,
        .ready = on_ready,
};

static void stop(struct plugin *p, int status);

static void on_started(void *u, const struct err *error) {
        struct plugin *p = u;
        struct err e;
        if (error) {
                log_error("cannot read the prepared claims of this node", kv_err(error));
                stop(p, 1);
                return;
        }
        const struct dra_plugin_options o = {
                .driver_name = CD_DRIVER,
                .plugin_dir = p->plugin_dir,
                .registrar_dir = p->o.registrar_dir,
                .health_port = (int)p->o.health_port,
                .ops = &dra_ops,
                .u = p,
        };
        if (dra_plugin_new(&p->loop, &o, &p->dra, &e) < 0) {
                log_error("cannot serve the kubelet", kv_err(&e));
                stop(p, 1);
        }
}

/* ---- HTTP ---- */

static int on_http(void *u, const char *path, struct buf *out, const char **ret_content_type) {
        const struct plugin *p = u;
        if (streq(path, p->o.metrics_path)) {
                kube_client_metrics(p->kube);
                metrics_render(p->metrics.registry, out);
                *ret_content_type = METRICS_CONTENT_TYPE;
                return 200;
        }
        if (streq(path, "/healthz")) {
                buf_adds(out, "ok\n");
                return 200;
        }
        if (streq(path, "/readyz")) {
                const char *missing = not_ready(p);
                buf_addf(out, "%s\n", missing ? missing : "ok");
                return missing ? 503 : 200;
        }
        return 404;
}

/* ---- the end ---- */

static void on_flushed(void *u) {
        struct plugin *p = u;
        event_recorder_free(p->events);
        kube_client_free(p->kube);
        for (size_t i = 0; i < ARRAY_LEN(p->signals); i++)
                uv_close((uv_handle_t *)&p->signals[i], NULL);
}

/* Sockets first, so that the kubelet turns to our successor; claims that wait are cancelled and asked for
 * again there. */
static void stop(struct plugin *p, int status) {
        if (p->stopping)
                return;
        p->stopping = true;
        p->status = status;
        dra_plugin_free(p->dra);
        p->dra = NULL;
        if (claims_stuck(p->claims)) {
                log_warn("ending while another process holds the node lock");
                _exit(status);
        }
        claims_free(p->claims);
        http_server_free(p->http);
        slice_publisher_free(p->slices);
        host_imex_free(p->host);
        host_report_free(p->host_report);
        facts_sampler_free(p->facts);
        event_recorder_flush(p->events, FLUSH_LIMIT_MS, on_flushed, p);
}

static void on_signal(uv_signal_t *s, int signum) {
        struct plugin *p = s->data;
        if (signum == SIGUSR2) {
                if (!p->stopping)
                        claims_dump(p->claims);
                return;
        }
        if (p->stopping)
                _exit(128 + signum);
        log_info("stopping", kv_int("signal", signum));
        stop(p, 0);
}

/* ---- the start ---- */

/* A container runtime may have mounted something over /proc/driver/nvidia, which hides the capability of the
 * IMEX session. */
static void uncover_proc(void) {
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
        while (n--) { /* the last mounted first */
                if (umount2(covers[n], MNT_DETACH) < 0) {
                        err_errno(&e, errno, "unmount '%s'", covers[n]);
                        log_warn("something covers the driver's files in /proc", kv_err(&e));
                }
                free(covers[n]);
        }
}

static int start(struct plugin *p, struct err *e) {
        struct kube_config config = { 0 };
        struct stat st;
        if (file_boot_id(FILE_BOOT_ID_PATH, p->boot_id, e) < 0 || file_mkdirs(p->plugin_dir, 0750, e) < 0 ||
            file_mkdirs(p->o.cdi_root, 0750, e) < 0)
                return -1;
        if (*p->o.alt_proc_devices) {
                p->proc_driver = file_join(p->o.root_here, "proc/driver/nvidia");
        } else {
                uncover_proc();
                p->proc_driver = xstrdup("/proc/driver/nvidia");
        }
        _cleanup_(freep) char *dev = file_join(p->o.root_here, "dev");
        p->dev_root = xstrdup(stat(dev, &st) == 0 && S_ISDIR(st.st_mode) ? p->o.root_here : "/");
        if (kube_config_load(p->o.kubeconfig, &config, e) < 0)
                return -1;
        plugin_metrics_init(&p->metrics, p->o.node);
        const struct kube_client_options k = { .config = &config,
                                               .user_agent = PROGRAM,
                                               .qps = (double)p->o.qps,
                                               .burst = (unsigned)p->o.burst,
                                               .metrics = p->metrics.registry };
        int r = kube_client_new(&p->loop, &k, &p->kube, e);
        kube_config_done(&config);
        if (r < 0)
                return -1;
        p->events = event_recorder_new(p->kube, PROGRAM, p->o.node);
        plugin_metrics_offered(&p->metrics, "DriverNotAskedYet");
        if (*p->o.http_endpoint && http_server_new(&p->loop, p->o.http_endpoint, on_http, p, &p->http, e) < 0)
                return -1;
        p->slices = slice_publisher_new(p->kube, p->o.node);
        const struct driver_root root = { .host = p->o.root_host, .here = p->o.root_here };
        p->facts = facts_sampler_new(
                &p->loop,
                &(struct facts_options){
                        .root = root,
                        .proc_devices = *p->o.alt_proc_devices ? p->o.alt_proc_devices : "/proc/devices",
                        .strict = p->gates.on[GATE_CRASH_ON_NVLINK_FABRIC_ERRORS],
                        .dns_names = p->gates.on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES],
                        .changed = on_facts,
                        .u = p,
                });
        p->host_report = host_report_new(&(struct host_report_options){
                .kube = p->kube,
                .events = p->events,
                .metrics = &p->metrics,
                .mode = p->mode,
                .node = p->o.node,
                .ns = p->o.ns,
                .pod = p->o.pod,
        });
        if (p->o.host_interval_ms)
                p->host = host_imex_new(&p->loop, &(struct host_imex_options){
                                                          .root = root,
                                                          .socket_path = p->o.imex_socket,
                                                          .node = p->o.node,
                                                          .interval_ms = (unsigned)p->o.host_interval_ms,
                                                          .domain = !p->mode->daemons,
                                                          .only_with_socket = p->mode->daemons,
                                                          .answered = on_host,
                                                          .u = p,
                                                  });
        const struct cd_options cd = {
                .loop = &p->loop,
                .kube = p->kube,
                .events = p->events,
                .facts = p->facts,
                .mode = p->mode,
                .host = p->host,
                .node = p->o.node,
                .ns = p->o.ns,
                .more_ns = p->o.more_ns,
                .plugin_dir = p->plugin_dir,
                .boot_id = p->boot_id,
                .root = root,
                .dev_root = p->dev_root,
                .proc_driver = p->proc_driver,
        };
        const struct claims_options c = {
                .loop = &p->loop,
                .kube = p->kube,
                .events = p->events,
                .metrics = &p->metrics.node,
                .driver = &cd_driver,
                .u = cd_driver_new(&cd),
                .node = p->o.node,
                .plugin_dir = p->plugin_dir,
                .cdi_root = p->o.cdi_root,
                .boot_id = p->boot_id,
        };
        if (claims_new(&c, &p->claims, e) < 0)
                return -1;
        claims_start(p->claims, on_started, p);
        return 0;
}

static int check_options(struct plugin *p, struct err *e) {
        gates_init(&p->gates);
        if (gates_parse(&p->gates, p->o.gates, e) < 0)
                return err_wrap(e, "--feature-gates");
        if (mode_resolve(&p->gates, p->o.imex_mode, p->o.imex_isolation, &p->mode, e) < 0)
                return -1;
        const char *const folders[][2] = {
                { "--cdi-root (CDI_ROOT)", p->o.cdi_root },
                { "--kubelet-registrar-directory-path (KUBELET_REGISTRAR_DIRECTORY_PATH)",
                  p->o.registrar_dir },
                { "--kubelet-plugins-directory-path (KUBELET_PLUGINS_DIRECTORY_PATH)", p->o.plugins_dir },
        };
        for (size_t i = 0; i < ARRAY_LEN(folders); i++)
                if (!*folders[i][1])
                        return err_set(e, ERR_INVALID, 0, "%s is empty: give a folder, or leave it out",
                                       folders[i][0]);
        if (p->o.imex_socket[0] != '/')
                return err_set(e, ERR_INVALID, 0, "--imex-host-socket-path: not an absolute path: '%s'",
                               p->o.imex_socket);
        if (p->o.host_interval_ms && (p->o.host_interval_ms < 1000 || p->o.host_interval_ms > 3600000))
                return err_set(e, ERR_INVALID, 0,
                               "--imex-host-probe-interval: from 1s to 1h, or 0 for never, not %lld ms",
                               (long long)p->o.host_interval_ms);
        if (!p->o.host_interval_ms && p->mode->waits_for_host)
                return err_set(e, ERR_INVALID, 0,
                               "--imex-host-probe-interval: 0 is not possible with %s, where pods wait for "
                               "the answer "
                               "of the host's nvidia-imex",
                               p->mode->chosen_by);
        if (!streq(p->o.log_format, "text") && !streq(p->o.log_format, "json"))
                return err_set(e, ERR_INVALID, 0, "--logging-format: text or json, not '%s'",
                               p->o.log_format);
        return 0;
}

static int run(struct plugin *p, const struct flag *flags) {
        static const int signums[ARRAY_LEN(p->signals)] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR2 };
        struct buf gates = BUF_INIT(4096);
        struct err e;
        gates_render(&p->gates, &gates);
        log_info(PROGRAM, kv_str("gates", buf_str(&gates)), kv_str("mode", p->mode->name),
                 kv_str("chosen_by", p->mode->chosen_by));
        buf_done(&gates);
        gates_log_forced(&p->gates);
        gates_log_ineffective(&p->gates);
        flags_log(flags);
        if (p->o.clique_label)
                log_info("--gpu-clique-label-enabled: in this driver the controller labels the nodes");
        signal(SIGPIPE, SIG_IGN);
        uv_loop_init(&p->loop);
        for (size_t i = 0; i < ARRAY_LEN(p->signals); i++) {
                uv_signal_init(&p->loop, &p->signals[i]);
                p->signals[i].data = p;
                uv_signal_start(&p->signals[i], on_signal, signums[i]);
        }
        p->plugin_dir = file_join(p->o.plugins_dir, CD_DRIVER);
        if (start(p, &e) < 0) {
                log_error("cannot start", kv_err(&e));
                return 1;
        }
        uv_run(&p->loop, UV_RUN_DEFAULT);
        uv_loop_close(&p->loop);
        plugin_metrics_done(&p->metrics);
        free(p->plugin_dir);
        free(p->dev_root);
        free(p->proc_driver);
        return p->status;
}

int main(int argc, char **argv) {
        if (argc > 1 && streq(argv[1], "nvml"))
                return nvml_child_main(argc - 2, argv + 2);
        if (argc > 1 && streq(argv[1], "prestart"))
                return prestart_main(argc - 1, argv + 1);
        if (argc > 1 && streq(argv[1], "channels"))
                return channels_main();
        if (version_asked(argc, argv, PROGRAM))
                return 0;
        static struct plugin p = {
                .o = { .ns = "default",
                       .http_endpoint = "",
                       .metrics_path = "/metrics",
                       .cdi_root = "/etc/cdi",
                       .root_host = "/",
                       .root_here = "/driver-root",
                       .registrar_dir = "/var/lib/kubelet/plugins_registry",
                       .plugins_dir = "/var/lib/kubelet/plugins",
                       .cdi_hook = "",
                       .imex_mode = "driverManaged",
                       .imex_isolation = "domain",
                       .imex_socket = "/etc/nvidia-imex/imex_ctrl.sock",
                       .host_interval_ms = 30000,
                       .pod = "",
                       .more_ns = "",
                       .alt_proc_devices = "",
                       .kubeconfig = "",
                       .gates = "",
                       .log_format = "text",
                       .health_port = -1 },
        };
        static const struct flag flags[] = {
                { "node-name", .type = FLAG_STR, .dest = &p.o.node, .required = true,
                  .help = "name of this node" },
                { "pod-name", .type = FLAG_STR, .dest = &p.o.pod,
                  .help = "name of this pod, to annotate it; empty: it is not annotated" },
                { "namespace", .type = FLAG_STR, .dest = &p.o.ns, .help = "the driver's namespace" },
                { "additional-namespaces", .type = FLAG_STR, .dest = &p.o.more_ns,
                  .help = "comma separated: namespaces of earlier installations whose IMEX daemons are "
                          "served, too" },
                { "http-endpoint", .type = FLAG_STR, .dest = &p.o.http_endpoint,
                  .help = "address for metrics and probes; empty: none" },
                { "metrics-path", .type = FLAG_STR, .dest = &p.o.metrics_path,
                  .help = "path of the metrics" },
                { "cdi-root", .type = FLAG_STR, .dest = &p.o.cdi_root, .help = "folder for CDI files" },
                { "nvidia-driver-root", .type = FLAG_STR, .dest = &p.o.root_host,
                  .alt_env = "HOST_DRIVER_ROOT", .help = "root of the NVIDIA driver on the host" },
                { "driver-root-ctr-path", .type = FLAG_STR, .dest = &p.o.root_here,
                  .help = "the same folder as seen from here" },
                { "nvidia-cdi-hook-path", .type = FLAG_STR, .dest = &p.o.cdi_hook,
                  .help = "accepted; no hook is needed" },
                { "kubelet-registrar-directory-path", .type = FLAG_STR, .dest = &p.o.registrar_dir,
                  .help = "where the kubelet looks for plugins" },
                { "kubelet-plugins-directory-path", .type = FLAG_STR, .dest = &p.o.plugins_dir,
                  .help = "where plugins keep their data" },
                { "healthcheck-port", .type = FLAG_INT, .dest = &p.o.health_port,
                  .help = "port of the gRPC health service; negative: none" },
                { "gpu-clique-label-enabled", .type = FLAG_BOOL, .dest = &p.o.clique_label,
                  .help = "accepted; the controller writes that label" },
                { "imex-mode", .type = FLAG_STR, .dest = &p.o.imex_mode,
                  .help = "driverManaged, or hostManaged with feature gate HostManagedIMEXDaemon" },
                { "imex-isolation", .type = FLAG_STR, .dest = &p.o.imex_isolation, .help = "domain" },
                { "imex-host-socket-path", .type = FLAG_STR, .dest = &p.o.imex_socket,
                  .help = "command socket of the host's own nvidia-imex; its config.cfg is looked for in the "
                          "same folder" },
                { "imex-host-probe-interval", .type = FLAG_DURATION_MS, .dest = &p.o.host_interval_ms,
                  .help = "time between two questions to the host's own nvidia-imex while no claim waits for "
                          "it; 0: it is never asked" },
                { "alt-proc-devices-path", .type = FLAG_STR, .dest = &p.o.alt_proc_devices,
                  .help = "a file to read instead of /proc/devices" },
                { "kubeconfig", .type = FLAG_STR, .dest = &p.o.kubeconfig,
                  .help = "empty: the service account of this pod" },
                { "kube-api-qps", .type = FLAG_INT, .dest = &p.o.qps,
                  .help = "requests a second to the API server; 0: a generous limit" },
                { "kube-api-burst", .type = FLAG_INT, .dest = &p.o.burst,
                  .help = "requests at once to the API server; 0: a generous limit" },
                { "feature-gates", .type = FLAG_STR, .dest = &p.o.gates,
                  .help = "Name=true|false, comma separated" },
                { "logging-format", .type = FLAG_STR, .dest = &p.o.log_format, .help = "text or json" },
                { "v", .type = FLAG_INT, .dest = &p.o.verbosity, .alt_env = "LOG_VERBOSITY",
                  .help = "verbosity of the log" },
                { 0 },
        };
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
                r = check_options(&p, &e);
        if (r < 0) {
                fprintf(stderr, PROGRAM ": %s\n", e.msg);
                return 2;
        }
        log_setup(streq(p.o.log_format, "json") ? LOG_JSON : LOG_TEXT, (int)p.o.verbosity);
        return run(&p, flags);
}
