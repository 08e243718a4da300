/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "base/stderr.h"
#include "nvidia/gpu_fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(1024);
        struct nvml_facts facts = { 0 };
        struct err e;
        if (nvml_facts_decode((struct str){ (const char *)data, n }, a, &facts, &e) == 0) {
                for (int strict = 0; strict < 2; strict++) {
                        struct gpu_fabric f;
                        gpu_fabric_from_facts(&facts, strict, &f);
                        BUG_ON((f.kind == GPU_FABRIC_CLIQUE) != (f.clique_id[0] != '\0'));
                }
                (void)nvml_version_cmp(facts.driver_version, "570.158.01");
        }
        arena_free(a);
        return 0;
}
