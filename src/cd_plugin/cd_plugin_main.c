/* SPDX-License-Identifier: Apache-2.0 */
/* compute-domain-kubelet-plugin: offers a node's IMEX channel and daemon devices and prepares the claims for
 * them.
 *
 *     compute-domain-kubelet-plugin             the plugin
 *     compute-domain-kubelet-plugin prestart    the init container: waits for the driver
 *     compute-domain-kubelet-plugin check-node  checks the node with the settings of the plugin
 *     compute-domain-kubelet-plugin channels    prints the IMEX channels of the container that it runs in
 *     compute-domain-kubelet-plugin nvml-worker query PATH    the process that asks NVML */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "api/node_selector.h"
#include "api/reasons.h"
#include "base/flags.h"
#include "base/log.h"
#include "cd_plugin/cd_check.h"
#include "cd_plugin/cd_offer.h"
#include "cd_plugin/cd_driver.h"
#include "cd_plugin/cd_metrics.h"
#include "cd_plugin/channel_nodes.h"
#include "cd_plugin/host_imex.h"
#include "cd_plugin/isolation.h"
#include "kube/kube_client.h"
#include "kube/kube_informer.h"
#include "model/rack.h"
#include "node/node_main.h"
#include "node/prestart.h"

#define PROGRAM "compute-domain-kubelet-plugin"

enum { WITHHELD_WAIT_MS = 1000 }; /* so that one write also contains the other reports of that time */

struct plugin {
        struct node_main main;
        struct node_flags flags;
        struct cd_options cd;
        const char *pod, *imex_mode, *imex_isolation, *wait_for_host, *imex_socket;
        int64_t host_interval_ms;
        bool clique_label, racks;
        const char *rack_label;
        struct cd_metrics metrics;
        struct host_report *host_report;
        struct kube_informer *rack;  /* watches our Node for the label with the name of its rack */
        struct isolation *isolation; /* NULL: isolation by domain */
        struct offering offering;    /* as last reported and published */
        const char *host_root;
        bool trust_toolkit;
        bool rack_reported; /* that the Node lacks the label */
        char withheld[32];  /* the reason of the last Event about withheld devices; "" none */
};

/* ---- facts and what is published ---- */

/* Does the state of the channels also apply to the daemon's device? */
static bool with_daemon(const struct plugin *p) {
        return mode_runs_daemons(p->cd.mode) && !mode_is_standing(p->cd.mode);
}

/* The Event about withheld devices expires after an hour, so the plugin's Pod has the same text. */
static void report_on_pod(struct plugin *p, const struct offering *o) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(4096);
        buf_addf(&text, "%s: %s", o->reason, o->message);
        own_pod_set(p->cd.own_pod, IMEX_ANNOTATION_WITHHELD, o->offered ? NULL : buf_str(&text),
                    WITHHELD_WAIT_MS);
}

static void report_offering(struct plugin *p, const struct facts *f, const struct offering *o) {
        cd_metrics_offered(&p->metrics, o->reason);
        report_on_pod(p, o);
        if (o->offered) {
                log_info("this node offers its devices", kv_str("driver", f->driver_version),
                         kv_str("clique", *f->fabric.clique_id ? f->fabric.clique_id : "none"),
                         kv_str("why", f->fabric.reason));
                if (p->withheld[0])
                        event_record(p->main.events, EVENT_NODE(p->flags.node), EVENT_NORMAL,
                                     REASON_COMPUTE_DOMAIN_DEVICES_OFFERED,
                                     "the %s of this node %s offered again",
                                     with_daemon(p) ? "IMEX channel and daemon" : "IMEX channel",
                                     with_daemon(p) ? "are" : "is");
                p->withheld[0] = '\0';
                return;
        }
        log_warn("this node offers no devices", kv_str("reason", o->reason), kv_str("why", o->message));
        if (!streq(p->withheld, o->reason))
                event_record(p->main.events, EVENT_NODE(p->flags.node), EVENT_WARNING,
                             REASON_COMPUTE_DOMAIN_DEVICES_WITHHELD,
                             "no IMEX channel%s is offered on this node (%s): %s",
                             with_daemon(p) ? " or daemon" : "", o->reason, o->message);
        snprintf(p->withheld, sizeof p->withheld, "%s", o->reason);
}

/* NULL: the Node has no such label, or `o` is NULL. */
static const char *rack_name(const struct plugin *p, const struct kube_object *o) {
        const struct labelled_node *n = (const struct labelled_node *)o;
        return n ? jd_pair_get(n->labels, n->n_labels, p->rack_label) : NULL;
}

static void report_unlabelled(struct plugin *p, bool is, const char *rack) {
        if (is && !p->rack_reported)
                event_record(
                        p->main.events, EVENT_NODE(p->flags.node), EVENT_WARNING, REASON_RACK_LABEL_MISSING,
                        "this node has no label %s with the name of its rack "
                        "(rackDomains.nameFromNodeLabel), so it %s%s",
                        p->rack_label, rack ? "is in the rack of its NVLink partition, " : "is in no rack",
                        str_or(rack, ""));
        p->rack_reported = is;
}

static void cd_plugin_main_publish(struct plugin *p) {
        const struct facts *f = facts_get(p->cd.facts);
        const char *clique = f->usable ? f->fabric.clique_id : "", *label = NULL;
        char rack[RACK_MAX + 1];
        if (p->rack) {
                const struct kube_object *o = kube_informer_get(p->rack, NULL, p->flags.node);
                if (!o) /* nodes with a wrong rack would get a separate ComputeDomain */
                        return;
                label = rack_name(p, o);
        }
        bool racked = p->racks && rack_id(label, clique, rack);
        if (p->rack && f->usable)
                report_unlabelled(p, !rack_is_labelled(label), racked ? rack : NULL);
        struct slice_content content = cd_offer_content(&(struct cd_offer){
                .channels = p->offering.offered && !p->main.leaves,
                .channel_devices = mode_channel_devices(p->cd.mode),
                /* The daemon needs its device before the node can join the domain that its channels wait for.
                 */
                .daemon = mode_is_standing(p->cd.mode) ? f->usable
                                                       : mode_runs_daemons(p->cd.mode) && p->offering.offered,
                .clique_id = clique,
                .rack = racked ? rack : NULL,
        });
        slice_set(p->main.slices, &content);
}

static void publish_known(struct plugin *p) {
        if (facts_get(p->cd.facts)->known)
                cd_plugin_main_publish(p);
}

static void on_node(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct plugin *p = u;
        if (!old || !streq(rack_name(p, old), rack_name(p, now)))
                publish_known(p);
}

static void on_node_failing(void *u, const struct kube_resource *res, const struct err *e) {
        const struct plugin *p = u;
        if (e)
                log_warn("cannot watch the node for the label of its rack", kv_str("node", p->flags.node),
                         kv_str("label", p->rack_label), kv_err(e));
}

static struct kube_informer *watch_rack(struct plugin *p) {
        return kube_informer_new(p->main.kube,
                                 &(struct kube_informer_options){ .res = &kube_nodes,
                                                                  .name = p->flags.node,
                                                                  .fields = labelled_node_fields,
                                                                  .size = sizeof(struct labelled_node),
                                                                  .metadata_only = true,
                                                                  .first_from_cache = true,
                                                                  .changed = on_node,
                                                                  .failing = on_node_failing,
                                                                  .u = p });
}

/* The daemon's device stays: IMEX must run until the pods have ended. */
static void cd_plugin_main_withdraw(struct node_main *m) {
        publish_known(CONTAINER(m, struct plugin, main));
}

static void on_facts(void *u) {
        struct plugin *p = u;
        const struct facts *f = facts_get(p->cd.facts);
        if (p->isolation)
                isolation_facts(p->isolation);
        if (isolation_evaluate(p->isolation, f, &p->offering)) {
                report_offering(p, f, &p->offering);
                cd_plugin_main_publish(p);
        }
        cd_driver_facts(p->main.claims->o.u);
}

static void on_isolation(void *u) {
        struct plugin *p = u;
        const struct facts *f = facts_get(p->cd.facts);
        struct offering now;
        if (f->known && isolation_evaluate(p->isolation, f, &now)) {
                bool news =
                        !streq(now.reason, p->offering.reason) || !streq(now.message, p->offering.message);
                p->offering = now;
                if (news)
                        report_offering(p, f, &now);
                if (news)
                        cd_plugin_main_publish(p);
        }
        claims_reevaluate(p->main.claims);
        dra_plugin_health_changed(p->main.dra); /* the fabric object may have changed */
}

static void on_health_changed(void *u) {
        const struct plugin *p = u;
        dra_plugin_health_changed(p->main.dra);
}

static void on_standing(void *u) {
        const struct plugin *p = u;
        isolation_standing(p->isolation);
}

static void get_standing(void *u, struct standing *ret) {
        const struct plugin *p = u;
        *ret = (struct standing){ 0 };
        if (p->main.claims)
                standing_get(p->main.claims->o.u, ret);
}

static void on_host(void *u) {
        struct plugin *p = u;
        host_report_update(p->host_report, host_imex_get(p->cd.host));
        dra_plugin_health_changed(p->main.dra);
        if (p->isolation)
                on_isolation(p);
        else
                claims_reevaluate(p->main.claims);
}

/* ---- start and stop ---- */

static void *cd_plugin_main_start(struct node_main *m) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        p->cd.facts = facts_sampler_new(&m->loop, &(struct facts_options){
                                                          .root = m->root,
                                                          .proc_devices = m->proc_devices,
                                                          .proc_driver = m->proc_driver,
                                                          .own_dev = "/dev",
                                                          .strict = mode_strict_fabric(&m->gates),
                                                          .runs_imex = mode_runs_daemons(p->cd.mode),
                                                          .changed = on_facts,
                                                          .u = p,
                                                  });
        p->cd.own_pod = own_pod_new(m->kube, p->cd.ns, p->pod);
        p->host_report = host_report_new(&(struct host_report_options){
                .events = m->events,
                .metrics = &p->metrics,
                .mode = p->cd.mode,
                .node = p->flags.node,
                .own_pod = p->cd.own_pod,
        });
        if (p->host_interval_ms)
                p->cd.host =
                        host_imex_new(&m->loop, &(struct host_imex_options){
                                                        .root = m->root,
                                                        .socket_path = p->imex_socket,
                                                        .node = p->flags.node,
                                                        .interval_ms = (unsigned)p->host_interval_ms,
                                                        .domain = !mode_runs_daemons(p->cd.mode),
                                                        .only_with_socket = mode_runs_daemons(p->cd.mode),
                                                        .answered = on_host,
                                                        .u = p,
                                                });
        if (mode_assigns_channels(p->cd.mode)) {
                cd_metrics_own_channels(&p->metrics);
                p->isolation = isolation_new(&(struct isolation_options){
                        .loop = &m->loop,
                        .kube = m->kube,
                        .events = m->events,
                        .metrics = &p->metrics,
                        .node = p->flags.node,
                        .own_pod = p->cd.own_pod,
                        .cdi_root = p->flags.cdi_root,
                        .root = m->root,
                        .host_root = p->host_root,
                        .trust_toolkit = p->trust_toolkit,
                        .facts = p->cd.facts,
                        .host = mode_runs_daemons(p->cd.mode) ? NULL : p->cd.host,
                        .standing = mode_is_standing(p->cd.mode) ? get_standing : NULL,
                        .changed = on_isolation,
                        .u = p,
                });
                p->cd.fabric = isolation_fabric(p->isolation);
                p->cd.holdings = isolation_holdings(p->isolation);
                p->cd.standing_changed = mode_is_standing(p->cd.mode) ? on_standing : NULL;
        }
        p->cd.u = p;
        p->cd.health_changed = on_health_changed;
        if (p->racks && *p->rack_label)
                p->rack = watch_rack(p);
        p->cd.loop = &m->loop;
        p->cd.kube = m->kube;
        p->cd.events = m->events;
        p->cd.node = p->flags.node;
        p->cd.plugin_dir = m->plugin_dir;
        p->cd.boot_id = m->boot_id;
        p->cd.root = m->root;
        p->cd.dev_root = "/";
        p->cd.proc_driver = m->proc_driver;
        return cd_driver_new(&p->cd);
}

static void cd_plugin_main_stop(struct node_main *m) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        kube_informer_free(p->rack);
        isolation_free(p->isolation);
        host_imex_free(p->cd.host);
        host_report_free(p->host_report);
        own_pod_free(p->cd.own_pod);
        facts_sampler_free(p->cd.facts);
}

static int cd_plugin_main_check(struct node_main *m, struct err *e) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        if (mode_resolve(&m->gates, p->imex_mode, p->imex_isolation, &p->cd.mode, e) < 0 ||
            mode_wait_for_host(p->cd.mode, &m->gates, p->imex_mode, p->wait_for_host, &p->cd.wait_for_host,
                               e) < 0)
                return -1;
        if (p->imex_socket[0] != '/')
                return err_set(e, ERR_INVALID, 0, "--imex-host-socket-path: not an absolute path: '%s'",
                               p->imex_socket);
        if (p->host_interval_ms && (p->host_interval_ms < 1000 || p->host_interval_ms > 3600000))
                return err_set(e, ERR_INVALID, 0,
                               "--imex-host-probe-interval: 1s to 1h, or 0 for never, not %lld ms",
                               (long long)p->host_interval_ms);
        if (!p->host_interval_ms && p->cd.wait_for_host)
                return err_set(e, ERR_INVALID, 0,
                               "--imex-host-probe-interval: must not be 0 if pods wait until the host's "
                               "nvidia-imex is READY (imex.waitForHost)");
        return 0;
}

static void cd_plugin_main_begin(struct node_main *m, const struct flag *flags) {
        struct plugin *p = CONTAINER(m, struct plugin, main);
        struct buf gates = BUF_INIT(4096);
        gates_render(&m->gates, &gates);
        log_info(PROGRAM, kv_str("gates", buf_str(&gates)), kv_str("mode", p->cd.mode->name),
                 kv_str("chosen_by", p->cd.mode->chosen_by), kv_bool("wait_for_host", p->cd.wait_for_host));
        buf_done(&gates);
        gates_log_forced(&m->gates);
        gates_log_ineffective(&m->gates);
        flags_log(flags);
        if (p->clique_label)
                log_info("--gpu-clique-label-enabled: in this driver the controller labels the nodes");
        cd_metrics_init(&p->metrics, p->flags.node);
        cd_metrics_offered(&p->metrics, REASON_DRIVER_NOT_QUERIED);
}

static void cd_plugin_main_check_node(struct node_main *m, struct check_list *l) {
        const struct plugin *p = CONTAINER(m, struct plugin, main);
        cd_check_run(l, &(struct cd_check_options){ .node = { .flags = &p->flags,
                                                              .driver_name = CD_DRIVER,
                                                              .host_root = p->host_root },
                                                    .mode = p->cd.mode,
                                                    .strict_fabric = mode_strict_fabric(&m->gates),
                                                    .socket_path = p->imex_socket,
                                                    .queries_host = p->host_interval_ms > 0,
                                                    .trusts_toolkit = p->trust_toolkit });
}

int main(int argc, char **argv) {
        if (argc > 1 && streq(argv[1], "prestart"))
                return prestart_main(PROGRAM, argc - 1, argv + 1);
        if (argc > 1 && streq(argv[1], "channels"))
                return channel_nodes_main(argc - 1, argv + 1);
        static struct plugin p = {
                .flags = NODE_FLAGS_DEFAULT,
                .cd = { .ns = "default", .more_ns = "", .channel_nodes = "" },
                .pod = "",
                .imex_mode = "driverManaged",
                .imex_isolation = "domain",
                .wait_for_host = "",
                .imex_socket = "/etc/nvidia-imex/imex_ctrl.sock",
                .rack_label = "",
                .host_root = "",
                .host_interval_ms = 30000,
        };
        static const struct flag flags[] = {
                NODE_FLAGS_NAME(p.flags),
                FLAG(STR, "pod-name", &p.pod,
                     "name of this pod, on which the plugin reports; empty: it does not report"),
                FLAG(STR, "namespace", &p.cd.ns, "namespace of the driver"),
                FLAG(STR, "additional-namespaces", &p.cd.more_ns,
                     "comma-separated namespaces of earlier installations, whose daemons are also served"),
                NODE_FLAGS_NODE(p.flags),
                FLAG(BOOL, "gpu-clique-label-enabled", &p.clique_label,
                     "no effect: the controller writes the label"),
                FLAG(STR, "imex-mode", &p.imex_mode, "what runs nvidia-imex: driverManaged or hostManaged"),
                FLAG(STR, "imex-isolation", &p.imex_isolation,
                     "what separates ComputeDomains: domain or channel"),
                FLAG(STR, "imex-wait-for-host", &p.wait_for_host,
                     "with --imex-mode=hostManaged: claims wait until the host's nvidia-imex is READY. "
                     "Empty: false, or true with the feature gate HostManagedIMEXDaemon"),
                FLAG(BOOL, "trust-container-toolkit", &p.trust_toolkit,
                     "with --imex-isolation=channel: offer devices although the NVIDIA container toolkit of "
                     "the node gives channels to any container that requests them"),
                FLAG(STR, "host-root", &p.host_root,
                     "path of the host's root folder in the container, where the configuration of the "
                     "container toolkit is read; empty: only the driver root is used"),
                FLAG(STR, "channel-nodes", &p.cd.channel_nodes,
                     "path of the host's /dev/nvidia-caps-imex-channels in the container, where the plugin "
                     "creates the device nodes that pods with hostUsers: false need; empty: it creates none"),
                FLAG(BOOL, "rack-domains", &p.racks,
                     "publish the rack of this node as an attribute of its devices"),
                FLAG(STR, "rack-name-from-node-label", &p.rack_label,
                     "label of the Node that names its rack. If it is empty or missing, the rack is named "
                     "after the NVLink partition"),
                FLAG(STR, "imex-host-socket-path", &p.imex_socket,
                     "command socket of the host's own nvidia-imex, whose config.cfg is expected in the same "
                     "folder"),
                FLAG(DURATION_MS, "imex-host-probe-interval", &p.host_interval_ms,
                     "time between two queries of the host's own nvidia-imex while no claim waits for it; "
                     "0: never"),
                NODE_FLAGS_PROCESS(p.flags),
                { 0 },
        };
        p.main = (struct node_main){
                .program = PROGRAM,
                .driver = &cd_driver,
                .flags = &p.flags,
                .metrics = &p.metrics.node,
                .check = cd_plugin_main_check,
                .begin = cd_plugin_main_begin,
                .start = cd_plugin_main_start,
                .stop = cd_plugin_main_stop,
                .withdraw = cd_plugin_main_withdraw,
                .own_device = CD_DEVICE_DAEMON,
        };
        if (argc > 1 && streq(argv[1], CHECK_NODE))
                return check_node_main(&p.main, flags, argc - 1, argv + 1, cd_plugin_main_check_node);
        return node_main(&p.main, flags, argc, argv);
}
