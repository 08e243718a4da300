/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_edits.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "gpu_plugin/gpu_hook.h"
#include "nvidia/proc_files.h"
#include "nvidia/root_walk.h"

enum { PROC_MAX = 4096, NODES_MAX = 64, LINK_MAX_BYTES = 256 };

static const char *const file_options[] = { "ro", "nosuid", "nodev", "rbind", "rprivate", NULL };
static const char *const socket_options[] = { "nosuid", "nodev", "rbind", "rprivate", "noexec", NULL };
static const char *const hook_env[] = { "NVIDIA_CTK_DEBUG=false", NULL };

/* ---- lists that grow ---- */

struct args {
        const char **list;
        size_t n, cap;
        struct arena *a;
};

static void add_arg(struct args *args, const char *arg) {
        ARENA_GROW(args->a, args->list, args->n + 1, args->cap); /* one more stays NULL */
        args->list[args->n++] = arg;
}

/* The command line of a hook. */
static struct args command(const struct gpu_edits_options *o, const char *name, struct arena *a) {
        struct args args = { .a = a };
        const char *first[HOOK_ARGS_MAX];
        size_t n = gpu_hook_args(o->hook, first);
        for (size_t i = 0; i < n; i++)
                add_arg(&args, first[i]);
        add_arg(&args, name);
        return args;
}

static void add_link(struct args *args, const char *target, const char *dir, const char *name) {
        const char *link = arena_printf(args->a, "%s::%s/%s", target, streq(dir, "/") ? "" : dir, name);
        for (size_t i = 0; i < args->n; i++) {
                if (streq(args->list[i], link))
                        return;
        }
        add_arg(args, "--link");
        add_arg(args, link);
}

static struct cdi_hook hook_of(const struct gpu_edits_options *o, const struct args *args) {
        return (struct cdi_hook){
                .name = "createContainer", .path = o->hook, .args = args->list, .env = hook_env
        };
}

/* ---- device nodes ---- */

struct nodes {
        struct arena *a;
        struct cdi_node *list;
        unsigned *gids;
        size_t n, n_gids;
};

static struct nodes new_nodes(struct arena *a) {
        return (struct nodes){ .a = a,
                               .list = arena_alloc(a, NODES_MAX * sizeof(struct cdi_node)),
                               .gids = arena_alloc(a, NODES_MAX * sizeof(unsigned)) };
}

/* 1: a character device with that name exists. 0: it does not. */
static int gpu_edits_find_node(const struct gpu_edits_options *o, const char *path, struct arena *a,
                               struct stat *ret, struct err *e) {
        const char *here = root_walk_below(o->dev_root.here, path, a);
        if (lstat(here, ret) < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : err_errno(e, errno, "stat '%s'", here);
        return S_ISCHR(ret->st_mode) && major(ret->st_rdev) != 0;
}

/* 1: the device node is added. 0: its numbers are unknown. The major that the kernel lists (0: none) takes
 * precedence over the node's, which may be older than the last load of the module. The runtime creates the
 * node by its numbers, so the host may lack it: on a host that has run no CUDA program there are no nodes,
 * and our container's /dev is not the host's. */
static int gpu_edits_add_node(const struct gpu_edits_options *o, const char *path, unsigned listed_major,
                              unsigned minor_number, struct nodes *nodes, struct err *e) {
        struct stat st;
        struct cdi_node node = { .path = path,
                                 .major = listed_major,
                                 .minor = minor_number,
                                 .mode = o->node_mode,
                                 .gid = o->node_gid,
                                 .permissions = "rwm" };
        int there = gpu_edits_find_node(o, path, nodes->a, &st, e);
        if (there < 0 || (!there && !listed_major))
                return there;
        if (nodes->n == NODES_MAX)
                return err_set(e, ERR_INVALID, 0, "more than %d device nodes", NODES_MAX);
        if (there) {
                node.host_path = root_walk_below(o->dev_root.host, path, nodes->a);
                node.mode = st.st_mode & 0777;
                node.gid = st.st_gid;
        }
        if (!listed_major) {
                node.major = major(st.st_rdev);
                node.minor = minor(st.st_rdev);
        }
        nodes->list[nodes->n++] = node;
        /* A process that is not root in the container needs the group. */
        if (o->gids && node.gid && (node.mode & 0006) != 0006)
                nodes->gids[nodes->n_gids++] = node.gid;
        return 1;
}

static bool is_loaded(const struct gpu_edits_options *o, const char *module, struct arena *a) {
        return access(arena_printf(a, "%s/module/%s", o->sys, module), F_OK) == 0;
}

/* Sets the error for a device node that cannot be created, with the remedy. */
static int no_node(const struct gpu_edits_options *o, const char *path, struct err *e) {
        return err_set(e, ERR_NOT_FOUND, ENOENT,
                       "there is no device node '%s' below '%s' on the host, and /proc/devices does not list "
                       "the NVIDIA driver: load the driver, and run nvidia-smi on the node, or check its "
                       "driver container",
                       path, o->dev_root.host);
}

/* The node of an unloaded module does not work, so the module must be loaded. If the driver is a substitute
 * without kernel modules, the node alone is enough. */
static int add_uvm(const struct gpu_edits_options *o, struct nodes *nodes, struct arena *a, struct err *e) {
        static const struct {
                const char *path;
                unsigned minor_number;
        } uvm[] = { { "/dev/nvidia-uvm", PROC_MINOR_UVM },
                    { "/dev/nvidia-uvm-tools", PROC_MINOR_UVM_TOOLS } };
        bool loaded = o->majors.uvm || !is_loaded(o, "nvidia", a);
        for (size_t i = 0; i < ARRAY_LEN(uvm); i++) {
                int r = loaded ? gpu_edits_add_node(o, uvm[i].path, o->majors.uvm, uvm[i].minor_number, nodes,
                                                    e)
                               : 0;
                if (r < 0)
                        return -1;
                if (r == 0 && uvm[i].minor_number == PROC_MINOR_UVM)
                        return err_set(e, ERR_NOT_FOUND, GPU_EDITS_NO_UVM,
                                       "the kernel module nvidia_uvm is not loaded, and every CUDA program "
                                       "needs it: run 'modprobe nvidia_uvm' on the node, and put the line "
                                       "nvidia_uvm into a file of /etc/modules-load.d there");
        }
        return 0;
}

/* ---- edits of all containers ---- */

static const char *file_name(const struct driver_item *item) {
        return strrchr(item->inside, '/') + 1;
}

static const char *folder(const struct driver_item *item, struct arena *a) {
        size_t n = (size_t)(strrchr(item->inside, '/') - item->inside);
        return n ? arena_strndup(a, item->inside, n) : "/";
}

static struct cdi_mount *make_mounts(const struct driver_set *files, struct arena *a) {
        struct cdi_mount *mounts = arena_alloc(a, (files->n + 1) * sizeof *mounts);
        for (size_t i = 0; i < files->n; i++) {
                const struct driver_item *item = &files->items[i];
                mounts[i] =
                        (struct cdi_mount){ item->host, item->inside,
                                            item->group == DRIVER_SOCKET ? socket_options : file_options };
        }
        return mounts;
}

/* Adds links that graphics programs expect and that the loader does not create. */
static void link_graphics(const struct driver_set *files, const char *version, struct args *args) {
        struct arena *a = args->a;
        const struct {
                const char *file, *target, *link;
        } links[] = {
                { arena_printf(a, "libnvidia-allocator.so.%s", version), "../libnvidia-allocator.so.1",
                  "gbm/nvidia-drm_gbm.so" },
                { arena_printf(a, "libnvidia-vulkan-producer.so.%s", version),
                  arena_printf(a, "libnvidia-vulkan-producer.so.%s", version),
                  "libnvidia-vulkan-producer.so" },
                { arena_printf(a, "libglxserver_nvidia.so.%s", version),
                  arena_printf(a, "libglxserver_nvidia.so.%s", version), "libglxserver_nvidia.so" },
        };
        for (size_t l = 0; l < ARRAY_LEN(links); l++) {
                for (size_t i = 0; i < files->n; i++) {
                        const struct driver_item *item = &files->items[i];
                        if (streq(file_name(item), links[l].file))
                                add_link(args, links[l].target, folder(item, a), links[l].link);
                }
        }
}

/* Adds links with the names by which programs load a library: those that exist on the host, and three that
 * many programs use although no package has them. */
static void link_library(const struct driver_item *item, struct args *args) {
        struct arena *a = args->a;
        const char *name = file_name(item), *dir = folder(item, a), *so = strstr(name, ".so.");
        if (str_starts(name, "libcuda.so."))
                add_link(args, "libcuda.so.1", dir, "libcuda.so");
        else if (str_starts(name, "libGLX_nvidia.so."))
                add_link(args, name, dir, "libGLX_indirect.so.0");
        else if (str_starts(name, "libnvidia-opticalflow.so."))
                add_link(args, "libnvidia-opticalflow.so.1", dir, "libnvidia-opticalflow.so");
        if (item->has_soname_link && !streq(item->soname, name))
                add_link(args, name, dir, item->soname);
        if (item->has_bare_link && so)
                add_link(args, item->soname ? item->soname : name, dir,
                         arena_strndup(a, name, (size_t)(so - name) + 3));
}

static void add_folder(struct args *args, const char *dir) {
        for (size_t i = 0; i < args->n; i++) {
                if (streq(args->list[i], dir))
                        return;
        }
        add_arg(args, "--folder");
        add_arg(args, dir);
}

static size_t make_hooks(const struct gpu_edits_options *o, const struct driver_set *files, struct arena *a,
                         struct cdi_hook *hooks) {
        struct args graphics = command(o, "create-symlinks", a), libraries = graphics,
                    compat = command(o, "enable-cuda-compat", a), cache = command(o, "update-ldcache", a),
                    modify = command(o, "disable-device-node-modification", a),
                    profile = command(o, HOOK_PROFILE_COMMAND, a);
        size_t n = 0, bare = graphics.n;
        libraries = command(o, "create-symlinks", a);
        link_graphics(files, o->driver_version, &graphics);
        for (size_t i = 0; i < files->n; i++) {
                const struct driver_item *item = &files->items[i];
                if (item->group != DRIVER_LIBRARY)
                        continue;
                link_library(item, &libraries);
                if (fnmatch("lib?*.so*", file_name(item), 0) == 0)
                        add_folder(&cache, folder(item, a));
        }
        if (o->ldconfig) {
                add_arg(&cache, "--ldconfig-path");
                add_arg(&cache, o->ldconfig);
        }
        add_arg(&compat, arena_printf(a, "--host-driver-version=%s", o->driver_version));
        if (graphics.n > bare)
                hooks[n++] = hook_of(o, &graphics);
        if (libraries.n > bare)
                hooks[n++] = hook_of(o, &libraries);
        hooks[n++] = hook_of(o, &compat);
        hooks[n++] = hook_of(o, &cache);
        hooks[n++] = hook_of(o, &modify);
        if (!o->no_profiles)
                hooks[n++] = hook_of(o, &profile);
        return n;
}

int gpu_edits_common(const struct gpu_edits_options *o, const struct driver_set *files, struct arena *a,
                     struct cdi_edits *ret, struct err *e) {
        const char **env = arena_alloc(a, 3 * sizeof *env);
        struct cdi_hook *hooks = arena_alloc(a, 6 * sizeof *hooks);
        struct nodes nodes = new_nodes(a);
        int r = gpu_edits_add_node(o, "/dev/nvidiactl", o->majors.gpu, PROC_MINOR_CTL, &nodes, e);
        if (r <= 0)
                return r < 0 ? -1 : no_node(o, "/dev/nvidiactl", e);
        if (add_uvm(o, &nodes, a, e) < 0)
                return -1;
        /* For displays only. The module is not always loaded. */
        if (gpu_edits_add_node(o, "/dev/nvidia-modeset",
                               is_loaded(o, "nvidia_modeset", a) ? o->majors.gpu : 0, PROC_MINOR_MODESET,
                               &nodes, e) < 0)
                return -1;
        env[0] = arena_printf(a, "NVIDIA_CTK_LIBCUDA_DIR=%s", files->library_dir);
        /* With this value NVIDIA's older runtime, if it is installed, adds nothing. */
        env[1] = "NVIDIA_VISIBLE_DEVICES=void";
        struct cdi_edits all = { .env = env,
                                 .nodes = nodes.list,
                                 .n_nodes = nodes.n,
                                 .mounts = make_mounts(files, a),
                                 .n_mounts = files->n,
                                 .hooks = hooks,
                                 .n_hooks = make_hooks(o, files, a, hooks),
                                 .gids = nodes.gids,
                                 .n_gids = nodes.n_gids };
        *ret = cdi_normalize(&all, NULL, a);
        return 0;
}

/* ---- edits for a device ---- */

struct drm {
        const struct gpu_edits_options *o;
        struct nodes *nodes;
        struct arena *a;
};

static int add_drm(void *u, int sysfs, const char *name, struct err *e) {
        const struct drm *drm = u;
        if (!str_starts(name, "card") && !str_starts(name, "renderD"))
                return 0;
        const char *path = arena_printf(drm->a, "/dev/dri/%s", name);
        return gpu_edits_add_node(drm->o, path, 0, 0, drm->nodes, e) < 0 ? -1 : 0;
}

/* Adds links by which programs find the nodes of a PCI device. */
static void link_by_path(const struct gpu_edits_options *o, const struct gpu_device *d,
                         const struct nodes *nodes, struct args *args) {
        static const char *const kinds[] = { "card", "render" };
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
                char text[LINK_MAX_BYTES];
                const char *name = arena_printf(args->a, "pci-%s-%s", d->address, kinds[k]);
                const char *at = root_walk_below(o->dev_root.here, "/dev/dri/by-path/", args->a);
                ssize_t n = readlink(arena_printf(args->a, "%s%s", at, name), text, sizeof text);
                if (n <= 0 || n == sizeof text)
                        continue;
                text[n] = '\0';
                const char *slash = strrchr(text, '/'), *target = slash ? slash + 1 : text;
                for (size_t i = 0; i < nodes->n; i++) {
                        if (streq(strrchr(nodes->list[i].path, '/') + 1, target))
                                add_link(args, arena_strdup(args->a, text), "/dev/dri/by-path", name);
                }
        }
}

/* Adds the graphics nodes that sysfs lists for this PCI device. The device may disappear at the same time. */
static int find_drm(const struct gpu_edits_options *o, const struct gpu_device *d, struct nodes *nodes,
                    struct arena *a, struct err *e) {
        struct drm drm = { o, nodes, a };
        const char *dir = arena_printf(a, "%s/bus/pci/devices/%s/drm", o->sys, d->address);
        return file_each(dir, add_drm, &drm, e) < 0 && e->kind != ERR_NOT_FOUND ? -1 : 0;
}

/* Adds the permission to use an instance of a MIG GPU: a device node that the runtime creates. The kernel's
 * file has its number. */
static int gpu_edits_add_capability(const struct gpu_edits_options *o, const char *access,
                                    struct nodes *nodes, struct arena *a, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        struct proc_capability cap;
        size_t n = 0;
        const char *path = arena_printf(a, "%s/capabilities/%s", o->proc_driver, access);
        if (file_read(path, PROC_MAX, &text, &n, e) < 0)
                return -1;
        if (proc_capability_parse((struct str){ text, n }, &cap, e) < 0)
                return err_wrap(e, "'%s'", path);
        nodes->list[nodes->n++] =
                (struct cdi_node){ .path = arena_printf(a, "/dev/nvidia-caps/nvidia-cap%u", cap.minor),
                                   .major = o->majors.caps,
                                   .minor = cap.minor,
                                   .mode = cap.mode };
        return 0;
}

static int add_instance(const struct gpu_edits_options *o, const struct gpu_device *d, struct nodes *nodes,
                        struct arena *a, struct err *e) {
        const char *gi = arena_printf(a, "gpu%u/mig/gi%u", d->minor, d->gpu_instance);
        if (!o->majors.caps)
                return err_set(e, ERR_NOT_FOUND, ENOENT,
                               "MIG device '%s' needs the character devices nvidia-caps, which are not in "
                               "/proc/devices: "
                               "is the NVIDIA driver loaded?",
                               d->name);
        if (gpu_edits_add_capability(o, arena_printf(a, "%s/access", gi), nodes, a, e) < 0 ||
            gpu_edits_add_capability(o, arena_printf(a, "%s/ci%u/access", gi, d->compute_instance), nodes, a,
                                     e) < 0)
                return err_wrap(e, "MIG device '%s'", d->name);
        return 0;
}

int gpu_edits_device(const struct gpu_edits_options *o, const struct gpu_device *d,
                     const struct cdi_edits *common, struct arena *a, struct cdi_edits *ret, struct err *e) {
        struct nodes nodes = new_nodes(a);
        struct args links = command(o, "create-symlinks", a);
        struct cdi_hook *hook = arena_alloc(a, sizeof *hook);
        size_t bare = links.n;
        const char *path = arena_printf(a, "/dev/nvidia%u", d->minor);
        int r = gpu_edits_add_node(o, path, o->majors.gpu, d->minor, &nodes, e);
        if (r == 0)
                no_node(o, path, e);
        if (r <= 0)
                return err_wrap(e, "device '%s'", d->name);
        if (d->address && (d->kind == GPU_FULL || d->graphics)) {
                if (find_drm(o, d, &nodes, a, e) < 0)
                        return -1;
                link_by_path(o, d, &nodes, &links);
        }
        if (nodes.n + 2 > NODES_MAX)
                return err_set(e, ERR_INVALID, 0, "device '%s' has more than %d device nodes", d->name,
                               NODES_MAX);
        if (d->kind == GPU_MIG && add_instance(o, d, &nodes, a, e) < 0)
                return -1;
        *hook = hook_of(o, &links);
        struct cdi_edits all = { .nodes = nodes.list,
                                 .n_nodes = nodes.n,
                                 .hooks = hook,
                                 .n_hooks = links.n > bare,
                                 .gids = nodes.gids,
                                 .n_gids = nodes.n_gids };
        *ret = cdi_normalize(&all, common, a);
        return 0;
}
