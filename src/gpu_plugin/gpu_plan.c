/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_plan.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "gpu_plugin/gpu_state.h"
#include "gpu_plugin/gpu_work.h"
#include "nvidia/proc_files.h"

enum { SMALL_FILE_MAX = 65536, DEVICES_MAX = 128 /* of a claim that is rebuilt */ };

/* ---- what it takes ---- */

/* As the kernel was told at boot or by an administrator; hosts without it search the usual folders. */
static const char *firmware_path(const struct gpu *g, struct arena *a) {
        _cleanup_(freep) char *path = file_join(g->o.sys, "module/firmware_class/parameters/path");
        _cleanup_(freep) char *text = NULL;
        struct err ignored;
        size_t n = 0;
        if (file_read(path, SMALL_FILE_MAX, &text, &n, &ignored) < 0)
                return "";
        struct str trimmed = str_trim((struct str){ text, n });
        return arena_strndup(a, trimmed.p, trimmed.n);
}

static int find_files(struct gpu *g, struct err *e) {
        struct utsname kernel;
        if (g->found)
                return 0;
        uname(&kernel);
        arena_free(g->arena);
        g->arena = arena_new(16384);
        struct driver_set_options o = { .root = g->o.root,
                                        .version = str_or(g->devices->driver_version, ""),
                                        .machine = kernel.machine,
                                        .kernel_release = kernel.release,
                                        .firmware_path = firmware_path(g, g->arena) };
        if (driver_set_find(&o, g->arena, &g->files, e) < 0)
                return -1;
        g->found = true;
        return 0;
}

static unsigned caps_major(const struct gpu *g) {
        _cleanup_(freep) char *text = NULL;
        unsigned major = 0;
        struct err ignored;
        size_t n = 0;
        if (file_read(g->o.proc_devices, SMALL_FILE_MAX, &text, &n, &ignored) < 0 ||
            proc_devices_major((struct str){ text, n }, PROC_MAJOR_CAPS, &major, &ignored) < 0)
                return 0;
        return major;
}

/* A driver container has its device nodes in a dev/ of its own. */
static struct driver_root dev_root(const struct gpu *g) {
        _cleanup_(freep) char *dev = file_join(g->o.root.here, "dev");
        struct stat st;
        return stat(dev, &st) == 0 && S_ISDIR(st.st_mode) ? g->o.root : (struct driver_root){ "/", "/" };
}

static struct gpu_edits_options edits_options(const struct gpu *g) {
        return (struct gpu_edits_options){ .root = g->o.root,
                                           .dev_root = dev_root(g),
                                           .sys = g->o.sys,
                                           .proc_driver = g->o.proc_driver,
                                           .caps_major = caps_major(g),
                                           .hook = g->hook,
                                           .ldconfig = g->o.ldconfig,
                                           .driver_version = g->devices->driver_version };
}

/* Copies, because the thread that writes them may outlive the driver, and what it knows of the files. */
int gpu_plan_claim(void *u, const struct op *op, struct arena *a, struct cdi_edits *ret, struct err *e) {
        struct gpu *g = u;
        g->planning.options = edits_options(g);
        if (find_files(g, e) < 0 ||
            gpu_edits_common(&g->planning.options, &g->files, a, &g->planning.common, e) < 0)
                return -1;
        *ret = cdi_copy(&g->planning.common, a);
        return 0;
}

int gpu_plan_device(void *u, const struct op *op, const struct node_want *w, struct arena *a,
                    struct node_effect *ret, struct err *e) {
        const struct gpu *g = u;
        const struct gpu_device *d = gpu_device_find(g->devices, w->result->device);
        struct cdi_edits its;
        if (gpu_edits_device(&g->planning.options, d, &g->planning.common, a, &its, e) < 0)
                return -1;
        ret->edits = cdi_copy(&its, a);
        gpu_want_of(w)->info = record_info(d, a);
        return 0;
}

/* ---- what is recorded ---- */

/* Devices with the same configuration are a group; those without one are with their kind. */
void gpu_plan_record(const struct node_want *w, struct node_device *ret) {
        const struct gpu_want *own = gpu_want_of(w);
        ret->type = gpu_config_type(own->kind);
        ret->info = own->info;
        ret->group = ((unsigned)own->config_index * 4 + own->kind) * 2 + gpu_work_slices(w);
        ret->group_info = gpu_work_slices(w) ? GPU_WORK_SLICED : NULL;
}

static void write_device(struct jw *w, const char *name, const char *type, const char *info, bool sliced) {
        jw_obj(w, NULL);
        jw_str(w, "name", name);
        jw_str(w, "type", type);
        jw_raw(w, "info", str_from(info));
        if (sliced)
                jw_raw(w, "configState", STR(GPU_WORK_SLICED));
        jw_end_obj(w);
}

/* What stands before the devices in the comment of the CDI file. */
static const char label[] = " devices ";

const char *gpu_plan_comment(const struct op *op, struct arena *a) {
        struct buf b = BUF_INIT(1 << 20);
        struct jw w = JW(&b);
        jw_arr(&w, NULL);
        for (size_t i = 0; i < op->n_wants; i++) {
                const struct gpu_want *own = gpu_want_of(&op->wants[i]);
                write_device(&w, op->wants[i].result->device, gpu_config_type(own->kind), own->info,
                             gpu_work_slices(&op->wants[i]));
        }
        jw_end_arr(&w);
        const char *text = arena_printf(a, "%s%s", label + 1, buf_str(&b));
        buf_done(&b);
        return text;
}

/* ---- and back ---- */

struct told {
        const char *name, *type;
        struct str info, config;
};
static const struct jd_field f_told[] = { JD_STR(struct told, "name", name),
                                          JD_STR(struct told, "type", type),
                                          JD_RAW(struct told, "info", info),
                                          JD_RAW(struct told, "configState", config), JD_END };

static bool is_name(const char *name) {
        return name && str_is_dns_label(name) && str_starts(name, "gpu-");
}

static void add_device(struct node_device *devices, size_t *n, const char *name, const char *info,
                       bool sliced, struct arena *a) {
        bool mig = strstr(name, "-mig-") != NULL;
        for (size_t i = 0; i < *n; i++) {
                if (streq(devices[i].name, name))
                        return;
        }
        if (*n == DEVICES_MAX)
                return;
        devices[*n] = (struct node_device){
                .name = name,
                .type = mig ? GPU_TYPE_MIG : GPU_TYPE_FULL,
                .info = info ? info
                             : record_info(&(struct gpu_device){ .kind = mig ? GPU_MIG : GPU_FULL }, a),
                .group = (mig ? GPU_CONFIG_MIG : GPU_CONFIG_GPU) * 2U + sliced,
                .group_info = sliced ? GPU_WORK_SLICED : NULL,
        };
        (*n)++;
}

/* As record_info() makes it: an object of texts and numbers. Another one could be too deep for the
 * checkpoint. */
static const char *flat_info(struct str info, struct arena *a) {
        const char *text = info.n ? arena_strndup(a, info.p, info.n) : "";
        return *text == '{' && !strpbrk(text + 1, "{[") ? text : NULL;
}

/* Our own comment, if the first line has it: its JSON ends where the boot id begins. */
static void from_comment(const char *text, struct arena *a, struct node_device *devices, size_t *n) {
        const char *p = strstr(text, label), *line_end = strchrnul(text, '\n');
        const char *end = p ? strstr(p, "] boot ") : NULL;
        struct err ignored;
        size_t i, max;
        yyjson_val *v;
        if (!end || end > line_end)
                return;
        p += strlen(label);
        yyjson_doc *doc =
                json_parse((struct str){ p, (size_t)(end + 1 - p) }, YYJSON_READ_NUMBER_AS_RAW, &ignored);
        yyjson_arr_foreach (yyjson_doc_get_root(doc), i, max, v) {
                struct told t = { 0 };
                if (jd_decode(f_told, v, false, "", a, &t, &ignored) == 0 && is_name(t.name))
                        add_device(devices, n, t.name, flat_info(t.info, a),
                                   str_eq(t.config, STR(GPU_WORK_SLICED)), a);
        }
        yyjson_doc_free(doc);
}

size_t gpu_plan_rebuild(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
        struct node_device *devices = arena_alloc(a, DEVICES_MAX * sizeof *devices);
        size_t n = 0;
        const char *name = arena_printf(a, "%s-", uid);
        from_comment(cdi_file, a, devices, &n);
        for (const char *p = cdi_file; (p = strstr(p, name));) {
                p += strlen(name);
                const char *device = arena_strndup(a, p, strspn(p, letters));
                if (is_name(device))
                        add_device(devices, &n, device, NULL, false, a);
        }
        *ret = devices;
        return n;
}
