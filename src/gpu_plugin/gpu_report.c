/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_report.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/log.h"

/* ---- metrics ---- */

/* Sets the number of offered devices of each type. `reason`: why devices are withheld; "": they are
 * offered. */
static void set_offered(struct gpu_metrics *m, size_t gpus, size_t migs, const char *reason) {
        static const char *const reasons[] = { REASON_DRIVER_NOT_QUERIED,  REASON_DRIVER_NOT_FOUND,
                                               REASON_DRIVER_NOT_READY,    REASON_NO_GPUS,
                                               REASON_HOOK_NOT_EXECUTABLE, REASON_HOOK_FAILS_SELF_TEST };
        metric_set(m->offered, (double)gpus, LABELS(GPU_TYPE_FULL));
        metric_set(m->offered, (double)migs, LABELS(GPU_TYPE_MIG));
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                metric_set(m->withheld, streq(reason, reasons[i]) ? 1 : 0, LABELS(reasons[i]));
}

void gpu_metrics_init(struct gpu_metrics *m, const char *node) {
        /* The Go driver has a series for each type, on every node. */
        static const char *const types[] = { GPU_TYPE_FULL, GPU_TYPE_MIG, GPU_TYPE_VFIO, "unknown", NULL };
        static const char *const by_type[] = { "device_type", NULL }, *const by_reason[] = { "reason", NULL },
                                 *const by_kind[] = { "kind", NULL },
                                 *const by_taint[] = { "taint", "effect", NULL };
        *m = (struct gpu_metrics){ 0 };
        struct metrics *r = node_metrics_init(
                &m->node,
                &(struct node_metrics_options){ .node = node,
                                                .driver = GPU_DRIVER,
                                                .types = types,
                                                .inside = "nvidia_dra_gpu_prepare_attempt_seconds",
                                                .pending = "nvidia_dra_gpu_claims_pending",
                                                .total = "nvidia_dra_gpu_claim_seconds",
                                                .failures = "nvidia_dra_gpu_claim_failures_total" });
        m->offered = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_devices_offered",
                                "GPUs and MIG devices that this node offers to the scheduler.", by_type);
        m->withheld = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_devices_withheld",
                                 "1 for the reason why this node withholds its devices.", by_reason);
        m->failures = metric_add(r, METRIC_COUNTER, "nvidia_dra_gpu_nvml_failures_total",
                                 "Processes that query NVML for the plugin and have failed: hung, "
                                 "crashed.",
                                 by_kind);
        m->stale = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_inventory_stale",
                              "1 while NVML does not answer, and the offered devices may be "
                              "outdated.",
                              NULL);
        m->tainted = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_devices_tainted",
                                "Devices of this node with a taint because of their health: xid (effect "
                                "NoSchedule, or None for errors of programs), gpu-lost, unmonitored.",
                                by_taint);
        m->device_plugin = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_device_plugin_active",
                                      "1 while a device plugin also allocates the GPUs of this node, so "
                                      "that a GPU may be allocated twice.",
                                      NULL);
        m->foreign = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_foreign_devices",
                                "Devices that the Go driver has prepared and this driver does not "
                                "restore: mps (control daemons), vfio, mig.",
                                by_kind);
        m->persistence_off = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_persistence_mode_off",
                                        "GPUs of this node without persistence mode.", NULL);
        m->toolkit = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_toolkit_gives_gpus",
                                "1 while the NVIDIA container toolkit gives all GPUs of this node to "
                                "pods without a claim.",
                                NULL);
        metric_touch(m->failures, LABELS("hung"));
        metric_touch(m->failures, LABELS("crashed"));
        set_offered(m, 0, 0, REASON_DRIVER_NOT_QUERIED);
        metric_set(m->stale, 0, NULL);
        metric_set(m->device_plugin, 0, NULL);
        metric_set(m->persistence_off, 0, NULL);
        metric_set(m->toolkit, 0, NULL);
}

void gpu_metrics_failed(struct gpu_metrics *m, const char *kind) {
        metric_inc(m->failures, 1, LABELS(kind));
}

/* ---- reports ---- */

/* True if the state has changed since the last report. The functions are also called without a change. */
static bool __attribute__((format(printf, 2, 3))) is_news(uint64_t *last, const char *fmt, ...) {
        struct buf b = BUF_INIT(4096);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        uint64_t hash = str_fnv64(b.p, b.n), before = *last;
        buf_done(&b);
        *last = hash;
        return hash != before;
}

static void report_offered(struct gpu_report *r, const struct gpus_state *s, const struct gpu_devices *d) {
        size_t gpus = 0, n = r->hook ? 0 : d->n;
        const char *reason = *s->reason ? s->reason : str_or(r->hook, "");
        for (size_t i = 0; i < n; i++)
                gpus += d->items[i].kind == GPU_FULL;
        set_offered(r->metrics, gpus, n - gpus, reason);
        if (!is_news(&r->offered, "%s %s %s %zu %zu", reason, s->message, str_or(d->driver_version, ""), gpus,
                     n))
                return;
        if (!*s->reason && r->hook) { /* the caller has reported it */
                snprintf(r->withheld, sizeof r->withheld, "%s", reason);
                return;
        }
        if (!*reason) {
                log_info("this node offers its GPUs", kv_str("driver", d->driver_version),
                         kv_int("gpus", gpus), kv_int("mig_devices", n - gpus));
                if (r->withheld[0])
                        event_record(r->events, EVENT_NODE(r->node), EVENT_NORMAL, REASON_GPU_DEVICES_OFFERED,
                                     "the GPUs of this node are offered again");
                r->withheld[0] = '\0';
                return;
        }
        log_warn("this node offers no GPUs", kv_str("reason", s->reason), kv_str("why", s->message));
        if (!streq(r->withheld, s->reason))
                event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_GPU_DEVICES_WITHHELD,
                             "no GPU is offered on this node (%s): %s", s->reason, s->message);
        snprintf(r->withheld, sizeof r->withheld, "%s", s->reason);
}

static void report_stale(struct gpu_report *r, const struct gpus_state *s) {
        bool stale = s->known && s->failures >= GPUS_STALE;
        if (stale && !r->stale) {
                log_warn("NVML does not answer: the known GPUs of this node may be outdated",
                         kv_str("err", s->error));
                event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_GPU_INVENTORY_STALE,
                             "NVML has failed %u times in a row, so the offered GPUs may be outdated: %s; "
                             "see nvidia-smi and the kernel log on the node",
                             s->failures, s->error);
        }
        r->stale = stale;
        metric_set(r->metrics->stale, stale, NULL);
}

static void report_left_out(struct gpu_report *r, const struct gpu_devices *d) {
        uint64_t hash = 0;
        for (size_t i = 0; i < d->n_left_out; i++) {
                struct buf b = BUF_INIT(4096);
                buf_addf(&b, "%s: %s", d->left_out[i].what, d->left_out[i].why);
                hash += str_fnv64(b.p, b.n);
                buf_done(&b);
        }
        if (hash != r->left_out)
                for (size_t i = 0; i < d->n_left_out; i++) {
                        log_warn("this device is not offered", kv_str("what", d->left_out[i].what),
                                 kv_str("why", d->left_out[i].why));
                        event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_GPU_LEFT_OUT,
                                     "%s is not offered on this node: %s", d->left_out[i].what,
                                     d->left_out[i].why);
                }
        r->left_out = hash;
}

static void report_persistence(struct gpu_report *r, const struct gpu_devices *d) {
        metric_set(r->metrics->persistence_off, (double)d->n_persistence_off, NULL);
        if (d->n_persistence_off > r->persistence_off) {
                log_warn("persistence mode is off", kv_int("gpus", (int64_t)d->n_persistence_off));
                event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_PERSISTENCE_MODE_OFF,
                             "persistence mode is off on %zu GPU%s of this node, so each idle GPU is "
                             "initialized again, for seconds, when a program uses it: run "
                             "nvidia-persistenced on the node, or "
                             "nvidia-smi -pm 1 after each boot",
                             d->n_persistence_off, d->n_persistence_off == 1 ? "" : "s");
        }
        r->persistence_off = d->n_persistence_off;
}

void gpu_report_update(struct gpu_report *r, const struct gpus_state *s, const struct gpu_devices *d) {
        report_persistence(r, d);
        report_stale(r, s);
        report_offered(r, s, d);
        report_left_out(r, d);
}

void gpu_report_xid(struct gpu_report *r, const struct gpu_device *d, uint64_t xid, bool of_program) {
        log_warn(of_program ? "a program on a GPU has failed" : "a GPU reports an error",
                 kv_str("device", d->name), kv_str("uuid", d->uuid), kv_int("xid", (int64_t)xid));
        if (!of_program)
                event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_GPU_REPORTS_XID,
                             "%s (%s) reports XID %llu, so no new pod gets it (taint " GPU_TAINT_XID
                             "): see NVIDIA's list of XIDs and the node's kernel log; it usually needs a "
                             "reset or a reboot; after a reset, clear the XIDs of all GPUs of the node: "
                             "kubectl annotate resourceslices --field-selector spec.driver=" GPU_DRIVER
                             ",spec.nodeName=%s " GPU_ANNOTATION_CLEAR_XIDS "=true",
                             d->name, d->uuid, (unsigned long long)xid, r->node);
}

void gpu_report_watch(struct gpu_report *r, const struct err *e) {
        bool reported = r->unmonitored;
        r->unmonitored = e != NULL;
        if (e && !reported) {
                log_warn("this node's GPUs are not monitored for errors", kv_err(e));
                event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_GPU_UNMONITORED,
                             "errors of this node's GPUs are not noticed, because NVML cannot watch for "
                             "events: %s; the plugin retries; see nvidia-smi and the kernel log on the node",
                             e->msg);
        } else if (!e && reported) {
                log_info("this node's GPUs are monitored for errors again");
        }
}

void gpu_report_health(struct gpu_report *r, const struct health *h, const struct gpu_devices *d) {
        static const struct {
                const char *name, *key, *effect;
        } taints[] = { { "xid", GPU_TAINT_XID, EFFECT_NO_SCHEDULE },
                       { "xid", GPU_TAINT_XID, EFFECT_NONE },
                       { "gpu-lost", GPU_TAINT_LOST, EFFECT_NO_SCHEDULE },
                       { "unmonitored", GPU_TAINT_UNMONITORED, EFFECT_NONE } };
        size_t lost = health_count(h, d, GPU_TAINT_LOST, EFFECT_NO_SCHEDULE);
        for (size_t i = 0; i < ARRAY_LEN(taints); i++)
                metric_set(r->metrics->tainted, (double)health_count(h, d, taints[i].key, taints[i].effect),
                           LABELS(taints[i].name, taints[i].effect));
        if (lost > r->lost) {
                log_warn("GPUs have fallen off the bus", kv_int("devices", (int64_t)lost));
                event_record(
                        r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_GPU_LOST,
                        "%zu device%s of this node belong%s to a GPU that has fallen off the bus, so no new "
                        "pod gets %s (taint " GPU_TAINT_LOST "): nvidia-smi and the kernel log on the node "
                        "name the GPU; it usually needs a reboot",
                        lost, lost == 1 ? "" : "s", lost == 1 ? "s" : "", lost == 1 ? "it" : "them");
        }
        r->lost = lost;
}

void gpu_report_untainted(struct gpu_report *r, enum slice_taints taken) {
        if (taken <= r->taints)
                return;
        r->taints = taken;
        log_warn("the API server does not accept all taints of devices",
                 kv_str("taken", taken == SLICE_TAINTS_NONE ? "none" : "those that have an effect"));
        if (taken == SLICE_TAINTS_NONE)
                event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_DEVICE_TAINTS_NOT_SERVED,
                             "the API server does not keep taints of devices, so pods still get GPUs that "
                             "report errors: switch on its feature gate DRADeviceTaints (available since "
                             "Kubernetes 1.33, on since 1.36), or switch off NVMLDeviceHealthCheck");
}

void gpu_report_refused(struct gpu_report *r, const char *device, const struct err *e) {
        log_error("the API server rejects a device", kv_str("device", device), kv_err(e));
        event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_GPU_LEFT_OUT,
                     "%s is not offered on this node: %s", device, e->msg);
}

void gpu_report_foreign(struct gpu_report *r, const struct checkpoint *table) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct foreign_device *found;
        size_t of_kind[FOREIGN_KINDS] = { 0 }, n = foreign_find(table, a, &found);
        for (size_t i = 0; i < n; i++) {
                of_kind[found[i].kind]++;
                if (n <= r->foreign) /* claims end one after the other */
                        continue;
                log_warn("the Go driver prepared a claim in a way that this driver does not restore",
                         kv_str("uid", found[i].uid), kv_str("device", found[i].device),
                         kv_str("remedy", found[i].remedy));
                event_record(r->events, EVENT_NODE(r->node),
                             found[i].kind == FOREIGN_MIG ? EVENT_NORMAL : EVENT_WARNING,
                             REASON_PREPARED_BY_GO_DRIVER, "%s of claim %s: %s", found[i].device,
                             found[i].uid, found[i].remedy);
        }
        for (int kind = 0; kind < FOREIGN_KINDS; kind++)
                metric_set(r->metrics->foreign, (double)of_kind[kind], LABELS(foreign_names[kind]));
        r->foreign = n;
}

void gpu_report_toolkit(struct gpu_report *r, enum toolkit_gpus answer, const char *why) {
        metric_set(r->metrics->toolkit, answer == TOOLKIT_GPUS_TO_ALL, NULL);
        if (answer == TOOLKIT_GPUS_UNKNOWN)
                log_warn("cannot detect whether pods without a claim get GPUs", kv_str("why", why));
        if (answer != TOOLKIT_GPUS_TO_ALL)
                return;
        log_warn("pods without a claim get GPUs", kv_str("why", why));
        event_record(
                r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_TOOLKIT_GIVES_GPUS,
                "pods without a claim get all GPUs of this node, if their image or their environment sets "
                "NVIDIA_VISIBLE_DEVICES: %s; set it, or make another runtime the default",
                why);
}

void gpu_report_device_plugin(struct gpu_report *r, const char *offers) {
        metric_set(r->metrics->device_plugin, *offers != '\0', NULL);
        if (*offers) {
                log_warn("a device plugin also gives the GPUs of this node to pods",
                         kv_str("offers", offers));
                event_record(r->events, EVENT_NODE(r->node), EVENT_WARNING, REASON_DEVICE_PLUGIN_ACTIVE,
                             "a device plugin also gives the GPUs of this node to pods (%s), so a GPU may be "
                             "allocated twice: switch it off on this node, or this driver's GPUs "
                             "(resources.gpus.enabled=false)",
                             offers);
        } else if (r->device_plugin) {
                log_info("no device plugin gives the GPUs of this node to pods any more");
                event_record(r->events, EVENT_NODE(r->node), EVENT_NORMAL, REASON_DEVICE_PLUGIN_INACTIVE,
                             "no device plugin gives the GPUs of this node to pods any more");
        }
        r->device_plugin = *offers;
}
