/* SPDX-License-Identifier: Apache-2.0 */
/* conn_evict: decides which connection a full server closes to make room for a new one. A pure function.
 *
 * A server accepts fewer connections than the network has peers, so idle peers must not keep out peers that
 * send requests. The address with the most connections loses one, so a peer that opens many connections only
 * takes places from itself. Among the connections of that address, the server closes one with an unfinished
 * request before a silent one, and among equals the connection that has been silent for longest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct conn_evict_addr {
        uint8_t bytes[16]; /* IPv6, or IPv4 as an IPv6 address; zero for each peer of a unix socket */
};

struct conn_evict_conn {
        struct conn_evict_addr addr;
        bool stays;        /* never closed, because its request is being answered; counts for its address */
        bool unfinished;   /* a part of a request has arrived */
        uint64_t since_ms; /* time of the last activity */
};

/* Returns the index of the connection to close; n when all stay. */
size_t conn_evict_choose(const struct conn_evict_conn *m, size_t n);

struct conn_evict_addr conn_evict_addr(const struct sockaddr *a);
/* Returns the address of the other end of a connected socket; zero when the address is not known. */
struct conn_evict_addr conn_evict_peer(int fd);
