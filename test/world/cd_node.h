/* SPDX-License-Identifier: Apache-2.0 */
/* cd_node: the ComputeDomain plugin's processes on node n0, with all that is around them: API server and
 * kubelet (world/api.h, world/kubelet.h), the node's facts, the host's IMEX, and folders. Real are the files,
 * the lock, inotify, and the loop. What a test does on the node is in cd_objects.h and cd_daemon.h, too. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/names.h"
#include "api/resources.h"
#include "cd_plugin/cd_driver.h"
#include "cd_plugin/devices.h"
#include "cd_plugin/isolation.h"
#include "cd_plugin/metrics.h"
#include "imex/imex_state.h"
#include "node/batch.h"
#include "node/checkpoint_layouts.h"
#include "node/claims.h"
#include "node/sweep.h"
#include "node/waits.h"
#include "tree.h"
#include "world/api.h"
#include "world/cd_daemon.h"
#include "world/cd_objects.h"
#include "world/informers.h"
#include "world/kubelet.h"

extern struct world {
        uv_loop_t loop;
        char *dir, *plugin_dir, *cdi_root, *driver_root;
        struct claims *claims;
        struct facts facts;
        const struct imex_mode *mode; /* of the plugin processes made from now on */
        const char *more_ns;          /* likewise: their additional namespaces */
        const char *host_says;        /* the last answer of the host's IMEX */
        enum host_imex_own host_own;  /* what the ResourceSlice is made from */
        struct host_imex_status host_status;
        bool host_settles, wait_for_host;
        bool hurried, host_hurried;
        bool daemon_terminates; /* according to its state file, from now on */
        struct plugin_metrics metrics;
        struct claims *processes[4];     /* that have started, and not stopped */
        struct isolation *isolations[4]; /* theirs, where channels are assigned */
        struct own_pod *own_pods[4];     /* theirs */
        bool disk_hangs;                 /* world_turn() does not wait for batches */
        int lock_fd;                     /* what daemon_ready() holds, -1: nothing */
} w;

int world_setup(void **state);
/* The same, a plugin process, and the claims user/c1 (CLAIM_1) and user/c2 (CLAIM_2) for channel-0 in
 * DOMAIN_A. */
int world_setup_claims(void **state);
int world_teardown(void **state);
/* Chooses w.mode as the program does. */
void world_mode(const char *gates, const char *imex_mode);
/* That of imex.isolation=channel where the host runs IMEX. */
void world_mode_own_channels(void);
/* Those where we run IMEX, with `isolation`. */
void world_mode_daemons(const char *isolation);
/* A plugin process on the same node; world_start() makes the first. */
struct claims *world_process(const char *boot_id);
void world_start(const char *boot_id);
/* The same; -1 when it does not start. */
int world_try(const char *boot_id, struct claims **ret, struct err *e);
void world_stop(struct claims *c);

/* The node's facts have changed: w.facts. */
void world_facts(void);
/* The host's IMEX answers a question. */
void host_answers(const char *says);

/* Runs the loop and the API server until nothing happens any more; world_wait() until the answer is there, or
 * fails after 5 s. */
void world_turn(void);
void world_wait(struct dra_op *op, enum answer want);

/* In namespace "user", of w.claims. */
void prepare(struct dra_op *op, const char *name, const char *uid);
/* FAILED without waiting, the message holds `part`, and nothing was recorded or written. */
void refused_at_once(const char *name, const char *uid, const char *part);

/* FAILED when its time is over, the message holds `part`, and no CDI file was written. */
void waits_with(const char *name, const char *uid, const char *part);

/* The note of a claim in the folder of a domain: "waiting", "granting", or "" when there is none. */
const char *world_note(const char *domain, const char *claim);
/* Runs the loop until it is this. */
void world_wait_note(const char *domain, const char *claim, const char *want);

char *world_read(const char *path); /* NULL: there is none; caller frees */
char *world_cdi(const char *uid);   /* content of a claim's CDI file, or NULL */
/* Another process writes a checkpoint of this boot with these claims ("{}": none). */
void world_put_checkpoint(const char *claims_json);
bool world_recorded(const char *uid); /* in the file, not in memory */
const struct checkpoint_claim *world_entry(struct claims *c, const char *uid);
struct cd *world_cd(void); /* the driver of w.claims */
