/* SPDX-License-Identifier: Apache-2.0 */
/* imex_files: the texts that nvidia-imex and the resolver read. Rendering is pure; one function writes the
 * hosts file.
 *
 * The line number in nodes.cfg is the IMEX node id and all members of a domain must have the same list, so
 * the list is always max_nodes names long, and membership is expressed in the hosts file alone (reference
 * section 8.4, IMEX guide "nodes_config.cfg"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "imex/imex_settings.h"

/* Another node of the domain as nvidia-imex knows it. What runs IMEX knows indices and addresses, and nothing
 * of the objects that they come from. */
struct imex_peer {
        int64_t index;
        const char *ip;   /* "" while unknown */
        const char *node; /* for people */
        bool ready;
        const char *boot_id; /* the boot that its node is in; "" or NULL while unknown */
};

enum { IMEX_SERVER_PORT = 50000 };

/* All keys of reference 12.3, with the values of `settings` (NULL: none) where it has them, and its other
 * keys behind them. */
void imex_config_render(const char *cmd_bind_ip, const char *nodes_file, unsigned server_port,
                        const struct imex_settings *settings, struct buf *out);

/* Name of slot i: "compute-domain-daemon-<infix>-%04d", or without infix ("" or NULL) the names of the Go
 * driver. */
void imex_slot_name(const char *infix, unsigned i, struct buf *out);
enum { IMEX_INFIX_SIZE = 11 };
/* The infix of a domain: 10 hex digits of SHA-256 of its UID. */
void imex_infix(const char *domain_uid, char ret[static IMEX_INFIX_SIZE]);
/* What may stand in a name and in the files: 1 to 32 lower-case letters and digits, or nothing at all. */
bool imex_infix_valid(const char *infix);

/* nodes.cfg. */
void imex_nodes_render(const char *infix, unsigned max_nodes, struct buf *out);

/* A new hosts file: the lines of `current` that are not ours, then a marked block with our own entry first,
 * the peers by index and every unused slot at 127.0.0.2, an address that answers nobody. The same input gives
 * the same bytes, whatever was ours before. `peers` includes ourselves. ERR_INVALID: an index out of range or
 * used twice, a text that is no address, or we are missing. */
int imex_hosts_render(struct str current, const char *infix, unsigned max_nodes, int64_t own_index,
                      const struct imex_peer *peers, size_t n, struct buf *out, struct err *e);

/* Replaces the content of a file that can only be rewritten in place (a bind mount), in one write, so that a
 * reader finds the old text or the new one, and never an empty file. */
int imex_hosts_write(const char *path, struct str text, struct err *e);

/* Largest hosts file that is read. */
#define IMEX_HOSTS_MAX ((size_t)1024 * 1024)
