/* SPDX-License-Identifier: Apache-2.0 */
/* libnvidia-ml.so.1: the part of NVML that a driver management program calls.
 *
 * Names, numbers and struct layouts are those of the public nvml.h. The facts come from libnvidia-ml.conf
 * beside the library. Every initialization reads it again, so a test can change a running node. As in the
 * real library, initializations are counted, and all other calls before the first or after the last shutdown
 * fail with NVML_ERROR_UNINITIALIZED.
 *
 * A container has the library without the file. There the facts come from the library's extended attribute,
 * and only GPUs whose device nodes exist are shown. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "nvml.h"

enum { NVML_INIT_FLAG_NO_GPUS = 1, NVML_INIT_FLAG_NO_ATTACH = 2 };

/* nvmlGpuFabricInfo_t */
struct fabric_v1 {
        unsigned char cluster_uuid[16];
        nvmlReturn_t status;
        unsigned clique_id;
        unsigned char state;
};
/* nvmlGpuFabricInfo_v2_t */
struct fabric_v2 {
        unsigned version;
        unsigned char cluster_uuid[16];
        nvmlReturn_t status;
        unsigned clique_id;
        unsigned char state;
        unsigned health_mask;
};
/* nvmlGpuFabricInfo_v3_t */
struct fabric_v3 {
        unsigned version;
        unsigned char cluster_uuid[16];
        nvmlReturn_t status;
        unsigned clique_id;
        unsigned char state;
        unsigned health_mask;
        unsigned char health_summary;
};
/* nvmlPciInfo_t */
struct pci_info {
        char bus_id_legacy[16];
        unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
        char bus_id[32];
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct conf conf;
static struct device devices[MAX_GPUS];
static char folder[PATH_MAX]; /* the folder of the library */
static bool contained;
static unsigned shown[MAX_GPUS], n_shown; /* the numbers of the visible GPUs */

/* The key of the GPU ("GPU1_CLIQUE_ID") takes precedence over that of the node ("CLIQUE_ID"). */
const char *gpu_text(unsigned gpu, const char *key, const char *otherwise) {
        char own[64];

        snprintf(own, sizeof(own), "GPU%u_%s", gpu, key);
        return conf_text(&conf, own, conf_text(&conf, key, otherwise));
}

long gpu_number(unsigned gpu, const char *key, long otherwise) {
        char own[64];

        snprintf(own, sizeof(own), "GPU%u_%s", gpu, key);
        return conf_number(&conf, own, conf_number(&conf, key, otherwise));
}

static unsigned all_gpus(void) {
        long n = conf_number(&conf, "GPU_COUNT", 4);

        return n < 0 ? 0 : n > MAX_GPUS ? MAX_GPUS : (unsigned)n;
}

bool in_sight(const char *node, unsigned number) {
        char path[64];

        snprintf(path, sizeof(path), "%s%u", node, number);
        return !contained || access(path, F_OK) == 0;
}

static void look(void) {
        n_shown = 0;
        for (unsigned i = 0; i < all_gpus(); i++)
                if (in_sight("/dev/nvidia", (unsigned)gpu_number(i, "MINOR", i)))
                        shown[n_shown++] = i;
}

/* The extended attribute of the container's copy of the library. */
static void load_attribute(const char *library) {
        char *text = calloc(1, 4097);

        if (!text)
                abort();
        (void)!getxattr(library, CONF_XATTR, text, 4096);
        conf_parse(&conf, text);
}

static void load(void) {
        char path[PATH_MAX];
        Dl_info self;
        const char *slash;

        conf_done(&conf);
        if (!dladdr(devices, &self) || !self.dli_fname || !(slash = strrchr(self.dli_fname, '/')))
                return;
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - self.dli_fname), self.dli_fname);
        snprintf(path, sizeof(path), "%.*s/libnvidia-ml.conf", (int)(slash - self.dli_fname), self.dli_fname);
        contained = conf_load(&conf, path) == -ENOENT && getxattr(self.dli_fname, CONF_XATTR, NULL, 0) > 0;
        if (contained)
                load_attribute(self.dli_fname);
}

const char *nvml_folder(void) {
        return folder;
}

nvmlDevice_t nvml_device(unsigned gpu) {
        return &devices[gpu];
}

void nvml_crash(void) {
        const struct rlimit no_core = { 0, 0 };

        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
}

/* Writes a line when a session begins and when it ends, if a test has created the file for it. */
static void record(const char *what) {
        char path[PATH_MAX + 32];
        FILE *f;

        snprintf(path, sizeof(path), "%s/libnvidia-ml.sessions", folder);
        if (access(path, W_OK) == 0 && (f = fopen(path, "a"))) {
                fprintf(f, "%s\n", what);
                fclose(f);
        }
}

/* A test can make a call fail, hang or crash, on all GPUs or on one. */
nvmlReturn_t injected(unsigned gpu, const char *call) {
        char key[96];

        snprintf(key, sizeof(key), "CRASH_%s", call);
        if (gpu_number(gpu, key, 0))
                nvml_crash();
        snprintf(key, sizeof(key), "SLEEP_MS_%s", call);
        usleep((useconds_t)gpu_number(gpu, key, 0) * 1000);
        snprintf(key, sizeof(key), "HANG_%s", call);
        while (gpu_number(gpu, key, 0))
                pause();
        snprintf(key, sizeof(key), "FAIL_%s", call);
        return (nvmlReturn_t)gpu_number(gpu, key, NVML_SUCCESS);
}

static nvmlReturn_t init(void) {
        long error;

        pthread_mutex_lock(&lock);
        load();
        fputs(conf_text(&conf, "PRINT", ""), stderr);
        if (conf_number(&conf, "CRASH", 0))
                nvml_crash();
        while (conf_number(&conf, "HANG", 0))
                pause();
        error = conf_number(&conf, "INIT_ERROR", 0);
        if (!error) {
                users++;
                record("begin");
                for (unsigned i = 0; i < MAX_GPUS; i++)
                        devices[i] = (struct device){ .index = i };
                look();
        }
        pthread_mutex_unlock(&lock);
        return (nvmlReturn_t)error;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags);
EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
        if (flags & ~(unsigned)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH))
                return NVML_ERROR_INVALID_ARGUMENT;
        return init();
}

EXPORT nvmlReturn_t nvmlInit_v2(void);
EXPORT nvmlReturn_t nvmlInit_v2(void) {
        return init();
}

EXPORT nvmlReturn_t nvmlInit(void);
EXPORT nvmlReturn_t nvmlInit(void) {
        return init();
}

EXPORT nvmlReturn_t nvmlShutdown(void);
EXPORT nvmlReturn_t nvmlShutdown(void) {
        nvmlReturn_t result = NVML_SUCCESS;

        pthread_mutex_lock(&lock);
        if (users == 0)
                result = NVML_ERROR_UNINITIALIZED;
        else {
                users--;
                record("end");
        }
        pthread_mutex_unlock(&lock);
        return result;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result);
EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
        static const char *const text[] = {
                [0] = "Success",
                [1] = "Uninitialized",
                [2] = "Invalid Argument",
                [3] = "Not Supported",
                [4] = "Insufficient Permissions",
                [5] = "Already Initialized",
                [6] = "Not Found",
                [7] = "Insufficient Size",
                [8] = "Insufficient External Power",
                [9] = "Driver Not Loaded",
                [10] = "Timeout",
                [11] = "Interrupt Request Issue",
                [12] = "NVML Shared Library Not Found",
                [13] = "Function Not Found",
                [14] = "Corrupted infoROM",
                [15] = "GPU is lost",
                [16] = "GPU requires reset",
                [17] = "GPU access blocked by the operating system",
                [18] = "Driver/library version mismatch",
                [19] = "In use by another client",
                [20] = "Insufficient Memory",
                [25] = "The provided version is invalid/unsupported",
        };

        if (result < 0 || (size_t)result >= sizeof(text) / sizeof(*text) || !text[result])
                return "Unknown Error";
        return text[result];
}

nvmlReturn_t put_text(const char *text, char *out, unsigned length) {
        size_t n = strlen(text) + 1;

        if (!out)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (n > length)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        memcpy(out, text, n);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
        if (users == 0)
                return NVML_ERROR_UNINITIALIZED;
        return put_text(conf_text(&conf, "DRIVER_VERSION", STANDIN_VERSION), version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length);
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
        char text[64];

        snprintf(text, sizeof(text), "13.%s", conf_text(&conf, "DRIVER_VERSION", STANDIN_VERSION));
        return put_text(text, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
        if (!version)
                return NVML_ERROR_INVALID_ARGUMENT;
        *version = (int)conf_number(&conf, "CUDA_VERSION", 13000);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
        if (users == 0)
                return NVML_ERROR_UNINITIALIZED;
        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = n_shown;
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count);
EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count) {
        return nvmlDeviceGetCount_v2(count);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
        if (users == 0)
                return NVML_ERROR_UNINITIALIZED;
        if (!device || index >= n_shown)
                return NVML_ERROR_INVALID_ARGUMENT;
        *device = &devices[shown[index]];
        return injected(shown[index], "nvmlDeviceGetHandleByIndex");
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
        return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t check_call(nvmlDevice_t device, const void *out, const char *call) {
        if (users == 0)
                return NVML_ERROR_UNINITIALIZED;
        if (!out || device < devices || device >= devices + all_gpus())
                return NVML_ERROR_INVALID_ARGUMENT;
        return device->lost ? NVML_ERROR_GPU_IS_LOST : injected(device->index, call);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length);
EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
        nvmlReturn_t bad = check(device, name);

        return bad ? bad
                   : put_text(gpu_text(device->index, "NAME", conf_text(&conf, "GPU_NAME", "NVIDIA GB200")),
                              name, length);
}

/* A UUID that stays the same over restarts and differs on every node: it is derived from the node's key,
 * which the cluster scripts set. */
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
        nvmlReturn_t bad = check(gpu_of(device), uuid);
        const char *node;
        uint32_t hash = 2166136261U;
        char text[64];

        if (bad)
                return bad;
        if (is_mig(device))
                return mig_uuid(device, uuid, length);
        for (node = conf_text(&conf, "NODE", ""); *node; node++)
                hash = (hash ^ (unsigned char)*node) * 16777619U;
        snprintf(text, sizeof(text), "GPU-%08x-5a5a-4c4c-9d9d-%012x", hash, device->index);
        return put_text(gpu_text(device->index, "UUID", text), uuid, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index);
EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
        nvmlReturn_t bad = check(device, index);

        if (!bad)
                *index = device->index;
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor);
EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) {
        nvmlReturn_t bad = check(device, minor);

        if (!bad)
                *minor = (unsigned)gpu_number(device->index, "MINOR", device->index);
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci_info *pci);
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci_info *pci) {
        nvmlReturn_t bad = check(device, pci);
        char bus_id[32];

        if (bad)
                return bad;
        *pci = (struct pci_info){ .domain = 8 + device->index, .bus = 1, .pci_device_id = 0x294110deU };
        snprintf(bus_id, sizeof(bus_id), "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
        snprintf(pci->bus_id, sizeof(pci->bus_id), "%s", gpu_text(device->index, "PCI", bus_id));
        snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0", pci->domain & 0xffffU,
                 pci->bus & 0xffU, pci->device & 0xffU);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int *mode);
EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int *mode) {
        nvmlReturn_t bad = check(device, mode);

        if (!bad)
                *mode = gpu_number(device->index, "PERSISTENCE_MODE", 1) != 0;
        return bad;
}

/* Converts a UUID in text form to 16 bytes. Any other text gives the zero UUID, which the real library
 * reports without a cluster. */
static void parse_uuid(const char *text, unsigned char out[16]) {
        size_t digits = 0;

        memset(out, 0, 16);
        for (; *text && digits < 32; text++) {
                int c = tolower((unsigned char)*text);

                if (c == '-')
                        continue;
                if (!isxdigit(c)) {
                        memset(out, 0, 16);
                        return;
                }
                out[digits / 2] = (unsigned char)(out[digits / 2] << 4 | (c <= '9' ? c - '0' : c - 'a' + 10));
                digits++;
        }
        if (digits != 32 || *text)
                memset(out, 0, 16);
}

static nvmlReturn_t fabric(nvmlDevice_t device, const void *out, struct fabric_v1 *ret) {
        nvmlReturn_t bad = check(device, out);

        if (!bad)
                bad = (nvmlReturn_t)gpu_number(device->index, "FABRIC_ERROR", NVML_SUCCESS);
        if (bad)
                return bad;
        *ret = (struct fabric_v1){
                .status = (nvmlReturn_t)gpu_number(device->index, "FABRIC_STATUS", NVML_SUCCESS),
                .clique_id = (unsigned)gpu_number(device->index, "CLIQUE_ID", 0),
                .state = (unsigned char)gpu_number(device->index, "FABRIC_STATE", 3),
        };
        parse_uuid(gpu_text(device->index, "CLUSTER_UUID", ""), ret->cluster_uuid);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, struct fabric_v1 *info);
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, struct fabric_v1 *info) {
        return fabric(device, info, info);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, struct fabric_v3 *info);
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, struct fabric_v3 *info) {
        struct fabric_v1 facts;
        nvmlReturn_t bad = fabric(device, info, &facts);
        bool newest;

        if (bad)
                return bad;
        newest = info->version == NVML_VERSIONED(struct fabric_v3, 3);
        if (!newest && info->version != NVML_VERSIONED(struct fabric_v2, 2))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        memcpy(info->cluster_uuid, facts.cluster_uuid, sizeof(info->cluster_uuid));
        info->status = facts.status;
        info->clique_id = facts.clique_id;
        info->state = facts.state;
        info->health_mask = (unsigned)gpu_number(device->index, "HEALTH_MASK", 0);
        if (newest) /* The struct of a version 2 caller ends before this field. */
                info->health_summary = (unsigned char)gpu_number(device->index, "HEALTH_SUMMARY", 0);
        return NVML_SUCCESS;
}
