/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_events.h"

#include <string.h>

#include "base/json.h"
#include "nvidia/nvml_line.h"

/* ---- start ---- */

/* Returns NVML's code; *ret_call is the failed call. */
static int nvml_events_watch(const struct nvml_library *l, unsigned index, nvml_event_set_t set,
                             char uuid[NVML_UUID_MAX], const char **ret_call) {
        nvml_device_t device = NULL;
        uint64_t types = 0;
        *ret_call = "nvmlDeviceGetHandleByIndex";
        int code = l->by_index(index, &device);
        if (code != NVML_OK)
                return code;
        *ret_call = "nvmlDeviceGetUUID";
        code = l->uuid(device, uuid, NVML_UUID_MAX);
        if (code != NVML_OK) {
                uuid[0] = '\0';
                return code;
        }
        nvml_library_clean(uuid, NVML_UUID_MAX);
        *ret_call = "nvmlDeviceGetSupportedEventTypes";
        code = l->event_types(device, &types);
        if (code == NVML_OK && !(types & NVML_EVENT_XID))
                code = NVML_NOT_SUPPORTED;
        if (code != NVML_OK)
                return code;
        *ret_call = "nvmlDeviceRegisterEvents";
        return l->register_events(device, NVML_EVENT_XID, set);
}

static void nvml_events_watch_all(const struct nvml_library *l, const struct nvml_progress *p, unsigned n,
                                  nvml_event_set_t set, struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_arr(&w, "gpus");
        for (unsigned i = 0; i < n; i++) {
                char uuid[NVML_UUID_MAX] = "";
                const char *call;
                p->gpu(p->u, i);
                int code = nvml_events_watch(l, i, set, uuid, &call);
                jw_obj(&w, NULL);
                jw_str(&w, "uuid", uuid);
                jw_int(&w, "error", code);
                if (code != NVML_OK)
                        jw_str(&w, "call", call);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
}

int nvml_events_begin(const struct nvml_library *l, const struct nvml_progress *p, nvml_event_set_t *ret,
                      struct buf *out, struct err *e) {
        unsigned n = 0;
        if (!l->event_set_create || (!l->event_set_wait && !l->event_set_wait_v2) || !l->event_types ||
            !l->register_events || !l->uuid)
                return err_set(e, ERR_RETRY, NVML_FUNCTION_NOT_FOUND,
                               "this library of NVML has no functions for events");
        if (nvml_library_check(l, "nvmlDeviceGetCount", l->count(&n), e) < 0 ||
            nvml_library_check(l, "nvmlEventSetCreate", l->event_set_create(ret), e) < 0)
                return -1;
        nvml_events_watch_all(l, p, n, *ret, out);
        return 0;
}

/* ---- events ---- */

static int64_t instance(uint32_t id) {
        return id == NVML_NO_INSTANCE ? -1 : (int64_t)id;
}

static bool nvml_events_end(const struct nvml_library *l, const char *call, int code, struct buf *out) {
        struct err e;
        nvml_library_check(l, call, code, &e);
        nvml_event_write(&(struct nvml_event){ .kind = NVML_END, .code = code, .text = str_from(e.msg) },
                         out);
        return false;
}

bool nvml_events_next(const struct nvml_library *l, nvml_event_set_t set, struct buf *out) {
        NVML_ROOM(struct nvml_event_data) data;
        char uuid[NVML_UUID_MAX] = "";
        memset(&data, 0, sizeof data);
        int code = l->event_set_wait_v2 ? l->event_set_wait_v2(set, &data.v, NVML_EVENT_WAIT_MS)
                                        : l->event_set_wait(set, &data.v, NVML_EVENT_WAIT_MS);
        if (code == NVML_TIMEOUT || (code == NVML_OK && data.v.type != NVML_EVENT_XID)) {
                nvml_event_write(&(struct nvml_event){ .kind = NVML_BEAT }, out);
                return true;
        }
        /* NVML does not name a lost GPU. The next watch finds the GPU that fails. */
        if (code != NVML_OK)
                return nvml_events_end(l, "nvmlEventSetWait", code, out);
        code = l->uuid(data.v.device, uuid, sizeof uuid);
        if (code != NVML_OK)
                return nvml_events_end(l, "nvmlDeviceGetUUID", code, out);
        bool named = l->event_set_wait_v2 != NULL;
        nvml_event_write(
                &(struct nvml_event){ .kind = NVML_XID,
                                      .uuid = str_from(uuid),
                                      .xid = data.v.data,
                                      .gpu_instance = named ? instance(data.v.gpu_instance) : -1,
                                      .compute_instance = named ? instance(data.v.compute_instance) : -1 },
                out);
        return true;
}
