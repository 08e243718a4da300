/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-smi: --version reads the file of the NVML stand-in; init checks of GPU software call it and check
 * its exit code. Everything else uses NVML, with the libnvidia-ml.so.1 that the loader finds. In a container
 * it fails if the loader does not know the driver's folder.
 *
 *     nvidia-smi -L                                        the GPUs and MIG devices that NVML shows
 *     nvidia-smi -i GPU -c MODE                            a compute mode, by name or number
 *     nvidia-smi compute-policy -i GPU --set-timeslice N   0 to 3
 *
 * GPU is a UUID or an index. Options and exit codes are those of the manual page nvidia-smi(1). The message
 * for a GPU without time slices is quoted in kubernetes-sigs/dra-driver-nvidia-gpu, issue 41. */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"

typedef void *device_t;

/* Exit codes. An NVML error exits with its number. */
enum { EXIT_BAD_ARGUMENT = 2, EXIT_NOT_FOUND = 6 };

static struct {
        int (*init)(void), (*get_count)(unsigned *), (*get)(unsigned, device_t *);
        int (*get_name)(device_t, char *, unsigned), (*get_uuid)(device_t, char *, unsigned);
        int (*get_mig)(device_t, unsigned, device_t *);
        int (*set_mode)(device_t, unsigned), (*set_slice)(device_t, unsigned);
        const char *(*say)(int);
} nvml;

static void find(void *library, const char *name, void *ret) {
        void *f = dlsym(library, name);

        if (!f) {
                fprintf(stderr, "nvidia-smi: %s\n", dlerror());
                exit(1);
        }
        memcpy(ret, &f, sizeof(f));
}

static void fail(const char *what, int error) {
        fprintf(stderr, "nvidia-smi: %s: NVML error %d\n", what, error);
        exit(1);
}

/* The number of GPUs. */
static unsigned begin(void) {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        unsigned count = 0;
        int error;

        if (!library) {
                fprintf(stderr, "nvidia-smi: %s\n", dlerror());
                exit(1);
        }
        find(library, "nvmlInit_v2", &nvml.init);
        find(library, "nvmlDeviceGetCount_v2", &nvml.get_count);
        find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.get);
        find(library, "nvmlDeviceGetName", &nvml.get_name);
        find(library, "nvmlDeviceGetUUID", &nvml.get_uuid);
        find(library, "nvmlDeviceGetMigDeviceHandleByIndex", &nvml.get_mig);
        find(library, "nvmlDeviceSetComputeMode", &nvml.set_mode);
        find(library, "standinSetTimeSlice", &nvml.set_slice);
        find(library, "nvmlErrorString", &nvml.say);
        if ((error = nvml.init()) || (error = nvml.get_count(&count)))
                fail("init", error);
        return count;
}

static int list(void) {
        char name[96], uuid[96];
        unsigned count = begin();
        int error;

        for (unsigned i = 0; i < count; i++) {
                device_t gpu, mig;

                if ((error = nvml.get(i, &gpu)) || (error = nvml.get_name(gpu, name, sizeof(name))) ||
                    (error = nvml.get_uuid(gpu, uuid, sizeof(uuid))))
                        fail("GPU", error);
                printf("GPU %u: %s (UUID: %s)\n", i, name, uuid);
                for (unsigned m = 0; m < 7; m++)
                        if (!nvml.get_mig(gpu, m, &mig) && !nvml.get_uuid(mig, uuid, sizeof(uuid)))
                                printf("  MIG Device %u: (UUID: %s)\n", m, uuid);
        }
        return 0;
}

static _Noreturn void bad_usage(void) {
        printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n");
        exit(EXIT_BAD_ARGUMENT);
}

/* One of four values. */
static bool is_number(const char *text) {
        return *text >= '0' && *text <= '3' && !text[1];
}

/* "-x VALUE", "--long VALUE" and "--long=VALUE". */
static const char *option(int argc, char **argv, int *at, const char *brief, const char *wordy) {
        const char *arg = argv[*at];
        size_t n = strlen(wordy);

        if (!strncmp(arg, wordy, n) && arg[n] == '=')
                return arg + n + 1;
        if (strcmp(arg, brief) != 0 && strcmp(arg, wordy) != 0)
                return NULL;
        if (*at + 1 == argc)
                bad_usage();
        return argv[++*at];
}

static device_t find_gpu(const char *id, unsigned *ret_index) {
        unsigned count = begin();
        char uuid[96], index[16];
        device_t gpu;

        for (unsigned i = 0; i < count; i++) {
                snprintf(index, sizeof(index), "%u", i);
                if (!nvml.get(i, &gpu) && !nvml.get_uuid(gpu, uuid, sizeof(uuid)) &&
                    (!strcmp(id, uuid) || !strcmp(id, index))) {
                        *ret_index = i;
                        return gpu;
                }
        }
        printf("No devices were found\n");
        exit(EXIT_NOT_FOUND);
}

static int set_mode(const char *id, const char *text) {
        static const char *const modes[] = { "DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED",
                                             "EXCLUSIVE_PROCESS" };
        unsigned mode = is_number(text) ? (unsigned)(*text - '0') : 0, index;
        device_t gpu;
        int error;

        while (!is_number(text) && strcmp(text, modes[mode]) != 0)
                if (++mode == sizeof(modes) / sizeof(*modes))
                        bad_usage();
        gpu = find_gpu(id, &index);
        error = nvml.set_mode(gpu, mode);
        if (error) {
                printf("Unable to set the compute mode for GPU %u: %s\n"
                       "Terminating early due to previous errors.\n",
                       index, nvml.say(error));
                return error;
        }
        printf("Set compute mode to %s for GPU %u.\nAll done.\n", modes[mode], index);
        return 0;
}

static int set_slice(const char *id, const char *text) {
        static const char *const slices[] = { "Default", "Short", "Medium", "Long" };
        unsigned slice, index;
        device_t gpu;
        int error;

        if (!is_number(text))
                bad_usage();
        slice = (unsigned)(*text - '0');
        gpu = find_gpu(id, &index);
        error = nvml.set_slice(gpu, slice);
        if (error) {
                printf("Failed to set timeslice policy with value %s for GPU %u : %s\n"
                       "Failed to set timeslice for requested devices : %s\n",
                       slices[slice], index, nvml.say(error), nvml.say(error));
                return error;
        }
        printf("Successfully set timeslice policy with value %s for GPU %u\n", slices[slice], index);
        return 0;
}

/* Of one GPU, and one thing. */
static int set(int argc, char **argv) {
        bool policy = !strcmp(argv[1], "compute-policy");
        const char *id = NULL, *mode = NULL, *slice = NULL, *value;

        for (int i = policy ? 2 : 1; i < argc; i++) {
                if ((value = option(argc, argv, &i, "-i", "--id")))
                        id = value;
                else if (!policy && (value = option(argc, argv, &i, "-c", "--compute-mode")))
                        mode = value;
                else if (policy && (value = option(argc, argv, &i, "--set-timeslice", "--set-timeslice")))
                        slice = value;
                else
                        bad_usage();
        }
        if (!id || !(policy ? slice : mode))
                bad_usage();
        return policy ? set_slice(id, slice) : set_mode(id, mode);
}

static int version(void) {
        char path[PATH_MAX + 64];
        struct conf c = { 0 };
        const char *text;
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
        char *slash;

        path[n > 0 ? n : 0] = '\0';
        slash = strrchr(path, '/');
        if (slash) {
                memcpy(slash, "/../lib64/libnvidia-ml.conf", sizeof "/../lib64/libnvidia-ml.conf");
                (void)conf_load(&c, path);
        }
        text = conf_text(&c, "DRIVER_VERSION", STANDIN_VERSION);
        printf("NVIDIA-SMI version  : %s\nNVML version        : %.6s\nDRIVER version      : %s\nCUDA Version "
               "       : 13.0\n",
               text, text, text);
        conf_done(&c);
        return 0;
}

int main(int argc, char **argv) {
        if (argc == 1 || !strcmp(argv[1], "--version"))
                return version();
        return argc == 2 && !strcmp(argv[1], "-L") ? list() : set(argc, argv);
}
