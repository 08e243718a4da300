/* SPDX-License-Identifier: Apache-2.0 */
/* ops: manages the operations of a plugin process, one for each claim that the kubelet asks to prepare or
 * unprepare, and holds the table of prepared claims. The modules fetch, prepare_verdict, effects, retry,
 * waits and batch advance an operation; each of them uses only the modules before it in this list. Loop
 * thread only. */
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

/* The strings are borrowed until the loop has ended after claims_free(), because the disk's thread may read
 * them until then. */
struct claims_options {
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        struct node_metrics *metrics;
        const struct node_driver *driver;
        void *u; /* the value that the driver's functions receive */
        const char *node;
        const char *plugin_dir, *cdi_root;
        const char *boot_id;
        int checkpoint_dialect;   /* the dialect to write; 0: the codec has no dialects */
        bool retries;             /* the plugin may ask the kubelet to retry (node/retry.h) */
        void (*changed)(void *u); /* the table of prepared claims may have changed; NULL is allowed */
        void *changed_u;
};

enum op_phase {
        OP_FETCHING, /* the claim is being read; also the phase of a new operation */
        OP_QUEUED,   /* queued for the next batch */
        OP_BATCH,    /* in the current batch; only batch.c ends this phase */
        OP_WORKING,  /* between two batches: the driver does its slow work */
        OP_WAITING,
        OP_FAILED, /* a kept Prepare that has been read (op_keep()) */
};
#define N_OP_PHASES (OP_FAILED + 1)

/* The progress of a Prepare. It never decreases. */
enum op_progress {
        OP_ASKED,
        OP_FETCHED,  /* the claim, and everything else that the driver needs, has been read */
        OP_RECORDED, /* recorded as PrepareStarted */
};

enum op_wait_stage {
        OP_WAIT_SHORT,
        OP_WAIT_LONG,         /* the operation has waited for long: investigate() is due */
        OP_WAIT_INVESTIGATED, /* investigate() has been called */
};

struct op {
        TAILQ_ENTRY(op) link;
        struct claims *c;
        struct dra_op *dra; /* NULL: the operation is the plugin's own unprepare of a deleted claim, or the
                               kubelet has disconnected */
        bool unprepare;
        bool renew; /* rewrite the prepared files */
        enum op_phase phase;
        uint64_t number; /* order of arrival */
        char *ns, *name, *uid;
        struct loop_timer timer;
        unsigned budget_ms;
        enum op_wait_stage wait_stage;
        uint64_t began_ns, get_ns, waiting_since_ns, waited_ns;
        uint64_t attempt_ns; /* when the last attempt began (node_metrics.h) */
        /* For a Prepare only: */
        enum op_progress progress;
        struct kube_call *get;
        void *own; /* the driver's data for this operation */
        struct arena *arena;
        struct claim claim;
        struct str status; /* canonical JSON */
        struct node_request *requests;
        size_t n_requests;
        enum verdict verdict;
        unsigned waits_for;
        char *holder;           /* the UID of the claim that holds the device that this operation needs; NULL:
                                   none */
        struct disk_task *task; /* the current task of the disk's thread for this operation */
        bool worked, unworked;  /* work() and unwork() have finished */
        bool late;              /* its caller has left, or has got an error, while it was busy */
        bool kept;              /* see op_keep() */
        bool of_record;         /* kept: made from the record of a claim, whose pod may not exist any more */
        bool retry_any;         /* kept: the cause is gone when the Prepare can wait again */
        bool retry_asked;       /* kept: the kubelet has been asked to retry */
        bool retry_over;        /* kept: it is about to be freed */
        struct err work_failed; /* the error of work(); ERR_NONE: it has not failed */
        void *work;             /* the driver's data while it works */
        char msg[600];
};

struct claims {
        struct claims_options o;
        struct journal journal;
        TAILQ_HEAD(op_list, op) ops;
        struct op_list failed; /* kept operations; they are in no other list */
        uint64_t n_ops;
        struct loop_turn kick;
        struct claim_gc *claim_gc;
        struct retry *retry;
        struct batch *batch;
        bool locking; /* the next batch waits for the node lock */
        bool freed;   /* everything is freed except the current batch, which needs the memory until its end */
};

/* Creates the operations' state. `run` takes the queued operations; its `u` is the claims. */
struct claims *ops_new(const struct claims_options *o, loop_fn *run);
/* Frees all operations without answering them, because no answer can be sent any more. */
void ops_end(struct claims *c);
void ops_free(struct claims *c);

/* Creates an operation. dra NULL: no caller waits for an answer. `late` is called by the operation's timer,
 * with the operation; NULL: no timer. */
struct op *op_new(struct claims *c, struct dra_op *dra, bool unprepare, const struct dra_claim *claim,
                  loop_fn *late);
bool ops_active(const struct claims *c, const char *uid); /* true: there is an operation for this claim */
/* ops_working() returns the operation on this claim for which the driver does its slow work. ops_working_on()
 * returns such a Prepare that has, or will have, this device. NULL: none. */
const struct op *ops_working(const struct claims *c, const char *uid);
const struct op *ops_working_on(const struct claims *c, const char *uid, const char *device);
loop_fn ops_kick; /* runs a batch, even an empty one; `u`: the claims */

/* The transitions of an operation. Only op_set_phase() writes the phase; it aborts the process on a
 * transition that op_may_become() does not allow. */
bool op_may_become(enum op_phase from, enum op_phase to);
void op_set_phase(struct op *op, enum op_phase to);
/* Returns true if a batch or the driver's work holds the operation. Answers to earlier requests that arrive
 * in the meantime must not move or end it, so their receiver checks this first. */
bool op_is_busy(const struct op *op);

void op_queue(struct op *op);   /* moves the operation to the next batch */
void op_fetched(struct op *op); /* everything that the operation needs has been read: moves it to the next
                                   batch. Not while it is busy */

/* Reports that the work that the driver began in work() or unwork() has finished, or, with e, that part of a
 * Prepare's work has failed. */
void op_worked(struct op *op, const struct err *e);

/* Returns true if the claim is already recorded as prepared, so this Prepare is not the first. Repeated work
 * must not disturb the running containers. */
bool op_prepared_before(const struct op *op);

/* These functions end the operation. A Prepare succeeds only with a record in the state PrepareCompleted, and
 * fails otherwise. The failure of a kept operation has been answered and counted already. */
void op_succeed(struct op *op);
void op_fail(struct op *op, const char *msg);
void op_answer_failed(struct op *op, const char *msg); /* only sends the answer; does not end the operation */
void op_drop(struct op *op);                           /* ends the operation without an answer; counted as
                                                          failed */
/* Answers a Prepare as op_fail() does, or without an answer if msg is NULL, but keeps it in `failed` until
 * its cause is gone. It counts as failed except if it is `of_record`. If it is being read, it continues to be
 * read; if it has not been read, the caller starts that. It never gets into a batch again. */
void op_keep(struct op *op, const char *msg);
/* Marks that no caller waits for the operation any more. The operation is completed nevertheless. */
void op_detach(struct op *op);
