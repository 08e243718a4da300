/* SPDX-License-Identifier: Apache-2.0 */
#include "node/check_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/reasons.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stderr.h"
#include "node/check_settings.h"
#include "nvidia/nvml_library.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_session.h"
#include "nvidia/nvml_worker.h"
#include "nvidia/proc_files.h"
#include "nvidia/root_walk.h"
#include "nvidia/toolkit.h"

enum { FLAGS_MAX = 64, SMALL_MAX = 256 << 10, SOCKET_TIMEOUT_S = 5, CONFIGS_MAX = 64, NODES_MAX = 256 };

/* ---- the command line ---- */

static int check_node_flags(struct node_main *m, const struct flag *flags, int argc, char **argv,
                            bool *ret_json) {
        struct flag table[FLAGS_MAX] = { FLAG(BOOL, "json", ret_json, "print JSON") };
        size_t n = 1;

        for (; flags[n - 1].name; n++) {
                BUG_ON(n + 1 >= FLAGS_MAX);
                table[n] = flags[n - 1];
        }
        int r = node_main_flags(m, table, argc, argv);
        if (r < 0)
                log_setup(LOG_TEXT, 0); /* LOG_VERBOSITY is for the plugin */
        return r;
}

/* Returns the exit status. */
static int check_node_print(const struct check_list *l, const struct node_main *m, bool json) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);

        if (json)
                check_list_json(l, m->program, m->flags->node, &out);
        else
                check_list_text(l, &out);
        fputs(buf_str(&out), stdout);
        return fflush(stdout) == 0 ? check_list_status(l) : 1;
}

int check_node_main(struct node_main *m, const struct flag *flags, int argc, char **argv,
                    check_node_fn *run) {
        struct check_list l;
        bool json = false;
        int r = check_node_flags(m, flags, argc, argv, &json);

        if (r >= 0)
                return r;
        check_list_init(&l);
        run(m, &l);
        r = check_node_print(&l, m, json);
        check_list_done(&l);
        return r;
}

/* ---- files ---- */

static bool check_node_is_folder(const char *path) {
        struct stat st;
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *check_node_dev(const char *root_here) {
        char *below = file_join(root_here, "dev");
        if (check_node_is_folder(below))
                return below;
        free(below);
        return xstrdup("/dev");
}

size_t check_node_host_roots(const struct check_node_options *o, struct driver_root ret[static 2]) {
        size_t n = 0;

        if (streq(o->flags->root_host, "/"))
                ret[n++] = (struct driver_root){ .host = "/", .here = o->flags->root_here };
        if (*o->host_root && check_node_is_folder(o->host_root))
                ret[n++] = (struct driver_root){ .host = "/", .here = o->host_root };
        return n;
}

static const char *check_node_text(const char *path, struct arena *a) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        size_t n;

        return file_read(path, SMALL_MAX, &text, &n, &e) < 0 ? NULL : arena_strndup(a, text, n);
}

static void check_security(struct check_list *l) {
        check_settings_security(
                l, &(struct check_security){
                           .lockdown = check_node_text("/sys/kernel/security/lockdown", l->arena),
                           .enforce = check_node_text("/sys/fs/selinux/enforce", l->arena),
                           .context = check_node_text("/proc/self/attr/current", l->arena),
                           .nvidia_loaded = check_node_is_folder("/sys/module/nvidia") });
}

static void check_status(struct check_list *l) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        size_t n;

        if (file_read("/proc/self/status", SMALL_MAX, &text, &n, &e) < 0)
                check_list_skipped(l, "capabilities", "%s", e.msg);
        else
                check_judge_capabilities(l, (struct str){ text, n });
}

/* item driver-root of both plugins: the driver root contains libnvidia-ml.so.1 and nvidia-smi */
static void check_root(struct check_list *l, const struct node_flags *f) {
        const struct driver_root root = { .host = f->root_host, .here = f->root_here };
        struct driver_file library, smi;
        struct err e;

        if (driver_root_find_library(&root, "libnvidia-ml.so.1", l->arena, &library, &e) < 0 ||
            driver_root_find_binary(&root, "nvidia-smi", l->arena, &smi, &e) < 0)
                check_list_reason(l, "driver-root", REASON_DRIVER_NOT_FOUND, e.msg);
        else
                check_list_ok(l, "driver-root", "the NVIDIA driver is in '%s': %s", f->root_host,
                              library.host);
}

const char *check_node_module_version(const struct check_node_options *o, struct arena *a) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        size_t n;

        if (*o->flags->alt_proc_devices ||
            file_read("/sys/module/nvidia/version", SMALL_MAX, &text, &n, &e) < 0)
                return NULL;
        struct str version = str_trim((struct str){ text, n });
        return arena_strndup(a, version.p, version.n);
}

static void check_modules(struct check_list *l, const struct check_node_options *o) {
        struct check_modules m = { .nvidia = check_node_is_folder("/sys/module/nvidia"),
                                   .uvm = check_node_is_folder("/sys/module/nvidia_uvm") };

        if (*o->flags->alt_proc_devices)
                check_list_skipped(l, "kernel-modules", "altProcDevices replaces the devices of the kernel");
        else
                check_judge_modules(l, &m);
}

static void check_folder(struct check_list *l, const char *name, const char *path, const char *remedy) {
        struct statvfs v;
        int error = access(path, R_OK | W_OK | X_OK) == 0 && statvfs(path, &v) == 0 ? 0 : errno;

        check_judge_folder(l, name, path, error, !error && v.f_flag & ST_RDONLY, remedy);
}

static void check_space(struct check_list *l, const char *path) {
        struct statvfs v;

        if (statvfs(path, &v) < 0) {
                check_list_skipped(l, "disk-space", "'%s': %s", path, strerror(errno));
                return;
        }
        check_judge_space(l, path,
                          &(struct check_space){ .free_bytes = (uint64_t)v.f_bavail * v.f_frsize,
                                                 .free_inodes = v.f_favail,
                                                 .inodes = v.f_files });
}

/* ---- device nodes ---- */

static int read_majors(const struct check_node_options *o, struct proc_majors *ret, struct err *e) {
        const char *path = *o->flags->alt_proc_devices ? o->flags->alt_proc_devices : "/proc/devices";
        _cleanup_(freep) char *text = NULL;
        size_t n;

        return file_read(path, SMALL_MAX, &text, &n, e) < 0
                       ? -1
                       : proc_devices_majors((struct str){ text, n }, ret, e);
}

static struct check_device_node check_node_at(const char *path, unsigned want_major, unsigned want_minor) {
        struct check_device_node d = { .path = path, .want_major = want_major, .want_minor = want_minor };
        struct stat st;

        d.there = stat(path, &st) == 0;
        d.is_char = d.there && S_ISCHR(st.st_mode);
        d.major = d.is_char ? major(st.st_rdev) : 0;
        d.minor = d.is_char ? minor(st.st_rdev) : 0;
        return d;
}

/* Names in a folder. */
struct node_names {
        struct arena *a;
        const char *items[NODES_MAX];
        size_t n;
};

static int take_node_name(void *u, int folder, const char *name, struct err *e) {
        struct node_names *x = u;

        if (x->n < NODES_MAX)
                x->items[x->n++] = arena_strdup(x->a, name);
        return 0;
}

/* The device nodes of capabilities that exist, "nvidia-cap<minor>" (NVIDIA/nvidia-modprobe). Those of MIG
 * devices are created when they are needed, so none has to exist. */
static size_t capability_nodes(struct check_list *l, const char *dev, unsigned major,
                               struct check_device_node *ret, size_t max) {
        _cleanup_(freep) char *dir = file_join(dev, "nvidia-caps");
        struct node_names names = { .a = l->arena };
        size_t n = 0;
        struct err e;

        if (!major || file_each(dir, take_node_name, &names, &e) < 0)
                return 0;
        for (size_t i = 0; i < names.n && n < max; i++) {
                unsigned minor;
                if (sscanf(names.items[i], "nvidia-cap%u", &minor) == 1)
                        ret[n++] = check_node_at(arena_printf(l->arena, "%s/%s", dir, names.items[i]), major,
                                                 minor);
        }
        return n;
}

void check_node_devices(struct check_list *l, const struct check_node_options *o, const unsigned *minors,
                        size_t n) {
        _cleanup_(freep) char *dev = check_node_dev(o->flags->root_here);
        struct check_device_node nodes[NODES_MAX];
        struct proc_majors majors;
        size_t count = 0;
        struct err e;

        if (read_majors(o, &majors, &e) < 0) {
                check_list_skipped(l, "device-nodes", "%s", e.msg);
                return;
        }
        const struct {
                const char *name;
                unsigned major, minor;
        } shared[] = { { "nvidiactl", majors.gpu, PROC_MINOR_CTL },
                       { "nvidia-uvm", majors.uvm, PROC_MINOR_UVM },
                       { "nvidia-uvm-tools", majors.uvm, PROC_MINOR_UVM_TOOLS } };
        for (size_t i = 0; i < ARRAY_LEN(shared) + n && count < NODES_MAX; i++) {
                bool gpu = i >= ARRAY_LEN(shared);
                unsigned minor = gpu ? minors[i - ARRAY_LEN(shared)] : shared[i].minor;
                const char *name = gpu ? arena_printf(l->arena, "nvidia%u", minor) : shared[i].name;
                unsigned major = gpu ? majors.gpu : shared[i].major;
                if (major) /* otherwise the module is not loaded, which is another item */
                        nodes[count++] =
                                check_node_at(arena_printf(l->arena, "%s/%s", dev, name), major, minor);
        }
        count += capability_nodes(l, dev, majors.caps, nodes + count, NODES_MAX - count);
        check_judge_device_nodes(l, nodes, count);
}

/* The folder of sysfs has a folder for each device node: "drm/card0", with its number in the file "dev". */
void check_node_drm(struct check_list *l, const struct check_node_options *o, const char *sys,
                    const char *const *pci, size_t n) {
        _cleanup_(freep) char *dev = check_node_dev(o->flags->root_here);
        struct check_device_node nodes[NODES_MAX];
        size_t count = 0;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(freep) char *dir = xasprintf("%s/bus/pci/devices/%s/drm", sys, pci[i]);
                struct node_names names = { .a = l->arena };
                struct err e;
                if (file_each(dir, take_node_name, &names, &e) < 0)
                        continue; /* nvidia_drm is not loaded */
                for (size_t k = 0; k < names.n && count < NODES_MAX; k++) {
                        _cleanup_(freep) char *path = xasprintf("%s/%s/dev", dir, names.items[k]);
                        const char *text = check_node_text(path, l->arena);
                        unsigned major, minor;
                        if (text && sscanf(text, "%u:%u", &major, &minor) == 2)
                                nodes[count++] = check_node_at(
                                        arena_printf(l->arena, "%s/dri/%s", dev, names.items[k]), major,
                                        minor);
                }
        }
        if (count)
                check_judge_device_nodes(l, nodes, count);
}

/* ---- the container runtime ---- */

struct runtime_files {
        struct check_list *l;
        struct check_config items[CONFIGS_MAX];
        size_t n;
};

static int add_config(struct runtime_files *f, const struct driver_root *root, const char *path,
                      struct err *e) {
        _cleanup_(freep) char *text = NULL;
        size_t n;

        if (f->n == CONFIGS_MAX)
                return 0;
        if (driver_root_read(root, path, SMALL_MAX, &text, &n, e) < 0)
                return e->kind == ERR_NOT_FOUND ? 0 : -1;
        f->items[f->n++] = (struct check_config){ .file = arena_strdup(f->l->arena, path),
                                                  .text = { arena_strndup(f->l->arena, text, n), n } };
        return 0;
}

static int add_drop_ins(struct runtime_files *f, const struct driver_root *root, const char *path,
                        struct err *e) {
        const char *pattern = strrchr(path, '/') + 1, **names;
        const char *dir = arena_strndup(f->l->arena, path, (size_t)(pattern - path - 1));
        struct root_walk w;

        if (root_walk_init(&w, root->here, root->host, e) < 0)
                return -1;
        int r = root_walk_names(&w, dir, pattern, f->l->arena, &names, e);
        root_walk_done(&w);
        for (; r == 0 && *names; names++)
                r = add_config(f, root, arena_printf(f->l->arena, "%s/%s", dir, *names), e);
        return r;
}

static void check_runtime(struct check_list *l, const struct check_node_options *o) {
        struct runtime_files f = { .l = l };
        struct driver_root roots[2];
        size_t n = check_node_host_roots(o, roots);
        struct err e;

        for (size_t i = 0; i < n; i++)
                for (const char *const *p = toolkit_runtime_paths; *p; p++)
                        if ((strchr(*p, '*') ? add_drop_ins : add_config)(&f, &roots[i], *p, &e) < 0) {
                                check_list_skipped(l, "container-runtime", "%s: %s", *p, e.msg);
                                return;
                        }
        check_judge_runtime(l, f.items, f.n);
        check_settings_spec_dirs(l, f.items, f.n, o->flags->cdi_root);
}

/* ---- the plugin ---- */

/* A connected socket with time-outs, or -1 with errno. */
static int connect_to(const struct sockaddr *to, socklen_t size) {
        const struct timeval limit = { .tv_sec = SOCKET_TIMEOUT_S };
        int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -1;
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0 || connect(fd, to, size) < 0) {
                closep(&fd);
                return -1;
        }
        return fd;
}

static bool connects(struct check_list *l, const char *path) {
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = -1;

        if (strlen(path) >= sizeof to.sun_path)
                errno = ENAMETOOLONG;
        else
                fd = connect_to((memcpy(to.sun_path, path, strlen(path)), (const struct sockaddr *)&to),
                                sizeof to);
        if (fd < 0)
                check_list_problem(l, "kubelet-sockets",
                                   "Look at the log of the plugin's container. If the plugin runs, correct "
                                   "kubeletPlugin.kubeletRegistrarDirectoryPath and "
                                   "kubeletPlugin.kubeletPluginsDirectoryPath.",
                                   "no plugin serves '%s': %s", path, strerror(errno));
        closep(&fd);
        return fd >= 0;
}

/* item kubelet-sockets of both plugins: a plugin serves the sockets to which the kubelet connects */
static void check_sockets(struct check_list *l, const struct check_node_options *o) {
        _cleanup_(freep) char *registration =
                xasprintf("%s/%s-reg.sock", o->flags->registrar_dir, o->driver_name);
        _cleanup_(freep) char *dra = xasprintf("%s/%s/dra.sock", o->flags->plugins_dir, o->driver_name);

        if (connects(l, registration) && connects(l, dra))
                check_list_ok(l, "kubelet-sockets", "the plugin serves '%s' and its registration", dra);
}

/* Reads the answer of the running plugin to its readiness probe. */
/* item plugin-ready of both plugins: the running plugin is ready: registered with the kubelet, and its
 * devices are published */
static void check_ready(struct check_list *l, const struct node_flags *f) {
        static const char request[] = "GET /readyz HTTP/1.0\r\n\r\n";
        const struct sockaddr_in to = { .sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)f->health_port),
                                        .sin_addr = { htonl(INADDR_LOOPBACK) } };
        char answer[1024];
        size_t n = 0;
        ssize_t got = 1;

        if (f->health_port <= 0 || f->health_port > 65535) {
                check_list_skipped(l, "plugin-ready", "the plugin serves no probes (healthcheckPort)");
                return;
        }
        int fd = connect_to((const struct sockaddr *)&to, sizeof to);
        if (fd < 0 || send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0) {
                check_list_problem(l, "plugin-ready", "Look at the log of the plugin's container.",
                                   "the plugin does not answer on port %d: %s", (int)f->health_port,
                                   strerror(errno));
                closep(&fd);
                return;
        }
        while (got > 0 && n < sizeof answer - 1) {
                got = read(fd, answer + n, sizeof answer - 1 - n);
                n += got > 0 ? (size_t)got : 0;
        }
        closep(&fd);
        answer[n] = '\0';
        const char *body = strstr(answer, "\r\n\r\n"), *code = strchr(answer, ' ');
        struct str text = str_trim(str_from(body ? body : ""));
        if (code && str_starts(code, " 200 "))
                check_list_ok(l, "plugin-ready", "the plugin is registered and has published its devices");
        else
                check_list_problem(l, "plugin-ready", "Look at the log of the plugin's container.",
                                   "the plugin is not ready: %.*s", (int)text.n, text.p);
}

/* item cdi-folder of both plugins: the folder of the CDI files exists and can be written */
/* item kubelet-folders of both plugins: the folders of the kubelet for plugins exist and can be
 * written */
void check_node_common(struct check_list *l, const struct check_node_options *o) {
        struct utsname kernel;

        uname(&kernel);
        check_judge_kernel(l, kernel.release);
        check_security(l);
        check_status(l);
        check_modules(l, o);
        check_root(l, o->flags);
        check_folder(l, "cdi-folder", o->flags->cdi_root,
                     "Create the folder on the node, and restart the plugin's pod.");
        check_runtime(l, o);
        check_folder(l, "kubelet-folders", o->flags->registrar_dir,
                     "Correct kubeletPlugin.kubeletRegistrarDirectoryPath.");
        check_folder(l, "kubelet-folders", o->flags->plugins_dir,
                     "Correct kubeletPlugin.kubeletPluginsDirectoryPath.");
        check_sockets(l, o);
        check_ready(l, o->flags);
        check_space(l, o->flags->plugins_dir);
        check_space(l, o->flags->cdi_root);
}

/* ---- NVML ---- */

struct nvml_query {
        uv_loop_t loop;
        struct arena *a;
        bool ok;
        struct str json;
        struct err e;
};

static void on_nvml(void *u, const struct str *json, const struct err *e) {
        struct nvml_query *q = u;

        q->ok = json != NULL;
        if (json)
                q->json = (struct str){ arena_strndup(q->a, json->p, json->n), json->n };
        else
                q->e = *e;
        uv_stop(&q->loop);
}

/* item nvml of both plugins: NVML answers */
int check_node_nvml(struct check_list *l, const struct driver_root *root, const char *verb, struct arena *a,
                    struct str *ret) {
        struct nvml_query q = { .a = a };
        struct driver_file library;
        struct err e;

        if (driver_root_find_library(root, "libnvidia-ml.so.1", a, &library, &e) < 0) {
                check_list_skipped(l, "nvml", "%s", e.msg);
                return -1;
        }
        setenv(NVML_WORKER_MASK, "true", 1);
        uv_loop_init(&q.loop);
        struct nvml_client *client = nvml_client_new(&q.loop);
        uint64_t begun = uv_hrtime();
        nvml_client_ask(client, library.here, verb, NVML_LIMITS, on_nvml, &q);
        uv_run(&q.loop, UV_RUN_DEFAULT);
        uint64_t ms = (uv_hrtime() - begun) / 1000000;
        nvml_client_free(client);
        uv_run(&q.loop, UV_RUN_DEFAULT);
        uv_loop_close(&q.loop);
        if (!q.ok) {
                check_list_reason(l, "nvml", REASON_DRIVER_NOT_READY, q.e.msg);
                return -1;
        }
        check_list_ok(l, "nvml", "NVML answered in %llu.%llu s", (unsigned long long)ms / 1000,
                      (unsigned long long)ms % 1000 / 100);
        *ret = q.json;
        return 0;
}
