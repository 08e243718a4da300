/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: addresses, and the IMEX node list (nodes_config.cfg). Each line has an address or a name; its number
 * is the node id. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { NODE_MAX_ADDRS = 4, NODES_MAX = 2048 };

struct addr {
        int family; /* AF_INET, AF_INET6 or AF_UNSPEC */
        unsigned char ip[16];
};
struct node {
        char *text;
        bool literal; /* an address, not a name */
        struct addr addrs[NODE_MAX_ADDRS];
        size_t n_addrs;
};
struct nodes {
        struct node *v;
        size_t n;
        uint64_t hash; /* of the lines in their order; equal hashes mean the same domain */
};

/* Sets literal addresses; names stay unresolved. On failure it returns -1, with the reason in `why`. */
int nodes_load(struct nodes *nodes, const char *path, char *why, size_t n_why);
void nodes_done(struct nodes *nodes);
bool node_has(const struct node *node, const struct addr *a);

/* Blocks. Returns the number of addresses; 0: the name is unknown. Thread-safe. */
size_t addr_resolve(const char *text, struct addr out[static NODE_MAX_ADDRS]);
bool addr_parse(const char *text, struct addr *ret);
bool addr_equal(const struct addr *a, const struct addr *b);
/* An IPv4-mapped IPv6 address becomes an IPv4 address. */
struct addr addr_of(const struct sockaddr_storage *from);
/* `interface`: the scope of a link-local address; "": none. */
socklen_t addr_fill(const struct addr *a, uint16_t port, const char *interface, struct sockaddr_storage *ret);
const char *addr_show(const struct addr *a, char out[static INET6_ADDRSTRLEN]);
/* An interface of this network namespace has the address. Sets its name. */
bool addr_is_local(const struct addr *a, char interface[static IF_NAMESIZE]);
