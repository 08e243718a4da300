/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/log.h"
#include "imex/imex_settings.h"

enum { FLAG_COUNT = 40 };

/* Values that are needed only while the flags are parsed. */
struct raw {
        const char *gates, *pull_secrets, *namespaces, *resources, *metadata, *imex_mode, *imex_isolation,
                *log_format;
};

static void flag_table(struct config *c, struct raw *r, struct flag *ret) {
        const struct flag table[] = {
                FLAG(STR, "pod-name", &c->pod_name,
                     "name of this pod, a part of its identity in the leader election", .required = true),
                FLAG(STR, "namespace", &c->ns, "namespace of the driver"),
                FLAG(STR, "image-name", &c->daemon.image, "image of the daemon pods", .required = true),
                FLAG(INT, "log-verbosity-cd-daemon", &c->daemon_verbosity, "log verbosity of the daemon pods",
                     .required = true),
                FLAG(INT, "max-nodes-per-imex-domain", &c->max_nodes,
                     "maximum number of nodes of an IMEX domain in one NVLink partition", .min = 1,
                     .max = 1024),
                FLAG(STR, "cd-daemon-image-pull-secret-names", &r->pull_secrets,
                     "pull secrets of the daemon pods, separated by commas or spaces"),
                FLAG(STR, "cd-daemon-resources", &r->resources,
                     "requests and limits of the daemon container, as JSON"),
                FLAG(STR, "cd-daemon-metadata", &r->metadata,
                     "labels and annotations of the daemon pods, as JSON"),
#define DAEMON_POD_SETTING(type, member, name, value, help, ...)                                             \
        FLAG(type, name, &c->daemon.member, help, __VA_ARGS__),
#define DAEMON_OPTION DAEMON_POD_SETTING
#include "api/daemon_settings.def"
                FLAG(STR, "additional-namespaces", &r->namespaces,
                     "comma-separated namespaces of earlier installations"),
                FLAG(STR, "imex-mode", &r->imex_mode,
                     "what runs nvidia-imex: driverManaged (empty: this) or hostManaged"),
                FLAG(STR, "imex-isolation", &r->imex_isolation,
                     "what separates ComputeDomains: domain (empty: this) or channel"),
                FLAG(STR, "kubelet-plugin-selector", &c->plugin_selector,
                     "label selector of the plugin's pods, on which the plugins report"),
                FLAG(BOOL, "gpu-clique-label-enabled", &c->gpu_clique_label,
                     "set the label nvidia.com/gpu.clique on nodes"),
                FLAG(BOOL, "fresh-pod-per-domain", &c->fresh_pods,
                     "replace the daemon of a node between two ComputeDomains"),
                FLAG(INT, "evict-after-minutes", &c->evict_after_min,
                     "evict pods with a channel from a node whose IMEX has not been READY for so long; 0: "
                     "never",
                     .max = 1440),
                FLAG(BOOL, "rack-domains", &c->racks,
                     "create a ComputeDomain for each rack, in the driver's namespace and in those with the "
                     "label " CD_LABEL_RACK_DOMAINS "=enabled"),
                FLAG(BOOL, "auto-domains", &c->auto_domains,
                     "create a ComputeDomain for each workload whose pods have the label " CD_LABEL_AUTO
                     "=enabled"),
                FLAG(BOOL, "apply-crds", &c->apply_crds,
                     "create and update the CustomResourceDefinitions of the driver"),
                FLAG(STR, "http-endpoint", &c->http_endpoint,
                     "address of /metrics, /healthz and /readyz; empty: none"),
                FLAG(STR, "metrics-path", &c->metrics_path, "path of the metrics"),
                FLAG(STR, "kubeconfig", &c->kubeconfig,
                     "kubeconfig file; empty: the service account of this pod"),
                FLAG(INT, "kube-api-qps", &c->qps, "average requests a second to the API server"),
                FLAG(INT, "kube-api-burst", &c->burst,
                     "requests to the API server that may exceed the average at once"),
                FLAG(BOOL, "leader-election-enabled", &c->leader_election,
                     "elect a leader among the replicas"),
                FLAG(STR, "leader-election-lease-lock-name", &c->lease_name, "name of the Lease"),
                FLAG(STR, "leader-election-lease-lock-namespace", &c->lease_ns, "namespace of the Lease"),
                FLAG(DURATION_MS, "leader-election-lease-duration", &c->lease_duration_ms,
                     "time without a renewal after which another replica takes over"),
                FLAG(DURATION_MS, "leader-election-renew-deadline", &c->renew_deadline_ms,
                     "time without a successful renewal after which the leader stops"),
                FLAG(DURATION_MS, "leader-election-retry-period", &c->retry_period_ms,
                     "time between two attempts to get or renew the Lease"),
                FLAG(STR, "feature-gates", &r->gates, "feature gates, as Name=true,Name=false"),
                FLAG(STR, "logging-format", &r->log_format, "log format, text or json, also of the daemons"),
                FLAG(INT, "v", &c->verbosity, "log verbosity, 0 to 7"),
                { .name = NULL },
        };
        _Static_assert(ARRAY_LEN(table) <= FLAG_COUNT, "FLAG_COUNT is too small");
        memcpy(ret, table, sizeof table);
}

static void defaults(struct config *c, struct raw *r) {
        *c = (struct config){
                .ns = "default",
                .kubeconfig = "",
                .plugin_selector = "",
                .http_endpoint = "",
                .metrics_path = "/metrics",
                .lease_name = "nvidia-compute-domain-controller",
                .lease_ns = "default",
                .daemon = {
#define DAEMON_POD_SETTING(type, member, name, value, ...) .member = value,
#define DAEMON_OPTION DAEMON_POD_SETTING
#include "api/daemon_settings.def"
                },
                .max_nodes = 18,
                .qps = 1000,
                .burst = 2000,
                .lease_duration_ms = 15000,
                .renew_deadline_ms = 10000,
                .retry_period_ms = 2000,
                .apply_crds = true,
        };
        *r = (struct raw){ "", "", "", "", "", "", "", .log_format = "text" };
}

/* Splits at commas and white space, and drops empty pieces and duplicates. */
static size_t config_split(struct arena *a, const char *first, const char *text, const char *const **ret) {
        const char **list = arena_alloc(a, (strlen(text) + 2) * sizeof *list);
        size_t n = 0;
        if (first)
                list[n++] = first;
        for (const char *p = text; *p;) {
                size_t len = strcspn(p, ", \t\n");
                if (len) {
                        const char *s = arena_strndup(a, p, len);
                        bool known = false;
                        for (size_t i = 0; i < n; i++)
                                known = known || streq(list[i], s);
                        if (!known)
                                list[n++] = s;
                }
                p += len + (p[len] != '\0');
        }
        *ret = list;
        return n;
}

static int load_resources(struct config *c, const char *text, struct err *e) {
        static const struct jd_field fields[] = { JD_RAW(struct objects_settings, "requests", requests),
                                                  JD_RAW(struct objects_settings, "limits", limits), JD_END };
        if (*text && jd_decode_strict(fields, str_from(text), c->arena, &c->daemon, e) < 0)
                return err_wrap(e, "--cd-daemon-resources (CD_DAEMON_RESOURCES)");
        return 0;
}

/* Rejects labels and annotations that the controller and the daemons themselves use. */
static int check_keys(const struct jd_pair *p, size_t n, const char *what, struct err *e) {
        for (size_t i = 0; i < n; i++) {
                size_t domain = strcspn(p[i].key, "/");
                bool ours = streq(p[i].key, "app") || streq(p[i].key, CD_LABEL_COMPONENT) ||
                            streq(p[i].key, AUTOSCALER_EVICTION) ||
                            (p[i].key[domain] && domain >= strlen(CD_GROUP) &&
                             strncmp(p[i].key + domain - strlen(CD_GROUP), CD_GROUP, strlen(CD_GROUP)) == 0);
                if (ours)
                        return err_set(e, ERR_INVALID, 0, "%s \"%.100s\" is reserved for the driver", what,
                                       p[i].key);
        }
        return 0;
}

static int load_metadata(struct config *c, const char *text, struct err *e) {
        static const struct jd_field fields[] = { JD_MAP(struct objects_settings, "labels", labels),
                                                  JD_MAP(struct objects_settings, "annotations", annotations),
                                                  JD_END };
        if (!*text)
                return 0;
        if (jd_decode_strict(fields, str_from(text), c->arena, &c->daemon, e) < 0 ||
            check_keys(c->daemon.labels, c->daemon.n_labels, "label", e) < 0 ||
            check_keys(c->daemon.annotations, c->daemon.n_annotations, "annotation", e) < 0)
                return err_wrap(e, "--cd-daemon-metadata (CD_DAEMON_METADATA)");
        return 0;
}

static int check_imex_config(const struct config *c, struct err *e) {
        struct imex_settings settings;

        if (imex_settings_parse(c->daemon.imex_config, c->arena, &settings, e) < 0)
                return err_wrap(e, "--imex-config (IMEX_CONFIG)");
        return 0;
}

static int derive(struct config *c, const struct raw *r, struct err *e) {
        struct buf b = BUF_INIT(4096);
        gates_init(&c->gates);
        if (gates_parse(&c->gates, r->gates, e) < 0)
                return err_wrap(e, "--feature-gates (FEATURE_GATES)");
        if (mode_resolve(&c->gates, r->imex_mode, r->imex_isolation, &c->mode, e) < 0 ||
            load_resources(c, r->resources, e) < 0 || load_metadata(c, r->metadata, e) < 0 ||
            check_imex_config(c, e) < 0)
                return -1;
        if (!streq(c->daemon.pull_policy, "Always") && !streq(c->daemon.pull_policy, "IfNotPresent") &&
            !streq(c->daemon.pull_policy, "Never"))
                return err_set(e, ERR_INVALID, 0,
                               "--cd-daemon-image-pull-policy (CD_DAEMON_IMAGE_PULL_POLICY) \"%s\" is not "
                               "Always, IfNotPresent or Never",
                               c->daemon.pull_policy);
        if (mode_assigns_channels(c->mode) && !*c->plugin_selector)
                return err_set(e, ERR_INVALID, 0,
                               "imex.isolation=channel (IMEX_ISOLATION) requires --kubelet-plugin-selector "
                               "(KUBELET_PLUGIN_SELECTOR), because the kubelet plugins report which channels "
                               "their nodes hold");
        if (c->auto_domains && !mode_assigns_channels(c->mode))
                return err_set(e, ERR_INVALID, 0,
                               "--auto-domains (AUTO_DOMAINS) requires imex.isolation=channel "
                               "(IMEX_ISOLATION), because the pods of a workload share one claim");
        if (c->fresh_pods && (!mode_runs_daemons(c->mode) || !mode_forms_domains(c->mode)))
                return err_set(e, ERR_INVALID, 0,
                               "--fresh-pod-per-domain (FRESH_POD_PER_DOMAIN) requires "
                               "imex.mode=driverManaged and imex.isolation=domain, because only then a "
                               "daemon serves one ComputeDomain after another");
        if (!streq(r->log_format, "text") && !streq(r->log_format, "json"))
                return err_set(e, ERR_INVALID, 0,
                               "--logging-format (LOGGING_FORMAT) \"%s\" is neither text nor json",
                               r->log_format);
        if (c->qps < 1 || c->burst < 1)
                return err_set(e, ERR_INVALID, 0, "--kube-api-qps and --kube-api-burst must be at least 1");
        if (c->retry_period_ms < 100 || c->renew_deadline_ms <= c->retry_period_ms ||
            c->lease_duration_ms <= c->renew_deadline_ms)
                return err_set(e, ERR_INVALID, 0,
                               "leader election requires retry period < renew deadline < lease duration, and "
                               "a retry period of 100 ms or more");
        c->daemon.json_log = streq(r->log_format, "json");
        gates_render(&c->gates, &b);
        c->daemon.gates = arena_strdup(c->arena, buf_str(&b));
        buf_done(&b);
        c->daemon.log_verbosity = arena_printf(c->arena, "%" PRId64, c->daemon_verbosity);
        c->daemon.n_pull_secrets = config_split(c->arena, NULL, r->pull_secrets, &c->daemon.pull_secrets);
        c->daemon.ns = c->ns;
        c->n_namespaces = config_split(c->arena, c->ns, r->namespaces, &c->namespaces);
        return 0;
}

int config_load(struct config *c, int argc, char **argv, struct err *e) {
        struct flag table[FLAG_COUNT];
        struct raw raw;
        int rest;
        defaults(c, &raw);
        c->arena = arena_new(1024);
        flag_table(c, &raw, table);
        if (flags_parse(table, argc, argv, &rest, &c->help, e) < 0)
                return -1;
        if (c->help)
                return 0;
        if (rest < argc)
                return err_set(e, ERR_INVALID, 0, "arguments are not supported: \"%s\"", argv[rest]);
        if (derive(c, &raw, e) < 0)
                return -1;
        log_setup(c->daemon.json_log ? LOG_JSON : LOG_TEXT, (int)c->verbosity);
        flags_log(table);
        log_info("feature gates", kv_str("gates", c->daemon.gates));
        gates_log_forced(&c->gates);
        log_info("IMEX mode", kv_str("mode", c->mode->name), kv_str("chosenBy", c->mode->chosen_by));
        return 0;
}

void config_done(struct config *c) {
        arena_free(TAKE(c->arena));
}

void config_usage(void) {
        struct config c;
        struct raw raw;
        struct flag table[FLAG_COUNT];
        defaults(&c, &raw);
        flag_table(&c, &raw, table);
        printf("compute-domain-controller: forms ComputeDomains around the pods that use them.\n\n");
        flags_usage(table, stdout);
}
