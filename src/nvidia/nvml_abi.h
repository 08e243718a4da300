/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_abi: declares the part of NVML that this driver calls: names, numbers and the layout of structs. The
 * declarations follow the public documentation of nvml.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
        NVML_OK = 0,
        NVML_INVALID_ARGUMENT = 2,
        NVML_NOT_SUPPORTED = 3,
        NVML_NOT_FOUND = 6,
        NVML_DRIVER_NOT_LOADED = 9,
        NVML_TIMEOUT = 10,
        NVML_LIBRARY_NOT_FOUND = 12,
        NVML_FUNCTION_NOT_FOUND = 13,
        NVML_GPU_IS_LOST = 15,
        NVML_VERSION_MISMATCH = 18,
};
enum { NVML_INIT_FLAG_NO_GPUS = 1 };

typedef struct nvml_device *nvml_device_t;
typedef struct nvml_gpu_instance *nvml_gpu_instance_t;
typedef struct nvml_compute_instance *nvml_compute_instance_t;
typedef struct nvml_event_set *nvml_event_set_t;

/* A struct that is passed to NVML, with additional space, because a newer library may write more than the
 * struct. */
#define NVML_ROOM(type)                                                                                      \
        union {                                                                                              \
                type v;                                                                                      \
                unsigned char room[512];                                                                     \
        }
#define NVML_VERSION(size, number) ((uint32_t)(size) | (uint32_t)(number) << 24U)

struct nvml_fabric_info {
        uint8_t cluster_uuid[16];
        int32_t status;
        uint32_t clique_id;
        uint8_t state;
};

struct nvml_fabric_info_v2 {
        uint32_t version;
        uint8_t cluster_uuid[16];
        int32_t status;
        uint32_t clique_id;
        uint8_t state;
        uint32_t health_mask;
};
#define NVML_FABRIC_INFO_V2 NVML_VERSION(36, 2)

struct nvml_pci_info {
        char bus_id_legacy[16];
        uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
        char bus_id[32];
};

struct nvml_memory {
        uint64_t total, free, used;
};
struct nvml_memory_v2 {
        uint32_t version;
        uint64_t total, reserved, free, used;
};
#define NVML_MEMORY_V2 NVML_VERSION(40, 2)

struct nvml_addressing_mode {
        uint32_t version, value;
};
#define NVML_ADDRESSING_MODE_V1 NVML_VERSION(8, 1)

struct nvml_gpu_instance_info {
        nvml_device_t device;
        uint32_t id, profile_id, start, size;
};

struct nvml_compute_instance_info {
        nvml_device_t device;
        nvml_gpu_instance_t gpu_instance;
        uint32_t id, profile_id, start, size;
};

struct nvml_gpu_instance_profile {
        uint32_t id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
        uint64_t memory_mib;
};
struct nvml_gpu_instance_profile_v2 {
        uint32_t version, id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg,
                ofa;
        uint64_t memory_mib;
        char name[96];
};
#define NVML_GPU_INSTANCE_PROFILE_V2 NVML_VERSION(152, 2)

struct nvml_compute_instance_profile {
        uint32_t id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
};

/* A bit of nvmlEventType... */
#define NVML_EVENT_XID UINT64_C(8)
/* The value of gpu_instance and compute_instance if the event concerns the whole GPU, or if NVML does not
 * name the instance. */
#define NVML_NO_INSTANCE UINT32_MAX

struct nvml_event_data {
        nvml_device_t device;
        uint64_t type, data; /* for an XID event, data is the XID */
        uint32_t gpu_instance, compute_instance;
};

_Static_assert(sizeof(struct nvml_event_data) == 32, "nvmlEventData_t");
_Static_assert(sizeof(struct nvml_fabric_info_v2) == 36, "nvmlGpuFabricInfo_v2_t");
_Static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct nvml_addressing_mode) == 8, "nvmlDeviceAddressingMode_v1_t");
_Static_assert(sizeof(struct nvml_gpu_instance_info) == 24, "nvmlGpuInstanceInfo_t");
_Static_assert(sizeof(struct nvml_compute_instance_info) == 32, "nvmlComputeInstanceInfo_t");
_Static_assert(sizeof(struct nvml_gpu_instance_profile) == 48, "nvmlGpuInstanceProfileInfo_t");
_Static_assert(sizeof(struct nvml_gpu_instance_profile_v2) == 152, "nvmlGpuInstanceProfileInfo_v2_t");
_Static_assert(sizeof(struct nvml_compute_instance_profile) == 36, "nvmlComputeInstanceProfileInfo_t");
