/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a GPU, except its name, its place and its fabric. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "nvml.h"

/* nvmlMemory_t and nvmlMemory_v2_t */
struct memory {
        unsigned long long total, free, used;
};
struct memory_v2 {
        unsigned version;
        unsigned long long total, reserved, free, used;
};
/* nvmlDeviceAddressingMode_v1_t */
struct addressing_mode {
        unsigned version, value;
};

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
        return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, int *brand);
EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, int *brand) {
        nvmlReturn_t bad = check(device, brand);

        if (!bad)
                *brand = (int)gpu_number(device->index, "BRAND", 14);
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture);
EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture) {
        nvmlReturn_t bad = check(device, architecture);

        if (!bad)
                *architecture = (unsigned)gpu_number(device->index, "ARCHITECTURE", 10);
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
        nvmlReturn_t bad = check(device, major);
        long capability;

        if (bad)
                return bad;
        capability = gpu_number(device->index, "COMPUTE_CAPABILITY", 100);
        *major = (int)(capability / 10);
        *minor = (int)(capability % 10);
        return NVML_SUCCESS;
}

static unsigned long long memory(nvmlDevice_t device) {
        return (unsigned long long)gpu_number(device->index, "MEMORY_MIB", 189471) << 20;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *info);
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *info) {
        nvmlReturn_t bad = check(device, info);

        if (bad)
                return bad;
        if (!memory(device))
                return NVML_ERROR_NOT_SUPPORTED; /* as on GPUs that share the memory of the host */
        *info = (struct memory){ .total = memory(device), .free = memory(device) };
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *info);
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *info) {
        nvmlReturn_t bad = check(device, info);

        if (bad)
                return bad;
        if (info->version != NVML_VERSIONED(struct memory_v2, 2))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (!memory(device))
                return NVML_ERROR_NOT_SUPPORTED;
        info->total = info->free = memory(device);
        info->reserved = info->used = 0;
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, struct addressing_mode *mode);
EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, struct addressing_mode *mode) {
        nvmlReturn_t bad = check(device, mode);
        long value;

        if (bad)
                return bad;
        if (mode->version != NVML_VERSIONED(struct addressing_mode, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        value = gpu_number(device->index, "ADDRESSING_MODE", 2);
        if (value < 0)
                return NVML_ERROR_NOT_SUPPORTED;
        mode->value = (unsigned)value;
        return NVML_SUCCESS;
}
