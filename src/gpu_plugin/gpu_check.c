/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_check.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/file.h"
#include "gpu_plugin/gpu_devices.h"
#include "gpu_plugin/gpu_hook.h"
#include "node/check_judge.h"
#include "node/check_slice.h"
#include "nvidia/nvml_line.h"
#include "nvidia/pci_facts.h"
#include "nvidia/toolkit.h"

enum { SMALL_MAX = 65536 };

/* ---- judging ---- */

/* item gpus of gpu-kubelet-plugin: NVML describes each GPU, and how many GPUs and MIG devices can be
 * allocated */
/* item mig of gpu-kubelet-plugin: each GPU in MIG mode has MIG devices */
/* item persistence-mode of gpu-kubelet-plugin: persistence mode is on for all GPUs */
void gpu_check_devices(struct check_list *l, const struct inventory *in, const struct gpu_devices *d) {
        size_t gpus = 0, unused = 0;

        for (size_t i = 0; i < d->n; i++)
                gpus += d->items[i].kind == GPU_FULL;
        if (!in->n_gpus)
                check_list_reason(l, "gpus", REASON_NO_GPUS, "NVML reports no GPU");
        else
                check_list_ok(l, "gpus",
                              "NVML reports %zu GPU%s; %zu GPU%s and %zu MIG device%s can be allocated",
                              in->n_gpus, in->n_gpus == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s", d->n - gpus,
                              d->n - gpus == 1 ? "" : "s");
        for (size_t i = 0; i < d->n_left_out; i++) {
                if (d->left_out[i].unused_mig) /* see below */
                        continue;
                _cleanup_(freep) char *text = xasprintf("%s: %s", d->left_out[i].what, d->left_out[i].why);
                check_list_reason(l, "gpus", REASON_GPU_LEFT_OUT, text);
        }
        for (size_t i = 0; i < in->n_gpus; i++) {
                const struct gpu_facts *g = &in->gpus[i];
                if (inventory_failed(&g->failure) || g->mig_mode != 1 || g->n_mig)
                        continue;
                unused++;
                check_list_problem(
                        l, "mig",
                        "Create MIG devices with nvidia-smi mig -cgi, or disable MIG mode with "
                        "nvidia-smi -mig 0.",
                        "GPU %lld is in MIG mode and has no MIG devices, so it cannot be allocated",
                        (long long)g->index);
        }
        if (in->n_gpus && !unused)
                check_list_ok(l, "mig", "each GPU in MIG mode has MIG devices");
        if (d->n_persistence_off) {
                _cleanup_(freep) char *text = xasprintf(
                        "persistence mode is off on %zu GPU%s, so each use of an idle GPU initializes "
                        "it again, for seconds",
                        d->n_persistence_off, d->n_persistence_off == 1 ? "" : "s");
                check_list_reason(l, "persistence-mode", REASON_PERSISTENCE_MODE_OFF, text);
        } else if (in->n_gpus) {
                check_list_ok(l, "persistence-mode", "it is on for all GPUs");
        }
}

/* item driver-files of gpu-kubelet-plugin: the libraries and programs that containers get exist in the
 * driver root, with libcuda */
void gpu_check_files(struct check_list *l, const struct driver_set *set) {
        size_t libraries = 0, programs = 0, firmware = 0;
        bool cuda = false, smi = false;

        for (size_t i = 0; i < set->n; i++) {
                const struct driver_item *it = &set->items[i];
                libraries += it->group == DRIVER_LIBRARY || it->group == DRIVER_GRAPHICS;
                programs += it->group == DRIVER_PROGRAM;
                firmware += it->group == DRIVER_FIRMWARE;
                cuda = cuda ||
                       (it->group == DRIVER_LIBRARY && it->soname && streq(it->soname, "libcuda.so.1"));
                smi = smi || (it->group == DRIVER_PROGRAM && str_ends(it->inside, "/nvidia-smi"));
        }
        if (!cuda)
                check_list_problem(
                        l, "driver-files",
                        "Install the driver's package with the CUDA libraries (libcuda, "
                        "libnvidia-compute), in the same version as the kernel module.",
                        "there is no libcuda.so.1 of the driver's version, so CUDA cannot start in "
                        "containers");
        else
                check_list_ok(l, "driver-files",
                              "libraries: %zu, in %s; programs: %zu%s; firmware files: %zu", libraries,
                              set->library_dir, programs, smi ? "" : ", without nvidia-smi", firmware);
}

/* ---- reading ---- */

static void check_files(struct check_list *l, const struct gpu_check_options *o, const char *version) {
        _cleanup_(freep) char *text = NULL;
        struct driver_set set;
        struct utsname kernel;
        struct err e;
        size_t n;
        bool read = !*o->node.flags->alt_proc_devices &&
                    file_read("/sys/module/firmware_class/parameters/path", SMALL_MAX, &text, &n, &e) == 0;
        struct str path = read ? str_trim((struct str){ text, n }) : STR("");

        uname(&kernel);
        const struct driver_set_options options = {
                .root = { .host = o->node.flags->root_host, .here = o->node.flags->root_here },
                .version = version,
                .machine = kernel.machine,
                .kernel_release = kernel.release,
                .firmware_path = arena_strndup(l->arena, path.p, path.n),
                .sockets = o->sockets,
        };
        if (driver_set_find(&options, l->arena, &set, &e) < 0)
                check_list_problem(l, "driver-files",
                                   "Install the libraries of the driver in the version of the kernel module.",
                                   "%s", e.msg);
        else
                gpu_check_files(l, &set);
}

/* The sysfs that the plugin reads. */
static char *sys_folder(const struct check_node_options *o) {
        return *o->flags->alt_proc_devices ? file_join(o->flags->root_here, "sys") : xstrdup("/sys");
}

/* The device nodes of nvidia_drm. */
static void gpu_check_drm(struct check_list *l, const struct gpu_check_options *o, const struct inventory *in,
                          const char *sys) {
        const char *pci[INVENTORY_GPUS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < in->n_gpus && n < INVENTORY_GPUS_MAX; i++) {
                char address[PCI_ADDRESS_SIZE];
                if (!inventory_failed(&in->gpus[i].failure) && in->gpus[i].pci_bus_id &&
                    pci_address(in->gpus[i].pci_bus_id, address))
                        pci[n++] = arena_strdup(l->arena, address);
        }
        check_node_drm(l, &o->node, sys, pci, n);
}

static void check_gpus(struct check_list *l, const struct gpu_check_options *o, const char *module) {
        const struct driver_root root = { .host = o->node.flags->root_host,
                                          .here = o->node.flags->root_here };
        _cleanup_(freep) char *sys = sys_folder(&o->node);
        unsigned minors[INVENTORY_GPUS_MAX];
        struct gpu_devices devices;
        struct inventory in;
        struct str json;
        struct err e;
        size_t n = 0;

        if (check_node_nvml(l, &root, NVML_ASK_INVENTORY, l->arena, &json) < 0 ||
            inventory_decode(json, l->arena, &in, &e) < 0) {
                check_judge_driver_version(l, module, NULL, NULL);
                check_list_skipped(l, "gpus", "NVML does not answer");
                check_node_devices(l, &o->node, NULL, 0);
                check_slice_compare(l, &o->node, NULL, -1);
                return;
        }
        check_judge_driver_version(l, module, in.driver_version, NULL);
        gpu_devices_describe(&in, sys, &devices);
        gpu_check_devices(l, &in, &devices);
        int64_t n_devices = (int64_t)devices.n;
        gpu_devices_done(&devices);
        for (size_t i = 0; i < in.n_gpus && n < INVENTORY_GPUS_MAX; i++)
                if (!inventory_failed(&in.gpus[i].failure))
                        minors[n++] = (unsigned)in.gpus[i].minor;
        check_node_devices(l, &o->node, minors, n);
        check_files(l, o, in.driver_version);
        gpu_check_drm(l, o, &in, sys);
        check_slice_compare(l, &o->node, NULL, n_devices);
}

static void on_hook(void *u, const char *problem, bool no_profiles) {
        struct check_list *l = u;

        if (*problem)
                check_list_reason(l, "cdi-hook", REASON_HOOK_FAILS_SELF_TEST, problem);
        else
                check_list_ok(l, "cdi-hook", "its self-test succeeds");
}

/* A copy of our hook in the plugin's folder. */
struct hook_name {
        char *path;
        const char *dir;
};

static int gpu_check_on_copy(void *u, int folder, const char *name, struct err *e) {
        struct hook_name *h = u;

        if (str_starts(name, HOOK_PREFIX) && !h->path)
                h->path = file_join(h->dir, name);
        return 0;
}

/* item cdi-hook of gpu-kubelet-plugin: the CDI hook is installed, and its self-test succeeds on this
 * kernel */
static void gpu_check_hook(struct check_list *l, const struct gpu_check_options *o) {
        const struct node_flags *f = o->node.flags;
        _cleanup_(freep) char *dir = file_join(f->plugins_dir, GPU_DRIVER);
        struct hook_name h = { .dir = dir };
        struct driver_root roots[2];
        size_t n = check_node_host_roots(&o->node, roots);
        struct hook_check_options options = { .done = on_hook, .u = l };
        uv_loop_t loop;
        struct err e;

        if (*f->cdi_hook && !n) {
                check_list_skipped(l, "cdi-hook", "this container does not see the host's '%s'", f->cdi_hook);
                return;
        }
        if (!*f->cdi_hook && (file_each(dir, gpu_check_on_copy, &h, &e) < 0 || !h.path)) {
                check_list_problem(l, "cdi-hook", "Look at the log of the plugin's container.",
                                   "the plugin has not installed its CDI hook in '%s'", dir);
                return;
        }
        if (!*f->cdi_hook && gpu_hook_is_noexec(dir)) {
                _cleanup_(freep) char *text = xasprintf("'%s' is mounted noexec", dir);
                check_list_reason(l, "cdi-hook", REASON_HOOK_NOT_EXECUTABLE, text);
                free(h.path);
                return;
        }
        options.program = *f->cdi_hook ? f->cdi_hook : h.path;
        options.root = *f->cdi_hook ? roots[0].here : NULL;
        uv_loop_init(&loop);
        struct hook_check *check = gpu_hook_check(&loop, &options);
        uv_run(&loop, UV_RUN_DEFAULT);
        gpu_hook_check_free(check);
        uv_run(&loop, UV_RUN_DEFAULT);
        uv_loop_close(&loop);
        free(h.path);
}

/* item container-toolkit of gpu-kubelet-plugin: the NVIDIA container toolkit gives no GPUs without a
 * claim */
static void gpu_check_toolkit(struct check_list *l, const struct gpu_check_options *o) {
        struct driver_root roots[2];
        size_t n = check_node_host_roots(&o->node, roots);
        char why[600];

        switch (toolkit_gives_gpus(roots, n, why, sizeof why)) {
        case TOOLKIT_GPUS_TO_ALL:
                check_list_reason(l, "container-toolkit", REASON_TOOLKIT_GIVES_GPUS, why);
                break;
        case TOOLKIT_GPUS_UNKNOWN:
                check_list_skipped(l, "container-toolkit", "%s", why);
                break;
        case TOOLKIT_GPUS_BY_CLAIM:
                check_list_ok(l, "container-toolkit", "no setting was found that gives GPUs without a claim");
                break;
        }
}

void gpu_check_run(struct check_list *l, const struct gpu_check_options *o) {
        const char *module = check_node_module_version(&o->node, l->arena);

        check_node_common(l, &o->node);
        gpu_check_hook(l, o);
        gpu_check_toolkit(l, o);
        check_gpus(l, o, module);
}
