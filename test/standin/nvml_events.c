/* SPDX-License-Identifier: Apache-2.0 */
/* Events: each line that is added to libnvidia-ml.events beside the library, after an event set was created,
 * is an event.
 *
 *     0 xid 79          of GPU 0, for which all further calls in this session fail
 *     0 xid 31 2 0      of compute instance 0 of its GPU instance 2
 *     error 15          the result of the waiting call
 *     hang              the waiting call never returns
 *     crash
 *
 * EVENT_WAIT_MAX_MS ends a wait before the caller's time-out. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "nvml.h"

enum { XID_EVENT = 8, NVML_ERROR_TIMEOUT = 10, FALLEN_OFF_THE_BUS = 79 };

/* nvmlEventData_t */
struct event_data {
        nvmlDevice_t device;
        unsigned long long type, data;
        unsigned gpu_instance, compute_instance;
};
struct event_set {
        bool watched[MAX_GPUS];
        long since[MAX_GPUS]; /* lines before this offset are older than the registration of the GPU */
        long at;              /* the offset in the file */
        int notify;
};

static FILE *open_events(void) {
        char path[4200];

        snprintf(path, sizeof(path), "%s/libnvidia-ml.events", nvml_folder());
        return fopen(path, "r");
}

static long end_of_events(void) {
        FILE *f = open_events();
        long end = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;

        if (f)
                fclose(f);
        return end;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(struct event_set **set);
EXPORT nvmlReturn_t nvmlEventSetCreate(struct event_set **set) {
        nvmlReturn_t bad = injected(0, "nvmlEventSetCreate");

        if (bad)
                return bad;
        *set = calloc(1, sizeof(**set));
        (*set)->at = end_of_events();
        (*set)->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        (void)inotify_add_watch((*set)->notify, nvml_folder(), IN_CLOSE_WRITE | IN_MOVED_TO);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(struct event_set *set);
EXPORT nvmlReturn_t nvmlEventSetFree(struct event_set *set) {
        close(set->notify);
        free(set);
        return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types);
EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
        nvmlReturn_t bad = check(device, types);

        if (!bad)
                *types = (unsigned long long)gpu_number(device->index, "EVENT_TYPES", 0x1f);
        return bad;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                             struct event_set *set);
EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                             struct event_set *set) {
        nvmlReturn_t bad = check(device, set);

        if (!bad) {
                set->watched[device->index] = types & XID_EVENT;
                set->since[device->index] = end_of_events();
        }
        return bad;
}

/* -1: no event. */
static int next(struct event_set *set, struct event_data *data) {
        unsigned gpu, gi = UINT32_MAX, ci = UINT32_MAX;
        unsigned long long xid;
        int result = -1, error;
        char line[128];
        long begin;
        FILE *f = open_events();

        if (!f || fseek(f, set->at, SEEK_SET) < 0 || !fgets(line, sizeof(line), f) || !strchr(line, '\n')) {
                if (f)
                        fclose(f);
                return -1;
        }
        begin = set->at;
        set->at = ftell(f);
        fclose(f);
        if (strcmp(line, "crash\n") == 0)
                nvml_crash();
        while (strcmp(line, "hang\n") == 0)
                pause();
        if (sscanf(line, "error %d", &error) == 1)
                return error;
        if (sscanf(line, "%u xid %llu %u %u", &gpu, &xid, &gi, &ci) >= 2 && gpu < MAX_GPUS &&
            set->watched[gpu] && begin >= set->since[gpu]) {
                *data = (struct event_data){ nvml_device(gpu), XID_EVENT, xid, gi, ci };
                data->device->lost = data->device->lost || xid == FALLEN_OFF_THE_BUS;
                result = NVML_SUCCESS;
        }
        return result;
}

static long now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static nvmlReturn_t wait_for(struct event_set *set, struct event_data *data, unsigned timeout_ms) {
        long max = gpu_number(0, "EVENT_WAIT_MAX_MS", timeout_ms), end = now_ms() + max, left;
        char changes[4096];

        for (;;) {
                int result = next(set, data);
                struct pollfd p = { .fd = set->notify, .events = POLLIN };

                if (result >= 0)
                        return result;
                left = end - now_ms();
                if (left <= 0)
                        return NVML_ERROR_TIMEOUT;
                if (poll(&p, 1, (int)left) > 0)
                        while (read(set->notify, changes, sizeof(changes)) > 0)
                                continue;
        }
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(struct event_set *set, struct event_data *data, unsigned timeout_ms);
EXPORT nvmlReturn_t nvmlEventSetWait_v2(struct event_set *set, struct event_data *data, unsigned timeout_ms) {
        return wait_for(set, data, timeout_ms);
}
