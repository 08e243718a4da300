/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_driver.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "gpu_plugin/gpu_plan.h"
#include "gpu_plugin/gpu_state.h"
#include "gpu_plugin/gpu_work.h"
#include "node/claims.h"
#include "node/driver.h"
#include "node/ops.h"
#include "node/prepare_verdict.h"

/* ---- steps of a Prepare ---- */

/* The check of the node takes about a hundred system calls. */
static enum verdict gpu_steps_known(void *u, struct op *op) {
        const struct gpu *g = u;
        if (g->devices && g->o.hold(g->o.u))
                return VERDICT_GO;
        op->waits_for = WAITS_FOR_GPUS;
        return prepare_verdict_set(
                op, VERDICT_WAIT, "%s: %s", g->o.node,
                g->devices ? "the GPUs of this node have changed, and are being queried again" : g->why);
}

static bool is_part_of(const char *mig, const char *gpu) {
        size_t n = strlen(gpu);
        return strncmp(mig, gpu, n) == 0 && str_starts(mig + n, "-mig-");
}

/* Returns why a whole GPU is not listed, if MIG is the reason; otherwise NULL. */
static const char *is_mig(const struct gpu *g, const char *device) {
        for (size_t i = 0; i < g->devices->n; i++) {
                if (is_part_of(g->devices->items[i].name, device))
                        return "it is in MIG mode";
        }
        for (size_t i = 0; i < g->devices->n_left_out; i++) {
                if (g->devices->left_out[i].unused_mig && streq(g->devices->left_out[i].what, device))
                        return g->devices->left_out[i].why;
        }
        return NULL;
}

/* The error lists the existing devices, and those that were left out with the reason. */
static enum verdict not_there(const struct gpu *g, struct op *op, const char *device) {
        struct buf names = BUF_INIT(300), b = BUF_INIT(600);
        const char *mig = is_mig(g, device);
        for (size_t i = 0; i < g->devices->n; i++)
                buf_addf(&names, "%s%s", i ? ", " : "", g->devices->items[i].name);
        if (names.failed)
                buf_addf(&b, "%zu others", g->devices->n);
        else
                buf_adds(&b, buf_str(&names));
        buf_done(&names);
        for (size_t i = 0; i < g->devices->n_left_out; i++) {
                if (g->devices->left_out[i].unused_mig) /* of another GPU, or named above */
                        continue;
                buf_addf(&b, "; %s: %s", g->devices->left_out[i].what, g->devices->left_out[i].why);
        }
        prepare_verdict_set(
                op, VERDICT_REFUSE,
                "prepare devices failed: allocatable not found for device \"%s\": %s%snode '%s' has %s%s%s; "
                "delete the pod so that it "
                "is scheduled "
                "again",
                device, str_or(mig, ""), mig ? "; " : "", g->o.node, g->devices->n ? "" : "no GPU",
                b.failed ? "others" : buf_str(&b), g->why[0] ? g->why : "");
        buf_done(&b);
        return VERDICT_REFUSE;
}

/* The record of a claim that was prepared before has the UUID of the GPU. If another GPU has its name now,
 * the containers of the pod would get different GPUs. */
static const char *recorded_as(const struct op *op, const char *device, struct arena *a) {
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        for (size_t i = 0; entry && entry->state == CHECKPOINT_COMPLETED && i < entry->n_devices; i++) {
                if (streq(entry->devices[i].name, device))
                        return gpu_record_uuid(&entry->devices[i], a);
        }
        return NULL;
}

static enum verdict there(void *u, struct op *op, struct node_request *w) {
        const struct gpu *g = u;
        const struct gpu_device *d = gpu_device_find(g->devices, w->result->device);
        if (!d)
                return not_there(g, op, w->result->device);
        struct arena *a = arena_new(256);
        const char *before = recorded_as(op, d->name, a);
        enum verdict v = VERDICT_GO;
        if (before && *before && !streq(before, d->uuid))
                v = prepare_verdict_set(
                        op, VERDICT_REFUSE,
                        "device '%s' was prepared for this claim as %s, but that name is %s now: "
                        "delete the pod",
                        d->name, before, d->uuid);
        arena_free(a);
        return v;
}

/* Returns another prepared claim that has the same GPU under another name: the whole GPU or a MIG device from
 * before the MIG mode or the MIG devices were changed, or the minor number from before the driver was loaded
 * again. Its containers may still run, and have the device node. */
static const struct checkpoint_claim *other_name(const struct gpu *g, const struct op *op,
                                                 const struct node_request *w) {
        const struct gpu_device *device = gpu_device_find(g->devices, w->result->device);
        const char *name = device->name;
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        if (op_prepared_before(op) || w->result->admin_access)
                return NULL;
        CHECKPOINT_EACH_DEVICE (&op->c->journal.table, e, d) {
                const char *its = str_or(d->name, "");
                if (!streq(e->uid, op->uid) && !d->admin &&
                    (is_part_of(its, name) || is_part_of(name, its) ||
                     streq(gpu_record_uuid(d, a), device->uuid) ||
                     (device->kind == GPU_MIG && gpu_record_is_instance(d, device))))
                        return e;
        }
        return NULL;
}

static enum verdict gpu_steps_who_holds(void *u, struct op *op, struct node_request *w) {
        const struct gpu *g = u;
        const struct checkpoint_claim *other = prepare_verdict_holder(op, w);
        if (!other && (other = other_name(g, op, w))) {
                op->waits_for = WAITS_FOR_CLAIM;
                op->holder = xstrdup(other->uid);
        }
        if (!other)
                return VERDICT_GO;
        /* The owner of the pod must not see names of another namespace. SIGUSR2 logs them. */
        bool ours = streq(other->ns, op->ns) && other->name;
        return prepare_verdict_set(
                op, VERDICT_WAIT,
                "unable to prepare claim %s: requested device %s is already allocated to different "
                "claim %s%s%s%s: its pod on node '%s' has not ended yet; wait until it has ended, or delete "
                "it",
                op->uid, w->result->device, other->uid, ours ? " ('" : "", ours ? other->name : "",
                ours ? "')" : "", g->o.node);
}

/* A claim that was never completed holds no GPU, but its Unprepare may reset one. */
static enum verdict is_reset(void *u, struct op *op, struct node_request *w) {
        const struct gpu *g = u;
        if (op_prepared_before(op) || w->result->admin_access ||
            !gpu_work_resets(g, gpu_device_find(g->devices, w->result->device)->uuid))
                return VERDICT_GO;
        op->waits_for = WAITS_FOR_CLAIM;
        return prepare_verdict_set(
                op, VERDICT_WAIT,
                "the time slice of device %s on node '%s' is being reset after another claim",
                w->result->device, g->o.node);
}

/* The last step, so that NVML is queried when nothing else prevents the Prepare. A GPU may have fallen off
 * the bus or be in MIG mode, and a MIG device may have been replaced. The first call requests all devices of
 * the claim, so that one session of NVML serves them: with one session for each GPU, the Prepare could exceed
 * its time. Afterwards, known() and there() judge the new list of devices. */
static enum verdict is_verified(void *u, struct op *op, struct node_request *w) {
        const struct gpu *g = u;
        const uint64_t now_ms = loop_now_ms(g->claims->o.loop);
        const char *unverified = NULL;
        if (op_prepared_before(op))
                return VERDICT_GO;
        for (size_t i = 0; i < op->n_requests; i++) {
                const struct gpu_device *d = gpu_device_find(g->devices, op->requests[i].result->device);
                struct gpu_request *own = gpu_want_of(&op->requests[i]);
                if (!own->ready_ms)
                        own->ready_ms = now_ms;
                if (!g->o.verify(g->o.u, d, own->ready_ms) && !unverified)
                        unverified = d->name;
        }
        if (!unverified)
                return VERDICT_GO;
        op->waits_for = WAITS_FOR_GPUS;
        return prepare_verdict_set(op, VERDICT_WAIT, "%s: NVML is being queried about device %s", g->o.node,
                                   unverified);
}

static node_step_fn *const gpu_steps[] = { there, gpu_steps_who_holds, is_reset, is_verified, NULL };

/* ---- requests ---- */

/* Checks of the requests and the configuration of a claim, without the state of the node. A retry does not
 * fix an error that they return. Pure. */

/* Derives the kind from the name of the device: "gpu-0", "gpu-0-mig-1g10gb-19-0", "gpu-vfio-0". */
static enum gpu_config_kind gpu_requests_kind_of(const char *device) {
        return str_starts(device, "gpu-vfio-") ? GPU_CONFIG_VFIO
               : strstr(device, "-mig-")       ? GPU_CONFIG_MIG
                                               : GPU_CONFIG_GPU;
}

static int gpu_requests_take(void *u, const struct op *op, struct node_request *w, struct err *e) {
        const struct gpu *g = u;
        const struct claim_result *r = w->result;
        struct gpu_request *own = w->own = arena_alloc(op->arena, sizeof *own);
        *own = (struct gpu_request){ .kind = gpu_requests_kind_of(r->device) };
        if (!streq(r->pool, g->o.node))
                return err_set(e, ERR_INVALID, 0,
                               "device '%s' was allocated on node '%s', but this is node '%s'", r->device,
                               r->pool, g->o.node);
        struct gpu_config_choice choice;
        if (gpu_config_for(&op->claim, r, own->kind, g->o.gates, &choice, e) < 0)
                return err_wrap(e, "prepare devices failed");
        own->config = choice.config;
        own->config_index = choice.index;
        return 0;
}

/* ---- the driver ---- */

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

void gpu_driver_set_no_profiles(struct gpu *g) {
        g->no_profiles = true;
}

void gpu_driver_verified(struct gpu *g) {
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

static void gpu_driver_waits(void *u, const struct op *op) {
        const struct gpu *g = u;
        if (op->waits_for == WAITS_FOR_GPUS)
                g->o.wanted(g->o.u, true);
}

static void gpu_driver_waited_for(void *u, unsigned what) {
        const struct gpu *g = u;
        g->o.wanted(g->o.u, what & 1U << WAITS_FOR_GPUS);
}

static void gpu_driver_follow(void *u, const struct checkpoint *table) {
        const struct gpu *g = u;
        if (g->o.recorded)
                g->o.recorded(g->o.u, table);
}

const struct node_driver gpu_driver = {
        .name = GPU_DRIVER,
        .peer = CD_DRIVER,
        .cdi_kind = GPU_CDI_KIND_CLAIM,
        .prepare_fails = "error preparing devices for claim",
        .unprepare_fails = "error unpreparing devices for claim",
        .codec = &gpu_record_codec,
        .attach = gpu_driver_attach,
        .free = gpu_driver_release,
        .take = gpu_requests_take,
        .known = gpu_steps_known,
        .steps = gpu_steps,
        .waits = gpu_driver_waits,
        .waited_for = gpu_driver_waited_for,
        .plan_claim = gpu_plan_claim,
        .plan = gpu_plan_device,
        .record = gpu_plan_record,
        .comment = gpu_plan_comment,
        .work = gpu_work_begin,
        .unwork = gpu_work_undo,
        .work_cancel = gpu_work_cancel,
        .follow = gpu_driver_follow,
        .rebuild = gpu_plan_rebuild,
};
