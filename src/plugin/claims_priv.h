/* claims_priv: shared by claims.c (queue, lock, journal, answers), prepare.c, unprepare.c and sweep.c. */
#ifndef PLUGIN_CLAIMS_PRIV_H
#define PLUGIN_CLAIMS_PRIV_H

#include <sys/queue.h>

#include "domain/claim.h"
#include "plugin/claims.h"
#include "plugin/journal.h"
#include "plugin/lookup.h"
#include "plugin/node_lock.h"
#include "plugin/readiness.h"
#include "plugin/sweep.h"

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

enum op_phase { OP_FETCHING, OP_QUEUED, OP_WAITING, OP_DONE };

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
        struct dra_op *dra; /* NULL: our own unprepare, of a claim that is gone */
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
        enum verdict verdict;
        char msg[600];
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
        bool locking; /* waiting for the node lock */
        bool freed;
        unsigned open; /* handles not closed yet */
        void (*started)(void *u, const struct err *e);
        void *started_u;
};

/* claims.c */
void claims__queue(struct op *op);   /* to the next batch */
void claims__kick(struct claims *c); /* a batch, even an empty one */
void claims__reevaluate(struct claims *c);
void claims__fail(struct op *op, const char *msg); /* answers and frees */
struct op *claims__own_unprepare(struct claims *c, const char *ns, const char *name, const char *uid);
bool claims__active(const struct claims *c, const char *uid); /* an operation for this claim is under way */

/* wants.c: decodes the claim and fills op->wants; all of it is checked before anything is done for a part of
 * it. */
int wants_take(struct op *op, yyjson_val *claim, struct err *e);

/* prepare.c */
void prepare_fetch(struct op *op);
void prepare_api_known(struct op *op); /* claims can be read now */
/* Only looks. Needs a current table when it says GO or ANSWER. */
enum verdict prepare_judge(struct op *op);
/* The side effects, and the entry turned into PrepareCompleted (not written yet). */
int prepare_carry_out(struct op *op, struct err *e);
void prepare_answer(struct op *op);
void prepare_look_closer(struct op *op);
void prepare_release(struct op *op); /* what a prepare holds */

/* unprepare.c: undoes the side effects, then changes the table (not written yet). */
int unprepare_carry_out(struct claims *c, const char *uid, bool *ret_changed, struct err *e);
/* The domains whose daemon an entry is, read leniently: its devices when they are recorded, else what its
 * status asks for. Anything that makes no sense is no domain: what cannot be read must never keep a claim
 * from going. */
void unprepare_each_daemon_domain(const struct checkpoint_claim *entry,
                                  void (*fn)(void *u, const char *domain), void *u);

#endif
