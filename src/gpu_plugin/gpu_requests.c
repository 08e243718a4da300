/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_requests.h"

#include <string.h>

#include "gpu_plugin/gpu_state.h"

/* Derives the kind from the name of the device: "gpu-0", "gpu-0-mig-1g10gb-19-0", "gpu-vfio-0". */
static enum gpu_config_kind gpu_requests_kind_of(const char *device) {
        return str_starts(device, "gpu-vfio-") ? GPU_CONFIG_VFIO
               : strstr(device, "-mig-")       ? GPU_CONFIG_MIG
                                               : GPU_CONFIG_GPU;
}

int gpu_requests_take(void *u, const struct op *op, struct node_request *w, struct err *e) {
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

int gpu_requests_check(void *u, const struct op *op, struct err *e) {
        return 0; /* the GPUs of a claim do not depend on each other */
}
