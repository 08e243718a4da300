/* SPDX-License-Identifier: Apache-2.0 */
/* conn_evict: decides which connection of a full server makes room for a new one. A pure function.
 *
 * An open port has fewer places than the network has peers, so idle peers must not keep out those that send
 * requests. The address that holds most places loses one: a peer that makes many connections only takes
 * places from itself. Among the connections of that address, one with an unfinished request is closed before
 * a silent one. Among equals, the one that has been silent for longest is closed. */
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
        bool stays;        /* its request is being answered: it is not closed, but counts for its address */
        bool unfinished;   /* a request has begun to come in */
        uint64_t since_ms; /* time of its last activity */
};

/* The index of the connection to close; n when all stay. */
size_t conn_evict_choose(const struct conn_evict_conn *m, size_t n);

struct conn_evict_addr conn_evict_addr(const struct sockaddr *a);
/* The address of the other end of a connected socket; zero when it is not known. */
struct conn_evict_addr conn_evict_peer(int fd);
