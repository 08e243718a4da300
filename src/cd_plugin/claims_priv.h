/* SPDX-License-Identifier: Apache-2.0 */
/* claims_priv: shared by claims.c (operations, waits, answers), batch.c (lock, journal, disk), prepare.c,
 * unprepare.c and sweep.c. */
#ifndef CD_PLUGIN_CLAIMS_PRIV_H
#define CD_PLUGIN_CLAIMS_PRIV_H

#include <sys/queue.h>

#include "api/claim.h"
#include "cd_plugin/claims.h"
#include "node/disk.h"
#include "node/journal.h"
#include "cd_plugin/lookup.h"
#include "node/node_lock.h"
#include "cd_plugin/readiness.h"
#include "cd_plugin/sweep.h"

enum {
        LOCK_LIMIT_MS = 10000,
        BUDGET_MS = 44000, /* the kubelet waits 45 s; the answer must get there before */
        LOOK_CLOSER_MS =
                5000,       /* after this long, a wait is worth a watch and a look at who stands in the way */
        ABORTED_TTL_S = 90, /* twice the kubelet's patience */
        LOST_GRACE_MS =
                5000, /* a daemon that leaves with its workload is no news, nor is one that is back at once */
};

enum verdict {
        VERDICT_FETCH, /* the claim itself is needed first */
        VERDICT_WAIT,  /* not now; msg says what for */
        VERDICT_FAIL,  /* never; msg says why */
        VERDICT_GO,
        VERDICT_ANSWER, /* prepared already: the recorded devices are the answer */
};

enum op_phase {
        OP_FETCHING,
        OP_QUEUED, /* for the next batch */
        OP_BATCH,  /* in the one that is under way: only batch.c moves it on */
        OP_WAITING,
        OP_DONE,
};

/* One device of ours in a claim's allocation. */
struct want {
        const struct claim_result *result;
        bool is_daemon;
        struct opaque_config config;
        const char *domain_name, *domain_ns;
};

struct op {
        TAILQ_ENTRY(op) link;
        struct claims *c;
        struct dra_op
                *dra; /* NULL: our own unprepare, of a claim that is gone, or the kubelet has gone away */
        bool unprepare;
        enum op_phase phase;
        uint64_t number; /* order of arrival */
        char *ns, *name, *uid;
        uv_timer_t timer;
        unsigned budget_ms;
        bool closer; /* LOOK_CLOSER_MS have passed */
        uint64_t began_ns, get_ns, waiting_since_ns, waited_ns;
        /* Prepare */
        struct kube_call *get;
        struct lookup *lookup;
        struct lookup_list *domains;
        bool domains_all;   /* `domains` is of all namespaces */
        bool domains_fresh; /* and not of the API server's cache */
        struct lookup_watch *watch;
        struct arena *arena;
        struct claim claim;
        struct str status; /* canonical JSON */
        struct want *wants;
        size_t n_wants;
        bool fetched;
        bool redo;      /* prepared already, but its CDI file or the answer's details are lost */
        bool recorded;  /* PrepareStarted is in the journal */
        bool for_facts; /* it waits for facts */
        bool for_claim; /* it waits for another claim to go */
        bool for_host;  /* it waits for the host's IMEX */
        bool permanent; /* `msg` is a refusal that no waiting mends */
        enum verdict verdict;
        struct disk_task *task; /* what the thread does for it now */
        char msg[600];
};

/* A domain whose daemon was unprepared in this batch. */
struct leaving {
        STAILQ_ENTRY(leaving) link;
        char domain[37];
        struct disk_task *task; /* removes its folder; NULL: it is in use */
};

/* A domain whose daemon was ready and is not any more. */
struct lost {
        LIST_ENTRY(lost) link;
        char domain[37];
};

struct claims {
        struct claims_options o;
        struct journal journal;
        struct node_lock *lock;
        struct readiness *readiness;
        struct lookup_watches *watches;
        struct sweep *sweep;
        TAILQ_HEAD(, op) ops;
        uint64_t n_ops;
        uv_timer_t kick;   /* runs the queue at the next turn */
        uv_timer_t expiry; /* the next PrepareAborted entry to forget */
        uv_timer_t grace;  /* of `lost` */
        LIST_HEAD(, lost) lost;
        struct disk *disk;
        STAILQ_HEAD(, leaving) leaving;
        bool locking;              /* waiting for the node lock */
        bool in_batch;             /* holding it, perhaps waiting for the disk */
        bool again;                /* another batch is due after this one */
        bool changed;              /* the table: it must be written */
        struct disk_task *written; /* the write under way */
        uint64_t batch_ns;         /* when the batch began */
        bool unserved;             /* it has been said that the server does not serve resource.k8s.io */
        bool freed;
        unsigned open; /* handles not closed yet */
        void (*started)(void *u, const struct err *e);
        void *started_u;
};

/* claims.c */
void claims__queue(struct op *op); /* to the next batch */
void claims__reevaluate(struct claims *c);
/* These three end what a batch was for the operation; the first two answer and free it, and so does the third
 * when nobody waits for it any more. */
void claims__succeed(struct op *op);
void claims__fail(struct op *op, const char *msg);
void claims__wait(struct op *op);
void claims__tell_unreadable(struct claims *c, const struct err *e);
void claims__closed(struct claims *c); /* a handle, or a job of the disk */
struct op *claims__own_unprepare(struct claims *c, const char *ns, const char *name, const char *uid);
bool claims__active(const struct claims *c, const char *uid); /* an operation for this claim is under way */

/* batch.c */
void batch_init(struct claims *c);
void batch_free(struct claims *c);   /* last of all: the thread may still be at work */
void claims__kick(struct claims *c); /* a batch, even an empty one */

/* wants.c: decodes the claim and fills op->wants; all of it is checked before anything is done for a part of
 * it. */
int wants_take(struct op *op, yyjson_val *claim, struct err *e);

/* prepare.c */
void prepare_fetch(struct op *op);
void prepare_api_known(struct op *op); /* claims can be read now */
/* Only looks. Needs a current table when it says GO or ANSWER. */
enum verdict prepare_judge(struct op *op);
/* Hands the side effects to the disk, as op->task, and turns the entry into PrepareCompleted (not written
 * yet); takes that back when the side effects have failed. */
int prepare_start(struct op *op, struct err *e);
void prepare_revoke(struct op *op);
void prepare_answer(struct op *op);
void prepare_look_closer(struct op *op);
void prepare_doubt(struct op *op);   /* asks anew when the watch does not show what a list has shown */
void prepare_release(struct op *op); /* what a prepare holds */

/* unprepare.c: removes the CDI file, then changes the table (not written yet; true: it is another now), and
 * when that is recorded removes the folders of the domains whose daemon left and which no entry needs. */
struct disk_task *unprepare_start(struct claims *c, const char *uid);
bool unprepare_end(struct claims *c, const char *uid);
void unprepare_start_leaving(struct claims *c);
void unprepare_end_leaving(struct claims *c);
void unprepare_drop_leaving(struct claims *c);
/* The domains whose daemon an entry is, read leniently: its devices when they are recorded, else what its
 * status asks for. Anything that makes no sense is no domain: what cannot be read must never keep a claim
 * from going. */
void unprepare_each_daemon_domain(const struct checkpoint_claim *entry,
                                  void (*fn)(void *u, const char *domain), void *u);

#endif
