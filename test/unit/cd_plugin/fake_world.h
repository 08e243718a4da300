/* SPDX-License-Identifier: Apache-2.0 */
/* fake_world: everything around the claims' state machine: an API server with claims and domains, the
 * kubelet's calls, a node's facts and folders. Real are the files, the lock, inotify, and the loop. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

#define BOOT "11111111-1111-4111-8111-111111111111"
#define DOMAIN_A "aaaaaaaa-0000-4000-8000-000000000001"
#define DOMAIN_B "bbbbbbbb-0000-4000-8000-000000000002"
#define CLAIM_1 "c0000000-0000-4000-8000-000000000001"
#define CLAIM_2 "c0000000-0000-4000-8000-000000000002"
#define DAEMON_1 "d0000000-0000-4000-8000-000000000001"
#define CHANNEL "ComputeDomainChannelConfig"
#define DAEMON "ComputeDomainDaemonConfig"
#define FABRIC "fab00000-0000-4000-8000-000000000001"
#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"

enum answer { PENDING, PREPARED, UNPREPARED, FAILED, CANCELLED };

/* The kubelet's view of one claim in one call. */
struct dra_op {
        void *data;
        uint64_t timeout_ms;
        enum answer answer;
        char msg[700];
        char devices[400]; /* "request/pool/device=cdi id,..." */
};

extern struct world {
        uv_loop_t loop;
        char *dir, *plugin_dir, *cdi_root, *driver_root;
        struct claims *claims;
        struct facts facts;
        const struct imex_mode *mode; /* of the plugin processes made from now on */
        const char *more_ns;          /* likewise: their additional namespaces */
        const char *host_says;        /* the last answer of the host's IMEX */
        enum host_imex_own host_own;  /* and what whoever offers devices sees of it */
        struct host_imex_status host_status;
        bool host_settles;
        bool hurried, host_hurried, api_down, api_unknown;
        bool old_cache;          /* lists from the API server's cache do not have the domains yet */
        bool old_watch;          /* nor does the watch of a namespace */
        const char *api_refuses; /* what the API server says instead of an answer that it may yet give; NULL:
                                    nothing */
        const char
                *api_fails_for; /* the object for which it answers with an error of this kind; NULL: none */
        enum err_kind api_fails_with;
        unsigned requests; /* to the API server so far, */
        unsigned lists;    /* and of these, lists of ComputeDomains */
        char events[2000]; /* "Kind/name reason: message\n" */
        struct plugin_metrics metrics;
        struct claims *processes[4];     /* that have started, and not stopped */
        struct isolation *isolations[4]; /* theirs, where channels are assigned */
        char patch[3000];                /* the last one of the plugin's own Pod; "": none */
        bool disk_hangs;                 /* world_turn() does not wait for batches */
        const char *table_of;            /* whose table fabrics have; NULL: their own */
        int lock_fd;                     /* what daemon_ready() holds, -1: nothing */
} w;

int world_setup(void **state);
/* The same, a plugin process, and the claims user/c1 (CLAIM_1) and user/c2 (CLAIM_2) for channel-0 in
 * DOMAIN_A. */
int world_setup_claims(void **state);
int world_teardown(void **state);
/* Chooses w.mode as the program does. */
void world_mode(const char *gates, const char *imex_mode);
/* That of imex.isolation=channel where the gate says that the host runs IMEX. */
void world_mode_own_channels(void);
/* Those that agents run, by imex.agents=true and `isolation`. */
void world_mode_agents(const char *isolation);
/* A plugin process on the same node; world_start() makes the first. */
struct claims *world_process(const char *boot_id);
void world_start(const char *boot_id);
/* The same; -1 when it does not start. */
int world_try(const char *boot_id, struct claims **ret, struct err *e);
void world_stop(struct claims *c);

/* Objects in the API server. `extra` goes into the claim's status.allocation.devices.config parameters behind
 * domainID. */
void api_claim(const char *ns, const char *name, const char *uid, const char *device, const char *config_kind,
               const char *domain, const char *extra);
/* The claim driver/daemon-claim (DAEMON_1) of DOMAIN_A with what its annotations say of the domain. */
void api_daemon_claim_named(const char *domain_name, const char *domain_ns);
void api_claim_json(const char *ns, const char *name, const char *json);
void api_remove_claim(const char *ns, const char *name);
void api_domain(const char *ns, const char *name, const char *uid, bool deleting);
void api_remove_domain(const char *uid);
/* Annotates a domain with the mode it was formed in; NULL: none. */
void api_domain_mode(const char *uid, const char *mode);

/* The ComputeDomainFabric of clique `name` as the API server has it, at version `rv`, with this text in
 * "channels" and more members; channels NULL: none. Its watch has it only after api_fabric_event(). */
void api_fabric(const char *name, int rv, const char *channels, const char *more);
void api_fabric_event(void);
/* The node's facts have changed: w.facts. */
void world_facts(void);

/* Runs the loop and the API server until nothing happens any more; world_wait() until the answer is there, or
 * fails after 5 s. */
void world_turn(void);
void world_wait(struct dra_op *op, enum answer want);

void kubelet_prepare(struct claims *c, struct dra_op *op, const char *ns, const char *name, const char *uid);
/* In namespace "user", of w.claims. */
void prepare(struct dra_op *op, const char *name, const char *uid);
/* FAILED without waiting, the message holds `part`, and nothing was recorded or written. */
void refused_at_once(const char *name, const char *uid, const char *part);
void kubelet_unprepare(struct claims *c, struct dra_op *op, const char *ns, const char *name,
                       const char *uid);

/* The daemon of a domain writes its state file; *lock_fd keeps it "alive". */
void daemon_says(const char *domain, const char *claim_uid, const char *boot_id, bool ready,
                 const char *status, int *lock_fd);
/* Prepares DAEMON_1 for DOMAIN_A and lets it report READY; w.lock_fd keeps it alive. */
void daemon_ready(void);

/* The host's IMEX answers a question. */
void host_answers(const char *says);

char *world_read(const char *path); /* NULL: there is none; caller frees */
char *world_cdi(const char *uid);   /* content of a claim's CDI file, or NULL */
/* Another process writes a checkpoint of this boot with these claims ("{}": none). */
void world_put_checkpoint(const char *claims_json);
bool world_recorded(const char *uid); /* in the file, not in memory */
const struct checkpoint_claim *world_entry(struct claims *c, const char *uid);
struct cd *world_cd(void); /* the driver of w.claims */
