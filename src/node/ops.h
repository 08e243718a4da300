/* SPDX-License-Identifier: Apache-2.0 */
/* ops: the operations of a plugin process, one for each claim that the kubelet asks something for, and the
 * table of prepared claims that they work on. What moves them on is in fetch, judge, effects, waits and
 * batch, each of which knows those before it. Loop thread only. */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "base/loop.h"
#include "dra/dra_plugin.h"
#include "kube/event_recorder.h"
#include "kube/kube_client.h"
#include "node/disk.h"
#include "node/driver.h"
#include "node/journal.h"
#include "node/metrics.h"

/* The strings are borrowed until the loop has come to its end behind claims_free(): the disk's thread may
 * still read them. */
struct claims_options {
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        struct node_metrics *metrics;
        const struct node_driver *driver;
        void *u; /* the driver's */
        const char *node;
        const char *plugin_dir, *cdi_root;
        const char *boot_id;
        int checkpoint_dialect;   /* in which it is written; 0: the codec has no dialects */
        void (*changed)(void *u); /* the table of prepared claims may have; NULL is allowed */
        void *changed_u;
};

enum op_phase {
        OP_FETCHING, /* also a new one */
        OP_QUEUED,   /* for the next batch */
        OP_BATCH,    /* in the one that is under way: only batch.c moves it on */
        OP_WORKING,  /* between two batches: the driver does what takes long */
        OP_WAITING,
};
#define N_OP_PHASES (OP_WAITING + 1)

/* How far a Prepare has come, which is never taken back. */
enum op_progress {
        OP_ASKED,
        OP_FETCHED,  /* the claim, and what else the driver wants to know, is here */
        OP_RECORDED, /* as PrepareStarted */
};

enum op_patience {
        OP_PATIENT,
        OP_LATE,   /* it is time to look closer at what it waits for, */
        OP_LOOKED, /* which has been done */
};

struct op {
        TAILQ_ENTRY(op) link;
        struct claims *c;
        struct dra_op
                *dra; /* NULL: our own unprepare, of a claim that is gone, or the kubelet has gone away */
        bool unprepare;
        bool renew; /* what is prepared is written anew */
        enum op_phase phase;
        uint64_t number; /* order of arrival */
        char *ns, *name, *uid;
        struct loop_timer timer;
        unsigned budget_ms;
        enum op_patience patience;
        uint64_t began_ns, get_ns, waiting_since_ns, waited_ns;
        /* Prepare */
        enum op_progress progress;
        struct kube_call *get;
        void *own; /* the driver's */
        struct arena *arena;
        struct claim claim;
        struct str status; /* canonical JSON */
        struct node_want *wants;
        size_t n_wants;
        enum verdict verdict;
        unsigned waits_for;
        char *holder;           /* the UID of the claim whose device it wants; NULL: none */
        struct disk_task *task; /* what the thread does for it now */
        bool worked, unworked;  /* the driver has done what takes long, and undone it */
        struct err work_failed; /* ERR_NONE: it has not */
        void *work;             /* the driver's, while it works */
        char msg[600];
};

struct claims {
        struct claims_options o;
        struct journal journal;
        TAILQ_HEAD(op_list, op) ops;
        uint64_t n_ops;
        struct loop_turn kick;
        struct sweep *sweep;
        struct batch *batch;
        bool unserved; /* it has been said that the server does not serve resource.k8s.io */
        bool freed;    /* but for the batch that is under way, which needs the memory until its end */
};

/* run: looks for queued operations; its `u` is the claims. */
struct claims *ops_new(const struct claims_options *o, loop_fn *run);
/* Frees all operations without an answer: none comes any more. */
void ops_end(struct claims *c);
void ops_free(struct claims *c);

/* dra NULL: nobody waits for an answer. late: what its timer calls, with the operation; NULL: it has none. */
struct op *op_new(struct claims *c, struct dra_op *dra, bool unprepare, const char *ns, const char *name,
                  const char *uid, loop_fn *late);
bool ops_active(const struct claims *c, const char *uid); /* an operation for this claim is under way */
/* The driver works for this claim; for a Prepare that has, or will have, this device. NULL: it does not. */
const struct op *ops_working(const struct claims *c, const char *uid);
const struct op *ops_working_on(const struct claims *c, const char *uid, const char *device);
loop_fn ops_kick; /* a batch, even an empty one; `u`: the claims */

/* The steps that an operation can take. op_set_phase() is the only place that writes the phase, and ends the
 * process at any other step. */
bool op_may_become(enum op_phase from, enum op_phase to);
void op_set_phase(struct op *op, enum op_phase to);
/* A batch or the driver's work has it. Answers that arrive meanwhile, to questions that were asked before,
 * must not move or end it: who receives them asks here first. */
bool op_is_held(const struct op *op);

void op_queue(struct op *op);   /* to the next batch */
void op_fetched(struct op *op); /* to the next batch, with all that is needed; not while it is held */

/* The driver has done what it began in work() or unwork(), or what of a Prepare has failed. */
void op_worked(struct op *op, const struct err *e);

/* The claim is recorded as prepared, so that this Prepare is not the first: what is done again must not
 * disturb who uses it. */
bool op_prepared_before(const struct op *op);

/* These end it. A Prepare succeeds only with a record that says PrepareCompleted, and fails otherwise. */
void op_succeed(struct op *op);
void op_fail(struct op *op, const char *msg);
void op_answer_failed(struct op *op, const char *msg); /* only tells it */
void op_drop(struct op *op);                           /* without an answer, but counted as failed */
/* Nobody waits for it any more, but it is carried to its end. */
void op_let_go(struct op *op);
