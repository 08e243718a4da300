/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml.h"

#include "base/json.h"

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
