/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum {
        OUTPUT_MAX = 256 * 1024,
        GPUS_MAX = 256,
};

/* ---- the child: NVML's ABI ---- */

enum {
        NVML_OK = 0,
        NVML_NOT_SUPPORTED = 3,
        NVML_FUNCTION_NOT_FOUND = 13,
        INIT_FLAG_NO_GPUS = 1, /* a node whose GPUs are all gone is a fact and no error */
};

typedef struct nvml_device *nvml_device_t;

/* `reserved` leaves room for libraries whose struct has grown. */
struct fabric_info {
        uint8_t cluster_uuid[16];
        int32_t status;
        uint32_t clique_id;
        uint8_t state;
        uint8_t reserved[103];
};

struct fabric_info_v {
        uint32_t version;
        uint8_t cluster_uuid[16];
        int32_t status;
        uint32_t clique_id;
        uint8_t state;
        uint32_t health_mask;
        uint8_t reserved[96];
};
#define FABRIC_INFO_V2 ((uint32_t)offsetof(struct fabric_info_v, reserved) | 2U << 24)

struct api {
        int (*init_with_flags)(unsigned);
        int (*init)(void);
        int (*shutdown)(void);
        const char *(*error_string)(int);
        int (*driver_version)(char *, unsigned);
        int (*count)(unsigned *);
        int (*by_index)(unsigned, nvml_device_t *);
        int (*name)(nvml_device_t, char *, unsigned);
        int (*uuid)(nvml_device_t, char *, unsigned);
        int (*fabric)(nvml_device_t, struct fabric_info *);
        int (*fabric_v)(nvml_device_t, struct fabric_info_v *);
};

static void load_symbol(void *lib, const char *name, const char *older_name, void *ret) {
        void *symbol = dlsym(lib, name);
        if (!symbol && older_name)
                symbol = dlsym(lib, older_name);
        memcpy(ret, &symbol, sizeof symbol);
}

static int load(const char *path, struct api *api, struct err *e) {
        void *lib = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
        if (!lib) {
                const char *why = dlerror();
                return err_set(e, ERR_NOT_FOUND, 0, "cannot load '%s': %s", path,
                               str_or(why, "unknown error"));
        }
        load_symbol(lib, "nvmlInitWithFlags", NULL, &api->init_with_flags);
        load_symbol(lib, "nvmlInit_v2", "nvmlInit", &api->init);
        load_symbol(lib, "nvmlShutdown", NULL, &api->shutdown);
        load_symbol(lib, "nvmlErrorString", NULL, &api->error_string);
        load_symbol(lib, "nvmlSystemGetDriverVersion", NULL, &api->driver_version);
        load_symbol(lib, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", &api->count);
        load_symbol(lib, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", &api->by_index);
        load_symbol(lib, "nvmlDeviceGetName", NULL, &api->name);
        load_symbol(lib, "nvmlDeviceGetUUID", NULL, &api->uuid);
        load_symbol(lib, "nvmlDeviceGetGpuFabricInfo", NULL, &api->fabric);
        load_symbol(lib, "nvmlDeviceGetGpuFabricInfoV", NULL, &api->fabric_v);
        if ((!api->init_with_flags && !api->init) || !api->driver_version || !api->count || !api->by_index)
                return err_set(e, ERR_INVALID, 0, "'%s' lacks functions of NVML", path);
        return 0;
}

static int check(const struct api *api, const char *call, int code, struct err *e) {
        if (code == NVML_OK)
                return 0;
        const char *text = api->error_string ? api->error_string(code) : NULL;
        return err_set(e, ERR_RETRY, code, "%s: NVML error %d (%s)", call, code, str_or(text, "no text"));
}

static void format_uuid(const uint8_t b[static 16], char ret[static 37]) {
        size_t n = 0;
        for (size_t i = 0; i < 16; i++) {
                if (i == 4 || i == 6 || i == 8 || i == 10)
                        ret[n++] = '-';
                n += (size_t)snprintf(ret + n, 3, "%02x", b[i]);
        }
}

static int query_fabric(const struct api *api, nvml_device_t dev, struct fabric_info *ret) {
        int code = NVML_FUNCTION_NOT_FOUND;
        if (api->fabric)
                code = api->fabric(dev, ret);
        if (code != NVML_FUNCTION_NOT_FOUND)
                return code;
        if (!api->fabric_v) /* a library older than fabrics */
                return NVML_NOT_SUPPORTED;
        struct fabric_info_v v = { .version = FABRIC_INFO_V2 };
        code = api->fabric_v(dev, &v);
        *ret = (struct fabric_info){ .status = v.status, .clique_id = v.clique_id, .state = v.state };
        memcpy(ret->cluster_uuid, v.cluster_uuid, sizeof ret->cluster_uuid);
        return code;
}

/* A GPU that cannot be asked is reported with the error as its fabric answer, so that one lost GPU does not
 * hide the others. */
static void print_gpu(const struct api *api, unsigned index, struct jw *w) {
        nvml_device_t dev = NULL;
        struct fabric_info info = { 0 };
        char name[128] = "", uuid[128] = "", cluster[37] = "";
        int code = api->by_index(index, &dev);
        if (code == NVML_OK) {
                if (!api->name || api->name(dev, name, sizeof name) != NVML_OK)
                        name[0] = '\0';
                if (!api->uuid || api->uuid(dev, uuid, sizeof uuid) != NVML_OK)
                        uuid[0] = '\0';
                code = query_fabric(api, dev, &info);
        }
        if (!uuid[0])
                snprintf(uuid, sizeof uuid, "%u", index);
        format_uuid(info.cluster_uuid, cluster);
        jw_obj(w, NULL);
        jw_str(w, "name", name);
        jw_str(w, "uuid", uuid);
        jw_int(w, "fabricCall", code);
        jw_int(w, "fabricState", info.state);
        jw_int(w, "fabricStatus", info.status);
        jw_int(w, "cliqueID", info.clique_id);
        jw_str(w, "clusterUUID", cluster);
        jw_end_obj(w);
}

static int print_facts(const struct api *api, struct buf *out, struct err *e) {
        char version[96] = "";
        unsigned n = 0;
        if (check(api, "nvmlSystemGetDriverVersion", api->driver_version(version, sizeof version), e) < 0 ||
            check(api, "nvmlDeviceGetCount", api->count(&n), e) < 0)
                return -1;
        if (n > GPUS_MAX)
                return err_set(e, ERR_INVALID, 0, "NVML reports %u GPUs", n);
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_str(&w, "driverVersion", version);
        jw_arr(&w, "gpus");
        for (unsigned i = 0; i < n; i++)
                print_gpu(api, i, &w);
        jw_end_arr(&w);
        jw_end_obj(&w);
        return 0;
}

static int collect(const char *path, struct buf *out, struct err *e) {
        struct api api = { 0 };
        if (load(path, &api, e) < 0)
                return -1;
        int code = api.init_with_flags ? api.init_with_flags(INIT_FLAG_NO_GPUS) : api.init();
        if (check(&api, "nvmlInit", code, e) < 0)
                return -1;
        int r = print_facts(&api, out, e);
        if (api.shutdown)
                api.shutdown();
        return r;
}

int nvml_child_main(int argc, char **argv) {
        struct buf out = BUF_INIT(OUTPUT_MAX);
        struct err e = { 0 };
        int r = argc == 1 ? collect(argv[0], &out, &e)
                          : err_set(&e, ERR_INVALID, 0, "usage: nvml <path of libnvidia-ml.so.1>");
        if (r < 0) {
                buf_clear(&out);
                struct jw w = JW(&out);
                jw_obj(&w, NULL);
                jw_str(&w, "error", e.msg);
                jw_end_obj(&w);
        }
        /* on a line of its own, whatever the library printed before */
        printf("\n%s\n", buf_str(&out));
        fflush(stdout);
        buf_done(&out);
        return r < 0 ? 1 : 0;
}

/* ---- the parent ---- */

struct answer {
        const char *driver_version, *error;
        struct nvml_gpu *gpus;
        size_t n_gpus;
};

static const struct jd_field f_gpu[] = {
        JD_STR(struct nvml_gpu, "name", name),
        JD_STR(struct nvml_gpu, "uuid", uuid),
        JD_INT(struct nvml_gpu, "fabricCall", fabric_call, .required = true),
        JD_INT(struct nvml_gpu, "fabricState", fabric_state),
        JD_INT(struct nvml_gpu, "fabricStatus", fabric_status),
        JD_INT(struct nvml_gpu, "cliqueID", clique_id),
        JD_STR(struct nvml_gpu, "clusterUUID", cluster_uuid),
        JD_END,
};
static const struct jd_field f_answer[] = {
        JD_STR(struct answer, "driverVersion", driver_version),
        JD_LIST(struct answer, "gpus", gpus, struct nvml_gpu, f_gpu),
        JD_STR(struct answer, "error", error),
        JD_END,
};

int nvml_facts_decode(struct str text, struct arena *a, struct nvml_facts *ret, struct err *e) {
        struct answer answer = { 0 };
        struct str line, last = { 0 };
        /* Libraries print warnings; ours is the last line. */
        while (str_next_line(&text, &line)) {
                line = str_trim(line);
                if (line.n)
                        last = line;
        }
        if (!last.n)
                return err_set(e, ERR_RETRY, 0, "NVML: the query printed nothing");
        if (jd_decode_text(f_answer, last.p, last.n, false, "", a, &answer, e) < 0)
                return err_wrap(e, "NVML: unreadable answer");
        if (answer.error)
                return err_set(e, ERR_RETRY, 0, "%s", answer.error);
        if (!answer.driver_version)
                return err_set(e, ERR_INVALID, 0, "NVML: the answer has no driver version");
        for (size_t i = 0; i < answer.n_gpus; i++) {
                const struct nvml_gpu *g = &answer.gpus[i];
                if ((g->cluster_uuid && *g->cluster_uuid && !str_is_uuid(g->cluster_uuid)) ||
                    g->clique_id < 0 || g->clique_id > UINT32_MAX)
                        return err_set(e, ERR_INVALID, 0, "NVML: GPU %zu has a malformed fabric identity", i);
        }
        *ret = (struct nvml_facts){ .driver_version = answer.driver_version,
                                    .gpus = answer.gpus,
                                    .n_gpus = answer.n_gpus };
        return 0;
}

struct nvml_probe {
        struct child *child;
        nvml_done_fn *fn;
        void *u;
};

static void child_done(void *u, const struct child_result *r) {
        struct nvml_probe *p = u;
        struct arena *a = arena_new(2048);
        struct nvml_facts *facts = arena_alloc(a, sizeof *facts);
        struct err e = { 0 };
        bool ok = false;
        if (r->err)
                e = *r->err;
        else if (r->timed_out)
                err_set(&e, ERR_RETRY, 0, "NVML did not answer in time");
        else if (r->term_signal)
                err_set(&e, ERR_RETRY, 0, "NVML ended its process with signal %d", r->term_signal);
        else
                ok = nvml_facts_decode(r->out, a, facts, &e) == 0;
        nvml_done_fn *fn = p->fn;
        void *fn_u = p->u;
        free(p);
        if (ok) {
                fn(fn_u, facts, a, NULL);
        } else {
                arena_free(a);
                fn(fn_u, NULL, NULL, &e);
        }
}

struct nvml_probe *nvml_probe_start(uv_loop_t *loop, const char *library, unsigned timeout_ms,
                                    nvml_done_fn *fn, void *u) {
        struct nvml_probe *p = xnew(struct nvml_probe);
        p->fn = fn;
        p->u = u;
        p->child = child_run(loop,
                             &(struct child_options){
                                     .argv = (const char *const[]){ "/proc/self/exe", "nvml", library, NULL },
                                     .timeout_ms = timeout_ms,
                                     .max_output = OUTPUT_MAX,
                                     .done = child_done,
                                     .u = p,
                             });
        return p;
}

void nvml_probe_cancel(struct nvml_probe *p) {
        if (!p)
                return;
        child_cancel(p->child);
        free(p);
}

/* The next number of a dotted version; anything else between the numbers is skipped. */
static uint64_t next_number(const char **p) {
        uint64_t v = 0;
        while (**p && (**p < '0' || **p > '9'))
                (*p)++;
        for (; **p >= '0' && **p <= '9'; (*p)++)
                v = v < UINT32_MAX ? v * 10 + (uint64_t)(**p - '0') : v;
        return v;
}

int nvml_version_cmp(const char *a, const char *b) {
        while (*a || *b) {
                uint64_t x = next_number(&a), y = next_number(&b);
                if (x != y)
                        return x < y ? -1 : 1;
        }
        return 0;
}
