/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* O_NONBLOCK: a FIFO in the file's place must not block. */
int imex_lock_take(const char *path, int *ret, struct err *e) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

        if (fd < 0)
                return err_errno(e, errno, "open '%s'", path);
        if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
                return err_errno(e, errno, "lock '%s'", path);
        *ret = TAKE_FD(fd);
        return 0;
}

int imex_lock_held(const char *path, bool *ret, struct err *e) {
        _cleanup_(closep) int fd = -1;
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (file_open_nofollow(path, &fd, e) < 0)
                return -1;
        if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
                return err_errno(e, errno, "ask for the lock of '%s'", path);
        *ret = lock.l_type != F_UNLCK;
        return 0;
}
