/* SPDX-License-Identifier: Apache-2.0 */
#include "node/proc_driver.h"

#include <errno.h>
#include <sys/mount.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { MOUNTINFO_MAX = 4 << 20 };

static void uncover(void) {
        _cleanup_(freep) char *text = NULL;
        char *covers[64];
        size_t n = 0;
        struct err e;
        if (file_read("/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL, &e) < 0) {
                log_warn("cannot read the mounts", kv_err(&e));
                return;
        }
        struct str rest = str_from(text), line, field = { 0 };
        while (n < ARRAY_LEN(covers) && str_next_line(&rest, &line)) {
                for (int i = 0; i < 5 && str_next_field(&line, ' ', &field); i++)
                        ; /* the fifth is the mount point */
                char *path = xstrndup(field.p, field.n);
                if (streq(path, "/proc/driver/nvidia") || str_starts(path, "/proc/driver/nvidia/"))
                        covers[n++] = path;
                else
                        free(path);
        }
        while (n--) { /* the last mount first */
                if (umount2(covers[n], MNT_DETACH) < 0) {
                        err_errno(&e, errno, "unmount '%s'", covers[n]);
                        log_warn("a mount covers the driver's files in /proc", kv_err(&e));
                }
                free(covers[n]);
        }
}

char *proc_driver_folder(const char *alt_proc_devices, const char *root_here) {
        if (*alt_proc_devices)
                return file_join(root_here, "proc/driver/nvidia");
        uncover();
        return xstrdup("/proc/driver/nvidia");
}
