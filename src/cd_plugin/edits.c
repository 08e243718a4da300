/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/edits.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "nvidia/proc_files.h"

enum { PROC_MAX = 64 * 1024, NODES_MAX = 4096 };

void edits_channels(struct arena *a, unsigned major, unsigned first, unsigned count, struct cdi_edits *ret) {
        struct cdi_node *nodes = arena_alloc(a, count * sizeof *nodes);
        for (unsigned i = 0; i < count; i++)
                nodes[i] = (struct cdi_node){ arena_printf(a, "/dev/nvidia-caps-imex-channels/channel%u",
                                                           first + i),
                                              major, first + i, 0666 };
        *ret = (struct cdi_edits){ .nodes = nodes, .n_nodes = count };
}

unsigned edits_channel_count(const char *proc_driver) {
        _cleanup_(freep) char *path = file_join(proc_driver, "params");
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        unsigned count = 0;
        struct err e;
        if (file_read(path, PROC_MAX, &text, &n, &e) < 0 ||
            proc_params_channel_count((struct str){ text, n }, &count, &e) < 0 || !count)
                return EDITS_CHANNELS_DEFAULT;
        return count;
}

/* ---- device nodes ---- */

struct nodes {
        struct cdi_node *list;
        size_t n, cap;
};

static void edits_add_node(struct arena *a, struct nodes *nodes, const struct cdi_node *node) {
        for (size_t i = 0; i < nodes->n; i++) {
                if (streq(nodes->list[i].path, node->path))
                        return;
        }
        ARENA_GROW(a, nodes->list, nodes->n, nodes->cap);
        nodes->list[nodes->n++] = *node;
}

/* Not for containers: storage, switches and links are managed on the host. Channels are in a folder that is
 * not searched: nvidia-imex opens none of them, and the host's set changes with each claim (host_nodes). */
static bool is_host_only(const char *name) {
        return str_starts(name, "nvidia-fs") || str_starts(name, "nvidia-nvswitch") ||
               str_starts(name, "nvidia-nvlink");
}

struct scan {
        struct arena *a;
        struct nodes *nodes;
        const char *dir, *prefix;
};

static int scan_one(void *u, int folder, const char *name, struct err *e) {
        const struct scan *s = u;
        struct stat st;
        if (s->nodes->n >= NODES_MAX || !str_starts(name, s->prefix) || is_host_only(name) ||
            fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode) ||
            major(st.st_rdev) == 0)
                return 0;
        struct cdi_node node = { arena_printf(s->a, "/%s/%s", s->dir, name), major(st.st_rdev),
                                 minor(st.st_rdev), st.st_mode & 0777 };
        edits_add_node(s->a, s->nodes, &node);
        return 0;
}

/* The character devices <dev root>/<dir>/<prefix>*. A missing folder has none. */
static int scan(struct arena *a, const char *dev_root, const char *dir, const char *prefix,
                struct nodes *nodes, struct err *e) {
        _cleanup_(freep) char *where = file_join(dev_root, dir);
        struct scan s = { a, nodes, dir, prefix };
        return file_each(where, scan_one, &s, e) < 0 && e->kind != ERR_NOT_FOUND ? -1 : 0;
}

static int edits_by_path(const void *a, const void *b) {
        return strcmp(((const struct cdi_node *)a)->path, ((const struct cdi_node *)b)->path);
}

/* The capability that lets a process manage the IMEX session of this node. */
static int edits_add_capability(struct arena *a, const struct edits_daemon *d, struct nodes *nodes,
                                struct err *e) {
        _cleanup_(freep) char *path = file_join(d->proc_driver, "capabilities/fabric-imex-mgmt");
        _cleanup_(freep) char *text = NULL;
        struct proc_capability cap;
        size_t n = 0;
        if (file_read(path, PROC_MAX, &text, &n, e) < 0)
                return err_wrap(e, "IMEX management capability");
        if (proc_capability_parse((struct str){ text, n }, &cap, e) < 0)
                return err_wrap(e, "IMEX management capability '%s'", path);
        struct cdi_node node = { arena_printf(a, "/dev/nvidia-caps/nvidia-cap%u", cap.minor), d->caps_major,
                                 cap.minor, cap.mode };
        edits_add_node(a, nodes, &node);
        return 0;
}

/* ---- mounts ---- */

static const char *const domain_options[] = { "rw", "nosuid", "nodev", "bind", NULL };
static const char *const read_only_options[] = { "ro", "nosuid", "nodev", "rbind", "rprivate", NULL };

static int add_binary(struct arena *a, const struct driver_root *root, const char *name,
                      struct cdi_mount *ret, struct err *e) {
        struct driver_file f;
        if (driver_root_find_binary(root, name, a, &f, e) < 0)
                return -1;
        *ret = (struct cdi_mount){ f.host, arena_printf(a, "/usr/bin/%s", name), read_only_options };
        return 0;
}

/* The domain directory, the CDI files, and on a node with a partition the host's IMEX programs with the
 * driver's libraries, each under its own path. */
static int add_mounts(struct arena *a, const struct edits_daemon *d, struct cdi_edits *ret,
                      const char **ret_library_dir, struct err *e) {
        struct driver_files libraries = { 0 };
        if (*d->clique_id && driver_root_list_libraries(&d->root, d->driver_version, a, &libraries, e) < 0)
                return -1;
        struct cdi_mount *mounts = arena_alloc(a, (libraries.n + 4) * sizeof *mounts);
        size_t n = 0;
        mounts[n++] = (struct cdi_mount){ arena_strdup(a, d->domain_dir), "/imexd", domain_options };
        if (d->cdi_root)
                mounts[n++] =
                        (struct cdi_mount){ arena_strdup(a, d->cdi_root), "/var/run/cdi", read_only_options };
        for (size_t i = 0; i < libraries.n; i++) {
                const struct driver_file *f = &libraries.items[i];
                mounts[n++] = (struct cdi_mount){ f->host, f->inside, read_only_options };
                *ret_library_dir = arena_strndup(a, f->inside, (size_t)(strrchr(f->inside, '/') - f->inside));
        }
        if (*d->clique_id) {
                if (add_binary(a, &d->root, "nvidia-imex", &mounts[n++], e) < 0 ||
                    add_binary(a, &d->root, "nvidia-imex-ctl", &mounts[n++], e) < 0)
                        return -1;
        }
        ret->mounts = mounts;
        ret->n_mounts = n;
        return 0;
}

int edits_for_daemon(struct arena *a, const struct edits_daemon *d, struct cdi_edits *ret, struct err *e) {
        const char **env = arena_alloc(a, 8 * sizeof *env), *library_dir = NULL;
        struct nodes nodes = { 0 };
        size_t n = 0;
        *ret = (struct cdi_edits){ 0 };
        if (add_mounts(a, d, ret, &library_dir, e) < 0)
                return -1;
        const char *dev_root = driver_root_has_dev(&d->root) ? d->root.here : d->dev_root;
        if (*d->clique_id) {
                /* First, so that it takes precedence over a node in /dev of an earlier load of the driver. */
                if (edits_add_capability(a, d, &nodes, e) < 0)
                        return -1;
                if (scan(a, dev_root, "dev", "nvidia", &nodes, e) < 0 ||
                    scan(a, dev_root, "dev/nvidia-caps", "nvidia-cap", &nodes, e) < 0)
                        return -1;
                qsort(nodes.list, nodes.n, sizeof *nodes.list, edits_by_path);
        }
        if (d->domain_uid) {
                env[n++] = arena_printf(a, "CLIQUE_ID=%s", d->clique_id);
                env[n++] = arena_printf(a, "COMPUTE_DOMAIN_UUID=%s", d->domain_uid);
                env[n++] = arena_printf(a, "COMPUTE_DOMAIN_NAME=%s", d->domain_name);
                env[n++] = arena_printf(a, "COMPUTE_DOMAIN_NAMESPACE=%s", d->domain_ns);
        }
        env[n++] = arena_printf(a, "COMPUTE_DOMAIN_CLAIM_UID=%s", d->claim_uid);
        if (library_dir) /* the loader's cache in the container does not have them */
                env[n++] = arena_printf(a, "LD_LIBRARY_PATH=%s", library_dir);
        ret->env = env;
        ret->nodes = nodes.list;
        ret->n_nodes = nodes.n;
        return 0;
}
