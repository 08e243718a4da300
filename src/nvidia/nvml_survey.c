/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_survey.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "nvidia/inventory.h"

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
static void write_fabric(const struct nvml_library *l, unsigned index, struct jw *w) {
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
        jw_obj(w, NULL);
        jw_str(w, "name", name);
        jw_str(w, "uuid", uuid);
        jw_int(w, "fabricCall", code);
        jw_int(w, "fabricState", info.state);
        jw_int(w, "fabricStatus", info.status);
        jw_int(w, "cliqueID", info.clique_id);
        jw_str(w, "clusterUUID", cluster);
        jw_end_obj(w);
}

int nvml_survey_fabric(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                       struct err *e) {
        char version[96] = "";
        unsigned n;
        if (nvml_library_check(l, "nvmlSystemGetDriverVersion", l->driver_version(version, sizeof version),
                               e) < 0 ||
            count_gpus(l, FABRIC_GPUS_MAX, &n, e) < 0)
                return -1;
        nvml_library_clean(version, sizeof version);
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_str(&w, "driverVersion", version);
        jw_arr(&w, "gpus");
        for (unsigned i = 0; i < n; i++) {
                p->gpu(p->u, i);
                write_fabric(l, i, &w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        return 0;
}

/* ---- the inventory ---- */

/* The first failed call after which further queries are useless. */
struct failure {
        const char *call;
        int code;
};

static bool needed(struct failure *f, const char *call, int code) {
        if (code != NVML_OK && !f->call)
                *f = (struct failure){ call, code };
        return code == NVML_OK;
}

/* True if an optional query succeeded. A lost GPU fails as a whole, because it would be published with half
 * of its attributes. */
static bool usable(struct failure *f, const char *call, int code) {
        return code == NVML_GPU_IS_LOST ? needed(f, call, code) : code == NVML_OK;
}

#define NEEDED(f, l, member, what, ...)                                                                      \
        needed((f), (what), (l)->member ? (l)->member(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)
#define TOLD(f, l, member, what, ...)                                                                        \
        (!(f)->call && (l)->member && usable((f), (what), (l)->member(__VA_ARGS__)))

static void write_failure(struct jw *w, const struct failure *f) {
        jw_str(w, "call", f->call);
        jw_int(w, "error", f->code);
}

static bool find_gi_profile(const struct nvml_library *l, nvml_device_t dev, unsigned id, struct failure *f,
                            struct nvml_gpu_instance_profile *ret, unsigned *ret_number) {
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
                           struct failure *f, unsigned *ret) {
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

struct mig_answer {
        char uuid[TEXT_SIZE], name[TEXT_SIZE];
        unsigned gi_id, ci_id, number, compute_slices;
        struct nvml_gpu_instance_info gi;
        struct nvml_gpu_instance_profile profile;
};

static void ask_mig(const struct nvml_library *l, nvml_device_t gpu, nvml_device_t mig, struct failure *f,
                    struct mig_answer *r) {
        nvml_gpu_instance_t gi = NULL;
        nvml_compute_instance_t ci = NULL;
        NVML_ROOM(struct nvml_gpu_instance_info) gi_info = { 0 };
        NVML_ROOM(struct nvml_compute_instance_info) ci_info = { 0 };
        NVML_ROOM(struct nvml_gpu_instance_profile_v2) named = { .v.version = NVML_GPU_INSTANCE_PROFILE_V2 };
        if (!NEEDED(f, l, uuid, "nvmlDeviceGetUUID", mig, r->uuid, sizeof r->uuid) ||
            !NEEDED(f, l, mig_gi, "nvmlDeviceGetGpuInstanceId", mig, &r->gi_id) ||
            !NEEDED(f, l, mig_ci, "nvmlDeviceGetComputeInstanceId", mig, &r->ci_id) ||
            !NEEDED(f, l, gi_by_id, "nvmlDeviceGetGpuInstanceById", gpu, r->gi_id, &gi) ||
            !NEEDED(f, l, gi_info, "nvmlGpuInstanceGetInfo", gi, &gi_info.v) ||
            !find_gi_profile(l, gpu, gi_info.v.profile_id, f, &r->profile, &r->number) ||
            !NEEDED(f, l, ci_by_id, "nvmlGpuInstanceGetComputeInstanceById", gi, r->ci_id, &ci) ||
            !NEEDED(f, l, ci_info, "nvmlComputeInstanceGetInfo", ci, &ci_info.v) ||
            !find_ci_slices(l, gi, ci_info.v.profile_id, f, &r->compute_slices))
                return;
        r->gi = gi_info.v;
        nvml_library_clean(r->uuid, sizeof r->uuid);
        if (TOLD(f, l, gi_profile_v, "nvmlDeviceGetGpuInstanceProfileInfoV", gpu, r->number, &named.v)) {
                memcpy(r->name, named.v.name, sizeof named.v.name);
                nvml_library_clean(r->name, sizeof r->name);
        }
}

static void write_mig(const struct nvml_library *l, nvml_device_t gpu, nvml_device_t mig, struct jw *w) {
        struct failure f = { 0 };
        struct mig_answer r = { 0 };
        ask_mig(l, gpu, mig, &f, &r);
        jw_obj(w, NULL);
        if (f.call) {
                write_failure(w, &f);
        } else {
                jw_str(w, "uuid", r.uuid);
                jw_int(w, "gi", r.gi_id);
                jw_int(w, "ci", r.ci_id);
                jw_int(w, "giProfile", r.number);
                jw_int(w, "profileID", r.gi.profile_id);
                jw_int(w, "start", r.gi.start);
                jw_int(w, "size", r.gi.size);
                jw_int(w, "g", r.profile.slices);
                jw_int(w, "c", r.compute_slices);
                if (r.name[0])
                        jw_str(w, "name", r.name);
                jw_int(w, "sm", r.profile.multiprocessors);
                jw_int(w, "ce", r.profile.copy_engines);
                jw_int(w, "dec", r.profile.decoders);
                jw_int(w, "enc", r.profile.encoders);
                jw_int(w, "jpeg", r.profile.jpeg);
                jw_int(w, "ofa", r.profile.ofa);
                jw_int(w, "memoryMB", (int64_t)r.profile.memory_mib);
        }
        jw_end_obj(w);
}

static void write_migs(const struct nvml_library *l, nvml_device_t gpu, struct jw *w) {
        struct failure f = { 0 };
        unsigned n = 0;
        jw_arr(w, "mig");
        if (!NEEDED(&f, l, mig_max, "nvmlDeviceGetMaxMigDeviceCount", gpu, &n)) {
                jw_obj(w, NULL);
                write_failure(w, &f);
                jw_end_obj(w);
        }
        for (unsigned i = 0; i < n && i < INVENTORY_MIG_MAX; i++) {
                nvml_device_t mig = NULL;
                int code = l->mig_by_index ? l->mig_by_index(gpu, i, &mig) : NVML_FUNCTION_NOT_FOUND;
                if (code == NVML_NOT_FOUND || code == NVML_INVALID_ARGUMENT)
                        continue; /* this place has no MIG device */
                if (code == NVML_OK) {
                        write_mig(l, gpu, mig, w);
                        continue;
                }
                jw_obj(w, NULL);
                write_failure(w, &(struct failure){ "nvmlDeviceGetMigDeviceHandleByIndex", code });
                jw_end_obj(w);
        }
        jw_end_arr(w);
        if (n > INVENTORY_MIG_MAX)
                jw_int(w, "migMore", (int64_t)n - INVENTORY_MIG_MAX);
}

struct gpu_answer {
        char uuid[TEXT_SIZE], name[TEXT_SIZE], pci[TEXT_SIZE];
        unsigned minor, architecture, mig_mode;
        int brand, cc[2], persistence_mode; /* -1: unknown */
        uint64_t memory;
        const char *addressing_mode;
};

static uint64_t ask_memory(const struct nvml_library *l, nvml_device_t dev, struct failure *f) {
        NVML_ROOM(struct nvml_memory) old = { 0 };
        NVML_ROOM(struct nvml_memory_v2) info = { .v.version = NVML_MEMORY_V2 };
        if (l->memory)
                return TOLD(f, l, memory, "nvmlDeviceGetMemoryInfo", dev, &old.v) ? old.v.total : 0;
        return TOLD(f, l, memory_v2, "nvmlDeviceGetMemoryInfo_v2", dev, &info.v) ? info.v.total : 0;
}

static const char *ask_addressing_mode(const struct nvml_library *l, nvml_device_t dev, struct failure *f) {
        static const char *const names[] = { "None", "HMM", "ATS" };
        NVML_ROOM(struct nvml_addressing_mode) mode = { .v.version = NVML_ADDRESSING_MODE_V1 };
        if (!TOLD(f, l, addressing_mode, "nvmlDeviceGetAddressingMode", dev, &mode.v) || mode.v.value > 2)
                return NULL;
        return names[mode.v.value];
}

static void ask_gpu(const struct nvml_library *l, nvml_device_t dev, struct failure *f,
                    struct gpu_answer *r) {
        NVML_ROOM(struct nvml_pci_info) pci = { 0 };
        unsigned pending = 0;
        if (!NEEDED(f, l, uuid, "nvmlDeviceGetUUID", dev, r->uuid, sizeof r->uuid) ||
            !NEEDED(f, l, minor, "nvmlDeviceGetMinorNumber", dev, &r->minor))
                return;
        if (!TOLD(f, l, name, "nvmlDeviceGetName", dev, r->name, sizeof r->name))
                r->name[0] = '\0';
        if (!TOLD(f, l, brand, "nvmlDeviceGetBrand", dev, &r->brand))
                r->brand = 0;
        if (!TOLD(f, l, architecture, "nvmlDeviceGetArchitecture", dev, &r->architecture))
                r->architecture = 0;
        if (!TOLD(f, l, compute_capability, "nvmlDeviceGetCudaComputeCapability", dev, &r->cc[0], &r->cc[1]))
                r->cc[0] = -1;
        if (TOLD(f, l, pci, "nvmlDeviceGetPciInfo_v3", dev, &pci.v))
                memcpy(r->pci, pci.v.bus_id, sizeof pci.v.bus_id);
        r->memory = ask_memory(l, dev, f);
        r->addressing_mode = ask_addressing_mode(l, dev, f);
        if (!TOLD(f, l, persistence_mode, "nvmlDeviceGetPersistenceMode", dev, &r->persistence_mode))
                r->persistence_mode = -1;
        if (!TOLD(f, l, mig_mode, "nvmlDeviceGetMigMode", dev, &r->mig_mode, &pending))
                r->mig_mode = 0;
        nvml_library_clean(r->uuid, sizeof r->uuid);
        nvml_library_clean(r->name, sizeof r->name);
        nvml_library_clean(r->pci, sizeof r->pci);
}

static void write_gpu(const struct nvml_library *l, unsigned index, struct jw *w) {
        struct failure f = { 0 };
        struct gpu_answer r = { 0 };
        nvml_device_t dev = NULL;
        if (needed(&f, "nvmlDeviceGetHandleByIndex", l->by_index(index, &dev)))
                ask_gpu(l, dev, &f, &r);
        jw_obj(w, NULL);
        jw_int(w, "index", index);
        if (r.uuid[0])
                jw_str(w, "uuid", r.uuid);
        if (f.call) {
                write_failure(w, &f);
                jw_end_obj(w);
                return;
        }
        jw_int(w, "minor", r.minor);
        if (r.name[0])
                jw_str(w, "name", r.name);
        jw_int(w, "brand", r.brand);
        jw_int(w, "architecture", r.architecture);
        if (r.cc[0] >= 0)
                jw_strf(w, "cc", "%d.%d", r.cc[0], r.cc[1]);
        if (r.memory && r.memory <= INT64_MAX)
                jw_int(w, "memory", (int64_t)r.memory);
        if (r.pci[0])
                jw_str(w, "pci", r.pci);
        if (r.addressing_mode)
                jw_str(w, "addressingMode", r.addressing_mode);
        if (r.persistence_mode == 0)
                jw_bool(w, "persistenceOff", true);
        jw_int(w, "migMode", r.mig_mode);
        if (r.mig_mode == 1)
                write_migs(l, dev, w);
        jw_end_obj(w);
}

int nvml_survey_inventory(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                          struct err *e) {
        char version[TEXT_SIZE] = "";
        unsigned n;
        int cuda = 0;
        if (nvml_library_check(l, "nvmlSystemGetDriverVersion", l->driver_version(version, sizeof version),
                               e) < 0 ||
            count_gpus(l, INVENTORY_GPUS_MAX, &n, e) < 0)
                return -1;
        nvml_library_clean(version, sizeof version);
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_str(&w, "driverVersion", version);
        if (l->cuda_version && l->cuda_version(&cuda) == NVML_OK)
                jw_int(&w, "cudaDriverVersion", cuda);
        jw_arr(&w, "gpus");
        for (unsigned i = 0; i < n; i++) {
                p->gpu(p->u, i);
                write_gpu(l, i, &w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        return 0;
}
