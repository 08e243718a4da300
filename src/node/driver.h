/* SPDX-License-Identifier: Apache-2.0 */
/* driver: what a DRA plugin is beyond what every plugin on a node shares: a table of functions.
 *
 * What a claim needs on the node is its CDI file, which the node half writes and removes, and things of the
 * driver's, each by an id that is the driver's too. Several claims may have the same thing: it is set up for
 * each, and undone with the last. What is said to run in the thread is the disk's, where nothing but the
 * arguments may be looked at; all else runs in the loop's. All members are needed but for those that say
 * what NULL means. `u` is what claims_new() was given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/claim.h"
#include "cdi/cdi.h"
#include "node/checkpoint.h"

struct claims;
struct op;

enum verdict {
        VERDICT_FETCH,  /* the claim itself is needed first */
        VERDICT_WAIT,   /* not now; msg says what for */
        VERDICT_REFUSE, /* never; msg says why */
        VERDICT_FAIL,   /* it was tried, or superseded; msg says why */
        VERDICT_GO,
        VERDICT_ANSWER, /* prepared already: the recorded devices are the answer */
};

/* One device of the driver's in a claim's allocation. */
struct node_want {
        const struct claim_result *result;
        void *own; /* the driver's, in the operation's arena */
};

/* What preparing a device changes. */
struct node_effect {
        struct cdi_edits edits; /* none: no CDI device */
        const char *thing;      /* id of a thing that must be set up before the CDI file; NULL: none */
};

/* What an operation waits for: from WAITS_FOR_DRIVER on, and below 32, what the driver says. */
enum { WAITS_FOR_NOTHING, WAITS_FOR_CLAIM /* another, to go */, WAITS_FOR_DRIVER };

typedef enum verdict(node_step_fn)(void *u, struct op *op, struct node_want *w);
typedef void(node_thing_fn)(void *u, const char *id);

struct node_driver {
        const char *name; /* in claims, slices and metrics; its folder below that of the plugins */
        const char *cdi_kind;
        /* "error preparing devices for claim": what stands before <namespace>/<name>:<uid> and why, in the
         * answer to the kubelet, and of an Unprepare. NULL: the answer says only why. */
        const char *prepare_fails, *unprepare_fails;
        const struct device_codec *codec;

        /* The claims' state machine begins and ends; free() gives `u` back, whether attach() was called or
         * not. */
        void (*attach)(void *u, struct claims *c);
        void (*free)(void *u);

        /* A claim is being read for an operation: what else is needed can be asked for beside it, and kept as
         * op->own until release(), which is called for every operation. */
        void (*fetch)(void *u, struct op *op);
        void (*release)(void *u, struct op *op);
        /* Pure: fills w->own. What is refused here no waiting mends. */
        int (*take)(void *u, const struct op *op, struct node_want *w, struct err *e);
        /* The same of the claim as a whole, when all its devices have been taken. */
        int (*check)(void *u, const struct op *op, struct err *e);
        /* The claim has been taken: calls op_fetched(), now or when what else is needed has come. */
        void (*gather)(void *u, struct op *op);
        /* Does the driver know what it takes to judge any claim? NULL: it always does. It and the steps look
         * only, and may be asked at any time; whoever does not say VERDICT_GO has said why by judge_say(),
         * and sets op->waits_for. */
        enum verdict (*known)(void *u, struct op *op);
        /* NULL-terminated; each for all devices of the claim before the next. */
        node_step_fn *const *steps;
        /* An operation begins to wait for op->waits_for; and which of these are waited for (bits). */
        void (*waits)(void *u, const struct op *op);
        void (*waited_for)(void *u, unsigned what);
        /* It waits for long already: worth a watch, or a look at who stands in the way. */
        void (*look_closer)(void *u, struct op *op);

        /* What takes long: programs that are run. NULL: nothing does. work() is asked when a Prepare is
         * recorded as begun and before plan(), unwork() before anything of an entry is removed, or replaced
         * by another allocation of the claim; the entry lasts for the call. False: there is nothing to do.
         * Otherwise op_worked() follows, never from inside; no lock is held until then, and other operations
         * for the claim, and those that want its devices, wait. After a kill both are asked again.
         * work_cancel(): the plugin ends. */
        bool (*work)(void *u, struct op *op);
        bool (*unwork)(void *u, struct op *op, const struct checkpoint_claim *entry);
        void (*work_cancel)(void *u, struct op *op);

        /* What every container with a device of the claim gets beside it, in the arena; what planning its
         * devices, which follows at once, needs in common can be kept until then. ret is zeroed. NULL:
         * nothing. */
        int (*plan_claim)(void *u, const struct op *op, struct arena *a, struct cdi_edits *ret,
                          struct err *e);
        /* What preparing the device takes, in the arena. ret is zeroed. */
        int (*plan)(void *u, const struct op *op, const struct node_want *w, struct arena *a,
                    struct node_effect *ret, struct err *e);
        /* What is recorded of the device, beside what any driver records: type, domain,
         * info and group. */
        void (*record)(const struct node_want *w, struct node_device *ret);
        /* Words for the comment of the CDI file, by which rebuild() knows more; in the arena. */
        const char *(*comment)(const struct op *op, struct arena *a);
        /* In the thread. `again`: it may be in use already. */
        int (*set_up)(const char *plugin_dir, const char *thing, bool again, struct err *e);
        int (*undo)(const char *plugin_dir, const char *thing, struct err *e);
        void (*undo_failed)(const char *thing, const struct err *e);
        /* Pure: the things that an entry has, read leniently: what cannot be read must never keep a claim
         * from going. */
        void (*each_thing)(const struct checkpoint_claim *entry, node_thing_fn *fn, void *fn_u);
        /* A prepared claim is about to be unprepared. -1: not yet, and e says why: nothing of it is removed,
         * and the kubelet comes again. 0 does not mean that the rest succeeds. NULL: any claim may go. */
        int (*unprepare)(void *u, const struct checkpoint_claim *entry, struct err *e);
        /* A claim has been prepared and answered, of which there may be news for people. */
        void (*prepared)(void *u, struct op *op);
        /* The table is what holds now, after each batch. */
        void (*follow)(void *u, const struct checkpoint *table);

        /* Pure: the devices that the CDI file of a claim tells of: name, type and domain of each, in the
         * arena. */
        size_t (*rebuild)(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret);
        /* The claim's object is gone, and the kubelet has forgotten it: may it be unprepared, too? Logs why
         * not. */
        bool (*may_go)(void *u, const struct checkpoint_claim *entry);
        /* With the node lock held, when the files of nobody are removed: likewise things of nobody. */
        void (*sweep)(void *u, const struct checkpoint *table);
};
