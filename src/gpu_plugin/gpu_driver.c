/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_driver.h"

#include <stdio.h>

#include "api/names.h"
#include "gpu_plugin/gpu_plan.h"
#include "gpu_plugin/gpu_state.h"
#include "gpu_plugin/gpu_steps.h"
#include "gpu_plugin/gpu_requests.h"
#include "gpu_plugin/gpu_work.h"
#include "node/claims.h"

struct gpu *gpu_driver_new(const struct gpu_driver_options *o) {
        struct gpu *g = xnew(struct gpu);
        g->o = *o;
        g->hook = xstrdup(o->hook);
        snprintf(g->why, sizeof g->why, "the GPUs of this node are being queried");
        TAILQ_INIT(&g->waiting);
        return g;
}

void gpu_driver_set_devices(struct gpu *g, const struct gpu_devices *devices, const char *why) {
        g->devices = devices;
        snprintf(g->why, sizeof g->why, "%s", why);
        gpu_plan_forget(g);
        gpu_work_known(g);
        if (g->claims)
                claims_reevaluate(g->claims);
}

int gpu_driver_check_gates(const struct gates *gates, struct err *e) {
        static const struct {
                enum gate gate;
                const char *name;
        } missing[] = {
                { GATE_CONSUMABLE_SHARES, "ConsumableShares" },
                { GATE_DRA_LIST_TYPE_ATTRIBUTES, "DRAListTypeAttributes" },
                { GATE_DEVICE_METADATA, "DeviceMetadata" },
                { GATE_DYNAMIC_MIG, "DynamicMIG" },
                { GATE_FABRIC_MANAGER_PARTITIONING, "FabricManagerPartitioning" },
                { GATE_MPS_SUPPORT, "MPSSupport" },
                { GATE_PASSTHROUGH_SUPPORT, "PassthroughSupport" },
        };
        for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
                if (gates->on[missing[i].gate])
                        return err_set(e, ERR_INVALID, 0,
                                       "feature gate %s is on, but this version does not implement it "
                                       "for GPUs: switch it off "
                                       "(%s=false in the chart's featureGates)",
                                       missing[i].name, missing[i].name);
        }
        return 0;
}

/* ---- functions without work ---- */

static void gpu_driver_attach(void *u, struct claims *c) {
        struct gpu *g = u;
        g->claims = c;
}

static void gpu_driver_release(void *u) {
        struct gpu *g = u;
        gpu_plan_forget(g);
        free(g->hook);
        free(g);
}

static void nothing(void *u, struct op *op) {
}

static void gpu_driver_gather(void *u, struct op *op) {
        op_fetched(op);
}

static void gpu_driver_waits(void *u, const struct op *op) {
        const struct gpu *g = u;
        if (op->waits_for == WAITS_FOR_GPUS)
                g->o.wanted(g->o.u, true);
}

static void gpu_driver_waited_for(void *u, unsigned what) {
        const struct gpu *g = u;
        g->o.wanted(g->o.u, what & 1U << WAITS_FOR_GPUS);
}

static int no_thing(const char *plugin_dir, const char *resource, bool again, struct err *e) {
        return 0;
}

static int nothing_to_undo(const char *plugin_dir, const char *resource, struct err *e) {
        return 0;
}

static void never_fails(const char *resource, const struct err *e) {
}

static void has_no_things(const struct checkpoint_claim *entry, node_resource_fn *fn, void *fn_u) {
}

static void gpu_driver_follow(void *u, const struct checkpoint *table) {
        const struct gpu *g = u;
        if (g->o.recorded)
                g->o.recorded(g->o.u, table);
}

static void nothing_to_sweep(void *u, const struct checkpoint *table) {
}

static bool may_collect(void *u, const struct checkpoint_claim *entry) {
        return true;
}

const struct node_driver gpu_driver = {
        .name = GPU_DRIVER,
        .cdi_kind = GPU_CDI_KIND_CLAIM,
        .prepare_fails = "error preparing devices for claim",
        .unprepare_fails = "error unpreparing devices for claim",
        .codec = &gpu_record_codec,
        .attach = gpu_driver_attach,
        .free = gpu_driver_release,
        .fetch = nothing,
        .release = nothing,
        .take = gpu_requests_take,
        .check = gpu_requests_check,
        .await_inputs = gpu_driver_gather,
        .known = gpu_steps_known,
        .steps = gpu_steps,
        .waits = gpu_driver_waits,
        .waited_for = gpu_driver_waited_for,
        .investigate = nothing,
        .plan_claim = gpu_plan_claim,
        .plan = gpu_plan_device,
        .record = gpu_plan_record,
        .comment = gpu_plan_comment,
        .set_up = no_thing,
        .undo = nothing_to_undo,
        .undo_failed = never_fails,
        .each_resource = has_no_things,
        .work = gpu_work_begin,
        .unwork = gpu_work_undo,
        .work_cancel = gpu_work_cancel,
        .prepared = nothing,
        .follow = gpu_driver_follow,
        .rebuild = gpu_plan_rebuild,
        .may_collect = may_collect,
        .remove_unused = nothing_to_sweep,
};
