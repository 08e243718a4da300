/* SPDX-License-Identifier: Apache-2.0 */
/* node_main: runs the process of a DRA plugin. It defines the common flags, sets up the API client, metrics,
 * probes and the kubelet's sockets, and starts and stops them in the right order. */
#pragma once

#include "api/gates.h"
#include "base/flags.h"
#include "base/http_server.h"
#include "node/claims.h"
#include "node/plugin_shutdown.h"
#include "node/registration.h"
#include "node/slice_publisher.h"
#include "nvidia/driver_root.h"

struct node_flags {
        const char *node, *http_endpoint, *metrics_path, *cdi_root, *root_host, *root_here, *cdi_hook,
                *registrar_dir, *plugins_dir, *kubeconfig, *gates, *log_format, *selector, *alt_proc_devices;
        int64_t health_port, qps, burst, verbosity;
        bool retries;
};
#define NODE_FLAGS_DEFAULT                                                                                   \
        {                                                                                                    \
                .http_endpoint = "", .metrics_path = "/metrics", .cdi_root = "/etc/cdi", .root_host = "/",   \
                .root_here = "/driver-root", .registrar_dir = "/var/lib/kubelet/plugins_registry",           \
                .plugins_dir = "/var/lib/kubelet/plugins", .cdi_hook = "", .kubeconfig = "", .gates = "",    \
                .log_format = "text", .selector = "", .alt_proc_devices = "", .health_port = -1              \
        }
/* Rows for a table of struct flag, in three parts, so that a plugin can put its own rows between them. `f` is
 * a struct node_flags. */
#define NODE_FLAGS_NAME(f) FLAG(STR, "node-name", &(f).node, "name of this node", .required = true)
#define NODE_FLAGS_NODE(f)                                                                                   \
        FLAG(STR, "http-endpoint", &(f).http_endpoint, "address of metrics and probes; empty: none"),        \
                FLAG(STR, "metrics-path", &(f).metrics_path, "path of the metrics"),                         \
                FLAG(STR, "cdi-root", &(f).cdi_root, "folder of the node's CDI files"),                      \
                FLAG(STR, "nvidia-driver-root", &(f).root_host, "root of the NVIDIA driver on the host",     \
                     .alt_env = "HOST_DRIVER_ROOT"),                                                         \
                FLAG(STR, "driver-root-ctr-path", &(f).root_here, "path of this root in the container"),     \
                FLAG(STR, "nvidia-cdi-hook-path", &(f).cdi_hook,                                             \
                     "CDI hook on the host that the CDI files of GPUs name; empty: the hook of this "        \
                     "driver. Without an effect for ComputeDomains"),                                        \
                FLAG(STR, "kubelet-registrar-directory-path", &(f).registrar_dir,                            \
                     "folder in which the kubelet looks for the sockets of plugins"),                        \
                FLAG(STR, "kubelet-plugins-directory-path", &(f).plugins_dir,                                \
                     "folder in which plugins keep their data"),                                             \
                FLAG(INT, "healthcheck-port", &(f).health_port,                                              \
                     "port of /healthz and /readyz for probes; negative: none")
#define NODE_FLAGS_PROCESS(f)                                                                                \
        FLAG(STR, "alt-proc-devices-path", &(f).alt_proc_devices,                                            \
             "file to read instead of /proc/devices; empty: /proc/devices"),                                 \
                FLAG(STR, "kubeconfig", &(f).kubeconfig,                                                     \
                     "kubeconfig file; empty: the service account of this pod"),                             \
                FLAG(INT, "kube-api-qps", &(f).qps,                                                          \
                     "average requests a second to the API server; 0: a generous limit"),                    \
                FLAG(INT, "kube-api-burst", &(f).burst,                                                      \
                     "requests to the API server that may exceed the average at once; 0: a generous "        \
                     "limit"),                                                                               \
                FLAG(STR, "feature-gates", &(f).gates, "feature gates, as Name=true,Name=false"),            \
                FLAG(BOOL, "retry-prepares", &(f).retries,                                                   \
                     "ask the kubelet to call Prepare again, by an annotation of the pods: when the cause "  \
                     "of a failed Prepare is gone, and after a registration, also for pods that may wait "   \
                     "for another plugin. The account must be allowed to patch pods"),                       \
                FLAG(STR, "pod-node-selector", &(f).selector,                                                \
                     "nodeSelector and nodeSelectorTerms of this pod, as JSON. The plugin serves its node "  \
                     "until the last claim is unprepared if the Node no longer matches them; empty: it "     \
                     "ends at once"),                                                                        \
                FLAG(STR, "logging-format", &(f).log_format, "log format, text or json"),                    \
                FLAG(INT, "v", &(f).verbosity, "log verbosity, 0 to 7", .alt_env = "LOG_VERBOSITY")

/* The plugin fills in the members above the line. The members below it are valid from start() on. */
struct node_main {
        const char *program;
        const struct node_driver *driver;
        int checkpoint_dialect; /* see claims_options; set by check() */
        const struct node_flags *flags;
        struct node_metrics *metrics;
        int (*check)(struct node_main *m, struct err *e); /* checks the plugin's own flags, and the gates */
        /* Called before the plugin starts: logs the options, and initializes the metrics. */
        void (*begin)(struct node_main *m, const struct flag *flags);
        /* Creates and returns the driver's state: the `u` of its functions. */
        void *(*start)(struct node_main *m);
        void (*stop)(struct node_main *m); /* called after claims_free() */
        /* Called when the plugin is to end, but stays for the pods that are still running: it must offer no
         * devices from now on. `leaves` is then true. */
        void (*withdraw)(struct node_main *m);
        const char *own_device; /* see struct plugin_shutdown_options */
        /* ---- */
        struct gates gates; /* valid from check() on */
        struct driver_root root;
        const char *proc_devices; /* "/proc/devices", or its substitute */
        char *proc_driver;        /* "/proc/driver/nvidia" without mounts over it, or its substitute */
        uv_loop_t loop;
        char *plugin_dir;
        char boot_id[37];
        struct kube_client *kube;
        struct event_recorder *events;
        struct slice_publisher *slices;
        struct claims *claims; /* not valid in start() */
        struct http_server *http, *probes;
        struct dra_plugin *dra;
        struct registration_watch *peer; /* NULL: the plugin does not ask for retries */
        struct loop_signal signals[5];
        struct loop_timer idle; /* expires some seconds after the last request of the kubelet */
        struct arena *selector_arena;
        struct node_selector selector;
        struct plugin_shutdown *leaving; /* not NULL after the process has been asked to end */
        bool leaves;
        bool registered, stopping;
        int status;
};

/* Reads the command line. Returns a number below 0 if the process can continue, otherwise its exit status. */
int node_main_flags(struct node_main *m, const struct flag *flags, int argc, char **argv);
/* Runs the program of a plugin: the process that calls NVML, the output of --version or --help, or the plugin
 * until it ends. Returns the exit status. */
int node_main(struct node_main *m, const struct flag *flags, int argc, char **argv);
