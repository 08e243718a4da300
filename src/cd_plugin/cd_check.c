/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_check.h"

#include <stdio.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/states.h"
#include "base/file.h"
#include "base/loop.h"
#include "cd_plugin/edits.h"
#include "cd_plugin/facts.h"
#include "cd_plugin/host_imex.h"
#include "node/check_judge.h"
#include "node/check_slice.h"
#include "nvidia/nvml_line.h"
#include "nvidia/proc_files.h"
#include "nvidia/toolkit.h"

enum { PROC_MAX = 256 << 10, HOST_LIMIT_MS = 20000, HOST_INTERVAL_MS = 1000 };

/* item fabric of compute-domain-kubelet-plugin: the GPUs are registered with the NVLink fabric, and
 * which partition the node is in */
enum gpu_fabric_kind cd_check_fabric(struct check_list *l, const struct nvml_facts *f,
                                     const struct imex_mode *mode, bool strict) {
        struct gpu_fabric fabric;

        gpu_fabric_from_facts(f, strict, &fabric);
        switch (fabric.kind) {
        case GPU_FABRIC_CLIQUE:
                check_list_ok(l, "fabric", "the node is in the NVLink partition %s", fabric.clique_id);
                break;
        case GPU_FABRIC_NONE:
                if (mode_assigns_channels(mode))
                        check_list_reason(l, "fabric", REASON_NO_NVLINK_CLIQUE, fabric.reason);
                else
                        check_list_ok(l, "fabric", "no multi-node NVLink, so pods run without a channel: %s",
                                      fabric.reason);
                break;
        case GPU_FABRIC_REGISTERING:
                check_list_reason(l, "fabric", REASON_FABRIC_REGISTERING, fabric.reason);
                break;
        case GPU_FABRIC_ERROR:
                check_list_reason(l, "fabric", f->n_gpus ? REASON_FABRIC_ERROR : REASON_NO_GPUS,
                                  fabric.reason);
                break;
        }
        return fabric.kind;
}

/* item imex-channels of compute-domain-kubelet-plugin: the NVIDIA driver has IMEX channels */
void cd_check_channels(struct check_list *l, struct str proc_devices, unsigned count) {
        struct err e;
        unsigned major;

        if (proc_devices_major(proc_devices, PROC_MAJOR_IMEX_CHANNELS, &major, &e) < 0)
                check_list_reason(l, "imex-channels", REASON_NO_IMEX_CHANNELS, e.msg);
        else
                check_list_ok(l, "imex-channels", "the NVIDIA driver has %u IMEX channels (major %u)", count,
                              major);
}

/* The number in the line "Key: N"; -1: there is none. */
static int64_t parameter_of(struct str params, const char *key) {
        struct str line;
        int64_t n;

        while (str_next_line(&params, &line)) {
                struct str rest = line, name;
                if (str_next_field(&rest, ':', &name) && str_eq(str_trim(name), str_from(key)) &&
                    str_to_i64(str_trim(rest), &n))
                        return n;
        }
        return -1;
}

/* item imex-parameters of compute-domain-kubelet-plugin: NVreg_ImexChannelCount is large enough; also shows
 * NVreg_CreateImexChannel0 */
void cd_check_parameters(struct check_list *l, const struct imex_mode *mode, struct str params) {
        int64_t count = parameter_of(params, "ImexChannelCount"),
                creates = parameter_of(params, "CreateImexChannel0");
        char text[160];

        snprintf(text, sizeof text, "NVreg_ImexChannelCount is %lld%s", (long long)count,
                 creates > 0    ? ", and NVreg_CreateImexChannel0 is 1"
                 : creates == 0 ? ", and NVreg_CreateImexChannel0 is 0"
                                : "");
        if (count < 0)
                check_list_skipped(l, "imex-parameters", "the driver lists no ImexChannelCount");
        else if (count == 0)
                check_list_reason(l, "imex-parameters", REASON_NO_IMEX_CHANNELS, text);
        else if (mode_assigns_channels(mode) && count < 2)
                check_list_reason(l, "imex-parameters", REASON_NO_OWN_IMEX_CHANNELS, text);
        else
                check_list_ok(l, "imex-parameters", "%s", text);
}

/* item host-imex of compute-domain-kubelet-plugin: no nvidia-imex of the host is in the way of the
 * daemon; with imex.mode=hostManaged, it is READY */
/* In the way of a daemon is only an nvidia-imex that answers, as for host_report. */
void cd_check_host(struct check_list *l, const struct imex_mode *mode, const struct host_imex_status *s) {
        bool gone = s->imex == IMEX_STATE_UNAVAILABLE || (!s->imex && s->state == HOST_UNKNOWN);

        if (mode_runs_daemons(mode) && gone)
                check_list_ok(l, "host-imex", "no nvidia-imex of the host is in the way of the daemon%s%s",
                              *s->reason ? ": " : "", s->reason);
        else if (mode_runs_daemons(mode) && !s->imex)
                check_list_skipped(l, "host-imex",
                                   "it is not known whether nvidia-imex runs on this host: %s", s->reason);
        else if (mode_runs_daemons(mode))
                check_list_problem(
                        l, "host-imex",
                        "Run systemctl disable --now nvidia-imex and systemctl mask nvidia-imex on "
                        "the node. To use the host's IMEX instead, follow "
                        "docs/how-to/upgrade.md#changing-the-imex-mode.",
                        "nvidia-imex runs on this host (%s) and holds the driver's only IMEX "
                        "session, so ComputeDomains cannot run theirs",
                        imex_status_name(s->imex));
        else if (s->state == HOST_UP)
                check_list_ok(l, "host-imex", "the host's nvidia-imex is READY, and its domain is %s",
                              str_or(s->domain, "not known"));
        else
                check_list_reason(l, "host-imex",
                                  s->state == HOST_DEGRADED ? REASON_HOST_IMEX_DEGRADED
                                  : s->state == HOST_DOWN   ? REASON_HOST_IMEX_DOWN
                                                            : REASON_HOST_IMEX_UNKNOWN,
                                  str_or(s->reason, "the host's nvidia-imex does not answer"));
}

/* ---- reading ---- */

void cd_check_read_channels(struct check_list *l, const struct check_node_options *o,
                            const struct imex_mode *mode) {
        const char *path = *o->flags->alt_proc_devices ? o->flags->alt_proc_devices : "/proc/devices";
        _cleanup_(freep) char *params = *o->flags->alt_proc_devices
                                                ? file_join(o->flags->root_here, "proc/driver/nvidia/params")
                                                : xstrdup("/proc/driver/nvidia/params");
        _cleanup_(freep) char *devices = NULL, *text = NULL;
        unsigned count = EDITS_CHANNELS_DEFAULT;
        size_t n_devices, n;
        struct err e;

        if (file_read(path, PROC_MAX, &devices, &n_devices, &e) < 0) {
                check_list_skipped(l, "imex-parameters", "%s", e.msg);
                check_list_skipped(l, "imex-channels", "%s", e.msg);
                return;
        }
        if (file_read(params, PROC_MAX, &text, &n, &e) < 0)
                check_list_skipped(l, "imex-parameters", "%s", e.msg);
        else
                cd_check_parameters(l, mode, (struct str){ text, n });
        if (!text || proc_params_channel_count((struct str){ text, n }, &count, &e) < 0)
                count = EDITS_CHANNELS_DEFAULT;
        cd_check_channels(l, (struct str){ devices, n_devices }, count);
}

/* item imex-programs of compute-domain-kubelet-plugin: the driver root contains nvidia-imex and
 * nvidia-imex-ctl */
static bool check_programs(struct check_list *l, const struct cd_check_options *o, bool partition) {
        const struct driver_root root = { .host = o->node.flags->root_host,
                                          .here = o->node.flags->root_here };
        struct driver_file imex = { 0 }, ctl;
        struct err e;

        if (mode_runs_daemons(o->mode) && !partition) {
                check_list_skipped(l, "imex-programs",
                                   "no daemon runs on a node that is in no NVLink partition");
                return true;
        }
        if ((mode_runs_daemons(o->mode) &&
             driver_root_find_binary(&root, "nvidia-imex", l->arena, &imex, &e) < 0) ||
            driver_root_find_binary(&root, "nvidia-imex-ctl", l->arena, &ctl, &e) < 0) {
                check_list_problem(
                        l, "imex-programs",
                        "Install the package nvidia-imex of the driver's version in the driver root.", "%s",
                        e.msg);
                return false;
        }
        check_list_ok(l, "imex-programs", "%s%s%s", str_or(imex.host, ""), imex.host ? ", " : "", ctl.host);
        return true;
}

struct host_query {
        uv_loop_t loop;
        struct loop_timer limit;
        struct host_imex *host;
        const struct cd_check_options *o;
};

static void end_host_query(void *u) {
        struct host_query *q = u;
        uv_stop(&q->loop);
}

/* The first answers of nvidia-imex may lack the state of its domain, which the module queries next. */
static void cd_check_on_host(void *u) {
        struct host_query *q = u;
        const struct host_imex_status *s = host_imex_get(q->host);

        if (mode_runs_daemons(q->o->mode) || s->state != HOST_UNKNOWN || *s->reason)
                uv_stop(&q->loop);
}

static void check_host(struct check_list *l, const struct cd_check_options *o, bool programs) {
        struct host_query q = { .o = o };
        const struct host_imex_options options = {
                .root = { .host = o->node.flags->root_host, .here = o->node.flags->root_here },
                .socket_path = o->socket_path,
                .node = o->node.flags->node,
                .interval_ms = HOST_INTERVAL_MS,
                .domain = !mode_runs_daemons(o->mode),
                .only_with_socket = mode_runs_daemons(o->mode),
                .answered = cd_check_on_host,
                .u = &q,
        };

        if (!programs && !mode_runs_daemons(o->mode)) {
                check_list_skipped(l, "host-imex", "nvidia-imex-ctl does not exist");
                return;
        }
        if (!o->queries_host) {
                check_list_skipped(l, "host-imex", "the plugin does not query it (hostProbeInterval=0)");
                return;
        }
        uv_loop_init(&q.loop);
        loop_timer_init(&q.limit, &q.loop, end_host_query, &q);
        loop_timer_start(&q.limit, HOST_LIMIT_MS);
        q.host = host_imex_new(&q.loop, &options);
        uv_run(&q.loop, UV_RUN_DEFAULT);
        cd_check_host(l, o->mode, host_imex_get(q.host));
        host_imex_free(q.host);
        loop_timer_done(&q.limit);
        uv_run(&q.loop, UV_RUN_DEFAULT);
        uv_loop_close(&q.loop);
}

/* item container-toolkit of compute-domain-kubelet-plugin: with imex.isolation=channel: the NVIDIA
 * container toolkit gives no channels without a claim */
/* Only an assigned channel needs the setting of the toolkit. */
static void cd_check_toolkit(struct check_list *l, const struct cd_check_options *o) {
        struct driver_root roots[2];
        size_t n = check_node_host_roots(&o->node, roots);
        char why[400];

        if (!mode_assigns_channels(o->mode) || o->trusts_toolkit) {
                check_list_skipped(l, "container-toolkit", "it matters only with imex.isolation=channel");
                return;
        }
        switch (toolkit_check(roots, n, why, sizeof why)) {
        case TOOLKIT_GIVES:
                check_list_reason(l, "container-toolkit", REASON_TOOLKIT_GIVES_CHANNELS, why);
                break;
        case TOOLKIT_IGNORES:
                check_list_ok(l, "container-toolkit", "it ignores requests for IMEX channels");
                break;
        case TOOLKIT_NOT_FOUND:
        case TOOLKIT_ANSWERS:
                check_list_ok(l, "container-toolkit", "no configuration of it was found");
                break;
        }
}

void cd_check_run(struct check_list *l, const struct cd_check_options *o) {
        const struct driver_root root = { .host = o->node.flags->root_host,
                                          .here = o->node.flags->root_here };
        const char *module = check_node_module_version(&o->node, l->arena);
        const char *min = mode_runs_daemons(o->mode) ? FACTS_MIN_DRIVER : NULL;
        enum gpu_fabric_kind kind = GPU_FABRIC_ERROR;
        struct gpu_fabric fabric = { 0 };
        struct nvml_facts facts;
        struct str json;
        struct err e;

        check_node_common(l, &o->node);
        check_node_devices(l, &o->node, NULL, 0);
        if (check_node_nvml(l, &root, NVML_ASK_FABRIC, l->arena, &json) < 0) {
                check_judge_driver_version(l, module, NULL, min);
                check_list_skipped(l, "fabric", "NVML does not answer");
        } else if (nvml_facts_decode(json, l->arena, &facts, &e) < 0) {
                check_list_reason(l, "nvml", REASON_DRIVER_NOT_READY, e.msg);
        } else {
                check_judge_driver_version(l, module, facts.driver_version, min);
                kind = cd_check_fabric(l, &facts, o->mode, o->strict_fabric);
                gpu_fabric_from_facts(&facts, o->strict_fabric, &fabric);
        }
        cd_check_read_channels(l, &o->node, o->mode);
        bool programs = check_programs(l, o, kind != GPU_FABRIC_NONE);
        check_host(l, o, programs);
        cd_check_toolkit(l, o);
        check_slice_compare(l, &o->node,
                            kind == GPU_FABRIC_CLIQUE ? fabric.clique_id
                            : kind == GPU_FABRIC_NONE ? ""
                                                      : NULL,
                            -1);
}
