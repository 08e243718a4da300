/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_survey.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "nvidia/inventory.h"
#include "nvidia/nvml.h"

enum {
        FABRIC_GPUS_MAX = 256,
        TEXT_SIZE = INVENTORY_TEXT_MAX + 1,
        GI_PROFILES = 32, /* nvml.h has 18; future ones are found, too */
        CI_PROFILES = 16,
};

static int count_gpus(const struct nvml_library *l, unsigned most, unsigned *ret, struct err *e) {
        *ret = 0;
        if (nvml_library_check(l, "nvmlDeviceGetCount", l->count(ret), e) < 0)
                return -1;
        if (*ret > most)
                return err_set(e, ERR_INVALID, 0, "NVML reports %u GPUs", *ret);
        return 0;
}

/* ---- the fabric ---- */

static void format_uuid(const uint8_t b[static 16], char ret[static 37]) {
        size_t n = 0;
        for (size_t i = 0; i < 16; i++) {
                if (i == 4 || i == 6 || i == 8 || i == 10)
                        ret[n++] = '-';
                n += (size_t)snprintf(ret + n, 3, "%02x", b[i]);
        }
}

static int query_fabric(const struct nvml_library *l, nvml_device_t dev, struct nvml_fabric_info *ret) {
        NVML_ROOM(struct nvml_fabric_info) old = { 0 };
        NVML_ROOM(struct nvml_fabric_info_v2) info = { .v.version = NVML_FABRIC_INFO_V2 };
        int code = NVML_FUNCTION_NOT_FOUND;
        if (l->fabric)
                code = l->fabric(dev, &old.v);
        *ret = old.v;
        if (code != NVML_FUNCTION_NOT_FOUND)
                return code;
        if (!l->fabric_v) /* a library older than fabrics */
                return NVML_NOT_SUPPORTED;
        code = l->fabric_v(dev, &info.v);
        *ret = (struct nvml_fabric_info){ .status = info.v.status,
                                          .clique_id = info.v.clique_id,
                                          .state = info.v.state };
        memcpy(ret->cluster_uuid, info.v.cluster_uuid, sizeof ret->cluster_uuid);
        return code;
}

/* A GPU that cannot be queried gets the error as its fabric result. */
static struct nvml_gpu survey_fabric_of(const struct nvml_library *l, unsigned index, struct arena *a) {
        nvml_device_t dev = NULL;
        struct nvml_fabric_info info = { 0 };
        char name[128] = "", uuid[128] = "", cluster[37] = "";
        int code = l->by_index(index, &dev);
        if (code == NVML_OK) {
                if (!l->name || l->name(dev, name, sizeof name) != NVML_OK)
                        name[0] = '\0';
                if (!l->uuid || l->uuid(dev, uuid, sizeof uuid) != NVML_OK)
                        uuid[0] = '\0';
                code = query_fabric(l, dev, &info);
        }
        nvml_library_clean(name, sizeof name);
        nvml_library_clean(uuid, sizeof uuid);
        if (!uuid[0])
                snprintf(uuid, sizeof uuid, "%u", index);
        format_uuid(info.cluster_uuid, cluster);
        return (struct nvml_gpu){ .name = arena_strdup(a, name),
                                  .uuid = arena_strdup(a, uuid),
                                  .fabric_call = code,
                                  .fabric_state = info.state,
                                  .fabric_status = info.status,
                                  .clique_id = info.clique_id,
                                  .cluster_uuid = arena_strdup(a, cluster) };
}

int nvml_survey_fabric(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                       struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        char version[96] = "";
        unsigned n;
        if (nvml_library_check(l, "nvmlSystemGetDriverVersion", l->driver_version(version, sizeof version),
                               e) < 0 ||
            count_gpus(l, FABRIC_GPUS_MAX, &n, e) < 0)
                return -1;
        nvml_library_clean(version, sizeof version);
        struct nvml_facts facts = { .driver_version = version,
                                    .gpus = arena_alloc(a, (n + 1) * sizeof *facts.gpus),
                                    .n_gpus = n };
        for (unsigned i = 0; i < n; i++) {
                p->gpu(p->u, i);
                facts.gpus[i] = survey_fabric_of(l, i, a);
        }
        jd_encode(nvml_facts_fields, &facts, &JW(out), NULL);
        return 0;
}

/* ---- the inventory ---- */

/* The first failed call is kept: further queries are useless after it. */
static bool needed(struct inventory_failure *f, const char *call, int code) {
        if (code != NVML_OK && !f->call)
                *f = (struct inventory_failure){ .call = call, .error = code };
        return code == NVML_OK;
}

/* True if an optional query succeeded. A lost GPU fails as a whole, because it would be published with half
 * of its attributes. */
static bool usable(struct inventory_failure *f, const char *call, int code) {
        return code == NVML_GPU_IS_LOST ? needed(f, call, code) : code == NVML_OK;
}

#define NEEDED(f, l, member, what, ...)                                                                      \
        needed((f), (what), (l)->member ? (l)->member(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)
#define TOLD(f, l, member, what, ...)                                                                        \
        (!(f)->call && (l)->member && usable((f), (what), (l)->member(__VA_ARGS__)))

static bool find_gi_profile(const struct nvml_library *l, nvml_device_t dev, unsigned id,
                            struct inventory_failure *f, struct nvml_gpu_instance_profile *ret,
                            unsigned *ret_number) {
        for (unsigned i = 0; i < GI_PROFILES; i++) {
                NVML_ROOM(struct nvml_gpu_instance_profile) p = { 0 };
                if (TOLD(f, l, gi_profile, "nvmlDeviceGetGpuInstanceProfileInfo", dev, i, &p.v) &&
                    p.v.id == id) {
                        *ret = p.v;
                        *ret_number = i;
                        return true;
                }
        }
        return needed(f, "nvmlDeviceGetGpuInstanceProfileInfo", NVML_NOT_FOUND);
}

static bool find_ci_slices(const struct nvml_library *l, nvml_gpu_instance_t gi, unsigned id,
                           struct inventory_failure *f, unsigned *ret) {
        for (unsigned i = 0; i < CI_PROFILES; i++) {
                NVML_ROOM(struct nvml_compute_instance_profile) p = { 0 };
                if (TOLD(f, l, ci_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo", gi, i, 0, &p.v) &&
                    p.v.id == id) {
                        *ret = p.v.slices;
                        return true;
                }
        }
        return needed(f, "nvmlGpuInstanceGetComputeInstanceProfileInfo", NVML_NOT_FOUND);
}

static struct mig_facts ask_mig(const struct nvml_library *l, nvml_device_t gpu, nvml_device_t mig,
                                struct arena *a) {
        struct inventory_failure f = { 0 };
        char uuid[TEXT_SIZE] = "", name[TEXT_SIZE] = "";
        unsigned gi_id, ci_id, number, compute_slices;
        nvml_gpu_instance_t gi = NULL;
        nvml_compute_instance_t ci = NULL;
        struct nvml_gpu_instance_profile profile;
        NVML_ROOM(struct nvml_gpu_instance_info) gi_info = { 0 };
        NVML_ROOM(struct nvml_compute_instance_info) ci_info = { 0 };
        NVML_ROOM(struct nvml_gpu_instance_profile_v2) named = { .v.version = NVML_GPU_INSTANCE_PROFILE_V2 };
        if (!NEEDED(&f, l, uuid, "nvmlDeviceGetUUID", mig, uuid, sizeof uuid) ||
            !NEEDED(&f, l, mig_gi, "nvmlDeviceGetGpuInstanceId", mig, &gi_id) ||
            !NEEDED(&f, l, mig_ci, "nvmlDeviceGetComputeInstanceId", mig, &ci_id) ||
            !NEEDED(&f, l, gi_by_id, "nvmlDeviceGetGpuInstanceById", gpu, gi_id, &gi) ||
            !NEEDED(&f, l, gi_info, "nvmlGpuInstanceGetInfo", gi, &gi_info.v) ||
            !find_gi_profile(l, gpu, gi_info.v.profile_id, &f, &profile, &number) ||
            !NEEDED(&f, l, ci_by_id, "nvmlGpuInstanceGetComputeInstanceById", gi, ci_id, &ci) ||
            !NEEDED(&f, l, ci_info, "nvmlComputeInstanceGetInfo", ci, &ci_info.v) ||
            !find_ci_slices(l, gi, ci_info.v.profile_id, &f, &compute_slices))
                return (struct mig_facts){ .failure = f };
        nvml_library_clean(uuid, sizeof uuid);
        if (TOLD(&f, l, gi_profile_v, "nvmlDeviceGetGpuInstanceProfileInfoV", gpu, number, &named.v)) {
                memcpy(name, named.v.name, sizeof named.v.name);
                nvml_library_clean(name, sizeof name);
        }
        if (f.call)
                return (struct mig_facts){ .failure = f };
        return (struct mig_facts){ .uuid = arena_strdup(a, uuid),
                                   .gpu_instance = gi_id,
                                   .compute_instance = ci_id,
                                   .gi_profile = number,
                                   .profile_id = gi_info.v.profile_id,
                                   .start = gi_info.v.start,
                                   .size = gi_info.v.size,
                                   .gpu_slices = profile.slices,
                                   .compute_slices = compute_slices,
                                   .name = arena_strdup(a, name),
                                   .multiprocessors = profile.multiprocessors,
                                   .copy_engines = profile.copy_engines,
                                   .decoders = profile.decoders,
                                   .encoders = profile.encoders,
                                   .jpeg_engines = profile.jpeg,
                                   .ofa_engines = profile.ofa,
                                   .memory_mib = (int64_t)profile.memory_mib };
}

static void ask_migs(const struct nvml_library *l, nvml_device_t gpu, struct arena *a,
                     struct gpu_facts *ret) {
        struct inventory_failure f = { 0 };
        unsigned n = 0;
        ret->mig = arena_alloc(a, INVENTORY_MIG_MAX * sizeof *ret->mig);
        if (!NEEDED(&f, l, mig_max, "nvmlDeviceGetMaxMigDeviceCount", gpu, &n))
                ret->mig[ret->n_mig++].failure = f;
        for (unsigned i = 0; i < n && i < INVENTORY_MIG_MAX; i++) {
                nvml_device_t mig = NULL;
                int code = l->mig_by_index ? l->mig_by_index(gpu, i, &mig) : NVML_FUNCTION_NOT_FOUND;
                if (code == NVML_OK)
                        ret->mig[ret->n_mig++] = ask_mig(l, gpu, mig, a);
                else if (code != NVML_NOT_FOUND && code != NVML_INVALID_ARGUMENT) /* no MIG device there */
                        needed(&ret->mig[ret->n_mig++].failure, "nvmlDeviceGetMigDeviceHandleByIndex", code);
        }
        if (n > INVENTORY_MIG_MAX)
                ret->n_mig_more = (int64_t)n - INVENTORY_MIG_MAX;
}

static uint64_t ask_memory(const struct nvml_library *l, nvml_device_t dev, struct inventory_failure *f) {
        NVML_ROOM(struct nvml_memory) old = { 0 };
        NVML_ROOM(struct nvml_memory_v2) info = { .v.version = NVML_MEMORY_V2 };
        if (l->memory)
                return TOLD(f, l, memory, "nvmlDeviceGetMemoryInfo", dev, &old.v) ? old.v.total : 0;
        return TOLD(f, l, memory_v2, "nvmlDeviceGetMemoryInfo_v2", dev, &info.v) ? info.v.total : 0;
}

static const char *ask_addressing_mode(const struct nvml_library *l, nvml_device_t dev,
                                       struct inventory_failure *f) {
        static const char *const names[] = { "None", "HMM", "ATS" };
        NVML_ROOM(struct nvml_addressing_mode) mode = { .v.version = NVML_ADDRESSING_MODE_V1 };
        if (!TOLD(f, l, addressing_mode, "nvmlDeviceGetAddressingMode", dev, &mode.v) || mode.v.value > 2)
                return NULL;
        return names[mode.v.value];
}

static void ask_gpu(const struct nvml_library *l, nvml_device_t dev, struct arena *a, struct gpu_facts *r) {
        struct inventory_failure *f = &r->failure;
        NVML_ROOM(struct nvml_pci_info) pci = { 0 };
        char uuid[TEXT_SIZE] = "", text[TEXT_SIZE] = "";
        unsigned minor, architecture, mig_mode, pending = 0;
        int brand, cc[2], persistence_mode;
        if (!NEEDED(f, l, uuid, "nvmlDeviceGetUUID", dev, uuid, sizeof uuid))
                return;
        nvml_library_clean(uuid, sizeof uuid);
        r->uuid = arena_strdup(a, uuid);
        if (!NEEDED(f, l, minor, "nvmlDeviceGetMinorNumber", dev, &minor))
                return;
        r->minor = minor;
        if (TOLD(f, l, name, "nvmlDeviceGetName", dev, text, sizeof text)) {
                nvml_library_clean(text, sizeof text);
                r->name = arena_strdup(a, text);
        }
        if (TOLD(f, l, brand, "nvmlDeviceGetBrand", dev, &brand))
                r->brand = brand;
        if (TOLD(f, l, architecture, "nvmlDeviceGetArchitecture", dev, &architecture))
                r->architecture = architecture;
        if (TOLD(f, l, compute_capability, "nvmlDeviceGetCudaComputeCapability", dev, &cc[0], &cc[1]))
                r->compute_capability = arena_printf(a, "%d.%d", cc[0], cc[1]);
        if (TOLD(f, l, pci, "nvmlDeviceGetPciInfo_v3", dev, &pci.v)) {
                memset(text, 0, sizeof text);
                memcpy(text, pci.v.bus_id, sizeof pci.v.bus_id);
                nvml_library_clean(text, sizeof text);
                r->pci_bus_id = arena_strdup(a, text);
        }
        uint64_t memory = ask_memory(l, dev, f);
        r->memory_bytes = memory <= INT64_MAX ? (int64_t)memory : 0;
        r->addressing_mode = ask_addressing_mode(l, dev, f);
        r->persistence_off =
                TOLD(f, l, persistence_mode, "nvmlDeviceGetPersistenceMode", dev, &persistence_mode) &&
                persistence_mode == 0;
        if (TOLD(f, l, mig_mode, "nvmlDeviceGetMigMode", dev, &mig_mode, &pending))
                r->mig_mode = mig_mode;
}

static struct gpu_facts survey_gpu(const struct nvml_library *l, unsigned index, struct arena *a) {
        struct gpu_facts r = { .index = index };
        nvml_device_t dev = NULL;
        if (needed(&r.failure, "nvmlDeviceGetHandleByIndex", l->by_index(index, &dev)))
                ask_gpu(l, dev, a, &r);
        if (r.failure.call)
                return (struct gpu_facts){ .failure = r.failure, .index = index, .uuid = r.uuid };
        if (r.mig_mode == 1)
                ask_migs(l, dev, a, &r);
        return r;
}

int nvml_survey_inventory(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                          struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        char version[TEXT_SIZE] = "";
        unsigned n;
        int cuda = 0;
        if (nvml_library_check(l, "nvmlSystemGetDriverVersion", l->driver_version(version, sizeof version),
                               e) < 0 ||
            count_gpus(l, INVENTORY_GPUS_MAX, &n, e) < 0)
                return -1;
        nvml_library_clean(version, sizeof version);
        struct inventory all = { .driver_version = version,
                                 .gpus = arena_alloc(a, (n + 1) * sizeof *all.gpus),
                                 .n_gpus = n };
        if (l->cuda_version && l->cuda_version(&cuda) == NVML_OK)
                all.cuda_version = cuda;
        for (unsigned i = 0; i < n; i++) {
                p->gpu(p->u, i);
                all.gpus[i] = survey_gpu(l, i, a);
        }
        jd_encode(inventory_fields, &all, &JW(out), NULL);
        return 0;
}
