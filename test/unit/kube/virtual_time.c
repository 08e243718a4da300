/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes only while nothing happens, for a test whose server and client live in one loop: compiled
 * into its program, it takes the place of clock_gettime() and epoll_wait().
 *
 * The monotonic clock stands still while anything can be read, written or computed, however long the machine
 * takes for it. When epoll has nothing for a real millisecond, which lets the kernel carry what was sent, the
 * clock steps on, by 50 ms, 100 ms, 200 ms, ... to the next timer. So a lease of 400 ms outlives a machine
 * that has no processor for us for a minute, and a minute of waiting passes at once.
 *
 * While a child or another thread of ours runs, or waits for its disk, it may yet say something, so the clock
 * stands still as well. It goes on when all of them sleep. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_STEP_MS = 50, SLEEP_LOOKS = 3 };

static int64_t now_ns = 1000000000000;

int clock_gettime(clockid_t clock, struct timespec *t) {
        switch (clock) {
        case CLOCK_MONOTONIC:
        case CLOCK_MONOTONIC_COARSE:
        case CLOCK_MONOTONIC_RAW:
        case CLOCK_BOOTTIME:
                *t = (struct timespec){ now_ns / 1000000000, now_ns % 1000000000 };
                return 0;
        default:
                return (int)syscall(SYS_clock_gettime, clock, t);
        }
}

static ssize_t read_text(const char *path, char *text, size_t n) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd < 0 ? -1 : read(fd, text, n - 1);
        if (fd >= 0)
                close(fd);
        if (got >= 0)
                text[got] = '\0';
        return got;
}

/* A zombie has said all. */
static int works(const char *proc, const char *pid) {
        char path[300], stat[512];
        snprintf(path, sizeof path, "%s/%s/stat", proc, pid);
        const char *state = read_text(path, stat, sizeof stat) > 0 ? strrchr(stat, ')') : NULL;
        return state && strchr("RD", state[2]) != NULL;
}

enum { NOBODY, ASLEEP, AT_WORK };

static int children(void) {
        char list[4096], *rest = NULL;
        int found = NOBODY;
        if (read_text("/proc/thread-self/children", list, sizeof list) <= 0)
                return NOBODY;
        for (char *pid = strtok_r(list, " ", &rest); pid; pid = strtok_r(NULL, " ", &rest))
                found = works("/proc", pid) ? AT_WORK : found == AT_WORK ? AT_WORK : ASLEEP;
        return found;
}

static int threads(void) {
        int found = NOBODY;
        DIR *d = opendir("/proc/self/task");
        for (struct dirent *e; d && (e = readdir(d));) {
                if (*e->d_name == '.' || atoi(e->d_name) == gettid())
                        continue;
                found = works("/proc/self/task", e->d_name) ? AT_WORK : found == AT_WORK ? AT_WORK : ASLEEP;
        }
        if (d)
                closedir(d);
        return found;
}

static int others(void) {
        int of_threads = threads(), of_children = children();
        return of_threads > of_children ? of_threads : of_children;
}

static int64_t least(int64_t a, int64_t b) {
        return a < b ? a : b;
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask) {
        int64_t left = timeout < 0 ? INT64_MAX : timeout;
        int asleep = 0; /* looks in a row at which all others slept */
        for (int64_t most = FIRST_STEP_MS;;) {
                int n = (int)syscall(SYS_epoll_pwait, fd, events, max, left ? 1 : 0, mask, sizeof(uint64_t));
                if (n != 0 || left == 0)
                        return n;
                int now = others();
                asleep = now == ASLEEP ? asleep + 1 : 0;
                if (now == AT_WORK || (now == ASLEEP && asleep < SLEEP_LOOKS))
                        continue;
                int64_t step = least(left, most);
                now_ns += step * 1000000;
                left -= timeout < 0 ? 0 : step;
                most = least(2 * most, 60000);
        }
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout) {
        return epoll_pwait(fd, events, max, timeout, NULL);
}
