/* SPDX-License-Identifier: Apache-2.0 */
/* This program replaces ldconfig, and tries what a library of an image could make a vulnerable ldconfig do.
 * It exits with 1 if it reaches anything forbidden. If the image has a FIFO /wait, it opens it for writing
 * and waits. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int bad;

static void report(const char *path, const char *what) {
        char line[256];
        int n = snprintf(line, sizeof line, "probe: %s: %s\n", path, what);
        if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
                bad = 1;
}

static void must_not_open(const char *path, int flags) {
        int fd = open(path, flags | O_CLOEXEC);
        if (fd < 0)
                return;
        report(path, "can be opened");
        bad = 1;
        close(fd);
}

int main(void) {
        int fd = open("/wait", O_WRONLY | O_CLOEXEC);
        char byte;
        if (fd >= 0) {
                /* Nobody writes to it. */
                int in = open("/wait", O_RDONLY | O_CLOEXEC);
                return in < 0 || read(in, &byte, 1) < 0 ? 1 : 0;
        }
        must_not_open("/proc/sys/kernel/core_pattern", O_WRONLY);
        must_not_open("/proc/sys/vm/overcommit_memory", O_RDONLY);
        must_not_open("/proc/sysrq-trigger", O_WRONLY);
        must_not_open("/proc/self/status", O_RDONLY);
        must_not_open("/proc/1/root/etc/hostname", O_RDONLY);
        must_not_open("/sys/kernel", O_RDONLY);
        must_not_open("/sys/fs/cgroup", O_RDONLY);
        must_not_open("/dev/kmsg", O_RDONLY);
        /* It runs in the container's root, and can do what ldconfig does. */
        fd = open("/etc/probed", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
                report("/etc/probed", strerror(errno));
                bad = 1;
        }
        report("done", bad ? "badly" : "well");
        return bad;
}
