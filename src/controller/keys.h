/* SPDX-License-Identifier: Apache-2.0 */
/* keys: the entries of the work queue. Each names an object that needs a decision. The queue and the writes
 * compare keys as texts. Pure. */
#pragma once

#include "base/str.h"

enum key_kind {
        KEY_DOMAIN,  /* a ComputeDomain, by its UID */
        KEY_NODE,    /* a Node, by its name */
        KEY_RACK,    /* a rack, by its ID */
        KEY_FABRIC,  /* a partition, by its clique ID */
        KEY_DAEMONS, /* the DaemonSet of the daemons and its claim template; they have no name */
        KEY_KINDS
};

struct key {
        enum key_kind kind;
        const char *name;
};

/* Appends the text of the key. */
void key_render(enum key_kind kind, const char *name, struct buf *out);
/* Of a text of key_render(); the name points into it. */
struct key key_parse(const char *text);
/* As metrics show it: "domain", "node", "rack", "fabric", "daemons". */
const char *key_kind_name(enum key_kind kind);

#define KEY_OF_DAEMONS "daemons/"
