/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_steps.h"

#include "gpu_plugin/gpu_state.h"
#include "node/prepare_verdict.h"

/* The check of the node takes about a hundred system calls. */
enum verdict gpu_steps_known(void *u, struct op *op) {
        const struct gpu *g = u;
        if (g->devices && g->o.hold(g->o.u))
                return VERDICT_GO;
        op->waits_for = WAITS_FOR_GPUS;
        return prepare_verdict_set(
                op, VERDICT_WAIT, "%s: %s", g->o.node,
                g->devices ? "the GPUs of this node have changed, and are being queried again" : g->why);
}

/* The error lists the existing devices, and those that were left out with the reason. */
static enum verdict not_there(const struct gpu *g, struct op *op, const char *device) {
        struct buf b = BUF_INIT(400);
        for (size_t i = 0; i < g->devices->n; i++)
                buf_addf(&b, "%s%s", i ? ", " : "", g->devices->items[i].name);
        for (size_t i = 0; i < g->devices->n_left_out; i++)
                buf_addf(&b, "; %s: %s", g->devices->left_out[i].what, g->devices->left_out[i].why);
        prepare_verdict_set(
                op, VERDICT_REFUSE,
                "prepare devices failed: allocatable not found for device \"%s\": node '%s' has %s%s%s; "
                "delete the pod so that it "
                "is scheduled "
                "again",
                device, g->o.node, g->devices->n ? "" : "no GPU", b.failed ? "others" : buf_str(&b),
                g->why[0] ? g->why : "");
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

static enum verdict gpu_steps_who_holds(void *u, struct op *op, struct node_request *w) {
        const struct gpu *g = u;
        const struct checkpoint_claim *other = prepare_verdict_holder(op, w);
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

node_step_fn *const gpu_steps[] = { there, gpu_steps_who_holds, NULL };
