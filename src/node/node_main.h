/* SPDX-License-Identifier: Apache-2.0 */
/* node_main: the process of a DRA plugin: the flags that each has, its API client, metrics and probes, the
 * kubelet's sockets, and the order in which they begin and end. */
#ifndef NODE_NODE_MAIN_H
#define NODE_NODE_MAIN_H

#include "base/flags.h"
#include "base/http_server.h"
#include "node/claims.h"
#include "node/slice.h"

struct node_flags {
        const char *node, *http_endpoint, *metrics_path, *cdi_root, *root_host, *root_here, *cdi_hook,
                *registrar_dir, *plugins_dir, *kubeconfig, *gates, *log_format;
        int64_t health_port, qps, burst, verbosity;
};
#define NODE_FLAGS_DEFAULT                                                                                   \
        {                                                                                                    \
                .http_endpoint = "", .metrics_path = "/metrics", .cdi_root = "/etc/cdi", .root_host = "/",   \
                .root_here = "/driver-root", .registrar_dir = "/var/lib/kubelet/plugins_registry",           \
                .plugins_dir = "/var/lib/kubelet/plugins", .cdi_hook = "", .kubeconfig = "", .gates = "",    \
                .log_format = "text", .health_port = -1                                                      \
        }
/* Rows for a table of struct flag, in parts, between which a plugin's own may stand. `f` is a struct
 * node_flags. */
#define NODE_FLAGS_NAME(f)                                                                                   \
        { "node-name", .type = FLAG_STR, .dest = &(f).node, .required = true, .help = "name of this node" }
#define NODE_FLAGS_NODE(f)                                                                                   \
        { "http-endpoint", .type = FLAG_STR, .dest = &(f).http_endpoint,                                     \
          .help = "address for metrics and probes; empty: none" },                                           \
                { "metrics-path", .type = FLAG_STR, .dest = &(f).metrics_path,                               \
                  .help = "path of the metrics" },                                                           \
                { "cdi-root", .type = FLAG_STR, .dest = &(f).cdi_root, .help = "folder for CDI files" },     \
                { "nvidia-driver-root", .type = FLAG_STR, .dest = &(f).root_host,                            \
                  .alt_env = "HOST_DRIVER_ROOT", .help = "root of the NVIDIA driver on the host" },          \
                { "driver-root-ctr-path", .type = FLAG_STR, .dest = &(f).root_here,                          \
                  .help = "the same folder as seen from here" },                                             \
                { "nvidia-cdi-hook-path", .type = FLAG_STR, .dest = &(f).cdi_hook,                           \
                  .help = "accepted; no hook is needed" },                                                   \
                { "kubelet-registrar-directory-path", .type = FLAG_STR, .dest = &(f).registrar_dir,          \
                  .help = "where the kubelet looks for plugins" },                                           \
                { "kubelet-plugins-directory-path", .type = FLAG_STR, .dest = &(f).plugins_dir,              \
                  .help = "where plugins keep their data" },                                                 \
        {                                                                                                    \
                "healthcheck-port", .type = FLAG_INT, .dest = &(f).health_port,                              \
                                    .help = "port of the gRPC health service; negative: none"                \
        }
#define NODE_FLAGS_PROCESS(f)                                                                                \
        { "kubeconfig", .type = FLAG_STR, .dest = &(f).kubeconfig,                                           \
          .help = "empty: the service account of this pod" },                                                \
                { "kube-api-qps", .type = FLAG_INT, .dest = &(f).qps,                                        \
                  .help = "requests a second to the API server; 0: a generous limit" },                      \
                { "kube-api-burst", .type = FLAG_INT, .dest = &(f).burst,                                    \
                  .help = "requests at once to the API server; 0: a generous limit" },                       \
                { "feature-gates", .type = FLAG_STR, .dest = &(f).gates,                                     \
                  .help = "Name=true|false, comma separated" },                                              \
                { "logging-format", .type = FLAG_STR, .dest = &(f).log_format, .help = "text or json" }, {   \
                "v", .type = FLAG_INT, .dest = &(f).verbosity, .alt_env = "LOG_VERBOSITY",                   \
                     .help = "verbosity of the log"                                                          \
        }

/* What a plugin fills in, and below the line what is there from start() on. */
struct node_main {
        const char *program;
        const struct node_driver *driver;
        const struct node_flags *flags;
        struct metrics *registry;
        struct node_metrics *metrics;
        /* Begins what the driver is made of: `u` of its functions. */
        void *(*start)(struct node_main *m);
        void (*stop)(struct node_main *m); /* after claims_free() */
        /* ---- */
        uv_loop_t loop;
        char *plugin_dir;
        char boot_id[37];
        struct kube_client *kube;
        struct event_recorder *events;
        struct slice_publisher *slices;
        struct claims *claims; /* not yet in start() */
        struct http_server *http;
        struct dra_plugin *dra;
        struct loop_signal signals[5];
        bool registered, stopping;
        int status;
};

/* Reads the command line and sets up the log. Below 0: go on; else the status with which to exit at once.
 * `check`: what the plugin itself refuses. */
int node_main_flags(struct node_main *m, const struct flag *flags, int argc, char **argv,
                    int (*check)(struct node_main *m, struct err *e));
/* Runs the plugin to its end; the status to exit with. */
int node_main(struct node_main *m);

#endif
