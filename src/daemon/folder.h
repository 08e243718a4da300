/* SPDX-License-Identifier: Apache-2.0 */
/* folder: facts that the kubelet plugin shows the daemon of the node, in files of their common folder: the
 * clique ID, and the CDI edits that a new container would get. */
#pragma once

#include "base/watch_file.h"

/* The clique ID and a line end; empty on a node without fabric. */
#define FOLDER_FABRIC_FILE "fabric"
/* The name of the edits in the CDI file of the daemon claim. A container has it as
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

/* changed: one of the files may have changed. Never called from inside this function. */
int folder_start(struct folder *f, uv_loop_t *loop, const char *dir, void (*changed)(void *u), void *u,
                 struct err *e);
/* The clique ID; "": none. -1 and *e: it cannot be read, or is not valid. */
int folder_fabric(const struct folder *f, char ret[static FOLDER_WORD_MAX], struct err *e);
/* A container with these edits ("": unknown) differs from a container that would start now. False when that
 * is not known. */
bool folder_outdated(const struct folder *f, const char *edits);
void folder_stop(struct folder *f);
