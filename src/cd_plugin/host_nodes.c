/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/host_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"

static int host_nodes_make_one(int folder, const char *dir, const struct cdi_node *node, struct err *e) {
        const char *name = strrchr(node->path, '/') + 1;
        dev_t numbers = makedev(node->major, node->minor);
        struct stat st;
        if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
            st.st_rdev == numbers && (st.st_mode & 0777) == node->mode)
                return 0;
        _cleanup_(freep) char *fresh = xasprintf(".%s.new", name);
        unlinkat(folder, fresh, 0); /* left by a plugin that was killed */
        if (mknodat(folder, fresh, S_IFCHR, numbers) < 0 || fchmodat(folder, fresh, node->mode, 0) < 0 ||
            renameat(folder, fresh, folder, name) < 0) {
                int error = errno;
                unlinkat(folder, fresh, 0);
                return err_errno(e, error, "make device node '%s/%s' (%u:%u)", dir, name, node->major,
                                 node->minor);
        }
        return 0;
}

int host_nodes_make(const char *dir, const struct cdi_edits *channels, struct err *e) {
        _cleanup_(closep) int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
                return err_errno(e, errno, "folder '%s'", dir);
        for (size_t i = 0; i < channels->n_nodes; i++) {
                if (host_nodes_make_one(folder, dir, &channels->nodes[i], e) < 0)
                        return -1;
        }
        return 0;
}
