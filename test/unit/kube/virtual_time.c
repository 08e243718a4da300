/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes only while nothing happens, for a test whose server and client live in one loop: compiled
 * into its program, it takes the place of clock_gettime() and epoll_wait().
 *
 * The monotonic clock stands still while anything can be read, written or computed, however long the machine
 * takes for it. When epoll has nothing for a real millisecond, which lets the kernel carry what was sent, the
 * clock steps on, by 50 ms, 100 ms, 200 ms, ... to the next timer. So a lease of 400 ms outlives a machine
 * that has no processor for us for a minute, and a minute of waiting passes at once. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_STEP_MS = 50 };

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

static int64_t least(int64_t a, int64_t b) {
        return a < b ? a : b;
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask) {
        int64_t left = timeout < 0 ? INT64_MAX : timeout;
        for (int64_t most = FIRST_STEP_MS;; most = least(2 * most, 60000)) {
                int n = (int)syscall(SYS_epoll_pwait, fd, events, max, left ? 1 : 0, mask, sizeof(uint64_t));
                if (n != 0 || left == 0)
                        return n;
                int64_t step = least(left, most);
                now_ns += step * 1000000;
                left -= timeout < 0 ? 0 : step;
        }
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout) {
        return epoll_pwait(fd, events, max, timeout, NULL);
}
