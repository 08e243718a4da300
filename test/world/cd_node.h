/* SPDX-License-Identifier: Apache-2.0 */
/* cd_node: runs processes of the ComputeDomain plugin on node n0, and simulates their surroundings: API
 * server and kubelet (world/api.h, world/kubelet.h), the facts of the node, and the host's IMEX. Files, lock,
 * inotify and loop are real. More functions for tests are in cd_objects.h and cd_daemon.h. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/names.h"
#include "api/resources.h"
#include "cd_plugin/cd_driver.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/isolation.h"
#include "cd_plugin/cd_metrics.h"
#include "imex/imex_state.h"
#include "node/batch.h"
#include "node/checkpoint_layouts.h"
#include "node/claims.h"
#include "node/claim_gc.h"
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
        const struct imex_mode *mode; /* of the plugin processes that start from now on */
        const char *more_ns;          /* the additional namespaces of these processes */
        const char *host_reports;     /* the last answer of the host's IMEX */
        enum host_imex_own host_own;  /* the ResourceSlice is built from it */
        struct host_imex_status host_status;
        bool host_settles, wait_for_host;
        bool retries; /* the processes may ask the kubelet to retry */
        bool hurried, host_hurried;
        bool daemon_terminates; /* according to its state file, from now on */
        struct cd_metrics metrics;
        struct claims *processes[4];     /* processes that have started and not stopped */
        struct isolation *isolations[4]; /* of the processes, if channels are assigned */
        struct own_pod *own_pods[4];     /* of the processes */
        bool disk_hangs;                 /* world_turn() does not wait for batches */
        int lock_fd;                     /* the lock that daemon_ready() holds; -1: none */
} w;

int world_setup(void **state);
/* Like world_setup(), with a plugin process, and with the claims user/c1 (CLAIM_1) and user/c2 (CLAIM_2) for
 * channel-0 in DOMAIN_A. */
int world_setup_claims(void **state);
int world_teardown(void **state);
/* Chooses w.mode as the program does. */
void world_mode(const char *gates, const char *imex_mode);
/* Sets the mode of imex.isolation=channel with host-managed IMEX. */
void world_mode_own_channels(void);
/* Sets the driver-managed mode with `isolation`. */
void world_mode_daemons(const char *isolation);
/* Starts a plugin process on the same node; world_start() starts the first one. */
struct claims *world_process(const char *boot_id);
void world_start(const char *boot_id);
/* Like world_process(), but returns -1 if the process does not start. */
int world_try(const char *boot_id, struct claims **ret, struct err *e);
void world_stop(struct claims *c);

/* Reports a change of the node's facts (w.facts). */
void world_facts(void);
/* Sets the answer of the host's IMEX to a query, and delivers it to the plugin. */
void host_answers(const char *says);

/* world_turn() runs the loop and the API server until nothing happens any more. world_wait() runs them until
 * the call has this answer, and fails after 5 s. */
void world_turn(void);
void world_wait(struct dra_op *op, enum answer want);

/* Prepares a claim in namespace "user" with w.claims. */
void prepare(struct dra_op *op, const char *name, const char *uid);
/* Prepares a claim. Expects FAILED without a wait, a message that contains `part`, and that nothing was
 * recorded or written. */
void refused_at_once(const char *name, const char *uid, const char *part);

/* Prepares a claim. Expects FAILED after the time-out of the call, a message that contains `part`, and that
 * no CDI file was written. */
void waits_with(const char *name, const char *uid, const char *part);

/* Returns the grant of a claim in the folder of an IMEX domain: "waiting", "granting", or "" if there is
 * none. */
const char *world_note(const char *domain, const char *claim);
/* Runs the loop until the grant is `want`. */
void world_wait_note(const char *domain, const char *claim, const char *want);

char *world_read(const char *path); /* NULL: there is no file; the caller frees it */
char *world_cdi(const char *uid);   /* content of a claim's CDI file, or NULL */
/* Writes a checkpoint of this boot with these claims ("{}": none), as another process would. */
void world_put_checkpoint(const char *claims_json);
bool world_recorded(const char *uid); /* in the file, not only in memory */
const struct checkpoint_claim *world_entry(struct claims *c, const char *uid);
struct cd *world_cd(void); /* the driver of w.claims */
