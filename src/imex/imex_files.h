/* imex_files: the texts that nvidia-imex and the resolver read. Pure rendering; the caller writes them.
 *
 * The line number in nodes.cfg is the IMEX node id and all members of a domain must have the same list, so the list is always
 * max_nodes names long, and membership is expressed in the hosts file alone (reference section 8.4, IMEX guide "nodes_config.cfg"). */
#ifndef IMEX_IMEX_FILES_H
#define IMEX_IMEX_FILES_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct imex_peer {
        int64_t index;
        const char *ip;      /* "" while unknown */
        const char *node;    /* for people */
        bool ready;
};

/* All keys of reference 12.3. */
void imex_config_render(const char *cmd_bind_ip, const char *nodes_file, struct buf *out);

/* Name of slot i: "compute-domain-daemon-<infix>-%04d", or without infix ("" or NULL) the names of the Go driver. */
void imex_slot_name(const char *infix, unsigned i, struct buf *out);
/* The infix of a domain: 10 hex digits of SHA-256 of its UID. */
void imex_infix(const char *domain_uid, char ret[static 11]);

void imex_nodes_render_names(const char *infix, unsigned max_nodes, struct buf *out);
void imex_nodes_render_ips(const struct imex_peer *peers, size_t n, struct buf *out); /* sorted by index */

/* A new hosts file: the lines of `current` that are not ours, then a marked block with our own entry first, the peers by index and every
 * unused slot at 127.0.0.2, an address that answers nobody. The same input gives the same bytes, whatever was ours before. */
int imex_hosts_render(struct str current, const char *infix, unsigned max_nodes, int64_t own_index, const struct imex_peer *peers, size_t n,
                      struct buf *out, struct err *e);

#endif
