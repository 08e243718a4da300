/* SPDX-License-Identifier: Apache-2.0 */
#include "node/check_judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/toml.h"
#include "nvidia/gpu_fabric.h"

enum {
        KERNEL_MAJOR = 5,
        KERNEL_MINOR = 6,
        FREE_BYTES_MIN = 16 << 20, /* several times the checkpoint, the grants and the CDI files of a node */
        FREE_INODES_MIN = 500,
};

/* item kernel of both plugins: the kernel is Linux 5.6 or newer */
void check_judge_kernel(struct check_list *l, const char *release) {
        unsigned major = 0, minor = 0;

        if (sscanf(release, "%u.%u", &major, &minor) != 2)
                check_list_skipped(l, "kernel", "the release '%s' of the kernel is not a version", release);
        else if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
                check_list_problem(l, "kernel", "Update the kernel of the node.",
                                   "Linux %s is older than %d.%d", release, KERNEL_MAJOR, KERNEL_MINOR);
        else
                check_list_ok(l, "kernel", "Linux %s", release);
}

/* ---- capabilities ---- */

static const struct {
        unsigned bit; /* linux/capability.h */
        const char *name;
} needed[] = { { 18, "SYS_CHROOT" }, { 21, "SYS_ADMIN" }, { 27, "MKNOD" } };

/* item capabilities of both plugins: the container has the capabilities of a privileged container */
void check_judge_capabilities(struct check_list *l, struct str status) {
        static const char key[] = "CapEff:";
        struct buf missing = BUF_INIT(256);
        struct str line;
        uint64_t mask = 0;
        bool found = false;

        while (!found && str_next_line(&status, &line)) {
                _cleanup_(freep) char *text = xstrndup(line.p, line.n);
                found = str_starts(text, key) && sscanf(text + sizeof key - 1, "%" SCNx64, &mask) == 1;
        }
        for (size_t i = 0; found && i < ARRAY_LEN(needed); i++)
                if (!(mask >> needed[i].bit & 1))
                        buf_addf(&missing, "%s%s", missing.n ? ", " : "", needed[i].name);
        if (!found)
                check_list_skipped(l, "capabilities", "/proc/self/status does not list them");
        else if (missing.n)
                check_list_problem(l, "capabilities",
                                   "Set securityContext.privileged=true in the values of this container "
                                   "(kubeletPlugin.containers), and allow it by Pod Security.",
                                   "this container lacks %s", buf_str(&missing));
        else
                check_list_ok(l, "capabilities", "those of a privileged container");
        buf_done(&missing);
}

/* ---- the driver ---- */

/* item kernel-modules of both plugins: the kernel modules nvidia and nvidia_uvm are loaded */
void check_judge_modules(struct check_list *l, const struct check_modules *m) {
        if (!m->nvidia)
                check_list_problem(l, "kernel-modules",
                                   "Install the NVIDIA driver, run modprobe nvidia on the node, and look at "
                                   "the kernel log.",
                                   "the kernel module nvidia is not loaded");
        else if (!m->uvm)
                check_list_problem(l, "kernel-modules",
                                   "Run nvidia-modprobe -u -c=0 on the node, and at each boot "
                                   "(nvidia-persistenced does it).",
                                   "the kernel module nvidia_uvm is not loaded, so CUDA cannot start");
        else
                check_list_ok(l, "kernel-modules", "nvidia and nvidia_uvm are loaded");
}

/* item driver-version of both plugins: the library and the kernel module of the NVIDIA driver have the
 * same version, which is new enough for IMEX */
void check_judge_driver_version(struct check_list *l, const char *module, const char *library,
                                const char *min) {
        const char *version = str_or(library, module);

        if (!version || !*version)
                check_list_skipped(l, "driver-version", "the version of the NVIDIA driver is not known");
        else if (library && module && !streq(library, module))
                check_list_problem(
                        l, "driver-version",
                        "Restart the node, or load the kernel module of the installed driver.",
                        "the library has version %s, but version %s of the kernel module is loaded", library,
                        module);
        else if (min && nvml_version_cmp(version, min) < 0)
                check_list_problem(l, "driver-version", "Update the NVIDIA driver.",
                                   "driver %s is older than %s, the first with an nvidia-imex that lists "
                                   "nodes by name",
                                   version, min);
        else
                check_list_ok(l, "driver-version", "%s", version);
}

static const char node_remedy[] = "Run nvidia-modprobe -c=0 -u on the node, or start nvidia-persistenced, "
                                  "and restart the plugin's pod.";

/* item device-nodes of both plugins: the device nodes of the NVIDIA driver exist, with the numbers of
 * the loaded driver */
void check_judge_device_nodes(struct check_list *l, const struct check_device_node *nodes, size_t n) {
        size_t wrong = 0;

        for (size_t i = 0; i < n; i++) {
                const struct check_device_node *d = &nodes[i];
                if (!d->there)
                        check_list_problem(l, "device-nodes", node_remedy, "%s does not exist", d->path);
                else if (!d->is_char)
                        check_list_problem(l, "device-nodes",
                                           "Remove the file, and recreate the device node.",
                                           "%s is not a device node", d->path);
                else if ((d->want_major && d->major != d->want_major) || d->minor != d->want_minor)
                        check_list_problem(l, "device-nodes", "Remove the device node, and recreate it.",
                                           "%s is device %u:%u, and the driver's is %u:%u", d->path, d->major,
                                           d->minor, d->want_major, d->want_minor);
                else
                        continue;
                wrong++;
        }
        if (!n)
                check_list_skipped(l, "device-nodes", "the devices of the driver are not known");
        else if (!wrong)
                check_list_ok(l, "device-nodes", "%zu device nodes exist, with the driver's numbers", n);
}

/* ---- folders and disks ---- */

void check_judge_folder(struct check_list *l, const char *name, const char *path, int error, bool read_only,
                        const char *remedy) {
        if (error)
                check_list_problem(l, name, remedy, "'%s' cannot be used: %s", path, strerror(error));
        else if (read_only)
                check_list_problem(l, name, "Mount its file system read-write.", "'%s' is read-only", path);
        else
                check_list_ok(l, name, "'%s' exists and can be written", path);
}

/* item disk-space of both plugins: the file systems for the plugin's data and for CDI files have free
 * space */
void check_judge_space(struct check_list *l, const char *path, const struct check_space *s) {
        static const char remedy[] = "Free space on this file system of the node.";

        if (s->free_bytes < FREE_BYTES_MIN)
                check_list_problem(l, "disk-space", remedy, "'%s' has %" PRIu64 " KiB free", path,
                                   s->free_bytes >> 10);
        else if (s->inodes && s->free_inodes < FREE_INODES_MIN)
                check_list_problem(l, "disk-space", remedy, "'%s' has %" PRIu64 " free inodes", path,
                                   s->free_inodes);
        else
                check_list_ok(l, "disk-space", "'%s' has %" PRIu64 " MiB free", path, s->free_bytes >> 20);
}

/* ---- the container runtime ---- */

/* 1: the file sets enable_cdi of containerd. */
static int read_enable_cdi(const struct check_config *c, bool *ret, struct err *e) {
        static const char *const paths[][4] = { { "plugins", "io.containerd.cri.v1.runtime", "enable_cdi" },
                                                { "plugins", "io.containerd.grpc.v1.cri", "enable_cdi" } };
        int r = 0;

        for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
                struct toml_value v;
                if (toml_find(c->text, paths[i], &v, e) < 0)
                        return -1;
                if (v.kind == TOML_BOOL) {
                        *ret = v.truth;
                        r = 1;
                }
        }
        return r;
}

/* item container-runtime of both plugins: the configuration of containerd or CRI-O enables CDI, if the
 * container sees it */
void check_judge_runtime(struct check_list *l, const struct check_config *files, size_t n) {
        const char *containerd = NULL, *crio = NULL, *set = NULL;
        bool enabled = false;
        struct err e;

        for (size_t i = 0; i < n; i++) {
                if (strstr(files[i].file, "/crio/")) {
                        crio = files[i].file;
                        continue;
                }
                containerd = containerd ? containerd : files[i].file;
                int r = read_enable_cdi(&files[i], &enabled, &e);
                if (r < 0) {
                        check_list_skipped(l, "container-runtime", "'%s' cannot be read: %s", files[i].file,
                                           e.msg);
                        return;
                }
                set = r ? files[i].file : set;
        }
        if (set && enabled)
                check_list_ok(l, "container-runtime", "containerd's '%s' enables CDI", set);
        else if (set)
                check_list_problem(l, "container-runtime",
                                   "Set enable_cdi = true in this file, and restart containerd.",
                                   "containerd's '%s' disables CDI, so no container gets its devices", set);
        else if (containerd)
                check_list_skipped(l, "container-runtime",
                                   "containerd's '%s' does not set enable_cdi: containerd 2 enables CDI by "
                                   "default, and containerd 1.7 does not",
                                   containerd);
        else if (crio)
                check_list_ok(l, "container-runtime", "CRI-O ('%s') always uses CDI", crio);
        else
                check_list_skipped(l, "container-runtime",
                                   "this container sees no configuration of containerd or CRI-O");
}
