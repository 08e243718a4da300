/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes only while nothing happens, for a test with its server and client in one loop. A test
 * program that links this file uses its clock_gettime() and epoll_wait().
 *
 * The monotonic clock stands still while the process can read, write or compute anything, even if the machine
 * is slow. When epoll has no event, and the kernel carries nothing from one socket of the process to another,
 * the clock advances by 50 ms, 100 ms, 200 ms, ... to the next timer. So a lease of 400 ms survives if the
 * process gets no CPU for a minute, and a wait of a minute takes no time. For data that the kernel cannot
 * deliver yet, the clock waits in steps of a real millisecond.
 *
 * While a child process or another thread of the process runs, or waits for its disk, it may still write
 * something, so the clock stands still, too. It continues when all of them have slept for some
 * milliseconds. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_STEP_MS = 50, SLEEP_LOOKS = 3, FD_MAX = 512, FD_GAP = 50 };
enum { SYN_SENT = 2, SYN_RECV = 3 }; /* of tcpi_state */

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

/* A zombie can no longer write. */
static int works(const char *proc, const char *pid) {
        char path[300], stat[512];
        snprintf(path, sizeof path, "%s/%s/stat", proc, pid);
        const char *state = read_text(path, stat, sizeof stat) > 0 ? strrchr(stat, ')') : NULL;
        return state && strchr("RD", state[2]) != NULL;
}

enum { NOBODY, ASLEEP, AT_WORK };

/* The children in this list and their children, because a shell sleeps while the programs that it has started
 * work. */
static int children_in(const char *path) {
        char list[4096], *rest = NULL;
        int found = NOBODY;
        if (read_text(path, list, sizeof list) <= 0)
                return NOBODY;
        for (char *pid = strtok_r(list, " ", &rest); pid && found != AT_WORK;
             pid = strtok_r(NULL, " ", &rest)) {
                char theirs[100];
                snprintf(theirs, sizeof theirs, "/proc/%s/task/%s/children", pid, pid);
                found = works("/proc", pid) || children_in(theirs) == AT_WORK ? AT_WORK : ASLEEP;
        }
        return found;
}

static int children(void) {
        return children_in("/proc/thread-self/children");
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

static bool tcp_info(int fd, struct tcp_info *ret) {
        socklen_t n = sizeof *ret;
        memset(ret, 0, n);
        return syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, ret, &n) == 0;
}

/* The socket at the other end of a connection; -1: it does not belong to this process. */
static int other_end(int fd) {
        struct sockaddr_storage wanted, name;
        socklen_t n_wanted = sizeof wanted, n;
        if (syscall(SYS_getpeername, fd, &wanted, &n_wanted) < 0)
                return -1;
        for (int other = STDERR_FILENO + 1; other < FD_MAX; other++) {
                n = sizeof name;
                if (other != fd && syscall(SYS_getsockname, other, &name, &n) == 0 && n == n_wanted &&
                    memcmp(&name, &wanted, n) == 0)
                        return other;
        }
        return -1;
}

/* Data has not reached the other socket yet, or a connection is being established. An acknowledgement would
 * show the arrival, but may take 40 ms, so the bytes at the other end are compared, too. errno is EBADF if
 * there is no such descriptor. */
static bool carries(int fd) {
        struct tcp_info ours, theirs;
        int unacknowledged;
        errno = 0;
        if (syscall(SYS_ioctl, fd, SIOCOUTQ, &unacknowledged) < 0)
                return false;
        if (!tcp_info(fd, &ours)) /* a socket of another kind */
                return unacknowledged > 0;
        if (ours.tcpi_state == SYN_SENT || ours.tcpi_state == SYN_RECV)
                return true;
        if (!unacknowledged)
                return false;
        int other = other_end(fd);
        bool all_here = other >= 0 && tcp_info(other, &theirs) && !ours.tcpi_notsent_bytes &&
                        theirs.tcpi_bytes_received == ours.tcpi_bytes_sent - ours.tcpi_bytes_retrans;
        errno = 0;
        return !all_here;
}

static bool kernel_carries(void) {
        for (int fd = STDERR_FILENO + 1, unused = 0; fd < FD_MAX && unused < FD_GAP; fd++) {
                if (carries(fd))
                        return true;
                unused = errno == EBADF ? unused + 1 : 0;
        }
        return false;
}

static int64_t least(int64_t a, int64_t b) {
        return a < b ? a : b;
}

static int poll_once(int fd, struct epoll_event *events, int max, int wait_ms, const sigset_t *mask) {
        return (int)syscall(SYS_epoll_pwait, fd, events, max, wait_ms, mask, sizeof(uint64_t));
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask) {
        int64_t left = timeout < 0 ? INT64_MAX : timeout;
        int asleep = 0; /* consecutive checks in which all others slept */
        int wait_ms = 0;
        for (int64_t most = FIRST_STEP_MS;;) {
                bool waited = wait_ms > 0;
                int n = poll_once(fd, events, max, wait_ms, mask);
                if (n != 0 || left == 0)
                        return n;
                int now = others();
                asleep = now == ASLEEP ? asleep + 1 : 0;
                bool may_say = now == AT_WORK || (now == ASLEEP && asleep < SLEEP_LOOKS);
                bool carries_some = !waited && kernel_carries();
                wait_ms = carries_some || now != NOBODY;
                if (carries_some || may_say)
                        continue;
                if (!waited &&
                    (n = poll_once(fd, events, max, 0, mask)) != 0) /* an event has arrived since */
                        return n;
                int64_t step = least(left, most);
                now_ns += step * 1000000;
                left -= timeout < 0 ? 0 : step;
                most = least(2 * most, 60000);
        }
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout) {
        return epoll_pwait(fd, events, max, timeout, NULL);
}
