/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/device_nodes.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "nvidia/root_walk.h"

/* nvidiactl or nvidia<N>. */
static bool device_nodes_is_of_gpu(const char *name) {
        const char *rest = name + strlen("nvidia");
        return streq(rest, "ctl") || (*rest && !rest[strspn(rest, "0123456789")]);
}

static int copy_node(const struct root_walk *walk, const char *name, const char *to, struct arena *a,
                     struct err *e) {
        struct stat st;
        int found = root_walk_stat(walk, arena_printf(a, "/dev/%s", name), &st, e);
        if (found < 0)
                return -1;
        /* An overlay shows a removed file as the device 0:0. */
        if (!found || !S_ISCHR(st.st_mode) || !major(st.st_rdev))
                return 0;
        _cleanup_(freep) char *path = file_join(to, name);
        if (mknod(path, S_IFCHR | (st.st_mode & 0777), st.st_rdev) < 0 && errno != EEXIST)
                return err_errno(e, errno, "create the device node '%s'", path);
        return 0;
}

int device_nodes_copy(const struct driver_root *root, const char *to, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        _cleanup_(root_walk_done) struct root_walk walk;
        const char **names;
        if (root_walk_init(&walk, root->here, root->host, e) < 0 ||
            root_walk_names(&walk, "/dev", "nvidia*", a, &names, e) < 0)
                return -1;
        for (; *names; names++)
                if (device_nodes_is_of_gpu(*names) && copy_node(&walk, *names, to, a, e) < 0)
                        return -1;
        return 0;
}
