/* SPDX-License-Identifier: Apache-2.0 */
/* gpu-kubelet-plugin: offers a node's GPUs and MIG devices and prepares the claims for them.
 *
 *     gpu-kubelet-plugin                            the plugin
 *     gpu-kubelet-plugin check-node                 checks the node with the settings of the plugin
 *     gpu-kubelet-plugin nvml-worker query PATH     the process that queries NVML
 *     gpu-kubelet-plugin nvml-worker events PATH    the process that watches for XIDs */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/loop.h"
#include "gpu_plugin/gpu_check.h"
#include "gpu_plugin/gpu_driver.h"
#include "gpu_plugin/gpus.h"
#include "gpu_plugin/gpu_hook.h"
#include "gpu_plugin/monitor.h"
#include "gpu_plugin/gpu_offer.h"
#include "gpu_plugin/gpu_report.h"
#include "gpu_plugin/gpu_conflicts.h"
#include "node/node_main.h"

#define PROGRAM "gpu-kubelet-plugin"
#define HOOK_PROGRAM "cdi-hook"
#define DEFAULT_NAMESPACE "default"
#define DEFAULT_HOST_ROOT "/host-root"
enum { RETRY_MS = 5000, CHECK_AGAIN_MS = 60000 };

enum hook_state {
        HOOK_UNTRIED,
        HOOK_FAILS, /* or it could not be copied */
        HOOK_WORKS,
};

struct plugin {
        struct node_main main;
        struct node_flags flags;
        const char *ns, *host_root, *image, *pull_secrets, *pull_policy, *service_account, *xids, *shares,
                *layout;
        bool ipc_sockets, gids;
        struct gpu_metrics metrics;
        struct gpu_report report;
        struct gpus *gpus;
        struct monitor *monitor; /* NULL: the GPUs' health is not monitored */
        bool cordoned, used;     /* the Node is cordoned; a claim is recorded */
        struct gpu *driver;
        struct gpu_conflicts *conflicts;
        char *sys;
        /* The hook that CDI files name. */
        char *hook_program, *hook;
        enum hook_state hook_state;
        struct hook_check *hook_check;
        char hook_error[400]; /* why it is missing or fails */
        struct loop_timer hook_retry;
};

static bool is_folder(const char *path) {
        struct stat st;
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- the hook ---- */

static void inform_driver(struct plugin *p);
static void gpu_plugin_main_publish(struct plugin *p);

/* `reason`: why the hook cannot be used; NULL: it can. */
static void report_hook(struct plugin *p, const char *reason) {
        p->report.hook = reason;
        if (p->gpus && gpus_get(p->gpus)->known)
                gpu_report_update(&p->report, gpus_get(p->gpus), gpus_devices(p->gpus));
}

/* A node on which the hook fails offers no GPU, because pods with a GPU would never start. A setting of the
 * node may be the cause. */
static void hook_fails(struct plugin *p, const char *reason, const char *problem) {
        char error[sizeof p->hook_error];
        snprintf(error, sizeof error, "the CDI hook does not work on this node: %s", problem);
        if (!streq(p->hook_error, error)) {
                log_error("no GPU is published, because the CDI hook does not work on this node",
                          kv_str("hook", str_or(p->hook, HOOK_PROGRAM)), kv_str("problem", problem));
                event_record(
                        p->main.events, EVENT_NODE(p->flags.node), EVENT_WARNING, reason,
                        "no GPU of this node is published, because containers with GPUs would not start: "
                        "%s",
                        error);
        }
        snprintf(p->hook_error, sizeof p->hook_error, "%s", error);
        p->hook_state = HOOK_FAILS;
        loop_timer_start(&p->hook_retry, CHECK_AGAIN_MS);
        report_hook(p, reason);
}

static void on_hook_checked(void *u, const char *problem, bool no_profiles) {
        struct plugin *p = u;
        gpu_hook_check_free(TAKE(p->hook_check));
        if (*problem) {
                hook_fails(p, REASON_HOOK_FAILS_SELF_TEST, problem);
        } else {
                p->hook_state = HOOK_WORKS;
                *p->hook_error = '\0';
                report_hook(p, NULL);
                if (no_profiles) {
                        log_warn("EGL and Vulkan are not restricted to the GPUs of a container, because the "
                                 "CDI hook lacks a command; NVIDIA's hook has it since 1.20.0",
                                 kv_str("hook", p->hook), kv_str("command", HOOK_PROFILE_COMMAND));
                        gpu_driver_set_no_profiles(p->driver);
                }
        }
        gpu_plugin_main_publish(p);
        inform_driver(p);
}

/* The path of the host's root folder in our container; NULL: it is not mounted. */
static const char *host_files(const struct plugin *p) {
        if (streq(p->flags.root_host, "/"))
                return p->flags.root_here;
        return is_folder(p->host_root) ? p->host_root : NULL;
}

static void check_hook(struct plugin *p) {
        bool nvidias = *p->flags.cdi_hook;
        const char *host = host_files(p);
        if (nvidias && !host) {
                log_info("the CDI hook is not checked: the host's files are not mounted here",
                         kv_str("hook", p->hook));
                p->hook_state = HOOK_WORKS;
                return;
        }
        p->hook_check = gpu_hook_check(
                &p->main.loop,
                &(struct hook_check_options){
                        .program = p->hook, .root = nvidias ? host : NULL, .done = on_hook_checked, .u = p });
}

/* Without the hook no claim can be prepared. Prepared claims can still be unprepared. */
static void install_hook(struct plugin *p) {
        struct err e;
        if (*p->flags.cdi_hook) {
                free(p->hook);
                p->hook = xstrdup(p->flags.cdi_hook);
                check_hook(p);
                return;
        }
        if (gpu_hook_install(p->hook_program, p->main.plugin_dir, &p->hook, &e) < 0) {
                hook_fails(p, REASON_HOOK_FAILS_SELF_TEST, e.msg);
                if (p->hook)
                        loop_timer_start(&p->hook_retry, RETRY_MS);
                else /* the image lacks it, and a retry would fail, too */
                        loop_timer_stop(&p->hook_retry);
                return;
        }
        gpu_hook_remove_old(p->main.plugin_dir, p->hook, p->flags.cdi_root, GPU_CDI_KIND_CLAIM);
        if (gpu_hook_is_noexec(p->main.plugin_dir)) {
                _cleanup_(freep) char *problem = xasprintf(
                        "'%s' is mounted noexec; mount it without noexec, or set nvidiaCDIHookPath to a "
                        "CDI hook on the host",
                        p->main.plugin_dir);
                hook_fails(p, REASON_HOOK_NOT_EXECUTABLE, problem);
                return;
        }
        check_hook(p);
}

/* ---- the GPUs ---- */

/* The watch keeps an NVML session open, which prevents an upgrade of the NVIDIA driver, a reset of a GPU and
 * a change of the MIG mode. An administrator drains the node before that. */
static bool may_watch(const struct plugin *p) {
        return p->monitor && (!p->cordoned || p->used);
}

static void watch_or_not(struct plugin *p) {
        static const struct gpus_state no_library;
        if (p->monitor)
                monitor_follow(p->monitor, may_watch(p) ? gpus_get(p->gpus) : &no_library,
                               gpus_devices(p->gpus));
}

/* While the NVIDIA driver is missing, claims wait for it. A missing GPU is an error, so that the scheduler
 * can choose another node. */
static void inform_driver(struct plugin *p) {
        const struct gpus_state *s = gpus_get(p->gpus);
        const struct gpu_devices *d = gpus_devices(p->gpus);
        if (!s->known || (*s->reason && !d->driver_version))
                gpu_driver_set_devices(p->driver, NULL, s->message);
        else if (p->hook_state != HOOK_WORKS)
                gpu_driver_set_devices(p->driver, NULL,
                                       str_or(p->hook_error, "the CDI hook is being checked"));
        else if (may_watch(p) && s->library && !health_settled(monitor_health(p->monitor)))
                /* XIDs of a pod that starts before the watch would not be noticed. A node without GPUs to
                 * offer (library NULL) has no watch. */
                gpu_driver_set_devices(p->driver, NULL,
                                       "NVML is starting to watch this node's GPUs for errors");
        else
                gpu_driver_set_devices(p->driver, d, "");
}

static void gpu_plugin_main_publish(struct plugin *p) {
        const struct gpu_devices *d = gpus_devices(p->gpus);
        const struct health *h = p->monitor ? monitor_health(p->monitor) : NULL;
        static const struct gpu_devices none;
        if (!gpus_get(p->gpus)->known || p->hook_state == HOOK_UNTRIED)
                return;
        bool nothing = p->hook_state == HOOK_FAILS || p->main.leaves;
        struct slice_content content = gpu_offer_content(nothing ? &none : d, h);
        slice_set(p->main.slices, &content);
        if (h)
                gpu_report_health(&p->report, h, d);
}

static void gpu_plugin_main_withdraw(struct node_main *m) {
        gpu_plugin_main_publish(CONTAINER(m, struct plugin, main));
}

static void on_gpus(void *u) {
        struct plugin *p = u;
        gpu_report_update(&p->report, gpus_get(p->gpus), gpus_devices(p->gpus));
        watch_or_not(p);
        gpu_plugin_main_publish(p);
        inform_driver(p);
}

static void on_verified(void *u) {
        struct plugin *p = u;
        gpu_driver_verified(p->driver);
}

/* ---- their health ---- */

static void gpu_plugin_main_on_health(void *u) {
        gpu_plugin_main_publish(u);
        inform_driver(u);
}

static void on_cordoned(void *u, bool yes) {
        struct plugin *p = u;
        p->cordoned = yes;
        watch_or_not(p);
        gpu_plugin_main_publish(p);
        inform_driver(p);
}

static void on_doubt(void *u) {
        struct plugin *p = u;
        gpus_doubt(p->gpus);
}

static void on_untainted(void *u, enum slice_taints taken) {
        struct plugin *p = u;
        gpu_report_untainted(&p->report, taken);
}

static void on_cleared(void *u) {
        struct plugin *p = u;
        log_info("the reported errors of this node's GPUs have been cleared by an annotation");
        monitor_forget_xids(p->monitor);
}

static void start_monitor(struct plugin *p) {
        struct xids of_programs = { 0 };
        struct str bad;
        bool all = xids_add(&of_programs, p->xids, &bad);
        if (!p->main.gates.on[GATE_NVML_DEVICE_HEALTH_CHECK]) {
                if (*p->xids)
                        log_warn("--additional-xids-to-ignore has no effect: the feature gate "
                                 "NVMLDeviceHealthCheck is off, so XIDs are not monitored");
                return;
        }
        if (!all) {
                _cleanup_(freep) char *word = xstrndup(bad.p, bad.n);
                log_warn("--additional-xids-to-ignore: a word that is not an XID is ignored: use at most 256 "
                         "comma-separated numbers",
                         kv_str("word", word));
        }
        slice_on_untainted(p->main.slices, on_untainted, p);
        slice_on_annotation(p->main.slices, GPU_ANNOTATION_CLEAR_XIDS, on_cleared, p);
        p->monitor =
                monitor_new(&p->main.loop, &(struct monitor_options){ .of_programs = &of_programs,
                                                                      .folder = p->main.plugin_dir,
                                                                      .boot_id = p->main.boot_id,
                                                                      .report = &p->report,
                                                                      .changed = gpu_plugin_main_on_health,
                                                                      .doubt = on_doubt,
                                                                      .u = p });
}

static void on_hook_retry(void *u) {
        struct plugin *p = u;
        install_hook(p);
        inform_driver(p);
}

static void on_nvml_failed(void *u, const char *kind) {
        struct plugin *p = u;
        gpu_metrics_failed(&p->metrics, kind);
}

static void on_refused(void *u, const char *device, const struct err *e) {
        struct plugin *p = u;
        gpu_report_refused(&p->report, device, e);
}

static void gpu_plugin_main_on_recorded(void *u, const struct checkpoint *table) {
        struct plugin *p = u;
        gpu_report_foreign(&p->report, table);
        p->used = table->claims != NULL;
        if (p->gpus)
                watch_or_not(p);
}

static bool gpu_plugin_main_hold(void *u) {
        const struct plugin *p = u;
        return gpus_hold(p->gpus);
}

static bool gpu_plugin_main_verify(void *u, const struct gpu_device *d, uint64_t since_ms) {
        const struct plugin *p = u;
        return gpus_verify(p->gpus, d, since_ms);
}

static void wanted(void *u, bool yes) {
        const struct plugin *p = u;
        gpus_poll_fast(p->gpus, yes);
}

/* ---- start and stop ---- */

/* The path below the driver's root if it exists there, else the container's own. */
static char *below_root(const struct plugin *p, const char *path) {
        char *below = file_join(p->flags.root_here, path + 1);
        if (is_folder(below))
                return below;
        free(below);
        return xstrdup(path);
}

static char *beside_us(const char *name) {
        char path[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        path[n > 0 ? n : 0] = '\0';
        char *slash = strrchr(path, '/');
        if (slash)
                *slash = '\0';
        return file_join(slash ? path : "/usr/bin", name);
}

/* These flags come with the Go driver's manifests, for features that this driver does not have yet. */
static void report_unused_flags(const struct plugin *p) {
        const struct {
                const char *flag, *value, *otherwise;
        } flags[] = { { "namespace", p->ns, DEFAULT_NAMESPACE },
                      { "image-name", p->image, "" },
                      { "image-pull-secrets", p->pull_secrets, "" },
                      { "image-pull-policy", p->pull_policy, "" },
                      { "service-account-name", p->service_account, "" } };
        struct buf given = BUF_INIT(256);
        for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
                if (!streq(flags[i].value, flags[i].otherwise))
                        buf_addf(&given, "%s--%s", given.n ? " " : "", flags[i].flag);
        }
        if (given.n)
                log_info("these flags have no effect: this version starts no pods for MPS and gives no GPU "
                         "to VFIO",
                         kv_str("flags", buf_str(&given)));
        buf_done(&given);
}

static void *gpu_plugin_main_start(struct node_main *m) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        p->sys = *p->flags.alt_proc_devices ? below_root(p, "/sys") : xstrdup("/sys");
        p->hook_program = beside_us(HOOK_PROGRAM);
        p->report = (struct gpu_report){ .events = m->events, .metrics = &p->metrics, .node = p->flags.node };
        loop_timer_init(&p->hook_retry, &m->loop, on_hook_retry, p);
        slice_on_refused(m->slices, on_refused, p);
        report_unused_flags(p);
        install_hook(p);
        start_monitor(p);
        const struct driver_root roots[] = { m->root, { .host = "/", .here = p->host_root } };
        p->conflicts =
                gpu_conflicts_new(&(struct gpu_conflicts_options){ .loop = &m->loop,
                                                                   .kube = m->kube,
                                                                   .roots = roots,
                                                                   .n_roots = is_folder(p->host_root) ? 2 : 1,
                                                                   .report = &p->report,
                                                                   .cordoned = on_cordoned,
                                                                   .u = p });
        p->gpus = gpus_new(&m->loop, &(struct gpus_options){ .root = m->root,
                                                             .proc_driver = m->proc_driver,
                                                             .sys = p->sys,
                                                             .own_dev = "/dev",
                                                             .changed = on_gpus,
                                                             .verified = on_verified,
                                                             .failed = on_nvml_failed,
                                                             .u = p });
        p->driver = gpu_driver_new(&(struct gpu_driver_options){ .node = p->flags.node,
                                                                 .gates = &m->gates,
                                                                 .root = m->root,
                                                                 .sys = p->sys,
                                                                 .proc_driver = m->proc_driver,
                                                                 .proc_devices = m->proc_devices,
                                                                 .hook = str_or(p->hook, ""),
                                                                 .ipc_sockets = p->ipc_sockets,
                                                                 .no_gids = !p->gids,
                                                                 .hold = gpu_plugin_main_hold,
                                                                 .verify = gpu_plugin_main_verify,
                                                                 .wanted = wanted,
                                                                 .recorded = gpu_plugin_main_on_recorded,
                                                                 .u = p });
        return p->driver;
}

static void gpu_plugin_main_stop(struct node_main *m) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        loop_timer_done(&p->hook_retry);
        gpu_hook_check_free(p->hook_check);
        monitor_free(p->monitor);
        gpu_conflicts_free(p->conflicts);
        gpus_free(p->gpus);
}

/* ---- the command line ---- */

static int gpu_plugin_main_dialect_of(const char *layout) {
        if (streq(layout, "main"))
                return GPU_RECORD_MAIN;
        return streq(layout, "auto") || streq(layout, "released") ? GPU_RECORD_RELEASED : 0;
}

static bool is_positive(const char *text) {
        int64_t n;
        return isdigit((unsigned char)*text) && str_to_i64(str_from(text), &n) && n > 0;
}

static int check_shares(const char *shares, struct err *e) {
        if (streq(shares, "disabled"))
                return 0;
        if (!streq(shares, "memory") && !streq(shares, "unlimited") && !is_positive(shares))
                return err_set(e, ERR_INVALID, 0,
                               "--consumable-shares (CONSUMABLE_SHARES): disabled, memory, unlimited, or a "
                               "positive number, not '%s'",
                               shares);
        return err_set(e, ERR_INVALID, 0,
                       "--consumable-shares (CONSUMABLE_SHARES): this driver does not share GPUs by "
                       "consumable capacity yet; set it to disabled");
}

static int gpu_plugin_main_check(struct node_main *m, struct err *e) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        if (gpu_driver_check_gates(&m->gates, e) < 0 || check_shares(p->shares, e) < 0)
                return -1;
        m->checkpoint_dialect = gpu_plugin_main_dialect_of(p->layout);
        if (!m->checkpoint_dialect)
                return err_set(e, ERR_INVALID, 0, "--checkpoint-layout: auto, main or released, not '%s'",
                               p->layout);
        if (*p->flags.cdi_hook && p->flags.cdi_hook[0] != '/')
                return err_set(e, ERR_INVALID, 0, "--nvidia-cdi-hook-path: not an absolute path: '%s'",
                               p->flags.cdi_hook);
        return 0;
}

static void gpu_plugin_main_begin(struct node_main *m, const struct flag *flags) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        struct buf gates = BUF_INIT(4096);
        gates_render(&m->gates, &gates);
        log_info(PROGRAM, kv_str("gates", buf_str(&gates)));
        buf_done(&gates);
        flags_log(flags);
        gpu_metrics_init(&p->metrics, p->flags.node);
}

static void gpu_plugin_main_check_node(struct node_main *m, struct check_list *l) {
        const struct plugin *p = CONTAINER(m, struct plugin, main);
        gpu_check_run(l, &(struct gpu_check_options){ .node = { .flags = &p->flags,
                                                                .driver_name = GPU_DRIVER,
                                                                .host_root = p->host_root },
                                                      .sockets = p->ipc_sockets });
}

int main(int argc, char **argv) {
        static struct plugin p = {
                .flags = NODE_FLAGS_DEFAULT,
                .ns = DEFAULT_NAMESPACE,
                .host_root = DEFAULT_HOST_ROOT,
                .image = "",
                .pull_secrets = "",
                .pull_policy = "",
                .service_account = "",
                .xids = "",
                .shares = "disabled",
                .layout = "auto",
                .gids = true,
        };
#define OF_NO_USE "no effect: accepted for the Go driver's manifests"
        static const struct flag flags[] = {
                NODE_FLAGS_NAME(p.flags),
                FLAG(STR, "namespace", &p.ns, OF_NO_USE),
                NODE_FLAGS_NODE(p.flags),
                FLAG(STR, "container-driver-root", &p.flags.root_here, "another name of driver-root-ctr-path",
                     .env = "DRIVER_ROOT_CTR_PATH"),
                FLAG(STR, "host-root", &p.host_root,
                     "path of the host's root folder in the container, where the configurations of the "
                     "container runtime are read. If it does not exist, the driver root is used"),
                FLAG(STR, "image-name", &p.image, OF_NO_USE),
                FLAG(STR, "image-pull-secrets", &p.pull_secrets, OF_NO_USE),
                FLAG(STR, "image-pull-policy", &p.pull_policy, OF_NO_USE),
                FLAG(STR, "service-account-name", &p.service_account, OF_NO_USE),
                FLAG(STR, "additional-xids-to-ignore", &p.xids,
                     "comma-separated XIDs that are errors of programs, in addition to those that NVIDIA "
                     "documents as such. With the feature gate NVMLDeviceHealthCheck"),
                FLAG(STR, "consumable-shares", &p.shares, "only the value disabled is allowed"),
                FLAG(STR, "checkpoint-layout", &p.layout,
                     "form of the checkpoint: auto or released (all releases of the Go driver read it, 25.3 "
                     "to 0.5.0), or main (only builds of its main branch from before 2026-08-11 read it)"),
                FLAG(BOOL, "gpu-ipc-sockets", &p.ipc_sockets,
                     "give containers with a GPU the socket of the host's nvidia-persistenced"),
                FLAG(BOOL, "gpu-additional-gids", &p.gids,
                     "let container processes that are not root use device nodes that belong to a group. "
                     "Needs a container runtime with CDI 0.7.0"),
                NODE_FLAGS_PROCESS(p.flags),
                { 0 },
        };
        p.main = (struct node_main){
                .program = PROGRAM,
                .driver = &gpu_driver,
                .flags = &p.flags,
                .metrics = &p.metrics.node,
                .check = gpu_plugin_main_check,
                .begin = gpu_plugin_main_begin,
                .start = gpu_plugin_main_start,
                .stop = gpu_plugin_main_stop,
                .withdraw = gpu_plugin_main_withdraw,
        };
        if (argc > 1 && streq(argv[1], CHECK_NODE))
                return check_node_main(&p.main, flags, argc - 1, argv + 1, gpu_plugin_main_check_node);
        int r = node_main(&p.main, flags, argc, argv);
        free(p.sys);
        free(p.hook_program);
        free(p.hook);
        return r;
}
