/* SPDX-License-Identifier: Apache-2.0 */
#include "base/conn_evict.h"

#include <netinet/in.h>
#include <string.h>

struct conn_evict_addr conn_evict_addr(const struct sockaddr *a) {
        struct conn_evict_addr r = { 0 };
        struct sockaddr_in6 six;
        struct sockaddr_in four;
        if (a && a->sa_family == AF_INET6) {
                memcpy(&six, a, sizeof six);
                memcpy(r.bytes, &six.sin6_addr, sizeof r.bytes);
        } else if (a && a->sa_family == AF_INET) {
                memcpy(&four, a, sizeof four);
                r.bytes[10] = r.bytes[11] = 0xff;
                memcpy(r.bytes + 12, &four.sin_addr, 4);
        }
        return r;
}

struct conn_evict_addr conn_evict_peer(int fd) {
        struct sockaddr_storage a = { 0 };
        socklen_t n = sizeof a;
        if (getpeername(fd, (struct sockaddr *)&a, &n) < 0)
                return conn_evict_addr(NULL);
        return conn_evict_addr((const struct sockaddr *)&a);
}

static size_t places(const struct conn_evict_conn *m, size_t n, const struct conn_evict_addr *addr) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
                count += memcmp(&m[i].addr, addr, sizeof *addr) == 0;
        return count;
}

size_t conn_evict_choose(const struct conn_evict_conn *m, size_t n) {
        size_t victim = n, most = 0;
        for (size_t i = 0; i < n; i++) {
                if (m[i].stays)
                        continue;
                size_t here = places(m, n, &m[i].addr);
                bool worse = victim == n || here > most ||
                             (here == most &&
                              (m[i].unfinished != m[victim].unfinished ? m[i].unfinished
                                                                       : m[i].since_ms < m[victim].since_ms));
                if (worse) {
                        victim = i;
                        most = here;
                }
        }
        return victim;
}
