/* SPDX-License-Identifier: Apache-2.0 */
/* folder: what the kubelet plugin shows the daemon of the node, in files of the folder that both
 * have: which clique the node is in, and what a container that starts now is given of the node. */
#pragma once

#include "base/watch_file.h"

/* The clique's id and a line end; empty on a node without. */
#define FOLDER_FABRIC_FILE "fabric"
/* The name of the edits in the CDI file of the daemon's claim, which a container has as
 * COMPUTE_DOMAIN_DAEMON_EDITS. */
#define FOLDER_EDITS_FILE "edits"

enum { FOLDER_WORD_MAX = 256 };

/* Embedded in its owner and zeroed. */
struct folder {
        const char *dir; /* borrowed */
        void (*changed)(void *u);
        void *u;
        struct watch_file fabric, edits;
};

/* changed: one of the files may be another; never from inside. */
int folder_start(struct folder *f, uv_loop_t *loop, const char *dir, void (*changed)(void *u), void *u,
                 struct err *e);
/* The clique; "": none. What cannot be read shows nothing. */
int folder_fabric(const struct folder *f, char ret[static FOLDER_WORD_MAX], struct err *e);
/* A container with these edits ("": nobody knows which they are) has not what one would have that starts now.
 * False, when that is not known. */
bool folder_outdated(const struct folder *f, const char *edits);
void folder_stop(struct folder *f);
