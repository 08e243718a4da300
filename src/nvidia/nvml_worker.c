/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_worker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "nvidia/gpu_fabric.h"
#include "nvidia/inventory.h"
#include "nvidia/nvml_library.h"
#include "nvidia/nvml_line.h"
#include "nvidia/params_mask.h"

/* ---- surveys ---- */

/* A survey queries a library about all GPUs of the node in one session, and writes the answer as a line of
 * JSON, which nvml_facts_decode() and inventory_decode() read. */

enum {
        FABRIC_GPUS_MAX = 256,
        TEXT_SIZE = INVENTORY_TEXT_MAX + 1,
        GI_PROFILES = 32, /* nvml.h has 18; future ones are found, too */
        CI_PROFILES = 16,
};

static int count_gpus(const struct nvml_library *l, unsigned most, unsigned *ret, struct err *e) {
        *ret = 0;
        if (nvml_library_check(l, "nvmlDeviceGetCount", l->count(ret), e) < 0)
                return -1;
        if (*ret > most)
                return err_set(e, ERR_INVALID, 0, "NVML reports %u GPUs", *ret);
        return 0;
}

/* ---- the fabric ---- */

static void format_uuid(const uint8_t b[static 16], char ret[static 37]) {
        size_t n = 0;
        for (size_t i = 0; i < 16; i++) {
                if (i == 4 || i == 6 || i == 8 || i == 10)
                        ret[n++] = '-';
                n += (size_t)snprintf(ret + n, 3, "%02x", b[i]);
        }
}

static int query_fabric(const struct nvml_library *l, nvml_device_t dev, struct nvml_fabric_info *ret) {
        NVML_ROOM(struct nvml_fabric_info) old = { 0 };
        NVML_ROOM(struct nvml_fabric_info_v2) info = { .v.version = NVML_FABRIC_INFO_V2 };
        int code = NVML_FUNCTION_NOT_FOUND;
        if (l->fabric)
                code = l->fabric(dev, &old.v);
        *ret = old.v;
        if (code != NVML_FUNCTION_NOT_FOUND)
                return code;
        if (!l->fabric_v) /* a library older than fabrics */
                return NVML_NOT_SUPPORTED;
        code = l->fabric_v(dev, &info.v);
        *ret = (struct nvml_fabric_info){ .status = info.v.status,
                                          .clique_id = info.v.clique_id,
                                          .state = info.v.state };
        memcpy(ret->cluster_uuid, info.v.cluster_uuid, sizeof ret->cluster_uuid);
        return code;
}

/* A GPU that cannot be queried gets the error as its fabric result. */
static struct nvml_gpu survey_fabric_of(const struct nvml_library *l, unsigned index, struct arena *a) {
        nvml_device_t dev = NULL;
        struct nvml_fabric_info info = { 0 };
        char name[128] = "", uuid[128] = "", cluster[37] = "";
        int code = l->by_index(index, &dev);
        if (code == NVML_OK) {
                if (!l->name || l->name(dev, name, sizeof name) != NVML_OK)
                        name[0] = '\0';
                if (!l->uuid || l->uuid(dev, uuid, sizeof uuid) != NVML_OK)
                        uuid[0] = '\0';
                code = query_fabric(l, dev, &info);
        }
        nvml_library_clean(name, sizeof name);
        nvml_library_clean(uuid, sizeof uuid);
        if (!uuid[0])
                snprintf(uuid, sizeof uuid, "%u", index);
        format_uuid(info.cluster_uuid, cluster);
        return (struct nvml_gpu){ .name = arena_strdup(a, name),
                                  .uuid = arena_strdup(a, uuid),
                                  .fabric_call = code,
                                  .fabric_state = info.state,
                                  .fabric_status = info.status,
                                  .clique_id = info.clique_id,
                                  .cluster_uuid = arena_strdup(a, cluster) };
}

/* Write the answer. For a GPU that cannot be queried they write the failure, so that one lost GPU does not
 * hide the others. A returned error concerns all GPUs. */
static int nvml_survey_fabric(const struct nvml_library *l, const struct nvml_progress *p, struct str args,
                              struct buf *out, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        char version[96] = "";
        unsigned n;
        if (nvml_library_check(l, "nvmlSystemGetDriverVersion", l->driver_version(version, sizeof version),
                               e) < 0 ||
            count_gpus(l, FABRIC_GPUS_MAX, &n, e) < 0)
                return -1;
        nvml_library_clean(version, sizeof version);
        struct nvml_facts facts = { .driver_version = version,
                                    .gpus = arena_alloc(a, (n + 1) * sizeof *facts.gpus),
                                    .n_gpus = n };
        for (unsigned i = 0; i < n; i++) {
                p->gpu(p->u, i);
                facts.gpus[i] = survey_fabric_of(l, i, a);
        }
        jd_encode(nvml_facts_fields, &facts, &JW(out), NULL);
        return 0;
}

/* ---- the inventory ---- */

/* The first failed call is kept: further queries are useless after it. */
static bool needed(struct inventory_failure *f, const char *call, int code) {
        if (code != NVML_OK && !f->call)
                *f = (struct inventory_failure){ .call = call, .error = code };
        return code == NVML_OK;
}

/* True if an optional query succeeded. A lost GPU fails as a whole, because it would be published with half
 * of its attributes. */
static bool usable(struct inventory_failure *f, const char *call, int code) {
        return code == NVML_GPU_IS_LOST ? needed(f, call, code) : code == NVML_OK;
}

/* True if an optional query succeeded. Only a GPU or a library without this fact may lack it. After another
 * error the GPU fails as a whole, because a partitioned GPU must not look like a whole GPU. */
static bool answered(struct inventory_failure *f, const char *call, int code) {
        return code != NVML_NOT_SUPPORTED && code != NVML_FUNCTION_NOT_FOUND && needed(f, call, code);
}

#define NEEDED(f, l, member, what, ...)                                                                      \
        needed((f), (what), (l)->member ? (l)->member(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)
#define TOLD(f, l, member, what, ...)                                                                        \
        (!(f)->call && (l)->member && usable((f), (what), (l)->member(__VA_ARGS__)))
#define ANSWERED(f, l, member, what, ...)                                                                    \
        (!(f)->call && (l)->member && answered((f), (what), (l)->member(__VA_ARGS__)))

static bool find_gi_profile(const struct nvml_library *l, nvml_device_t dev, unsigned id,
                            struct inventory_failure *f, struct nvml_gpu_instance_profile *ret,
                            unsigned *ret_number) {
        for (unsigned i = 0; i < GI_PROFILES; i++) {
                NVML_ROOM(struct nvml_gpu_instance_profile) p = { 0 };
                if (TOLD(f, l, gi_profile, "nvmlDeviceGetGpuInstanceProfileInfo", dev, i, &p.v) &&
                    p.v.id == id) {
                        *ret = p.v;
                        *ret_number = i;
                        return true;
                }
        }
        return needed(f, "nvmlDeviceGetGpuInstanceProfileInfo", NVML_NOT_FOUND);
}

static bool find_ci_slices(const struct nvml_library *l, nvml_gpu_instance_t gi, unsigned id,
                           struct inventory_failure *f, unsigned *ret) {
        for (unsigned i = 0; i < CI_PROFILES; i++) {
                NVML_ROOM(struct nvml_compute_instance_profile) p = { 0 };
                if (TOLD(f, l, ci_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo", gi, i, 0, &p.v) &&
                    p.v.id == id) {
                        *ret = p.v.slices;
                        return true;
                }
        }
        return needed(f, "nvmlGpuInstanceGetComputeInstanceProfileInfo", NVML_NOT_FOUND);
}

static struct mig_facts ask_mig(const struct nvml_library *l, nvml_device_t gpu, nvml_device_t mig,
                                struct arena *a) {
        struct inventory_failure f = { 0 };
        char uuid[TEXT_SIZE] = "", name[TEXT_SIZE] = "";
        unsigned gi_id, ci_id, number, compute_slices;
        nvml_gpu_instance_t gi = NULL;
        nvml_compute_instance_t ci = NULL;
        struct nvml_gpu_instance_profile profile;
        NVML_ROOM(struct nvml_gpu_instance_info) gi_info = { 0 };
        NVML_ROOM(struct nvml_compute_instance_info) ci_info = { 0 };
        NVML_ROOM(struct nvml_gpu_instance_profile_v2) named = { .v.version = NVML_GPU_INSTANCE_PROFILE_V2 };
        if (!NEEDED(&f, l, uuid, "nvmlDeviceGetUUID", mig, uuid, sizeof uuid) ||
            !NEEDED(&f, l, mig_gi, "nvmlDeviceGetGpuInstanceId", mig, &gi_id) ||
            !NEEDED(&f, l, mig_ci, "nvmlDeviceGetComputeInstanceId", mig, &ci_id) ||
            !NEEDED(&f, l, gi_by_id, "nvmlDeviceGetGpuInstanceById", gpu, gi_id, &gi) ||
            !NEEDED(&f, l, gi_info, "nvmlGpuInstanceGetInfo", gi, &gi_info.v) ||
            !find_gi_profile(l, gpu, gi_info.v.profile_id, &f, &profile, &number) ||
            !NEEDED(&f, l, ci_by_id, "nvmlGpuInstanceGetComputeInstanceById", gi, ci_id, &ci) ||
            !NEEDED(&f, l, ci_info, "nvmlComputeInstanceGetInfo", ci, &ci_info.v) ||
            !find_ci_slices(l, gi, ci_info.v.profile_id, &f, &compute_slices))
                return (struct mig_facts){ .failure = f };
        nvml_library_clean(uuid, sizeof uuid);
        if (TOLD(&f, l, gi_profile_v, "nvmlDeviceGetGpuInstanceProfileInfoV", gpu, number, &named.v)) {
                memcpy(name, named.v.name, sizeof named.v.name);
                nvml_library_clean(name, sizeof name);
        }
        if (f.call)
                return (struct mig_facts){ .failure = f };
        return (struct mig_facts){ .uuid = arena_strdup(a, uuid),
                                   .gpu_instance = gi_id,
                                   .compute_instance = ci_id,
                                   .gi_profile = number,
                                   .profile_id = gi_info.v.profile_id,
                                   .start = gi_info.v.start,
                                   .size = gi_info.v.size,
                                   .gpu_slices = profile.slices,
                                   .compute_slices = compute_slices,
                                   .name = arena_strdup(a, name),
                                   .multiprocessors = profile.multiprocessors,
                                   .copy_engines = profile.copy_engines,
                                   .decoders = profile.decoders,
                                   .encoders = profile.encoders,
                                   .jpeg_engines = profile.jpeg,
                                   .ofa_engines = profile.ofa,
                                   .memory_mib = (int64_t)profile.memory_mib };
}

static void ask_migs(const struct nvml_library *l, nvml_device_t gpu, struct arena *a,
                     struct gpu_facts *ret) {
        struct inventory_failure f = { 0 };
        unsigned n = 0;
        ret->mig = arena_alloc(a, INVENTORY_MIG_MAX * sizeof *ret->mig);
        if (!NEEDED(&f, l, mig_max, "nvmlDeviceGetMaxMigDeviceCount", gpu, &n))
                ret->mig[ret->n_mig++].failure = f;
        for (unsigned i = 0; i < n && i < INVENTORY_MIG_MAX; i++) {
                nvml_device_t mig = NULL;
                int code = l->mig_by_index ? l->mig_by_index(gpu, i, &mig) : NVML_FUNCTION_NOT_FOUND;
                if (code == NVML_OK)
                        ret->mig[ret->n_mig++] = ask_mig(l, gpu, mig, a);
                else if (code != NVML_NOT_FOUND && code != NVML_INVALID_ARGUMENT) /* no MIG device there */
                        needed(&ret->mig[ret->n_mig++].failure, "nvmlDeviceGetMigDeviceHandleByIndex", code);
        }
        if (n > INVENTORY_MIG_MAX)
                ret->n_mig_more = (int64_t)n - INVENTORY_MIG_MAX;
}

static uint64_t ask_memory(const struct nvml_library *l, nvml_device_t dev, struct inventory_failure *f) {
        NVML_ROOM(struct nvml_memory) old = { 0 };
        NVML_ROOM(struct nvml_memory_v2) info = { .v.version = NVML_MEMORY_V2 };
        if (l->memory)
                return ANSWERED(f, l, memory, "nvmlDeviceGetMemoryInfo", dev, &old.v) ? old.v.total : 0;
        return ANSWERED(f, l, memory_v2, "nvmlDeviceGetMemoryInfo_v2", dev, &info.v) ? info.v.total : 0;
}

static const char *ask_addressing_mode(const struct nvml_library *l, nvml_device_t dev,
                                       struct inventory_failure *f) {
        static const char *const names[] = { "None", "HMM", "ATS" };
        NVML_ROOM(struct nvml_addressing_mode) mode = { .v.version = NVML_ADDRESSING_MODE_V1 };
        if (!TOLD(f, l, addressing_mode, "nvmlDeviceGetAddressingMode", dev, &mode.v) || mode.v.value > 2)
                return NULL;
        return names[mode.v.value];
}

static bool ask_uuid(const struct nvml_library *l, nvml_device_t dev, struct arena *a, struct gpu_facts *r) {
        char uuid[TEXT_SIZE] = "";
        if (!NEEDED(&r->failure, l, uuid, "nvmlDeviceGetUUID", dev, uuid, sizeof uuid))
                return false;
        nvml_library_clean(uuid, sizeof uuid);
        r->uuid = arena_strdup(a, uuid);
        return true;
}

static void ask_mig_mode(const struct nvml_library *l, nvml_device_t dev, struct gpu_facts *r) {
        unsigned mode = 0, pending = 0;
        if (ANSWERED(&r->failure, l, mig_mode, "nvmlDeviceGetMigMode", dev, &mode, &pending))
                r->mig_mode = mode;
}

static void ask_gpu(const struct nvml_library *l, nvml_device_t dev, struct arena *a, struct gpu_facts *r) {
        struct inventory_failure *f = &r->failure;
        NVML_ROOM(struct nvml_pci_info) pci = { 0 };
        char text[TEXT_SIZE] = "";
        unsigned minor, architecture;
        int brand, cc[2], persistence_mode;
        if (!ask_uuid(l, dev, a, r) || !NEEDED(f, l, minor, "nvmlDeviceGetMinorNumber", dev, &minor))
                return;
        r->minor = minor;
        if (TOLD(f, l, name, "nvmlDeviceGetName", dev, text, sizeof text)) {
                nvml_library_clean(text, sizeof text);
                r->name = arena_strdup(a, text);
        }
        if (TOLD(f, l, brand, "nvmlDeviceGetBrand", dev, &brand))
                r->brand = brand;
        if (TOLD(f, l, architecture, "nvmlDeviceGetArchitecture", dev, &architecture))
                r->architecture = architecture;
        if (TOLD(f, l, compute_capability, "nvmlDeviceGetCudaComputeCapability", dev, &cc[0], &cc[1]))
                r->compute_capability = arena_printf(a, "%d.%d", cc[0], cc[1]);
        if (ANSWERED(f, l, pci, "nvmlDeviceGetPciInfo_v3", dev, &pci.v)) {
                memset(text, 0, sizeof text);
                memcpy(text, pci.v.bus_id, sizeof pci.v.bus_id);
                nvml_library_clean(text, sizeof text);
                r->pci_bus_id = arena_strdup(a, text);
        }
        uint64_t memory = ask_memory(l, dev, f);
        r->memory_bytes = memory <= INT64_MAX ? (int64_t)memory : 0;
        r->addressing_mode = ask_addressing_mode(l, dev, f);
        r->persistence_off =
                TOLD(f, l, persistence_mode, "nvmlDeviceGetPersistenceMode", dev, &persistence_mode) &&
                persistence_mode == 0;
        ask_mig_mode(l, dev, r);
}

static struct gpu_facts survey_gpu(const struct nvml_library *l, unsigned index, struct arena *a) {
        struct gpu_facts r = { .index = index };
        nvml_device_t dev = NULL;
        if (needed(&r.failure, "nvmlDeviceGetHandleByIndex", l->by_index(index, &dev)))
                ask_gpu(l, dev, a, &r);
        if (r.failure.call)
                return (struct gpu_facts){ .failure = r.failure, .index = index, .uuid = r.uuid };
        if (r.mig_mode == 1)
                ask_migs(l, dev, a, &r);
        return r;
}

static int nvml_survey_gpus(const struct nvml_library *l, const struct nvml_progress *p, struct str args,
                            struct buf *out, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct inventory some = { .driver_version = "",
                                  .gpus = arena_alloc(a, INVENTORY_GPUS_MAX * sizeof *some.gpus) };
        struct str field;
        unsigned n;
        if (count_gpus(l, INVENTORY_GPUS_MAX, &n, e) < 0)
                return -1;
        while (str_next_field(&args, ',', &field)) {
                int64_t index;
                if (!str_to_i64(field, &index) || index < 0 || some.n_gpus == INVENTORY_GPUS_MAX)
                        return err_set(e, ERR_INVALID, 0, "NVML's process got an invalid index of a GPU");
                if (index >= n)
                        continue;
                p->gpu(p->u, (unsigned)index);
                some.gpus[some.n_gpus++] = survey_gpu(l, (unsigned)index, a);
        }
        jd_encode(inventory_fields, &some, &JW(out), NULL);
        return 0;
}

static int nvml_survey_inventory(const struct nvml_library *l, const struct nvml_progress *p, struct str args,
                                 struct buf *out, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        char version[TEXT_SIZE] = "";
        unsigned n;
        int cuda = 0;
        if (nvml_library_check(l, "nvmlSystemGetDriverVersion", l->driver_version(version, sizeof version),
                               e) < 0 ||
            count_gpus(l, INVENTORY_GPUS_MAX, &n, e) < 0)
                return -1;
        nvml_library_clean(version, sizeof version);
        struct inventory all = { .driver_version = version,
                                 .gpus = arena_alloc(a, (n + 1) * sizeof *all.gpus),
                                 .n_gpus = n };
        if (l->cuda_version && l->cuda_version(&cuda) == NVML_OK)
                all.cuda_version = cuda;
        for (unsigned i = 0; i < n; i++) {
                p->gpu(p->u, i);
                all.gpus[i] = survey_gpu(l, i, a);
        }
        jd_encode(inventory_fields, &all, &JW(out), NULL);
        return 0;
}

/* ---- watching for XIDs ---- */

/* The events of a session. NVML may not name a GPU that has just fallen off the bus, so its UUID is kept. */
struct nvml_events {
        nvml_event_set_t set;
        struct nvml_named {
                nvml_device_t device;
                char uuid[NVML_UUID_MAX];
        } gpus[INVENTORY_GPUS_MAX];
        unsigned n;
};

/* Returns NVML's code; *ret_call is the failed call. */
static int nvml_events_watch(const struct nvml_library *l, unsigned index, nvml_event_set_t set,
                             struct nvml_named *ret, const char **ret_call) {
        uint64_t types = 0;
        *ret_call = "nvmlDeviceGetHandleByIndex";
        int code = l->by_index(index, &ret->device);
        if (code != NVML_OK)
                return code;
        *ret_call = "nvmlDeviceGetUUID";
        code = l->uuid(ret->device, ret->uuid, sizeof ret->uuid);
        if (code != NVML_OK) {
                ret->uuid[0] = '\0';
                return code;
        }
        nvml_library_clean(ret->uuid, sizeof ret->uuid);
        *ret_call = "nvmlDeviceGetSupportedEventTypes";
        code = l->event_types(ret->device, &types);
        if (code == NVML_OK && !(types & NVML_EVENT_XID))
                code = NVML_NOT_SUPPORTED;
        if (code != NVML_OK)
                return code;
        *ret_call = "nvmlDeviceRegisterEvents";
        return l->register_events(ret->device, NVML_EVENT_XID, set);
}

static void nvml_events_watch_all(const struct nvml_library *l, const struct nvml_progress *p,
                                  struct nvml_events *v, struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_arr(&w, "gpus");
        for (unsigned i = 0; i < v->n; i++) {
                const char *call;
                p->gpu(p->u, i);
                int code = nvml_events_watch(l, i, v->set, &v->gpus[i], &call);
                jw_obj(&w, NULL);
                jw_str(&w, "uuid", v->gpus[i].uuid);
                jw_int(&w, "error", code);
                if (code != NVML_OK)
                        jw_str(&w, "call", call);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
}

/* Begins to watch, in a session that the caller has begun. Writes the result for each GPU to `out`, as
 * nvml_watched_decode() reads it. ERR_RETRY: no GPU can be watched with this library or this driver. */
static int nvml_events_begin(const struct nvml_library *l, const struct nvml_progress *p,
                             struct nvml_events *ret, struct buf *out, struct err *e) {
        if (!l->event_set_create || (!l->event_set_wait && !l->event_set_wait_v2) || !l->event_types ||
            !l->register_events || !l->uuid)
                return err_set(e, ERR_RETRY, NVML_FUNCTION_NOT_FOUND,
                               "this library of NVML has no functions for events");
        if (count_gpus(l, INVENTORY_GPUS_MAX, &ret->n, e) < 0 ||
            nvml_library_check(l, "nvmlEventSetCreate", l->event_set_create(&ret->set), e) < 0)
                return -1;
        nvml_events_watch_all(l, p, ret, out);
        return 0;
}

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

/* Returns NVML's code. */
static int nvml_events_name(const struct nvml_library *l, const struct nvml_events *v, nvml_device_t device,
                            char uuid[static NVML_UUID_MAX]) {
        for (unsigned i = 0; i < v->n; i++) {
                if (v->gpus[i].device == device && *v->gpus[i].uuid) {
                        memcpy(uuid, v->gpus[i].uuid, NVML_UUID_MAX);
                        return NVML_OK;
                }
        }
        return l->uuid(device, uuid, NVML_UUID_MAX);
}

/* Waits for the next event and writes its line (nvml_line.h). Returns false if it was the last line. */
static bool nvml_events_next(const struct nvml_library *l, const struct nvml_events *v, struct buf *out) {
        NVML_ROOM(struct nvml_event_data) data;
        char uuid[NVML_UUID_MAX] = "";
        memset(&data, 0, sizeof data);
        int code = l->event_set_wait_v2 ? l->event_set_wait_v2(v->set, &data.v, NVML_EVENT_WAIT_MS)
                                        : l->event_set_wait(v->set, &data.v, NVML_EVENT_WAIT_MS);
        if (code == NVML_TIMEOUT || (code == NVML_OK && data.v.type != NVML_EVENT_XID)) {
                nvml_event_write(&(struct nvml_event){ .kind = NVML_BEAT }, out);
                return true;
        }
        /* NVML does not name a lost GPU. The next watch finds the GPU that fails. */
        if (code != NVML_OK)
                return nvml_events_end(l, "nvmlEventSetWait", code, out);
        code = nvml_events_name(l, v, data.v.device, uuid);
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

/* ---- the process ---- */

enum { CHANNEL = 3 };

typedef int(survey_fn)(const struct nvml_library *l, const struct nvml_progress *p, struct str args,
                       struct buf *out, struct err *e);

/* Returns the survey of the question, and its arguments in *ret_args. */
static survey_fn *find_survey(struct str verb, struct str *ret_args) {
        const size_t n = sizeof NVML_ASK_GPUS - 1;
        *ret_args = (struct str){ 0 };
        if (verb.n > n && memcmp(verb.p, NVML_ASK_GPUS, n) == 0) {
                *ret_args = (struct str){ verb.p + n, verb.n - n };
                return nvml_survey_gpus;
        }
        return str_eq(verb, STR(NVML_ASK_FABRIC))      ? nvml_survey_fabric
               : str_eq(verb, STR(NVML_ASK_INVENTORY)) ? nvml_survey_inventory
                                                       : NULL;
}

struct worker {
        const char *path;
        bool watches; /* for events, instead of answering questions */
        bool masked, loaded;
        struct nvml_library library;
};

/* Called before the library is loaded, because it may start threads. */
static int nvml_worker_mask_params(struct worker *w, struct err *e) {
        char why[PARAMS_MASK_WHY];
        if (w->masked || !streq(getenv(NVML_WORKER_MASK), "true"))
                return 0;
        if (params_mask_unshared(PARAMS_MASK_FOLDER, PARAMS_MASK_FILE, why) < 0)
                return err_set(
                        e, ERR_RETRY, NVML_CANNOT_LOAD,
                        "cannot cover /proc/" PARAMS_MASK_FOLDER "/" PARAMS_MASK_FILE
                        ", as the chart value maskNvidiaDriverParams requests: %s; the container must be "
                        "privileged",
                        why);
        w->masked = true;
        return 0;
}

static int nvml_worker_begin(struct worker *w, struct err *e) {
        if (nvml_worker_mask_params(w, e) < 0)
                return -1;
        if (!w->loaded && nvml_library_load(w->path, &w->library, e) < 0)
                return -1;
        w->loaded = true;
        return nvml_library_begin(&w->library, e);
}

static bool send_line(const struct buf *line) {
        struct err e;
        return file_write_all(CHANNEL, "answer", line->p, line->n, &e) == 0;
}

static bool send_answer(const struct nvml_answer *a) {
        struct buf out = BUF_INIT(NVML_LINE_MAX + 1);
        nvml_answer_write(a, &out);
        bool ok = send_line(&out);
        buf_done(&out);
        return ok;
}

/* A closed descriptor is noticed when the answer is written. */
static void report_gpu(void *u, unsigned index) {
        const int64_t *id = u;
        char text[32];
        snprintf(text, sizeof text, "GPU %u", index);
        (void)send_answer(&(struct nvml_answer){ .id = *id, .kind = NVML_AT, .text = str_from(text) });
}

/* -1: the library cannot be loaded or started. */
static int nvml_worker_ask(struct worker *w, struct nvml_question *q, struct buf *out, bool *ret_ok,
                           struct err *e) {
        struct str args;
        survey_fn *survey = find_survey(q->verb, &args);
        *ret_ok = false;
        if (!survey) {
                err_set(e, ERR_INVALID, 0, "NVML's process got an unknown question");
                return 0;
        }
        if (nvml_worker_begin(w, e) < 0)
                return -1;
        *ret_ok = survey(&w->library, &(struct nvml_progress){ report_gpu, &q->id }, args, out, e) == 0 &&
                  !out->failed;
        nvml_library_end(&w->library);
        if (out->failed)
                err_set(e, ERR_INVALID, 0, "NVML's answer has more than %d bytes", NVML_LINE_MAX);
        return 0;
}

static bool send_result(struct nvml_answer *a, bool ok, const struct buf *json, const struct err *e) {
        a->kind = ok ? NVML_YES : NVML_NO;
        a->text = ok ? (struct str){ buf_str(json), json->n } : str_from(e->msg);
        a->code = ok ? 0 : e->code;
        return send_answer(a);
}

/* Runs until the watch fails, or until a write to the closed descriptor ends the process by a signal. */
static void nvml_worker_watch(struct worker *w, int64_t id) {
        struct buf json = BUF_INIT(NVML_LINE_MAX - NVML_QUESTION_MAX);
        struct nvml_answer a = { .id = id };
        struct nvml_events events = { 0 };
        struct nvml_progress p = { report_gpu, &id };
        struct err e;
        bool ok =
                nvml_worker_begin(w, &e) == 0 && nvml_events_begin(&w->library, &p, &events, &json, &e) == 0;
        bool more = send_result(&a, ok, &json, &e) && ok;
        while (more) {
                struct buf line = BUF_INIT(NVML_LINE_MAX);
                more = nvml_events_next(&w->library, &events, &line);
                more = send_line(&line) && more;
                buf_done(&line);
        }
        buf_done(&json);
}

/* False: no more questions. */
static bool serve(struct worker *w, struct str line) {
        struct nvml_question q;
        struct err e;
        if (nvml_question_parse(line, &q, &e) < 0)
                return false;
        if (w->watches) {
                if (str_eq(q.verb, STR(NVML_ASK_WATCH)))
                        nvml_worker_watch(w, q.id);
                return false;
        }
        struct buf json = BUF_INIT(NVML_LINE_MAX - NVML_QUESTION_MAX);
        struct nvml_answer a = { .id = q.id };
        bool ok, more = nvml_worker_ask(w, &q, &json, &ok, &e) == 0;
        more = send_result(&a, ok, &json, &e) && more;
        buf_done(&json);
        return more;
}

int nvml_worker_main(int argc, char **argv) {
        const struct rlimit no_core = { 0, 0 };
        struct buf in = BUF_INIT(2 * NVML_QUESTION_MAX);
        struct worker w = { 0 };
        bool more = true;
        if (argc != 2 || (!streq(argv[0], NVML_WORKER_QUERY) && !streq(argv[0], NVML_WORKER_EVENTS))) {
                fprintf(stderr, "usage: " NVML_WORKER " " NVML_WORKER_QUERY "|" NVML_WORKER_EVENTS
                                " <path of libnvidia-ml.so.1>\n");
                return 2;
        }
        w.path = argv[1];
        w.watches = streq(argv[0], NVML_WORKER_EVENTS);
        (void)setrlimit(RLIMIT_CORE, &no_core);
        while (more) {
                char chunk[NVML_QUESTION_MAX];
                ssize_t n = read(CHANNEL, chunk, sizeof chunk);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                buf_add(&in, chunk, (size_t)n);
                struct str rest = { buf_str(&in), in.n }, line;
                bool whole = false;
                struct err e;
                while ((more = more && !in.failed && nvml_line_next(&rest, &line, &whole, &e) == 0) && whole)
                        more = serve(&w, line);
                buf_consume(&in, in.n - rest.n);
        }
        buf_done(&in);
        return 0;
}
