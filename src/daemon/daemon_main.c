/* SPDX-License-Identifier: Apache-2.0 */
/* compute-domain-daemon: runs nvidia-imex on a node of an NVLink partition, for the ComputeDomain that the
 * node is in. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/gates.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/node_daemon_run.h"

#define PROGRAM "compute-domain-daemon"
#define LARGE (32 * 1024)

static struct node_daemon_config config = {
        .dir = "/imexd",
        .cdi_dir = "/var/run/cdi",
        .claim_uid = "",
        .edits = "",
        .node = "",
        .pod_uid = "",
        .pod = "",
        .pod_ns = "",
        .kubeconfig = "",
        .imex = { .hosts_path = "/etc/hosts",
                  .run_dir = "/var/run/nvidia-imex",
                  .imex_path = "nvidia-imex",
                  .ctl_path = "nvidia-imex-ctl",
                  .own_ip = "",
                  /* nvidia-imex is killed if it has not ended after this time. */
                  .term_grace_ms = 7000 },
};
static const char *gates_text = "", *log_format_text = "text";
static int64_t verbosity;
/* The options that the installation sets. */
static struct {
#define DAEMON_OPTION(type, member, ...) FLAG_C_##type member;
#include "api/daemon_settings.def"
} options = {
#define DAEMON_OPTION(type, member, name, value, ...) .member = value,
#include "api/daemon_settings.def"
};

static const struct flag flags[] = {
        FLAG(INT, "v", &verbosity, "log verbosity, 0 to 7"),
        FLAG(STR, "logging-format", &log_format_text, "log format, text or json"),
        FLAG(STR, "feature-gates", &gates_text, "feature gates, as Name=true,Name=false"),
        FLAG(STR, "domains-dir", &config.dir, "folder that the daemon shares with the plugin"),
        FLAG(STR, "cdi-root", &config.cdi_dir, "folder of the node's CDI files"),
        FLAG(STR, "compute-domain-claim-uid", &config.claim_uid, "UID of this daemon's ResourceClaim"),
        FLAG(STR, "compute-domain-daemon-edits", &config.edits,
             "identifier of the CDI edits of this container, from the plugin"),
        FLAG(STR, "node-name", &config.node, "node that this pod runs on"),
        FLAG(STR, "pod-ip", &config.imex.own_ip, "IP of this pod"),
        FLAG(STR, "pod-uid", &config.pod_uid, "UID of this pod"),
        FLAG(STR, "pod-name", &config.pod, "name of this pod"),
        FLAG(STR, "pod-namespace", &config.pod_ns, "namespace of this pod"),
#define DAEMON_OPTION(type, member, name, value, help, ...)                                                  \
        FLAG(type, name, &options.member, help, __VA_ARGS__),
#include "api/daemon_settings.def"
        FLAG(STR, "kubeconfig", &config.kubeconfig,
             "kubeconfig file; empty: the service account of this pod"),
        { .name = NULL },
};

/* Lives until the process ends. */
static int load_settings(struct err *e) {
        static struct imex_settings settings;
        static struct arena *arena;

        arena = arena_new(256);
        if (imex_settings_parse(options.imex_config, arena, &settings, e) < 0)
                return err_wrap(e, "--imex-config (IMEX_CONFIG)");
        config.imex.config.settings = &settings;
        return 0;
}

static int validate(struct gates *gates, struct err *e) {
        gates_init(gates);
        if (gates_parse(gates, gates_text, e) < 0 || gates_validate(gates, e) < 0)
                return err_wrap(e, "feature gates");
        if (load_settings(e) < 0)
                return -1;
        if (!str_is_uuid(config.claim_uid))
                return err_set(e, ERR_INVALID, 0,
                               "COMPUTE_DOMAIN_CLAIM_UID is not set: the container runtime has not applied "
                               "the CDI edits of this pod's ResourceClaim. Enable CDI in the runtime of this "
                               "node (containerd: enable_cdi = true and cdi_spec_dirs with /var/run/cdi; "
                               "CRI-O: cdi_spec_dirs), then delete this pod");
        if (!*config.node || !*config.pod || !*config.pod_ns || !*config.pod_uid || !*config.imex.own_ip)
                return err_set(e, ERR_INVALID, 0,
                               "NODE_NAME, POD_NAME, POD_NAMESPACE, POD_UID and POD_IP must be set");
        return 0;
}

int main(int argc, char **argv) {
        struct gates gates;
        bool help = false;
        int rest;
        struct err e;

        if (version_asked(argc, argv, PROGRAM))
                return EXIT_SUCCESS;
        if (flags_parse(flags, argc, argv, &rest, &help, &e) < 0) {
                fprintf(stderr, PROGRAM ": %s\n", e.msg);
                return 2;
        }
        if (help) {
                fputs("usage: " PROGRAM " [flags]\n", stdout);
                flags_usage(flags, stdout);
                return EXIT_SUCCESS;
        }
        log_setup(streq(log_format_text, "json") ? LOG_JSON : LOG_TEXT, (int)verbosity);
        if (rest < argc)
                err_set(&e, ERR_INVALID, 0, "unexpected argument '%.60s'", argv[rest]);
        if (rest < argc || validate(&gates, &e) < 0) {
                log_error("cannot start", kv_err(&e));
                return EXIT_FAILURE;
        }
        flags_log(flags);
        gates_log_ineffective(&gates);
        /* The output of nvidia-imex-ctl for a full domain is large, rare and short-lived: it must not enlarge
         * the heap for good. */
        mallopt(M_MMAP_THRESHOLD, LARGE);
        mallopt(M_TRIM_THRESHOLD, LARGE);
        mallopt(M_TOP_PAD, LARGE / 2);
        if (node_daemon_run(&config, &e) < 0) {
                log_error("cannot start", kv_err(&e));
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
