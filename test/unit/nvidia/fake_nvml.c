/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml: a library with NVML's functions, for the test of the child process. Environment variables choose
 * its behaviour. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct info {
        uint8_t uuid[16];
        int32_t status;
        uint32_t clique;
        uint8_t state;
};
struct info_v {
        uint32_t version;
        uint8_t uuid[16];
        int32_t status;
        uint32_t clique;
        uint8_t state;
        uint32_t health;
};

int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlSystemGetDriverVersion(char *p, unsigned n);
int nvmlDeviceGetName(void *d, char *p, unsigned n);
int nvmlDeviceGetUUID(void *d, char *p, unsigned n);

static int mode(const char *name) {
        const char *v = getenv("FAKE_NVML");
        return v && strcmp(v, name) == 0;
}

static unsigned sessions, begun;

static int start(void) {
        static const char answer[] = "99 ok {}\n";
        printf("a warning of the library\n");
        if (mode("babble") && write(3, answer, sizeof answer - 1) < 0)
                return 999;
        sessions++;
        begun++;
        if (mode("hang"))
                for (;;)
                        pause();
        if (mode("crash"))
                raise(SIGABRT);
        return mode("not-loaded") ? 9 : 0;
}

static void fill_uuid(uint8_t *p) {
        for (uint8_t i = 0; i < 16; i++)
                p[i] = (uint8_t)(0x10 + i);
}

int nvmlShutdown(void) {
        sessions--;
        return 0;
}

const char *nvmlErrorString(int code) {
        return code == 9 ? "Driver Not Loaded" : "Other";
}

int nvmlSystemGetDriverVersion(char *p, unsigned n) {
        snprintf(p, n, "580.95.05");
        return 0;
}

static int count(unsigned *n) {
        *n = 2;
        return 0;
}

static int by_index(unsigned i, void **d) {
        static char handles[2];
        if (i == 1 && mode("lost"))
                return 15;
        *d = &handles[i];
        return 0;
}

int nvmlDeviceGetName(void *d, char *p, unsigned n) {
        (void)d;
        snprintf(p, n, "NVIDIA GB200");
        return 0;
}

int nvmlDeviceGetUUID(void *d, char *p, unsigned n) {
        (void)d;
        snprintf(p, n, "GPU-1");
        return 0;
}

#ifdef OLD_NAMES
int nvmlInit(void);
int nvmlDeviceGetCount(unsigned *n);
int nvmlDeviceGetHandleByIndex(unsigned i, void **d);
int nvmlDeviceGetGpuFabricInfoV(void *d, struct info_v *v);

int nvmlInit(void) {
        return start();
}
int nvmlDeviceGetCount(unsigned *n) {
        return count(n);
}
int nvmlDeviceGetHandleByIndex(unsigned i, void **d) {
        return by_index(i, d);
}
int nvmlDeviceGetGpuFabricInfoV(void *d, struct info_v *v) {
        (void)d;
        if (v->version != (sizeof(struct info_v) | 2U << 24))
                return 25;
        fill_uuid(v->uuid);
        v->state = 3;
        v->clique = 7;
        return 0;
}
#else
int nvmlInitWithFlags(unsigned flags);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d);
int nvmlDeviceGetGpuFabricInfo(void *d, struct info *v);

int nvmlInitWithFlags(unsigned flags) {
        return flags == 1 ? start() : 2;
}
int nvmlDeviceGetCount_v2(unsigned *n) {
        return count(n);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) {
        return by_index(i, d);
}
int nvmlDeviceGetGpuFabricInfo(void *d, struct info *v) {
        (void)d;
        if (mode("no-fabric"))
                return 3;
        fill_uuid(v->uuid);
        v->state = 3;
        v->clique = mode("count-sessions") && sessions == 1 ? begun : 4294967295U;
        return 0;
}
#endif
