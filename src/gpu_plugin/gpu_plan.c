/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_plan.h"

#include <string.h>
#include <sys/utsname.h>

#include "api/reasons.h"
#include "base/file.h"
#include "gpu_plugin/gpu_state.h"
#include "gpu_plugin/gpu_work.h"
#include "nvidia/proc_files.h"

enum { SMALL_FILE_MAX = 65536, DEVICES_MAX = 128 /* of a claim that is rebuilt */ };

/* ---- inputs of the plan ---- */

/* The kernel's setting from the boot or from an administrator. Without it, the usual folders are searched. */
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

/* Finds the current files. Packages of the driver may be updated, removed and added while it runs. */
static int find_files(struct gpu *g, struct arena *a, struct err *e) {
        const char *firmware = firmware_path(g, a);
        struct utsname kernel;
        if (g->arena && streq(firmware, g->firmware_path) && driver_set_holds(&g->o.root, &g->files))
                return 0;
        uname(&kernel);
        gpu_plan_forget(g);
        struct arena *found = arena_new(16384);
        struct driver_set_options o = { .root = g->o.root,
                                        .version = str_or(g->devices->driver_version, ""),
                                        .machine = kernel.machine,
                                        .kernel_release = kernel.release,
                                        .firmware_path = arena_strdup(found, firmware),
                                        .sockets = g->o.ipc_sockets };
        if (driver_set_find(&o, found, &g->files, e) < 0) {
                arena_free(found);
                return -1;
        }
        g->arena = found;
        g->firmware_path = o.firmware_path;
        return 0;
}

void gpu_plan_forget(struct gpu *g) {
        arena_free(g->arena);
        g->arena = NULL;
}

static int find_majors(const struct gpu *g, struct proc_majors *ret, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        if (file_read(g->o.proc_devices, SMALL_FILE_MAX, &text, &n, e) < 0)
                return -1;
        return proc_devices_majors((struct str){ text, n }, ret, e) < 0
                       ? err_wrap(e, "'%s'", g->o.proc_devices)
                       : 0;
}

/* The mode with which the NVIDIA driver itself would create nodes. Its default is 0666. */
static void find_node_mode(const struct gpu *g, unsigned *mode, unsigned *gid) {
        _cleanup_(freep) char *path = file_join(g->o.proc_driver, "params");
        _cleanup_(freep) char *text = NULL;
        struct err unsaid;
        size_t n = 0;
        *mode = 0666;
        *gid = 0;
        if (file_read(path, SMALL_FILE_MAX, &text, &n, &unsaid) == 0)
                proc_params_node((struct str){ text, n }, mode, gid);
}

/* A driver container has its device nodes in its own dev/. */
static struct driver_root dev_root(const struct gpu *g) {
        return driver_root_has_dev(&g->o.root) ? g->o.root : (struct driver_root){ "/", "/" };
}

static int edits_options(const struct gpu *g, struct gpu_edits_options *ret, struct err *e) {
        *ret = (struct gpu_edits_options){ .root = g->o.root,
                                           .dev_root = dev_root(g),
                                           .sys = g->o.sys,
                                           .proc_driver = g->o.proc_driver,
                                           .gids = !g->o.no_gids,
                                           .hook = g->hook,
                                           .no_profiles = g->no_profiles,
                                           .ldconfig = g->o.ldconfig,
                                           .driver_version = g->devices->driver_version };
        find_node_mode(g, &ret->node_mode, &ret->node_gid);
        return find_majors(g, &ret->majors, e);
}

static int plan_common(struct gpu *g, struct arena *a, struct err *e) {
        struct gpu_planning *p = &g->planning;
        if (edits_options(g, &p->options, e) < 0 || find_files(g, a, e) < 0)
                return -1;
        if (gpu_edits_common(&p->options, &g->files, a, &p->common, e) == 0)
                return 0;
        if (e->kind == ERR_NOT_FOUND && e->code == GPU_EDITS_NO_UVM) {
                event_record(g->claims->o.events, EVENT_NODE(g->o.node), EVENT_WARNING, REASON_UVM_NOT_LOADED,
                             "no pod gets a GPU on this node: %s", e->msg);
        }
        return -1;
}

/* Copies the edits, because the thread that writes them may outlive the driver and its list of files. */
int gpu_plan_claim(void *u, const struct op *op, struct arena *a, struct cdi_edits *ret, struct err *e) {
        struct gpu *g = u;
        if (plan_common(g, a, e) < 0)
                return -1;
        *ret = cdi_copy(&g->planning.common, a);
        return 0;
}

int gpu_plan_device(void *u, const struct op *op, const struct node_request *w, struct arena *a,
                    struct node_effect *ret, struct err *e) {
        const struct gpu *g = u;
        const struct gpu_device *d = gpu_device_find(g->devices, w->result->device);
        struct cdi_edits its;
        if (gpu_edits_device(&g->planning.options, d, &g->planning.common, a, &its, e) < 0)
                return -1;
        ret->edits = cdi_copy(&its, a);
        gpu_want_of(w)->info = gpu_record_info(d, a);
        return 0;
}

/* ---- the record ---- */

/* Devices with the same configuration form a group. Those without one form a group by their kind. */
void gpu_plan_record(const struct node_request *w, struct node_device *ret) {
        const struct gpu_request *own = gpu_want_of(w);
        ret->type = gpu_config_type(own->kind);
        ret->info = own->info;
        ret->group = ((unsigned)own->config_index * 4 + own->kind) * 2 + gpu_work_slices(w);
        ret->group_info = gpu_work_slices(w) ? GPU_WORK_SLICED : NULL;
}

struct recorded {
        const char *name, *type;
        struct str info, config;
        bool admin;
};
static const struct jd_field f_recorded[] = { JD_STR(struct recorded, "name", name),
                                              JD_STR(struct recorded, "type", type),
                                              JD_RAW(struct recorded, "info", info),
                                              JD_RAW(struct recorded, "configState", config),
                                              JD_BOOL(struct recorded, "admin", admin, .omit_empty = true),
                                              JD_END };

/* The text before the devices in the comment of the CDI file. */
static const char label[] = " devices ";

const char *gpu_plan_comment(const struct op *op, struct arena *a) {
        struct buf b = BUF_INIT(1 << 20);
        struct jw w = JW(&b);
        jw_arr(&w, NULL);
        for (size_t i = 0; i < op->n_requests; i++) {
                const struct node_request *r = &op->requests[i];
                const struct gpu_request *own = gpu_want_of(r);
                jd_encode(f_recorded,
                          &(struct recorded){ .name = r->result->device,
                                              .type = gpu_config_type(own->kind),
                                              .info = str_from(own->info),
                                              .config = str_from(gpu_work_slices(r) ? GPU_WORK_SLICED : ""),
                                              .admin = r->result->admin_access },
                          &w, NULL);
        }
        jw_end_arr(&w);
        const char *text = arena_printf(a, "%s%s", label + 1, buf_str(&b));
        buf_done(&b);
        return text;
}

/* ---- rebuilding the record ---- */

static bool gpu_plan_is_name(const char *name) {
        return name && str_is_dns_label(name) && str_starts(name, "gpu-");
}

/* Returns the device of this name, which may exist already; NULL: the list is full. */
static struct node_device *gpu_plan_add_device(struct node_device *devices, size_t *n, const char *name,
                                               const char *info, bool sliced, struct arena *a) {
        bool mig = strstr(name, "-mig-") != NULL;
        for (size_t i = 0; i < *n; i++) {
                if (streq(devices[i].name, name))
                        return &devices[i];
        }
        if (*n == DEVICES_MAX)
                return NULL;
        devices[*n] = (struct node_device){
                .name = name,
                .type = mig ? GPU_TYPE_MIG : GPU_TYPE_FULL,
                .info = info ? info
                             : gpu_record_info(&(struct gpu_device){ .kind = mig ? GPU_MIG : GPU_FULL }, a),
                .group = (mig ? GPU_CONFIG_MIG : GPU_CONFIG_GPU) * 2U + sliced,
                .group_info = sliced ? GPU_WORK_SLICED : NULL,
        };
        return &devices[(*n)++];
}

/* Accepts `info` as gpu_record_info() writes it: an object of texts and numbers. Another object could be
 * nested too deep for the checkpoint. */
static const char *flat_info(struct str info, struct arena *a) {
        const char *text = info.n ? arena_strndup(a, info.p, info.n) : "";
        return *text == '{' && !strpbrk(text + 1, "{[") ? text : NULL;
}

/* Reads our own comment if it is in the first line. Its JSON ends before the boot ID. */
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
                struct recorded t = { 0 };
                size_t before = *n;
                if (jd_decode(f_recorded, v, "", a, &t, &ignored) < 0 || !gpu_plan_is_name(t.name))
                        continue;
                struct node_device *d = gpu_plan_add_device(devices, n, t.name, flat_info(t.info, a),
                                                            str_eq(t.config, STR(GPU_WORK_SLICED)), a);
                if (d) /* a request without admin access takes the device */
                        d->admin = t.admin && (*n > before || d->admin);
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
                if (gpu_plan_is_name(device))
                        gpu_plan_add_device(devices, &n, device, NULL, false, a);
        }
        *ret = devices;
        return n;
}
