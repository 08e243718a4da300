/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define SYMBOL(member, ...)                                                                                  \
        {                                                                                                    \
                offsetof(struct nvml_library, member), {                                                     \
                        __VA_ARGS__                                                                          \
                }                                                                                            \
        }

/* The current name, then the name in older libraries. */
static const struct {
        size_t at;
        const char *names[2];
} symbols[] = {
        SYMBOL(init_with_flags, "nvmlInitWithFlags"),
        SYMBOL(init, "nvmlInit_v2", "nvmlInit"),
        SYMBOL(shutdown, "nvmlShutdown"),
        SYMBOL(error_string, "nvmlErrorString"),
        SYMBOL(driver_version, "nvmlSystemGetDriverVersion"),
        /* The older name first: the newer function queries libcuda and may return another version. */
        SYMBOL(cuda_version, "nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"),
        SYMBOL(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
        SYMBOL(by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
        SYMBOL(name, "nvmlDeviceGetName"),
        SYMBOL(uuid, "nvmlDeviceGetUUID"),
        SYMBOL(minor, "nvmlDeviceGetMinorNumber"),
        SYMBOL(brand, "nvmlDeviceGetBrand"),
        SYMBOL(architecture, "nvmlDeviceGetArchitecture"),
        SYMBOL(compute_capability, "nvmlDeviceGetCudaComputeCapability"),
        SYMBOL(pci, "nvmlDeviceGetPciInfo_v3"),
        SYMBOL(memory, "nvmlDeviceGetMemoryInfo"),
        SYMBOL(memory_v2, "nvmlDeviceGetMemoryInfo_v2"),
        SYMBOL(addressing_mode, "nvmlDeviceGetAddressingMode"),
        SYMBOL(fabric, "nvmlDeviceGetGpuFabricInfo"),
        SYMBOL(fabric_v, "nvmlDeviceGetGpuFabricInfoV"),
        SYMBOL(persistence_mode, "nvmlDeviceGetPersistenceMode"),
        SYMBOL(mig_mode, "nvmlDeviceGetMigMode"),
        SYMBOL(mig_max, "nvmlDeviceGetMaxMigDeviceCount"),
        SYMBOL(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex"),
        SYMBOL(mig_gi, "nvmlDeviceGetGpuInstanceId"),
        SYMBOL(mig_ci, "nvmlDeviceGetComputeInstanceId"),
        SYMBOL(gi_by_id, "nvmlDeviceGetGpuInstanceById"),
        SYMBOL(gi_info, "nvmlGpuInstanceGetInfo"),
        SYMBOL(gi_profile, "nvmlDeviceGetGpuInstanceProfileInfo"),
        SYMBOL(gi_profile_v, "nvmlDeviceGetGpuInstanceProfileInfoV"),
        SYMBOL(ci_by_id, "nvmlGpuInstanceGetComputeInstanceById"),
        SYMBOL(ci_info, "nvmlComputeInstanceGetInfo_v2", "nvmlComputeInstanceGetInfo"),
        SYMBOL(ci_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo"),
        SYMBOL(event_set_create, "nvmlEventSetCreate"),
        SYMBOL(event_set_wait, "nvmlEventSetWait"),
        SYMBOL(event_set_wait_v2, "nvmlEventSetWait_v2"),
        SYMBOL(event_types, "nvmlDeviceGetSupportedEventTypes"),
        SYMBOL(register_events, "nvmlDeviceRegisterEvents"),
};

int nvml_library_load(const char *path, struct nvml_library *ret, struct err *e) {
        void *lib = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
        if (!lib) {
                const char *why = dlerror();
                return err_set(e, ERR_NOT_FOUND, NVML_CANNOT_LOAD, "cannot load '%s': %s", path,
                               str_or(why, "unknown error"));
        }
        *ret = (struct nvml_library){ 0 };
        for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
                void *symbol = dlsym(lib, symbols[i].names[0]);
                if (!symbol && symbols[i].names[1])
                        symbol = dlsym(lib, symbols[i].names[1]);
                memcpy((char *)ret + symbols[i].at, &symbol, sizeof symbol);
        }
        if ((!ret->init_with_flags && !ret->init) || !ret->driver_version || !ret->count || !ret->by_index)
                return err_set(e, ERR_INVALID, NVML_CANNOT_LOAD, "'%s' lacks functions of NVML", path);
        return 0;
}

int nvml_library_check(const struct nvml_library *l, const char *call, int code, struct err *e) {
        if (code == NVML_OK)
                return 0;
        const char *text = l->error_string ? l->error_string(code) : NULL;
        return err_set(e, ERR_RETRY, code, "%s: NVML error %d (%s)", call, code, str_or(text, "no text"));
}

void nvml_library_clean(char *text, size_t size) {
        text[size - 1] = '\0';
        for (; *text; text++)
                if (*text < 0x20 || *text > 0x7e)
                        *text = '?';
}

/* A node that has lost all its GPUs is a result, not an error. */
int nvml_library_begin(const struct nvml_library *l, struct err *e) {
        int code = l->init_with_flags ? l->init_with_flags(NVML_INIT_FLAG_NO_GPUS) : l->init();
        return nvml_library_check(l, "nvmlInit", code, e);
}

void nvml_library_end(const struct nvml_library *l) {
        if (l->shutdown)
                l->shutdown();
}
