/* SPDX-License-Identifier: Apache-2.0 */
/* ops: the operations of a plugin process, one for each claim that the kubelet asks to prepare or unprepare,
 * and the table of prepared claims. The modules fetch, prepare_verdict, effects, waits and batch move an
 * operation on; each of them uses only those before it. Loop thread only. */
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
#include "node/node_metrics.h"

/* The strings are borrowed until the loop has ended after claims_free(): the disk's thread may still read
 * them. */
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
        int checkpoint_dialect;   /* the dialect to write; 0: the codec has no dialects */
        void (*changed)(void *u); /* the table of prepared claims may have changed; NULL is allowed */
        void *changed_u;
};

enum op_phase {
        OP_FETCHING, /* also a new operation */
        OP_QUEUED,   /* for the next batch */
        OP_BATCH,    /* in the current batch: only batch.c moves it on */
        OP_WORKING,  /* between two batches: the driver does slow work */
        OP_WAITING,
};
#define N_OP_PHASES (OP_WAITING + 1)

/* How far a Prepare has come. It never goes back. */
enum op_progress {
        OP_ASKED,
        OP_FETCHED,  /* the claim, and what else the driver needs, has been read */
        OP_RECORDED, /* as PrepareStarted */
};

enum op_wait_stage {
        OP_WAIT_SHORT,
        OP_WAIT_LONG,         /* it has waited for long: investigate() is due */
        OP_WAIT_INVESTIGATED, /* investigate() has been called */
};

struct op {
        TAILQ_ENTRY(op) link;
        struct claims *c;
        struct dra_op *dra; /* NULL: the plugin's own unprepare of a deleted claim, or the kubelet has
                               disconnected */
        bool unprepare;
        bool renew; /* rewrite the prepared files */
        enum op_phase phase;
        uint64_t number; /* order of arrival */
        char *ns, *name, *uid;
        struct loop_timer timer;
        unsigned budget_ms;
        enum op_wait_stage wait_stage;
        uint64_t began_ns, get_ns, waiting_since_ns, waited_ns;
        /* Prepare */
        enum op_progress progress;
        struct kube_call *get;
        void *own; /* the driver's */
        struct arena *arena;
        struct claim claim;
        struct str status; /* canonical JSON */
        struct node_request *requests;
        size_t n_requests;
        enum verdict verdict;
        unsigned waits_for;
        char *holder;           /* the UID of the claim whose device it wants; NULL: none */
        struct disk_task *task; /* the thread's current task for it */
        bool worked, unworked;  /* work() and unwork() have finished */
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
        struct claim_gc *claim_gc;
        struct batch *batch;
        bool freed; /* except the current batch, which needs the memory until its end */
};

/* run: takes the queued operations; its `u` is the claims. */
struct claims *ops_new(const struct claims_options *o, loop_fn *run);
/* Frees all operations without an answer: no answer can be sent any more. */
void ops_end(struct claims *c);
void ops_free(struct claims *c);

/* dra NULL: no caller waits for an answer. late: called by its timer, with the operation; NULL: no timer. */
struct op *op_new(struct claims *c, struct dra_op *dra, bool unprepare, const struct dra_claim *claim,
                  loop_fn *late);
bool ops_active(const struct claims *c, const char *uid); /* there is an operation for this claim */
/* The operation for which the driver works: on this claim; or a Prepare that has, or will have, this device.
 * NULL: none. */
const struct op *ops_working(const struct claims *c, const char *uid);
const struct op *ops_working_on(const struct claims *c, const char *uid, const char *device);
loop_fn ops_kick; /* runs a batch, even an empty one; `u`: the claims */

/* The transitions of an operation. Only op_set_phase() writes the phase; it aborts the process on any other
 * transition. */
bool op_may_become(enum op_phase from, enum op_phase to);
void op_set_phase(struct op *op, enum op_phase to);
/* A batch or the driver's work holds it. Answers to earlier requests that arrive in the meantime must not
 * move or end it: their receiver checks this first. */
bool op_is_busy(const struct op *op);

void op_queue(struct op *op);   /* to the next batch */
void op_fetched(struct op *op); /* all it needs has been read: to the next batch; not while it is held */

/* The work that the driver began in work() or unwork() has finished, or part of a Prepare's has failed. */
void op_worked(struct op *op, const struct err *e);

/* The claim is already recorded as prepared, so this Prepare is not the first. Repeated work must not disturb
 * the running containers. */
bool op_prepared_before(const struct op *op);

/* These end it. A Prepare succeeds only with a record in the state PrepareCompleted, and fails otherwise. */
void op_succeed(struct op *op);
void op_fail(struct op *op, const char *msg);
void op_answer_failed(struct op *op, const char *msg); /* only sends the answer */
void op_drop(struct op *op);                           /* without an answer; counted as failed */
/* No caller waits for it any more, but it is completed. */
void op_detach(struct op *op);
