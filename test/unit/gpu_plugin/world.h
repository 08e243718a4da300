/* SPDX-License-Identifier: Apache-2.0 */
/* world: the program of GPUs on a node of its own, with the stand-in of NVML and an API server in this
 * process, whose answers the test decides. For tests and measurements. A failure fails the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "world/fake_server.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/str.h"
#include "base/watch_file.h"
#include "tree.h"

/* Claims of namespace "u", known to the server by what stands in struct world: these, and each other name is
 * a claim whose UID is its name. */
#define CLAIM_UID "aaaaaaaa-0000-4000-8000-000000000001"   /* "c" */
#define ANOTHER_UID "aaaaaaaa-0000-4000-8000-000000000002" /* "d" */
#define RESULT(request, device)                                                                              \
        "{\"request\":\"" request "\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"" device    \
        "\"}"

/* What it is made of, as files. */
struct world_files {
        const char *program, *standin, *dra_call, *hook;
};

struct world {
        struct world_files files;
        uv_loop_t loop;
        struct fake_server *server;
        struct fake_conn *watch, *node_watch;
        struct process *plugin; /* NULL: it has ended */
        struct watch_file registry;
        unsigned registering;
        struct buf says, slice; /* the slice as it was written last */
        char *dir;
        int exit_status;              /* 128 and the signal's number, if one ended it */
        const char *results, *config; /* of the claims, as JSON */
        const char *capacity;         /* of the node, as JSON */
        const char *env[8];           /* of the next process, beside ours; NULL-terminated */
        const char *dra_timeout;      /* of the kubelet's calls (test/kubelet/dra_call.c); NULL: the usual */
        bool quiet;                   /* an end of the process is no news */
        unsigned writes, rv, events;
        unsigned gets, changes; /* requests of all kinds: GET, and others */
        char event[512];        /* the last one */
};

/* Runs the loop until then; a plugin that ends by itself keeps no test waiting. */
#define UNTIL(w, what) RUN_UNTIL(&(w)->loop, !(w)->plugin || (what))

struct world *world_new(const struct world_files *files);
void world_free(struct world *w);

/* The Node, as the server has it. */
void world_node(const struct world *w, struct buf *out);
/* As somebody's kubectl does it, or, the first, a kubelet that starts. */
void world_delete_slice(struct world *w);
void world_annotate_slice(struct world *w, const char *key);
/* libnvidia-ml.conf of the stand-in. */
void world_conf(struct world *w, const char *text);
/* A line of libnvidia-ml.events. */
void world_happens(struct world *w, const char *line);
/* A copy of this file there, as a program. */
void world_put_copy(struct world *w, const char *from, const char *path);
/* A device node below the world's folder; skips the test where none can be made. */
void world_put_node(struct world *w, const char *path, unsigned minor_number);
/* A folder of the driver's root that is emptied: "cdi", "plugins". */
char *world_path(const struct world *w, const char *path);

/* more: one argument beside those that each has, or NULL. */
void world_start(struct world *w, const char *more);
void world_end(struct world *w); /* as a kubelet's node ends it */
bool world_offers(const struct world *w, const char *device);

struct answer {
        bool come;
        int status; /* of dra-call: 0 done, 1 refused, 2 the plugin is not there */
        char text[2048];
};
/* what: "prepare" or "unprepare". world_ask() waits for the socket first, world_try() asks at once, and
 * world_send() does not wait for the answer, which comes while the loop runs. */
struct answer world_ask(struct world *w, const char *what);
struct answer world_try(struct world *w, const char *what, const char *claim, const char *uid);
void world_send(struct world *w, const char *what, const char *claim, const char *uid, struct answer *ret);
