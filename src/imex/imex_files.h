/* SPDX-License-Identifier: Apache-2.0 */
/* imex_files: renders the files that nvidia-imex and the resolver read. Rendering is pure; one function
 * writes the hosts file.
 *
 * The line number in nodes.cfg is the IMEX node ID, and all members of a domain must have the same list. So
 * the list always has max_nodes names, and only the hosts file shows which nodes are members (IMEX guide,
 * "nodes_config.cfg"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "imex/imex_domain.h"
#include "imex/imex_settings.h"

/* Another node of the domain, as nvidia-imex knows it. The code that runs IMEX knows indices and addresses,
 * but not the Kubernetes objects that contain them. */
struct imex_peer {
        int64_t index;
        const char *ip;   /* "" while unknown */
        const char *node; /* the node's name, for messages */
        const char *boot_id; /* the boot ID of the node; "" or NULL while unknown */
};

struct imex_members {
        int64_t own_index;             /* < 0: not a member (yet) */
        const char *infix;             /* infix of the slot names; "": the names that the Go driver uses */
        const struct imex_peer *peers; /* may or may not include this node itself */
        size_t n_peers;
};

enum { IMEX_SERVER_PORT = 50000 };

/* The values of imexd.cfg that are not constant. */
struct imex_config {
        const char *cmd_bind_ip, *nodes_file;
        struct imex_domain domain;
        const struct imex_settings *settings; /* the settings of the operator; NULL: none */
};

/* Renders imexd.cfg: all keys that the driver sets, with the operator's value if the settings contain the
 * key, and then the other keys of the settings. */
void imex_config_render(const struct imex_config *c, struct buf *out);

/* Appends the name of slot i: "compute-domain-daemon-<infix>-%04d", or without infix ("" or NULL) the name
 * that the Go driver uses. */
void imex_slot_name(const char *infix, unsigned i, struct buf *out);
enum { IMEX_INFIX_SIZE = 11 };
/* Computes the infix of a domain: 10 hex digits of the SHA-256 of its UID. */
void imex_infix(const char *domain_uid, char ret[static IMEX_INFIX_SIZE]);
/* Returns whether the infix is valid in names and files: 1 to 32 lower-case letters and digits, or empty. */
bool imex_infix_valid(const char *infix);

/* Renders nodes.cfg. */
void imex_nodes_render(const char *infix, unsigned max_nodes, struct buf *out);

/* Renders a hosts file: first the lines of `current` outside of the driver's marked block, then a new marked
 * block with this node's own entry, the peers by index, and each unused slot at 127.0.0.2, an address that
 * never answers. The same input gives the same bytes, regardless of the previous block. The peers of `m` must
 * include this node. ERR_INVALID: an index is out of range or used twice, an address is not valid, or this
 * node's own entry is missing. */
int imex_hosts_render(struct str current, const struct imex_members *m, unsigned max_nodes, struct buf *out,
                      struct err *e);

/* Replaces the content of a file that can only be rewritten in place (a bind mount), with one write(2). So a
 * reader finds the old text or the new text, and never an empty file. */
int imex_hosts_write(const char *path, struct str text, struct err *e);

/* The size of the largest hosts file that is read. */
#define IMEX_HOSTS_MAX ((size_t)1024 * 1024)
