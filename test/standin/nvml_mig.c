/* SPDX-License-Identifier: Apache-2.0 */
/* MIG devices: GPU<i>_MIG="3g@0 1g+me@4 1c.2g@5" lists those of a GPU, in the order of their instances: each
 * is a profile and the start of its memory. GPU<i>_MIG_MODE=1 is MIG mode without devices. The numbers of a
 * profile are those of a Hopper GPU; its memory is a part of the GPU's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"

enum { SLOTS = 8, GI_FIRST = 1 };
/* The minor number of a GPU instance's device; that of its compute instance is the next one. */
#define CAPABILITY(gpu, gi) (1 + 64 * (gpu) + 8 * (gi))

static const struct profile {
        const char *name;
        unsigned number; /* NVML_GPU_INSTANCE_PROFILE_* */
        unsigned id, slices, size, eighths, sm, ce, dec, jpeg, ofa, instances;
} profiles[] = {
        { "1g", 0, 19, 1, 1, 1, 16, 1, 1, 1, 0, 7 },      { "1g+me", 7, 20, 1, 1, 1, 16, 1, 1, 1, 1, 1 },
        { "1g.2", 9, 15, 1, 2, 2, 26, 1, 1, 1, 0, 4 },    { "2g", 1, 14, 2, 2, 2, 32, 2, 2, 2, 0, 3 },
        { "3g", 2, 9, 3, 4, 4, 60, 3, 3, 3, 0, 2 },       { "4g", 3, 5, 4, 4, 4, 64, 4, 4, 4, 0, 1 },
        { "7g", 4, 0, 7, 8, 8, 132, 8, 7, 7, 1, 1 },      { "1g+gfx", 10, 47, 1, 1, 1, 16, 1, 1, 1, 0, 4 },
        { "5g+new", 20, 60, 5, 5, 5, 80, 5, 5, 5, 0, 1 },
};
/* NVML_COMPUTE_INSTANCE_PROFILE_*: its slices and its id. */
static const struct {
        unsigned slices, id;
} compute[] = { { 1, 0 }, { 2, 1 }, { 3, 2 }, { 4, 3 }, { 7, 4 }, { 8, 5 }, { 6, 6 }, { 5, 8 } };

/* nvmlGpuInstanceInfo_t, nvmlComputeInstanceInfo_t and the structs of profiles */
struct gi_info {
        nvmlDevice_t device;
        unsigned id, profile_id, start, size;
};
struct ci_info {
        nvmlDevice_t device;
        void *gpu_instance;
        unsigned id, profile_id, start, size;
};
struct gi_profile {
        unsigned id, p2p, slices, instances, sm, ce, dec, enc, jpeg, ofa;
        unsigned long long memory_mib;
};
struct gi_profile_v2 {
        unsigned version, id, p2p, slices, instances, sm, ce, dec, enc, jpeg, ofa;
        unsigned long long memory_mib;
        char name[96];
};
struct ci_profile {
        unsigned id, slices, instances, sm, ce, dec, enc, jpeg, ofa;
};

/* The device, its GPU instance and its compute instance have one handle. */
struct mig {
        struct device device; /* first: a handle is a device, too; the index is that of the GPU */
        nvmlDevice_t gpu;
        unsigned slot, start, compute_slices;
        const struct profile *profile;
};
static struct mig migs[MAX_GPUS][SLOTS];

bool is_mig(nvmlDevice_t device) {
        return (char *)device >= (char *)migs && (char *)device < (char *)migs + sizeof(migs);
}

static struct mig *mig_of(const void *handle) {
        return is_mig((nvmlDevice_t)(uintptr_t)handle) ? (struct mig *)(uintptr_t)handle : NULL;
}

static const struct profile *find(const char *name, size_t n) {
        for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
                if (strlen(profiles[i].name) == n && strncmp(profiles[i].name, name, n) == 0)
                        return &profiles[i];
        return NULL;
}

/* The MIG device with this number on a GPU, from the configuration. */
static struct mig *fill(nvmlDevice_t gpu, unsigned slot) {
        const char *text = gpu_text(gpu->index, "MIG", "");
        struct mig *m = &migs[gpu->index][slot];

        for (unsigned i = 0; *text; i++) {
                size_t n = strcspn(text, " ");
                const char *at = memchr(text, '@', n), *name = text;
                unsigned c = 0;

                if (i == slot && at) {
                        if (at - text > 3 && text[1] == 'c' && text[2] == '.') {
                                c = (unsigned)(text[0] - '0');
                                name += 3;
                        }
                        *m = (struct mig){ { gpu->index },         gpu, slot,
                                           (unsigned)atoi(at + 1), c,   find(name, (size_t)(at - name)) };
                        if (!m->profile)
                                return NULL;
                        if (!c)
                                m->compute_slices = m->profile->slices;
                        return m;
                }
                text += n + (text[n] == ' ');
        }
        return NULL;
}

nvmlDevice_t gpu_of(nvmlDevice_t device) {
        return is_mig(device) ? mig_of(device)->gpu : device;
}

nvmlReturn_t mig_uuid(nvmlDevice_t device, char *uuid, unsigned length) {
        struct mig *m = mig_of(device);
        char text[64];

        snprintf(text, sizeof(text), "MIG-%08x-5a5a-4c4c-9d9d-%04lx%08x", m->gpu->index,
                 gpu_number(m->gpu->index, "MIG_CREATED", 0) & 0xffff, m->slot);
        return put_text(text, uuid, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending);
EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
        nvmlReturn_t bad = check(device, current);

        if (bad)
                return bad;
        *current = *pending =
                (unsigned)gpu_number(device->index, "MIG_MODE", gpu_text(device->index, "MIG", NULL) != NULL);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count);
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
        nvmlReturn_t bad = check(device, count);

        if (!bad)
                *count = 7;
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned i, nvmlDevice_t *mig);
EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned i, nvmlDevice_t *mig) {
        nvmlReturn_t bad = check(device, mig);
        struct mig *m;

        if (bad)
                return bad;
        m = i < SLOTS ? fill(device, i) : NULL;
        if (!m || !in_sight("/dev/nvidia-caps/nvidia-cap", CAPABILITY(device->index, i + GI_FIRST)))
                return NVML_ERROR_NOT_FOUND;
        *mig = &m->device;
        return NVML_SUCCESS;
}

static nvmlReturn_t check_mig(const void *handle, const void *out, const char *call) {
        struct mig *m = mig_of(handle);

        return m ? check_call(m->gpu, out, call) : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id);
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id) {
        nvmlReturn_t bad = check_mig(device, id, __func__);

        if (!bad)
                *id = mig_of(device)->slot + GI_FIRST;
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id);
EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id) {
        nvmlReturn_t bad = check_mig(device, id, __func__);

        if (!bad)
                *id = 0;
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id, void **instance);
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id, void **instance) {
        nvmlReturn_t bad = check(device, instance);
        struct mig *m;

        if (bad)
                return bad;
        m = id >= GI_FIRST && id < GI_FIRST + SLOTS ? fill(device, id - GI_FIRST) : NULL;
        if (!m)
                return NVML_ERROR_NOT_FOUND;
        *instance = m;
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(void *instance, struct gi_info *info);
EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(void *instance, struct gi_info *info) {
        nvmlReturn_t bad = check_mig(instance, info, __func__);
        struct mig *m = mig_of(instance);

        if (!bad)
                *info = (struct gi_info){ m->gpu, m->slot + GI_FIRST, m->profile->id, m->start,
                                          m->profile->size };
        return bad;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(void *instance, unsigned id,
                                                          void **compute_instance);
EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(void *instance, unsigned id,
                                                          void **compute_instance) {
        nvmlReturn_t bad = check_mig(instance, compute_instance, __func__);

        if (bad)
                return bad;
        if (id)
                return NVML_ERROR_NOT_FOUND;
        *compute_instance = instance;
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(void *instance, struct ci_info *info);
EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(void *instance, struct ci_info *info) {
        nvmlReturn_t bad = check_mig(instance, info, __func__);
        struct mig *m = mig_of(instance);

        if (bad)
                return bad;
        for (size_t i = 0; i < sizeof(compute) / sizeof(*compute); i++)
                if (compute[i].slices == m->compute_slices)
                        *info = (struct ci_info){ m->gpu, m, 0, compute[i].id, 0, m->compute_slices };
        return NVML_SUCCESS;
}

static void describe(nvmlDevice_t device, const struct profile *p, struct gi_profile *ret) {
        /* The driver uses a part of it. */
        unsigned long long all = (unsigned long long)gpu_number(device->index, "MEMORY_MIB", 189471);

        *ret = (struct gi_profile){ p->id,
                                    0,
                                    p->slices,
                                    p->instances,
                                    p->sm,
                                    p->ce,
                                    p->dec,
                                    0,
                                    p->jpeg,
                                    p->ofa,
                                    all * p->eighths / 8 - 256 };
}

static const struct profile *by_number(unsigned number) {
        for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
                if (profiles[i].number == number)
                        return &profiles[i];
        return NULL;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned number,
                                                        struct gi_profile *info);
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned number,
                                                        struct gi_profile *info) {
        nvmlReturn_t bad = check(device, info);

        if (bad)
                return bad;
        if (!by_number(number))
                return number < 18 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
        describe(device, by_number(number), info);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned number,
                                                         struct gi_profile_v2 *info);
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned number,
                                                         struct gi_profile_v2 *info) {
        nvmlReturn_t bad = check(device, info);
        struct gi_profile p;

        if (bad)
                return bad;
        if (info->version != NVML_VERSIONED(struct gi_profile_v2, 2))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (!by_number(number))
                return NVML_ERROR_NOT_SUPPORTED;
        describe(device, by_number(number), &p);
        *info = (struct gi_profile_v2){ info->version, p.id,  p.p2p,  p.slices, p.instances,  p.sm, p.ce,
                                        p.dec,         p.enc, p.jpeg, p.ofa,    p.memory_mib, "" };
        snprintf(info->name, sizeof(info->name), "MIG %s.%llugb", by_number(number)->name,
                 p.memory_mib / 1024);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(void *instance, unsigned number,
                                                                 unsigned engine, struct ci_profile *info);
EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(void *instance, unsigned number,
                                                                 unsigned engine, struct ci_profile *info) {
        nvmlReturn_t bad = check_mig(instance, info, __func__);

        if (bad)
                return bad;
        if (engine || number >= sizeof(compute) / sizeof(*compute) ||
            compute[number].slices > mig_of(instance)->profile->slices)
                return NVML_ERROR_NOT_SUPPORTED;
        *info = (struct ci_profile){ .id = compute[number].id, .slices = compute[number].slices };
        return NVML_SUCCESS;
}
