/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_library: loads a libnvidia-ml.so.1 and gives access to its functions. Only the worker process may use
 * this module, because every call may hang or crash. */
#pragma once

#include "base/err.h"
#include "nvidia/nvml_abi.h"

/* The functions. A pointer is NULL if the library has the function neither under its current name nor under
 * an older one. */
struct nvml_library {
        int (*init_with_flags)(unsigned);
        int (*init)(void);
        int (*shutdown)(void);
        const char *(*error_string)(int);
        int (*driver_version)(char *, unsigned);
        int (*cuda_version)(int *);
        int (*count)(unsigned *);
        int (*by_index)(unsigned, nvml_device_t *);
        int (*name)(nvml_device_t, char *, unsigned);
        int (*uuid)(nvml_device_t, char *, unsigned);
        int (*minor)(nvml_device_t, unsigned *);
        int (*brand)(nvml_device_t, int *);
        int (*architecture)(nvml_device_t, unsigned *);
        int (*compute_capability)(nvml_device_t, int *, int *);
        int (*pci)(nvml_device_t, struct nvml_pci_info *);
        int (*memory)(nvml_device_t, struct nvml_memory *);
        int (*memory_v2)(nvml_device_t, struct nvml_memory_v2 *);
        int (*addressing_mode)(nvml_device_t, struct nvml_addressing_mode *);
        int (*fabric)(nvml_device_t, struct nvml_fabric_info *);
        int (*fabric_v)(nvml_device_t, struct nvml_fabric_info_v2 *);
        int (*persistence_mode)(nvml_device_t, int *);
        int (*mig_mode)(nvml_device_t, unsigned *, unsigned *);
        int (*mig_max)(nvml_device_t, unsigned *);
        int (*mig_by_index)(nvml_device_t, unsigned, nvml_device_t *);
        int (*mig_gi)(nvml_device_t, unsigned *);
        int (*mig_ci)(nvml_device_t, unsigned *);
        int (*gi_by_id)(nvml_device_t, unsigned, nvml_gpu_instance_t *);
        int (*gi_info)(nvml_gpu_instance_t, struct nvml_gpu_instance_info *);
        int (*gi_profile)(nvml_device_t, unsigned, struct nvml_gpu_instance_profile *);
        int (*gi_profile_v)(nvml_device_t, unsigned, struct nvml_gpu_instance_profile_v2 *);
        int (*ci_by_id)(nvml_gpu_instance_t, unsigned, nvml_compute_instance_t *);
        int (*ci_info)(nvml_compute_instance_t, struct nvml_compute_instance_info *);
        int (*ci_profile)(nvml_gpu_instance_t, unsigned, unsigned, struct nvml_compute_instance_profile *);
        int (*event_set_create)(nvml_event_set_t *);
        int (*event_set_wait)(nvml_event_set_t, struct nvml_event_data *, unsigned);
        int (*event_set_wait_v2)(nvml_event_set_t, struct nvml_event_data *, unsigned);
        int (*event_types)(nvml_device_t, uint64_t *);
        int (*register_events)(nvml_device_t, uint64_t, nvml_event_set_t);
};

/* A value of err.code. NVML's own error numbers are positive. */
enum { NVML_CANNOT_LOAD = -1 };

/* Loads the library. It stays loaded until the process ends. ERR_NOT_FOUND with the code NVML_CANNOT_LOAD:
 * the library does not exist, or a library that it needs is missing. ERR_INVALID: the file is not such a
 * library. */
int nvml_library_load(const char *path, struct nvml_library *ret, struct err *e);

/* Returns 0 if `code` is NVML_OK. Otherwise sets an error with the call, the code and NVML's text for the
 * code. */
int nvml_library_check(const struct nvml_library *l, const char *call, int code, struct err *e);

/* A callback that is called before each query of a GPU, because the query may take long. */
struct nvml_progress {
        void (*gpu)(void *u, unsigned index);
        void *u;
};

/* Converts the bytes that a library wrote to printable, NUL-terminated ASCII text. */
void nvml_library_clean(char *text, size_t size);

/* Begin and end a session, which opens the driver's device files. While it is open, the driver cannot be
 * unloaded, and MIG mode cannot be changed. */
int nvml_library_begin(const struct nvml_library *l, struct err *e);
void nvml_library_end(const struct nvml_library *l);
