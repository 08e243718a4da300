/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-smi: --version answers from the same file as the NVML stand-in; init checks of GPU software call it
 * and look at its exit code. -L lists the GPUs and MIG devices that NVML shows, as libnvidia-ml.so.1 is found
 * by the loader: in a container it fails where the loader has not been told of the driver's folder. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"

typedef void *device_t;

static int fail(const char *what, int error) {
        fprintf(stderr, "nvidia-smi: %s: NVML error %d\n", what, error);
        return 1;
}

static void *find(void *library, const char *name) {
        void *f = dlsym(library, name);

        if (!f) {
                fprintf(stderr, "nvidia-smi: %s\n", dlerror());
                exit(1);
        }
        return f;
}

static int list(void) {
        void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        char name[96], uuid[96];
        unsigned count = 0;
        int error;

        if (!nvml) {
                fprintf(stderr, "nvidia-smi: %s\n", dlerror());
                return 1;
        }
        int (*init)(void) = (int (*)(void))find(nvml, "nvmlInit_v2");
        int (*get_count)(unsigned *) = (int (*)(unsigned *))find(nvml, "nvmlDeviceGetCount_v2");
        int (*get)(unsigned, device_t *) =
                (int (*)(unsigned, device_t *))find(nvml, "nvmlDeviceGetHandleByIndex_v2");
        int (*get_name)(device_t, char *, unsigned) =
                (int (*)(device_t, char *, unsigned))find(nvml, "nvmlDeviceGetName");
        int (*get_uuid)(device_t, char *, unsigned) =
                (int (*)(device_t, char *, unsigned))find(nvml, "nvmlDeviceGetUUID");
        int (*get_mig)(device_t, unsigned, device_t *) =
                (int (*)(device_t, unsigned, device_t *))find(nvml, "nvmlDeviceGetMigDeviceHandleByIndex");
        if ((error = init()) || (error = get_count(&count)))
                return fail("init", error);
        for (unsigned i = 0; i < count; i++) {
                device_t gpu, mig;

                if ((error = get(i, &gpu)) || (error = get_name(gpu, name, sizeof(name))) ||
                    (error = get_uuid(gpu, uuid, sizeof(uuid))))
                        return fail("GPU", error);
                printf("GPU %u: %s (UUID: %s)\n", i, name, uuid);
                for (unsigned m = 0; m < 7; m++)
                        if (!get_mig(gpu, m, &mig) && !get_uuid(mig, uuid, sizeof(uuid)))
                                printf("  MIG Device %u: (UUID: %s)\n", m, uuid);
        }
        return 0;
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
        if (argc > 1 && strcmp(argv[1], "-L") == 0)
                return list();
        if (argc > 1 && strcmp(argv[1], "--version") != 0) {
                fprintf(stderr, "nvidia-smi: this stand-in answers only --version and -L\n");
                return 1;
        }
        return version();
}
