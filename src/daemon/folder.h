/* SPDX-License-Identifier: Apache-2.0 */
/* folder: watches and reads the files with which the kubelet plugin passes facts to the daemon of the node,
 * in their common folder: the clique ID, and the name of the CDI edits that a new container would get. */
#pragma once

#include "base/loop.h"
#include "base/watch_file.h"

/* This file contains the clique ID and a line end. It is empty on a node without fabric. */
#define FOLDER_FABRIC_FILE "fabric"
/* This file contains the name of the edits in the CDI file of the daemon claim. A container has this name in
 * its environment as COMPUTE_DOMAIN_DAEMON_EDITS. */
#define FOLDER_EDITS_FILE "edits"

enum { FOLDER_WORD_MAX = 256 };

/* Embedded in its owner and zeroed. */
struct folder {
        const char *dir; /* borrowed */
        void (*changed)(void *u);
        void *u;
        uv_loop_t *loop;
        struct watch_file fabric, edits;
        struct loop_timer again;
        bool unwatched; /* logged that the files cannot be watched */
};

/* Watches the files. Calls `changed` when one of them may have changed, never from inside this function.
 * While the kernel refuses the watches, calls it every 30 s. */
void folder_start(struct folder *f, uv_loop_t *loop, const char *dir, void (*changed)(void *u), void *u);
/* Reads the clique ID; "": the node has none. Returns -1 and sets *e if the file cannot be read or is not
 * valid. */
int folder_fabric(const struct folder *f, char ret[static FOLDER_WORD_MAX], struct err *e);
/* Returns whether a container with these edits ("": unknown) differs from a container that would start now.
 * Returns false if that is not known. */
bool folder_outdated(const struct folder *f, const char *edits);
void folder_stop(struct folder *f);
