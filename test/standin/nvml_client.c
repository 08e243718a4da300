/* SPDX-License-Identifier: Apache-2.0 */
/* nvml-client LIBRARY [CALLS]: prints what the library returns for every GPU; for nvml.bats. CALLS is a
 * string of i (init), n (init without GPUs), s (shutdown), f (facts), v (facts by the versioned fabric call),
 * b (the same with a bad version), m (the MIG device that the first call finds on GPU 0),
 * w (wait for a line on stdin). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fabric_v1 {
        unsigned char uuid[16];
        int status;
        unsigned clique;
        unsigned char state;
};
struct fabric_v2 {
        unsigned version;
        unsigned char uuid[16];
        int status;
        unsigned clique;
        unsigned char state;
        unsigned health;
};

static void *library;

static void *symbol(const char *name) {
        void *p = dlsym(library, name);

        if (!p) {
                fprintf(stderr, "%s is missing\n", name);
                exit(2);
        }
        return p;
}

static const char *say(int result) {
        const char *(*text)(int);

        *(void **)&text = symbol("nvmlErrorString");
        return text(result);
}

static void facts(char how) {
        int (*version)(char *, unsigned), (*count)(unsigned *), (*handle)(unsigned, void **),
                (*name)(void *, char *, unsigned);
        int (*uuid)(void *, char *, unsigned), (*fabric)(void *, void *), (*minor)(void *, unsigned *);
        char text[96] = "";
        unsigned n = 0, number = 0;
        int result;

        *(void **)&version = symbol("nvmlSystemGetDriverVersion");
        *(void **)&count = symbol("nvmlDeviceGetCount_v2");
        *(void **)&handle = symbol("nvmlDeviceGetHandleByIndex_v2");
        *(void **)&name = symbol("nvmlDeviceGetName");
        *(void **)&uuid = symbol("nvmlDeviceGetUUID");
        *(void **)&minor = symbol("nvmlDeviceGetMinorNumber");
        *(void **)&fabric = symbol(how == 'f' ? "nvmlDeviceGetGpuFabricInfo" : "nvmlDeviceGetGpuFabricInfoV");
        result = version(text, sizeof(text));
        printf("driver %s %s\n", say(result), text);
        result = count(&n);
        printf("count %s %u\n", say(result), n);
        for (unsigned i = 0; i < n; i++) {
                struct fabric_v1 one = { 0 };
                struct fabric_v2 two = { .version = how == 'v' ? (unsigned)sizeof(two) | 2U << 24 : 7 };
                void *gpu = NULL;

                result = handle(i, &gpu);
                if (result) {
                        printf("gpu %u %s\n", i, say(result));
                        continue;
                }
                result = name(gpu, text, sizeof(text));
                printf("gpu %u %s %s", i, say(result), text);
                result = uuid(gpu, text, sizeof(text));
                printf(" %s", result ? say(result) : text);
                result = minor(gpu, &number);
                printf(" minor %u", number);
                result = fabric(gpu, how == 'f' ? (void *)&one : (void *)&two);
                if (how != 'f') {
                        memcpy(one.uuid, two.uuid, sizeof(one.uuid));
                        one.status = two.status;
                        one.clique = two.clique;
                        one.state = two.state;
                }
                printf(" fabric %s ", say(result));
                for (size_t j = 0; j < sizeof(one.uuid); j++)
                        printf("%02x", one.uuid[j]);
                printf(".%u state %u status %d health %u\n", one.clique, one.state, one.status, two.health);
        }
}

static void mig(void) {
        static void *found;
        int (*handle)(unsigned, void **), (*by_index)(void *, unsigned, void **),
                (*uuid)(void *, char *, unsigned), (*instance)(void *, unsigned *);
        void *gpu = NULL;
        char text[96] = "";
        unsigned id = 0;

        *(void **)&handle = symbol("nvmlDeviceGetHandleByIndex_v2");
        *(void **)&by_index = symbol("nvmlDeviceGetMigDeviceHandleByIndex");
        *(void **)&uuid = symbol("nvmlDeviceGetUUID");
        *(void **)&instance = symbol("nvmlDeviceGetGpuInstanceId");
        if (!found && handle(0, &gpu) == 0)
                by_index(gpu, 0, &found);
        printf("uuid %s", say(uuid(found, text, sizeof(text))));
        printf(" instance %s %s\n", say(instance(found, &id)), text);
}

int main(int argc, char **argv) {
        const char *calls = argc > 2 ? argv[2] : "ifs";
        int (*init)(void), (*init_flags)(unsigned), (*shut_down)(void);
        int result = 0;

        library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (!library) {
                fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: nvml-client LIBRARY [CALLS]");
                return 2;
        }
        *(void **)&init = symbol("nvmlInit_v2");
        *(void **)&init_flags = symbol("nvmlInitWithFlags");
        *(void **)&shut_down = symbol("nvmlShutdown");
        for (; *calls; calls++) {
                if (*calls == 'w') {
                        while ((result = getchar()) != '\n' && result != EOF)
                                ;
                        continue;
                }
                if (strchr("fvbm", *calls)) {
                        if (*calls == 'm')
                                mig();
                        else
                                facts(*calls);
                        fflush(stdout);
                        continue;
                }
                result = *calls == 's' ? shut_down() : *calls == 'n' ? init_flags(1) : init();
                printf("%s %s\n", *calls == 's' ? "shutdown" : "init", say(result));
                fflush(stdout);
        }
        return 0;
}
