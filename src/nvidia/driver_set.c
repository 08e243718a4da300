/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/driver_set.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "nvidia/elf_soname.h"
#include "nvidia/ld_cache.h"
#include "nvidia/root_walk.h"

enum { LD_CACHE_MAX = 16 << 20 };

/* Folders with libraries; %m is the machine. */
static const char *const library_dirs[] = { "",
                                            "/usr/lib64",
                                            "/usr/lib/%m-linux-gnu",
                                            "/usr/lib/%m-linux-gnu/nvidia/current",
                                            "/lib64",
                                            "/lib/%m-linux-gnu",
                                            "/lib/%m-linux-gnu/nvidia/current",
                                            NULL };
static const char *const data_dirs[] = { "/etc", "/usr/local/share", "/usr/share", NULL };
static const char *const program_dirs[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin",
                                            "/sbin",           "/bin",           NULL };
static const char *const run_dirs[] = { "/run", "/var/run", NULL };

/* %v is the driver's version. */
static const char *const graphics[] = { "libnvidia-egl-gbm.so.*.*",
                                        "libnvidia-egl-wayland.so.*.*",
                                        "libnvidia-egl-wayland2.so.*.*",
                                        "libnvidia-egl-xcb.so.*.*",
                                        "libnvidia-egl-xlib.so.*.*",
                                        "libnvidia-vulkan-producer.so.%v",
                                        NULL };
static const char *const xorg[] = { "nvidia_drv.so", "libglxserver_nvidia.so.%v", NULL };
/* Below the folder of the driver's libraries (L), and below the system's folders. */
static const char *const xorg_dirs[] = { "%L/nvidia/xorg",
                                         "%L/xorg/modules/drivers",
                                         "%L/xorg/modules/extensions",
                                         "%L/xorg/modules/updates/drivers",
                                         "%L/xorg/modules/updates/extensions",
                                         "/usr/lib/xorg/modules/drivers",
                                         "/usr/lib/xorg/modules/extensions",
                                         "/usr/lib/xorg/modules/updates/drivers",
                                         "/usr/lib/xorg/modules/updates/extensions",
                                         "/usr/lib64/xorg/modules/drivers",
                                         "/usr/lib64/xorg/modules/extensions",
                                         "/usr/lib64/xorg/modules/updates/drivers",
                                         "/usr/lib64/xorg/modules/updates/extensions",
                                         "/usr/X11R6/lib/modules/drivers",
                                         "/usr/X11R6/lib/modules/extensions",
                                         "/usr/X11R6/lib/modules/updates/drivers",
                                         "/usr/X11R6/lib/modules/updates/extensions",
                                         "/usr/X11R6/lib64/modules/drivers",
                                         "/usr/X11R6/lib64/modules/extensions",
                                         "/usr/X11R6/lib64/modules/updates/drivers",
                                         "/usr/X11R6/lib64/modules/updates/extensions",
                                         NULL };
static const char *const configs[] = { "glvnd/egl_vendor.d/10_nvidia.json",
                                       "egl/egl_external_platform.d/15_nvidia_gbm.json",
                                       "egl/egl_external_platform.d/10_nvidia_wayland.json",
                                       "egl/egl_external_platform.d/09_nvidia_wayland2.json",
                                       "egl/egl_external_platform.d/20_nvidia_xcb.json",
                                       "egl/egl_external_platform.d/20_nvidia_xlib.json",
                                       "nvidia/nvoptix.bin",
                                       "OpenCL/vendors/nvidia.icd",
                                       "X11/xorg.conf.d/10-nvidia.conf",
                                       "X11/xorg.conf.d/nvidia-drm-outputclass.conf",
                                       NULL };
/* Some hosts have these in the driver's root itself. Containers expect them in /etc. */
static const char *const vulkan[] = { "vulkan/icd.d/nvidia_icd.json", "vulkan/icd.d/nvidia_layers.json",
                                      "vulkan/implicit_layer.d/nvidia_layers.json",
                                      "vulkan/icd.d/nvidia_icd.%m.json", NULL };
static const char *const programs[] = { "nvidia-smi",
                                        "nvidia-debugdump",
                                        "nvidia-persistenced",
                                        "nvidia-cuda-mps-control",
                                        "nvidia-cuda-mps-server",
                                        "nvidia-imex",
                                        "nvidia-imex-ctl",
                                        NULL };
static const char *const sockets[] = { "nvidia-persistenced/socket", NULL };
/* The driver has the second one since branch R615. */
static const char *const firmware[] = { "gsp*.bin", "ucodes*.bin", NULL };
static const char *const firmware_dirs[] = { "/lib/firmware/updates/%r", "/lib/firmware/updates",
                                             "/lib/firmware/%r", "/lib/firmware", NULL };

/* A folder that has one of these is a folder of the driver's libraries. */
static const char *const known[] = { "libcuda.so", "libnvidia-ml.so" };

struct search {
        const struct driver_set_options *o;
        struct root_walk walk;
        struct arena *a;
        struct driver_set set;
        size_t cap, cap_folders;
        /* The folders of the driver's libraries: usually one, but several if a distribution or a driver
         * container splits the driver into packages. */
        const char *dirs[ARRAY_LEN(known)];
        size_t n_dirs;
        const char *dir; /* the current folder */
};

/* ---- folders that the result depends on ---- */

static int stamp(const struct root_walk *w, const char *path, struct driver_folder *ret, struct err *e) {
        struct stat st;
        int r = root_walk_stat(w, path, &st, e);
        *ret = (struct driver_folder){ .path = path };
        if (r > 0 && S_ISDIR(st.st_mode)) {
                ret->there = true;
                ret->dev = st.st_dev;
                ret->ino = st.st_ino;
                ret->changed = st.st_mtim;
        }
        return r < 0 ? -1 : 0;
}

/* To be called before the folder is searched. */
static int depend_on(struct search *s, const char *dir, struct err *e) {
        const char *path = *dir ? dir : "/";
        for (size_t i = 0; i < s->set.n_folders; i++) {
                if (streq(s->set.folders[i].path, path))
                        return 0;
        }
        ARENA_GROW(s->a, s->set.folders, s->set.n_folders, s->cap_folders);
        return stamp(&s->walk, path, &s->set.folders[s->set.n_folders++], e);
}

static int depend_on_parent(struct search *s, const char *path, struct err *e) {
        return depend_on(s, arena_strndup(s->a, path, (size_t)(strrchr(path, '/') - path)), e);
}

static bool is_before(struct timespec a, struct timespec b) {
        return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* A second change within one tick of the kernel's clock does not change the time. */
static bool folder_holds(const struct root_walk *w, const struct driver_set *set,
                         const struct driver_folder *was) {
        struct driver_folder now;
        struct err e;
        return stamp(w, was->path, &now, &e) == 0 && now.there == was->there && now.dev == was->dev &&
               now.ino == was->ino && now.changed.tv_sec == was->changed.tv_sec &&
               now.changed.tv_nsec == was->changed.tv_nsec &&
               (!was->there || is_before(was->changed, set->begun));
}

bool driver_set_holds(const struct driver_root *root, const struct driver_set *set) {
        struct root_walk w;
        struct stat st;
        struct err e;
        if (root_walk_init(&w, root->here, root->host, &e) < 0)
                return false;
        bool holds = true;
        for (size_t i = 0; holds && i < set->n_folders; i++)
                holds = folder_holds(&w, set, &set->folders[i]);
        for (size_t i = 0; holds && i < set->n; i++)
                holds = root_walk_stat(&w, set->items[i].real, &st, &e) > 0;
        root_walk_done(&w);
        return holds;
}

/* ---- the search ---- */

/* Replaces the placeholders in the text: the machine (%m), the version (%v), the kernel (%r) and the current
 * library folder (%L). */
static const char *fill_in(const struct search *s, const char *text) {
        struct buf b = BUF_INIT(4096);
        for (const char *p = text; *p; p++) {
                if (*p != '%') {
                        buf_addc(&b, *p);
                        continue;
                }
                p++;
                if (*p == 'L')
                        buf_adds(&b, streq(s->dir, "/") ? "" : s->dir);
                else
                        buf_adds(&b, *p == 'm'   ? s->o->machine
                                     : *p == 'v' ? s->o->version
                                                 : s->o->kernel_release);
        }
        const char *filled = arena_strndup(s->a, buf_str(&b), b.n);
        buf_done(&b);
        return filled;
}

static struct driver_item *driver_set_add(struct search *s, enum driver_group group, const char *real,
                                          const char *inside) {
        for (size_t i = 0; i < s->set.n; i++) {
                if (streq(s->set.items[i].inside, inside))
                        return NULL;
        }
        ARENA_GROW(s->a, s->set.items, s->set.n, s->cap);
        struct driver_item *item = &s->set.items[s->set.n++];
        *item = (struct driver_item){ group, real, root_walk_below(s->o->root.host, real, s->a), inside };
        return item;
}

/* Adds the file at the path; for DRIVER_SOCKET anything except a folder. 1: the file exists and is in the
 * set. Programs, configuration and the like keep the searched path, even if it is a link. A library gets its
 * real name, because the hook creates the links to it in the container. */
static int add_at(struct search *s, enum driver_group group, const char *path, const char *inside,
                  struct err *e) {
        struct root_file f;
        if (depend_on_parent(s, path, e) < 0)
                return -1;
        int r = root_walk_find(&s->walk, path, s->a, &f, e);
        if (r <= 0)
                return r;
        bool fits = group == DRIVER_SOCKET ? !S_ISDIR(f.st.st_mode) : S_ISREG(f.st.st_mode);
        if (!fits || (group == DRIVER_PROGRAM && !(f.st.st_mode & 0111)))
                return 0;
        (void)driver_set_add(s, group, f.real, inside ? inside : f.real);
        return 1;
}

/* ---- the folders of the libraries ---- */

static const char *folder_of(struct search *s, const char *path) {
        const char *slash = strrchr(path, '/');
        return slash == path ? "/" : arena_strndup(s->a, path, (size_t)(slash - path));
}

static void add_dir(struct search *s, const char *dir) {
        for (size_t i = 0; i < s->n_dirs; i++)
                if (streq(s->dirs[i], dir))
                        return;
        s->dirs[s->n_dirs++] = dir;
}

/* 1: the folder has the file, so it is a folder of the driver's libraries. */
static int try_dir(struct search *s, const char *dir, const char *name, struct err *e) {
        struct root_file f;
        if (depend_on(s, dir, e) < 0)
                return -1;
        int r = root_walk_find(&s->walk, arena_printf(s->a, "%s/%s", dir, name), s->a, &f, e);
        if (r <= 0 || !S_ISREG(f.st.st_mode))
                return r < 0 ? -1 : 0;
        add_dir(s, folder_of(s, f.real));
        return 1;
}

/* Adds the folders that the loader's cache of the root has for one of the driver's libraries. Its paths may
 * be links into the folder of the selected driver (Debian's alternatives). */
static int try_ld_cache(struct search *s, const char *soname, const char *name, struct err *e) {
        struct err why;
        if (depend_on(s, "/etc", e) < 0 || /* ldconfig renames a new file into place */
            depend_on(s, "/etc/alternatives", e) < 0)
                return -1;
        _cleanup_(closep) int fd = root_walk_read(&s->walk, "/etc/ld.so.cache", &why);
        _cleanup_(freep) char *text = NULL;
        size_t n = 0, at = 0;
        struct str path;
        int r = 0;
        if (fd < 0) /* a root without a loader */
                return 0;
        if (file_read_fd(fd, "/etc/ld.so.cache", LD_CACHE_MAX, &text, &n, e) < 0)
                return e->kind == ERR_INVALID ? 0 : -1;
        while (r == 0 && ld_cache_next((struct str){ text, n }, soname, &at, &path)) {
                const char *cached = arena_strndup(s->a, path.p, path.n);
                struct root_file f;
                if (depend_on_parent(s, cached, e) < 0)
                        return -1;
                r = root_walk_find(&s->walk, cached, s->a, &f, e);
                if (r > 0)
                        r = try_dir(s, folder_of(s, f.real), name, e);
                if (r == 0)
                        r = try_dir(s, folder_of(s, cached), name, e);
        }
        return r;
}

static int find_library_dirs(struct search *s, struct err *e) {
        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                const char *name = arena_printf(s->a, "%s.%s", known[i], s->o->version);
                int r = 0;
                for (const char *const *d = library_dirs; r == 0 && *d; d++)
                        r = try_dir(s, fill_in(s, *d), name, e);
                if (r == 0)
                        r = try_ld_cache(s, arena_printf(s->a, "%s.1", known[i]), name, e);
                if (r < 0)
                        return -1;
        }
        if (s->n_dirs) {
                s->set.library_dir = s->dirs[0];
                return 0;
        }
        return err_set(
                e, ERR_NOT_FOUND, ENOENT,
                "neither libcuda.so.%s nor libnvidia-ml.so.%s is in driver root '%s': is the version of the "
                "loaded driver installed there, and is the chart value nvidiaDriverRoot correct?",
                s->o->version, s->o->version, s->o->root.host);
}

/* ---- groups ---- */

static void look_at_library(struct search *s, struct driver_item *item) {
        char soname[ELF_SONAME_SIZE];
        struct err ignored;
        const char *slash = strrchr(item->inside, '/'), *name = slash + 1;
        const char *dir = slash == item->inside
                                  ? "/"
                                  : arena_strndup(s->a, item->inside, (size_t)(slash - item->inside));
        _cleanup_(closep) int fd = root_walk_read(&s->walk, item->inside, &ignored);
        const char *so = strstr(name, ".so.");
        if (fd >= 0 && elf_soname(fd, soname, &ignored) == 0 && *soname)
                item->soname = arena_strdup(s->a, soname);
        item->has_soname_link = item->soname && root_walk_is_link(&s->walk, dir, item->soname);
        item->has_bare_link =
                so && root_walk_is_link(&s->walk, dir, arena_strndup(s->a, name, (size_t)(so - name) + 3));
}

static int add_matching(struct search *s, enum driver_group group, const char *dir, const char *pattern,
                        struct err *e) {
        const char **names;
        if (depend_on(s, dir, e) < 0 ||
            root_walk_names(&s->walk, *dir ? dir : "/", pattern, s->a, &names, e) < 0)
                return -1;
        for (; *names; names++) {
                struct root_file f;
                struct driver_item *item;
                const char *path = arena_printf(s->a, "%s/%s", streq(dir, "/") ? "" : dir, *names);
                int r = root_walk_find(&s->walk, path, s->a, &f, e);
                if (r < 0)
                        return -1;
                if (r == 0 || !S_ISREG(f.st.st_mode))
                        continue;
                item = driver_set_add(s, group, f.real, group == DRIVER_FIRMWARE ? path : f.real);
                if (item && group == DRIVER_LIBRARY)
                        look_at_library(s, item);
        }
        return 0;
}

static int add_libraries(struct search *s, struct err *e) {
        const char *pattern = arena_printf(s->a, "*.so.%s", s->o->version);
        if (add_matching(s, DRIVER_LIBRARY, s->dir, pattern, e) < 0 ||
            add_matching(s, DRIVER_LIBRARY, s->dir, "libnvidia-nvvm70.so.*", e) < 0 ||
            add_matching(s, DRIVER_LIBRARY, fill_in(s, "%L/vdpau"), pattern, e) < 0)
                return -1;
        for (const char *const *p = graphics; *p; p++) {
                if (add_matching(s, DRIVER_GRAPHICS, s->dir, fill_in(s, *p), e) < 0)
                        return -1;
                for (const char *const *d = library_dirs; *d; d++) {
                        if (add_matching(s, DRIVER_GRAPHICS, fill_in(s, *d), fill_in(s, *p), e) < 0)
                                return -1;
                }
        }
        return 0;
}

/* Files that are known by name. */
struct listed_files {
        enum driver_group group;
        const char *const *dirs, *const *names;
        bool all;       /* from every folder that has the name; otherwise from the first one */
        const char *at; /* the folder where containers expect the file, if it is another one */
};

static int driver_set_add_listed(struct search *s, const struct listed_files *l, struct err *e) {
        for (const char *const *n = l->names; *n; n++) {
                const char *name = fill_in(s, *n);
                int r = 0;
                for (const char *const *d = l->dirs; *d && (l->all || r == 0); d++) {
                        const char *path = arena_printf(s->a, "%s/%s", fill_in(s, *d), name);
                        const char *inside = l->at ? arena_printf(s->a, "%s/%s", l->at, name) : path;
                        r = add_at(s, l->group, path, inside, e);
                        if (r < 0)
                                return -1;
                }
        }
        return 0;
}

static int add_firmware_at(struct search *s, const char *dir, struct err *e) {
        const char *below = arena_printf(s->a, "%s/nvidia/%s", dir, s->o->version);
        for (const char *const *p = firmware; *p; p++)
                if (add_matching(s, DRIVER_FIRMWARE, below, *p, e) < 0)
                        return -1;
        return 0;
}

static int add_firmware(struct search *s, struct err *e) {
        if (*s->o->firmware_path == '/' && add_firmware_at(s, s->o->firmware_path, e) < 0)
                return -1;
        for (const char *const *d = firmware_dirs; *d; d++)
                if (add_firmware_at(s, fill_in(s, *d), e) < 0)
                        return -1;
        return 0;
}

static int add_from_each_dir(struct search *s, struct err *e) {
        static const struct listed_files drivers = { .group = DRIVER_XORG, .dirs = xorg_dirs, .names = xorg };
        for (size_t i = 0; i < s->n_dirs; i++) {
                s->dir = s->dirs[i];
                if (add_libraries(s, e) < 0 || driver_set_add_listed(s, &drivers, e) < 0)
                        return -1;
        }
        return 0;
}

static int driver_set_search(struct search *s, struct err *e) {
        static const char *const vulkan_dirs[] = { "/etc", "/usr/local/share", "/usr/share", "", NULL };
        static const struct listed_files data = { DRIVER_CONFIG, data_dirs, configs, .all = true },
                                         layers = { DRIVER_CONFIG, vulkan_dirs, vulkan, .at = "/etc" },
                                         tools = { DRIVER_PROGRAM, program_dirs, programs, false, NULL },
                                         run = { DRIVER_SOCKET, run_dirs, sockets, false, NULL };
        return find_library_dirs(s, e) < 0 || add_from_each_dir(s, e) < 0 ||
                               driver_set_add_listed(s, &data, e) < 0 ||
                               driver_set_add_listed(s, &layers, e) < 0 || add_firmware(s, e) < 0 ||
                               driver_set_add_listed(s, &tools, e) < 0 ||
                               (s->o->sockets && driver_set_add_listed(s, &run, e) < 0)
                       ? -1
                       : 0;
}

int driver_set_find(const struct driver_set_options *o, struct arena *a, struct driver_set *ret,
                    struct err *e) {
        struct search s = { .o = o, .a = a };
        if (!*o->version || o->version[strspn(o->version, "0123456789.")])
                return err_set(e, ERR_INVALID, 0, "the driver's version '%.60s' is not a number", o->version);
        if (root_walk_init(&s.walk, o->root.here, o->root.host, e) < 0)
                return -1;
        clock_gettime(CLOCK_REALTIME_COARSE, &s.set.begun); /* the clock of folders' times */
        int r = driver_set_search(&s, e);
        root_walk_done(&s.walk);
        if (r == 0)
                *ret = s.set;
        return r;
}
