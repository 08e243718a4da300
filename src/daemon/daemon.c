/* SPDX-License-Identifier: Apache-2.0 */
/* compute-domain-daemon: one per node and ComputeDomain, in a pod of the domain's DaemonSet. `run` supervises
 * nvidia-imex, `check` is its probe. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/gates.h"
#include "base/flags.h"
#include "base/log.h"
#include "daemon/check.h"
#include "daemon/supervisor.h"
#include "model/mode.h"

#define IMEX_DIR "/imexd"
#define DEFAULT_MAX_NODES 18 /* of an NVL72 rack */
/* The pod is given 10 s to leave. */
#define TERM_GRACE_MS 7000
#define LARGE (32 * 1024)

static struct supervisor_config config = {
        .clique_id = "",
        .domain_uid = "",
        .claim_uid = "",
        .node = "",
        .pod_uid = "",
        .pod = "",
        .pod_ns = "",
        .kubeconfig = "",
        .imex = { .dir = IMEX_DIR,
                  .hosts_path = "/etc/hosts",
                  .run_dir = "/var/run/nvidia-imex",
                  .imex_path = "nvidia-imex",
                  .ctl_path = "nvidia-imex-ctl",
                  .own_ip = "",
                  .term_grace_ms = TERM_GRACE_MS },
};
static const char *gates_text = "", *log_format_text = "text", *imex_config = "";
static const char *domain_name = "", *domain_ns = "default"; /* for people who read the environment */
static int64_t verbosity, max_nodes;

static const struct flag flags[] = {
        FLAG(INT, "v", &verbosity, "log verbosity, 0 to 7"),
        FLAG(STR, "logging-format", &log_format_text, "text or json"),
        FLAG(STR, "feature-gates", &gates_text, "feature gates, Name=true|false,..."),
        FLAG(STR, "clique-id", &config.clique_id, "clique of this node, empty without NVLink fabric"),
        FLAG(STR, "compute-domain-uuid", &config.domain_uid, "UID of the ComputeDomain"),
        FLAG(STR, "compute-domain-name", &domain_name, "name of the ComputeDomain"),
        FLAG(STR, "compute-domain-namespace", &domain_ns, "namespace of the ComputeDomain"),
        FLAG(STR, "compute-domain-claim-uid", &config.claim_uid, "UID of this daemon's ResourceClaim"),
        FLAG(STR, "node-name", &config.node, "node that this pod runs on"),
        FLAG(STR, "pod-ip", &config.imex.own_ip, "IP of this pod"),
        FLAG(STR, "pod-uid", &config.pod_uid, "UID of this pod"),
        FLAG(STR, "pod-name", &config.pod, "name of this pod"),
        FLAG(STR, "pod-namespace", &config.pod_ns, "namespace of this pod"),
        FLAG(INT, "max-nodes-per-imex-domain", &max_nodes, "slots of an IMEX domain, 0 for 18"),
        FLAG(STR, "imex-config", &imex_config,
             "settings of nvidia-imex beside the driver's own, as a JSON object of strings"),
        FLAG(STR, "kubeconfig", &config.kubeconfig, "kubeconfig file, empty inside a cluster"),
        { .name = NULL },
};

static void usage(FILE *to) {
        fputs("usage: compute-domain-daemon [flags] run|check [flags]\n", to);
        flags_usage(flags, to);
}

/* For the life of the process. */
static int load_settings(struct err *e) {
        static struct imex_settings settings;
        static struct arena *arena;

        arena = arena_new(256);
        if (imex_settings_parse(imex_config, arena, &settings, e) < 0)
                return err_wrap(e, "--imex-config (IMEX_CONFIG)");
        config.imex.settings = &settings;
        return 0;
}

static int validate(struct gates *gates, struct err *e) {
        gates_init(gates);
        if (gates_parse(gates, gates_text, e) < 0 || gates_validate(gates, e) < 0)
                return err_wrap(e, "feature gates");
        if (load_settings(e) < 0)
                return -1;
        if (!*config.domain_uid)
                return err_set(e, ERR_INVALID, 0,
                               "COMPUTE_DOMAIN_UUID is not set: the container runtime has not applied the "
                               "CDI edits of this pod's ResourceClaim. Enable CDI in the runtime of this "
                               "node (containerd: enable_cdi = true and cdi_spec_dirs with /var/run/cdi; "
                               "CRI-O: cdi_spec_dirs), then delete this pod");
        if (!str_is_uuid(config.domain_uid))
                return err_set(e, ERR_INVALID, 0, "COMPUTE_DOMAIN_UUID '%.60s' is not a UID",
                               config.domain_uid);
        if (!*config.node || !*config.pod || !*config.pod_ns || !*config.pod_uid)
                return err_set(e, ERR_INVALID, 0,
                               "NODE_NAME, POD_NAME, POD_NAMESPACE and POD_UID must be set");
        if (*config.clique_id && !*config.imex.own_ip)
                return err_set(e, ERR_INVALID, 0, "POD_IP must be set: IMEX finds its node id by it");
        if (max_nodes < 0 || max_nodes > 4096)
                return err_set(e, ERR_INVALID, 0, "MAX_NODES_PER_IMEX_DOMAIN %lld: want 0 to 4096",
                               (long long)max_nodes);
        config.imex.max_nodes = max_nodes ? (unsigned)max_nodes : DEFAULT_MAX_NODES;
        return 0;
}

static int run(struct err *e) {
        struct gates gates;

        if (validate(&gates, e) < 0)
                return -1;
        flags_log(flags);
        gates_log_ineffective(&gates);
        /* What nvidia-imex-ctl prints of a full domain is large, rare and soon forgotten: it shall not leave
         * its mark on the heap. */
        mallopt(M_MMAP_THRESHOLD, LARGE);
        mallopt(M_TRIM_THRESHOLD, LARGE);
        mallopt(M_TOP_PAD, LARGE / 2);
        config.imex.dns_names = mode_dns_names(&gates);
        return supervisor_run(&config, e);
}

/* Flags may stand on both sides of the command. */
static int parse(int argc, char **argv, const char **ret_command, bool *ret_help, struct err *e) {
        int rest;

        if (flags_parse(flags, argc, argv, &rest, ret_help, e) < 0)
                return -1;
        if (*ret_help || rest == argc)
                return 0;
        *ret_command = argv[rest];
        for (int i = rest; i < argc; i++)
                argv[i] = argv[i + 1];
        if (flags_parse(flags, argc - 1, argv, &rest, ret_help, e) < 0)
                return -1;
        if (rest < argc - 1)
                return err_set(e, ERR_INVALID, 0, "unexpected argument '%.60s'", argv[rest]);
        return 0;
}

int main(int argc, char **argv) {
        const char *command = "";
        bool help = false;
        struct err e;

        if (version_asked(argc, argv, "compute-domain-daemon"))
                return EXIT_SUCCESS;
        int r = parse(argc, argv, &command, &help, &e);
        if (r == 0 && help) {
                usage(stdout);
                return EXIT_SUCCESS;
        }
        log_setup(streq(log_format_text, "json") ? LOG_JSON : LOG_TEXT, (int)verbosity);
        if (r == 0) {
                if (streq(command, "run")) {
                        r = run(&e);
                } else if (streq(command, "check")) {
                        r = check(config.imex.dir, config.clique_id, config.claim_uid, &e);
                        if (r == 0)
                                puts(*config.clique_id ? "READY" : "ready: this node has no NVLink fabric");
                } else {
                        usage(stderr);
                        return EXIT_FAILURE;
                }
        }
        if (r < 0)
                fprintf(stderr, "Error: %s\n", e.msg);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
