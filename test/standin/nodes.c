/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"

static size_t addr_length(const struct addr *a) {
        return a->family == AF_INET ? 4 : 16;
}

bool addr_equal(const struct addr *a, const struct addr *b) {
        return a->family == b->family && a->family != AF_UNSPEC && !memcmp(a->ip, b->ip, addr_length(a));
}

struct addr addr_of(const struct sockaddr_storage *from) {
        struct addr a = { .family = from->ss_family };

        if (from->ss_family == AF_INET) {
                memcpy(a.ip, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        } else if (from->ss_family == AF_INET6) {
                const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;

                if (IN6_IS_ADDR_V4MAPPED(six)) {
                        a.family = AF_INET;
                        memcpy(a.ip, six->s6_addr + 12, 4);
                } else {
                        memcpy(a.ip, six, 16);
                }
        } else {
                a.family = AF_UNSPEC;
        }
        return a;
}

socklen_t addr_fill(const struct addr *a, uint16_t port, const char *interface,
                    struct sockaddr_storage *ret) {
        *ret = (struct sockaddr_storage){ 0 };
        if (a->family == AF_INET) {
                struct sockaddr_in *four = (struct sockaddr_in *)(void *)ret;

                four->sin_family = AF_INET;
                four->sin_port = htons(port);
                memcpy(&four->sin_addr, a->ip, 4);
                return sizeof(*four);
        } else {
                struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)ret;

                six->sin6_family = AF_INET6;
                six->sin6_port = htons(port);
                memcpy(&six->sin6_addr, a->ip, 16);
                if (*interface && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
                        six->sin6_scope_id = if_nametoindex(interface);
                return sizeof(*six);
        }
}

const char *addr_show(const struct addr *a, char out[static INET6_ADDRSTRLEN]) {
        if (a->family == AF_UNSPEC || !inet_ntop(a->family, a->ip, out, INET6_ADDRSTRLEN))
                return "?";
        return out;
}

bool addr_parse(const char *text, struct addr *ret) {
        *ret = (struct addr){ .family = AF_INET };
        if (inet_pton(AF_INET, text, ret->ip) == 1)
                return true;
        ret->family = AF_INET6;
        return inet_pton(AF_INET6, text, ret->ip) == 1;
}

size_t addr_resolve(const char *text, struct addr out[static NODE_MAX_ADDRS]) {
        const struct addrinfo want = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
        struct addrinfo *found = NULL;
        size_t n = 0;

        if (getaddrinfo(text, NULL, &want, &found))
                return 0;
        for (struct addrinfo *i = found; i && n < NODE_MAX_ADDRS; i = i->ai_next) {
                struct sockaddr_storage address = { 0 };

                memcpy(&address, i->ai_addr,
                       i->ai_addrlen < sizeof(address) ? i->ai_addrlen : sizeof(address));
                out[n] = addr_of(&address);
                if (out[n].family != AF_UNSPEC)
                        n++;
        }
        freeaddrinfo(found);
        return n;
}

bool addr_is_local(const struct addr *a, char interface[static IF_NAMESIZE]) {
        struct ifaddrs *all = NULL;
        bool found = false;

        if (getifaddrs(&all) < 0)
                return false;
        for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
                struct sockaddr_storage address = { 0 };
                struct addr own;

                if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
                        continue;
                memcpy(&address, i->ifa_addr,
                       i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                         : sizeof(struct sockaddr_in6));
                own = addr_of(&address);
                found = addr_equal(a, &own);
                if (found)
                        snprintf(interface, IF_NAMESIZE, "%s", i->ifa_name);
        }
        freeifaddrs(all);
        return found;
}

bool node_has(const struct node *node, const struct addr *a) {
        for (size_t i = 0; i < node->n_addrs; i++)
                if (addr_equal(&node->addrs[i], a))
                        return true;
        return false;
}

static bool listed(const struct nodes *nodes, const char *text) {
        for (size_t i = 0; i < nodes->n; i++)
                if (!strcmp(nodes->v[i].text, text))
                        return true;
        return false;
}

static int bad(struct nodes *nodes, char *text) {
        free(text);
        nodes_done(nodes);
        return -1;
}

int nodes_load(struct nodes *nodes, const char *path, char *why, size_t n_why) {
        char *text = conf_read_file(path);
        char *rest = text;
        char *line;

        *nodes = (struct nodes){ .hash = 14695981039346656037U };
        if (!text) {
                snprintf(why, n_why, "Failed to open node configuration file %s: %s", path, strerror(errno));
                return -1;
        }
        while ((line = strsep(&rest, "\n"))) {
                struct node *node;
                size_t n;

                while (isspace((unsigned char)*line))
                        line++;
                for (n = strlen(line); n > 0 && isspace((unsigned char)line[n - 1]);)
                        line[--n] = '\0';
                if (n == 0 || *line == '#')
                        continue;
                if (strpbrk(line, " \t") || n > 253) {
                        snprintf(why, n_why, "Invalid entry '%.80s' in node configuration file %s", line,
                                 path);
                        return bad(nodes, text);
                }
                if (listed(nodes, line) || nodes->n == NODES_MAX) {
                        snprintf(why, n_why, "%s '%.80s' in node configuration file %s",
                                 nodes->n == NODES_MAX ? "Too many entries from" : "Duplicate entry", line,
                                 path);
                        return bad(nodes, text);
                }
                node = realloc(nodes->v, (nodes->n + 1) * sizeof(*node));
                if (!node)
                        abort();
                nodes->v = node;
                node += nodes->n++;
                *node = (struct node){ .text = strdup(line) };
                if (!node->text)
                        abort();
                node->literal = addr_parse(line, &node->addrs[0]);
                node->n_addrs = node->literal ? 1 : 0;
                for (const char *c = line; *c; c++)
                        nodes->hash = (nodes->hash ^ (unsigned char)*c) * 1099511628211U;
                nodes->hash = (nodes->hash ^ '\n') * 1099511628211U;
        }
        free(text);
        if (nodes->n == 0) {
                snprintf(why, n_why, "No entries in node configuration file %s", path);
                nodes_done(nodes);
                return -1;
        }
        return 0;
}

void nodes_done(struct nodes *nodes) {
        for (size_t i = 0; i < nodes->n; i++)
                free(nodes->v[i].text);
        free(nodes->v);
        *nodes = (struct nodes){ 0 };
}
