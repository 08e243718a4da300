/* SPDX-License-Identifier: Apache-2.0 */
/* agent_folder: what the kubelet plugin tells a resident agent of the node, in files of the folder that both
 * have: which clique the node is in, and what a container that starts now is given of the node. */
#pragma once

#include "base/watch_file.h"

/* The clique's id and a line end; empty on a node without. */
#define AGENT_FABRIC_FILE "fabric"
/* The name of the edits in the CDI file of the agent's claim, which a container has as
 * COMPUTE_DOMAIN_AGENT_EDITS. */
#define AGENT_EDITS_FILE "edits"

enum { AGENT_WORD_MAX = 256 };

/* Embedded in its owner and zeroed. */
struct agent_folder {
        const char *dir; /* borrowed */
        void (*changed)(void *u);
        void *u;
        struct watch_file fabric, edits;
};

/* changed: one of the files may be another; never from inside. */
int agent_folder_start(struct agent_folder *f, uv_loop_t *loop, const char *dir, void (*changed)(void *u),
                       void *u, struct err *e);
/* The clique; "": none. What cannot be read says nothing. */
int agent_folder_fabric(const struct agent_folder *f, char ret[static AGENT_WORD_MAX], struct err *e);
/* A container with these edits ("": nobody knows which they are) has not what one would have that starts now.
 * False, when that cannot be told. */
bool agent_folder_outdated(const struct agent_folder *f, const char *edits);
void agent_folder_stop(struct agent_folder *f);
