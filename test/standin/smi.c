/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-smi: answers --version from the same file as the NVML stand-in. Init checks of GPU software call it
 * and look at its exit code. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"

int main(int argc, char **argv) {
        char path[PATH_MAX + 64];
        struct conf c = { 0 };
        const char *version;
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
        char *slash;

        path[n > 0 ? n : 0] = '\0';
        slash = strrchr(path, '/');
        if (slash) {
                memcpy(slash, "/../lib64/libnvidia-ml.conf", sizeof "/../lib64/libnvidia-ml.conf");
                (void)conf_load(&c, path);
        }
        version = conf_text(&c, "DRIVER_VERSION", STANDIN_VERSION);
        if (argc > 1 && strcmp(argv[1], "--version") != 0) {
                fprintf(stderr, "nvidia-smi: this stand-in answers only --version\n");
                return 1;
        }
        printf("NVIDIA-SMI version  : %s\nNVML version        : %.6s\nDRIVER version      : %s\nCUDA Version "
               "       : 13.0\n",
               version, version, version);
        conf_done(&c);
        return 0;
}
