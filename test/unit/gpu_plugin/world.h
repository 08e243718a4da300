/* SPDX-License-Identifier: Apache-2.0 */
/* world: gpu-kubelet-plugin on its own node, with the stand-in of NVML and an API server in this process,
 * whose answers the test chooses. For tests and measurements. A failure fails the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "world/fake_server.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/str.h"
#include "base/watch_file.h"
#include "tree.h"

/* Claims of the namespace "u", with the contents in struct world. The server has these two, and for each
 * other name a claim whose UID is its name. */
#define CLAIM_UID "aaaaaaaa-0000-4000-8000-000000000001"   /* "c" */
#define ANOTHER_UID "aaaaaaaa-0000-4000-8000-000000000002" /* "d" */
#define RESULT(request, device)                                                                              \
        "{\"request\":\"" request "\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"" device    \
        "\"}"

/* The files of the programs and libraries. */
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
        struct buf says, slice; /* the log, and the last written slice */
        char *dir;
        int exit_status;              /* 128 + the signal's number if a signal ended it */
        const char *results, *config; /* of the claims, as JSON */
        const char *capacity;         /* of the node, as JSON */
        bool cordoned;                /* the node */
        const char *env[8];           /* more variables for the next process; NULL-terminated */
        const char *dra_timeout;      /* of the kubelet's calls (test/kubelet/dra_call.c); NULL: the usual */
        bool quiet;                   /* do not print the log when the process ends */
        bool unregistered;            /* the kubelet does not register the plugin */
        bool hold_slice;              /* the next write of a slice waits for world_store_slice() */
        struct fake_conn *held;       /* that write; NULL: it has not arrived */
        unsigned writes, rv, events;
        unsigned gets, changes; /* requests of all kinds: GET, and others */
        char event[512];        /* the last Event */
};

/* Runs the loop until the condition is true or the plugin has ended. */
#define UNTIL(w, what) RUN_UNTIL(&(w)->loop, !(w)->plugin || (what))

struct world *world_new(const struct world_files *files);
void world_free(struct world *w);

/* The Node in the server. */
void world_node(const struct world *w, struct buf *out);
/* Changes the slice as kubectl does. A kubelet that starts also deletes slices. */
void world_delete_slice(struct world *w);
void world_annotate_slice(struct world *w, const char *key);
/* Answers the write that hold_slice has held. */
void world_store_slice(struct world *w);
/* Registers the plugin, as a kubelet does. */
void world_register(struct world *w);
/* libnvidia-ml.conf of the stand-in. */
void world_conf(struct world *w, const char *text);
/* A line of libnvidia-ml.events. */
void world_happens(struct world *w, const char *line);
/* Copies this file there, as a program. */
void world_put_copy(struct world *w, const char *from, const char *path);
/* Creates a device node below the world's folder. Skips the test if that is not allowed. */
void world_put_node(struct world *w, const char *path, unsigned minor_number);
/* Empties a folder: "cdi", "plugins". */
char *world_path(const struct world *w, const char *path);

/* more: one additional argument, or NULL. */
void world_start(struct world *w, const char *more);
void world_end(struct world *w); /* ends the plugin as the kubelet does */
bool world_offers(const struct world *w, const char *device);

struct answer {
        bool come;
        int status; /* of dra-call: 0 done, 1 refused, 2 the plugin does not run */
        char text[2048];
};
/* what: "prepare" or "unprepare". world_ask() first waits for the socket, world_try() calls at once, and
 * world_send() does not wait for the answer, which arrives while the loop runs. */
struct answer world_ask(struct world *w, const char *what);
struct answer world_try(struct world *w, const char *what, const char *claim, const char *uid);
void world_send(struct world *w, const char *what, const char *claim, const char *uid, struct answer *ret);
