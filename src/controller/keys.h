/* SPDX-License-Identifier: Apache-2.0 */
/* keys: renders and parses the keys of the work queue. Each key names an object that needs a decision. The
 * queue and controller/writes compare keys as texts. Pure. */
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
/* Parses a text of key_render(). The name in the result points into the text. */
struct key key_parse(const char *text);
/* Returns the name of the kind in metrics: "domain", "node", "rack", "fabric" or "daemons". */
const char *key_kind_name(enum key_kind kind);

#define KEY_OF_DAEMONS "daemons/"
