/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the NVML stand-in share. */
#ifndef STANDIN_NVML_H
#define STANDIN_NVML_H

#include <stdbool.h>

#include "conf.h"

#define EXPORT __attribute__((visibility("default")))

enum {
        NVML_SUCCESS = 0,
        NVML_ERROR_UNINITIALIZED = 1,
        NVML_ERROR_INVALID_ARGUMENT = 2,
        NVML_ERROR_NOT_SUPPORTED = 3,
        NVML_ERROR_NOT_FOUND = 6,
        NVML_ERROR_INSUFFICIENT_SIZE = 7,
        NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
};
enum { MAX_GPUS = 64 };

typedef int nvmlReturn_t;

struct device {
        unsigned index;
};
typedef struct device *nvmlDevice_t;

#define NVML_VERSIONED(type, number) ((unsigned)(sizeof(type) | ((number) << 24U)))

/* A key of one GPU ("GPU1_CLIQUE_ID") before the node's ("CLIQUE_ID"). */
const char *gpu_text(unsigned gpu, const char *key, const char *otherwise);
long gpu_number(unsigned gpu, const char *key, long otherwise);
nvmlReturn_t put_text(const char *text, char *out, unsigned length);

nvmlReturn_t injected(unsigned gpu, const char *call);
/* What every call on a device checks first. */
nvmlReturn_t check_call(nvmlDevice_t device, const void *out, const char *call);
#define check(device, out) check_call((device), (out), __func__)

/* nvml_mig.c: handles of MIG devices are none of a GPU's. */
bool is_mig(nvmlDevice_t device);
nvmlReturn_t mig_uuid(nvmlDevice_t device, char *uuid, unsigned length);

#endif
