/* SPDX-License-Identifier: Apache-2.0 */
/* crowd: which connection of a full server makes room for a new one. A pure function.
 *
 * An open port has fewer places than the network has peers, so somebody who asks nothing of us must not keep
 * out somebody who does. The address that holds most places gives one up: one peer, however many connections
 * it makes, takes its places from itself. Among those a connection whose request is unfinished goes before
 * one that is silent, and of two alike the one that has been silent for longest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct crowd_addr {
        uint8_t bytes[16]; /* IPv6, or IPv4 as an IPv6 address; zero for all of a unix socket */
};

struct crowd_member {
        struct crowd_addr addr;
        bool stays;        /* somebody works for it: it is not closed, but counts for its address */
        bool unfinished;   /* a request has begun to come in */
        uint64_t since_ms; /* when it was last told */
};

/* The index of the one to close, n when all stay. */
size_t crowd_victim(const struct crowd_member *m, size_t n);

struct crowd_addr crowd_addr(const struct sockaddr *a);
/* Of the other end of a connected socket; zero when it is not known. */
struct crowd_addr crowd_peer(int fd);
