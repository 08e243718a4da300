/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/gpu_fabric.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum { CALL_OK = 0, CALL_NOT_SUPPORTED = 3 };
enum { STATE_NOT_SUPPORTED = 0, STATE_NOT_STARTED = 1, STATE_IN_PROGRESS = 2, STATE_COMPLETED = 3 };

#define ZERO_UUID "00000000-0000-0000-0000-000000000000"

/* Display adapters of DGX machines are not compute GPUs and never attached to a fabric. */
static bool is_display(const struct nvml_gpu *g) {
        return streq(g->name, "DGX Display") || streq(g->name, "NVIDIA DGX Display");
}

/* Judges one GPU. GPU_FABRIC_CLIQUE means that its clique ID counts. */
static enum gpu_fabric_kind gpu_fabric_evaluate(const struct nvml_gpu *g, char *reason, size_t n) {
        const char *name = str_or(g->uuid, "unknown GPU");
        if (g->fabric_call == CALL_NOT_SUPPORTED) {
                snprintf(reason, n, "GPU %s has no fabric", name);
                return GPU_FABRIC_NONE;
        }
        if (g->fabric_call != CALL_OK) {
                snprintf(reason, n, "GPU %s: the fabric query failed with NVML error %lld", name,
                         (long long)g->fabric_call);
                return GPU_FABRIC_ERROR;
        }
        switch (g->fabric_state) {
        case STATE_NOT_SUPPORTED:
                snprintf(reason, n, "GPU %s has no fabric", name);
                return GPU_FABRIC_NONE;
        case STATE_NOT_STARTED:
        case STATE_IN_PROGRESS:
                snprintf(reason, n,
                         "GPU %s: its fabric registration %s; see nvidia-fabricmanager on this node", name,
                         g->fabric_state == STATE_NOT_STARTED ? "has not started" : "is in progress");
                return GPU_FABRIC_REGISTERING;
        case STATE_COMPLETED:
                break;
        default:
                snprintf(reason, n, "GPU %s: unknown fabric state %lld", name, (long long)g->fabric_state);
                return GPU_FABRIC_ERROR;
        }
        if (g->fabric_status != CALL_OK) {
                snprintf(reason, n, "GPU %s: its fabric registration failed with NVML error %lld", name,
                         (long long)g->fabric_status);
                return GPU_FABRIC_ERROR;
        }
        if (!g->cluster_uuid || !*g->cluster_uuid || streq(g->cluster_uuid, ZERO_UUID)) {
                snprintf(reason, n, "GPU %s is on NVLink, but not on a multi-node fabric", name);
                return GPU_FABRIC_NONE;
        }
        return GPU_FABRIC_CLIQUE;
}

void gpu_fabric_from_facts(const struct nvml_facts *f, bool strict, struct gpu_fabric *ret) {
        const struct nvml_gpu *first = NULL;
        *ret = (struct gpu_fabric){ .kind = f->n_gpus || !strict ? GPU_FABRIC_NONE : GPU_FABRIC_ERROR };
        snprintf(ret->reason, sizeof ret->reason,
                 f->n_gpus ? "no GPU reports a fabric" : "NVML reports no GPU on this node");
        for (size_t i = 0; i < f->n_gpus; i++) {
                const struct nvml_gpu *g = &f->gpus[i];
                char reason[sizeof ret->reason] = "";
                if (is_display(g))
                        continue;
                enum gpu_fabric_kind kind = gpu_fabric_evaluate(g, reason, sizeof reason);
                if (kind == GPU_FABRIC_CLIQUE) {
                        if (!first)
                                first = g;
                        if (streq(first->cluster_uuid, g->cluster_uuid) && first->clique_id == g->clique_id)
                                continue;
                        /* A node with two clique IDs has none that peers could rely on. */
                        ret->kind = strict ? GPU_FABRIC_ERROR : GPU_FABRIC_NONE;
                        ret->clique_id[0] = '\0';
                        snprintf(ret->reason, sizeof ret->reason,
                                 "GPUs %s and %s disagree: cliques %s.%lld and %s.%lld",
                                 str_or(first->uuid, "?"), str_or(g->uuid, "?"), first->cluster_uuid,
                                 (long long)first->clique_id, g->cluster_uuid, (long long)g->clique_id);
                        return;
                }
                /* The worst GPU decides: an error counts more than a registration in progress. */
                if (strict && (kind == GPU_FABRIC_ERROR ||
                               (kind == GPU_FABRIC_REGISTERING && ret->kind != GPU_FABRIC_ERROR))) {
                        ret->kind = kind;
                        snprintf(ret->reason, sizeof ret->reason, "%s", reason);
                } else if (ret->kind == GPU_FABRIC_NONE) {
                        snprintf(ret->reason, sizeof ret->reason, "%s", reason);
                }
        }
        if (first && ret->kind == GPU_FABRIC_NONE) {
                ret->kind = GPU_FABRIC_CLIQUE;
                ret->reason[0] = '\0';
                snprintf(ret->clique_id, sizeof ret->clique_id, "%s.%lld", first->cluster_uuid,
                         (long long)first->clique_id);
        }
}

static const struct jd_field f_gpu[] = {
        JD_STR(struct nvml_gpu, "name", name),
        JD_STR(struct nvml_gpu, "uuid", uuid),
        JD_INT(struct nvml_gpu, "fabricCall", fabric_call, .required = true),
        JD_INT(struct nvml_gpu, "fabricState", fabric_state),
        JD_INT(struct nvml_gpu, "fabricStatus", fabric_status),
        JD_INT(struct nvml_gpu, "cliqueID", clique_id),
        JD_STR(struct nvml_gpu, "clusterUUID", cluster_uuid),
        JD_END,
};
const struct jd_field nvml_facts_fields[] = {
        JD_STR(struct nvml_facts, "driverVersion", driver_version),
        JD_LIST(struct nvml_facts, "gpus", gpus, struct nvml_gpu, f_gpu),
        JD_END,
};

int nvml_facts_decode(struct str json, struct arena *a, struct nvml_facts *ret, struct err *e) {
        struct nvml_facts facts = { 0 };
        if (jd_decode_text(nvml_facts_fields, json, "", a, &facts, e) < 0)
                return err_wrap(e, "NVML: unreadable answer");
        if (!facts.driver_version)
                return err_set(e, ERR_INVALID, 0, "NVML: the answer has no driver version");
        for (size_t i = 0; i < facts.n_gpus; i++) {
                const struct nvml_gpu *g = &facts.gpus[i];
                if ((g->cluster_uuid && *g->cluster_uuid && !str_is_uuid(g->cluster_uuid)) ||
                    g->clique_id < 0 || g->clique_id > UINT32_MAX)
                        return err_set(e, ERR_INVALID, 0, "NVML: GPU %zu has a malformed fabric identity", i);
        }
        *ret = facts;
        return 0;
}

/* The next number of a dotted version; anything else between the numbers is skipped. */
static uint64_t next_number(const char **p) {
        uint64_t v = 0;
        while (**p && (**p < '0' || **p > '9'))
                (*p)++;
        for (; **p >= '0' && **p <= '9'; (*p)++)
                v = v < UINT32_MAX ? v * 10 + (uint64_t)(**p - '0') : v;
        return v;
}

int nvml_version_cmp(const char *a, const char *b) {
        while (*a || *b) {
                uint64_t x = next_number(&a), y = next_number(&b);
                if (x != y)
                        return x < y ? -1 : 1;
        }
        return 0;
}
