/* SPDX-License-Identifier: Apache-2.0 */
/* driver: the table of functions by which one DRA plugin differs from the others.
 *
 * A prepared claim needs its CDI file, which src/node writes and removes, and resources of the driver. A
 * resource has an ID, which the driver chooses. Several claims may share a resource: it is set up for each of
 * them, and undone with the last one. Functions marked "in the thread" run in the disk's thread and use only
 * their arguments. All others run in the loop's thread. A member is required unless its comment states what
 * NULL means. `u` is the value that claims_new() received. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/claim.h"
#include "cdi/cdi.h"
#include "node/checkpoint.h"

struct claims;
struct op;

enum verdict {
        VERDICT_FETCH,  /* the claim must be read first */
        VERDICT_WAIT,   /* not now; msg has the reason */
        VERDICT_REFUSE, /* never; msg has the reason */
        VERDICT_FAIL,   /* it failed or was superseded; msg has the reason */
        VERDICT_GO,
        VERDICT_ANSWER, /* already prepared: the recorded devices are the answer */
};

/* One of the driver's devices in a claim's allocation. */
struct node_request {
        const struct claim_result *result;
        void *own; /* the driver's, in the operation's arena */
};

/* The changes that preparing a device makes. */
struct node_effect {
        struct cdi_edits edits; /* none: no CDI device */
        const char *resource;   /* ID of the resource to set up before the CDI file; NULL: none */
};

/* What an operation waits for. The driver defines the values from WAITS_FOR_DRIVER to 31. */
enum { WAITS_FOR_NOTHING, WAITS_FOR_CLAIM /* until another one is unprepared */, WAITS_FOR_DRIVER };

typedef enum verdict(node_step_fn)(void *u, struct op *op, struct node_request *w);
typedef void(node_resource_fn)(void *u, const char *id);

struct node_driver {
        const char *name; /* in claims, slices and metrics; also the name of its plugin folder */
        const char *cdi_kind;
        /* "error preparing devices for claim": the text before "<namespace>/<name>:<uid>" and the cause in
         * the answer to the kubelet; the same for Unprepare. NULL: the answer has only the cause. */
        const char *prepare_fails, *unprepare_fails;
        const struct device_codec *codec;

        /* The claims' state machine starts and ends. free() releases `u`, whether attach() was called or
         * not. */
        void (*attach)(void *u, struct claims *c);
        void (*free)(void *u);

        /* A claim is being read for an operation. The driver can request other resources that it needs at the
         * same time, and keep them as op->own until release(), which is called for every operation. */
        void (*fetch)(void *u, struct op *op);
        void (*release)(void *u, struct op *op);
        /* Pure: fills w->own. It refuses only what waiting cannot fix. */
        int (*take)(void *u, const struct op *op, struct node_request *w, struct err *e);
        /* The same for the claim as a whole, after take() for all its devices. */
        int (*check)(void *u, const struct op *op, struct err *e);
        /* The claim has been taken. Calls op_fetched(), now or when everything else that is needed has
         * arrived. */
        void (*await_inputs)(void *u, struct op *op);
        /* Does the driver know enough to judge any claim? NULL: always. known() and the steps change nothing
         * and may be called at any time. A function that does not return VERDICT_GO has set the reason by
         * prepare_verdict_set(), and sets op->waits_for. */
        enum verdict (*known)(void *u, struct op *op);
        /* NULL-terminated. A step runs for all devices of the claim before the next step. */
        node_step_fn *const *steps;
        /* waits: an operation begins to wait for op->waits_for. waited_for: the set (bits) of everything that
         * operations wait for. */
        void (*waits)(void *u, const struct op *op);
        void (*waited_for)(void *u, unsigned what);
        /* It has waited for a while: worth a watch, or a check of the holder. */
        void (*investigate)(void *u, struct op *op);

        /* Slow work, such as running programs. NULL: there is none. work() is called when a Prepare has been
         * recorded as started, before plan(). unwork() is called before anything of an entry is removed, or
         * replaced by another allocation of the claim; the entry is valid during the call. False: there is
         * nothing to do. Otherwise op_worked() follows, never from inside. Until then no lock is held, and
         * other operations that are for the claim or want its devices wait. After a kill, both are called
         * again. work_cancel(): the plugin ends. */
        bool (*work)(void *u, struct op *op);
        bool (*unwork)(void *u, struct op *op, const struct checkpoint_claim *entry);
        void (*work_cancel)(void *u, struct op *op);

        /* The edits of every container that gets a device of the claim, in the arena. The devices are planned
         * immediately after this call, so data that they share can be kept until then. ret is zeroed. NULL:
         * no such edits. */
        int (*plan_claim)(void *u, const struct op *op, struct arena *a, struct cdi_edits *ret,
                          struct err *e);
        /* The effect of preparing the device, in the arena. ret is zeroed. */
        int (*plan)(void *u, const struct op *op, const struct node_request *w, struct arena *a,
                    struct node_effect *ret, struct err *e);
        /* Fills the driver's part of the device's record: type, domain, info and group. */
        void (*record)(const struct node_request *w, struct node_device *ret);
        /* Text for the comment of the CDI file, which rebuild() reads; in the arena. */
        const char *(*comment)(const struct op *op, struct arena *a);
        /* In the thread. `again`: the resource may already be in use. */
        int (*set_up)(const char *plugin_dir, const char *resource, bool again, struct err *e);
        int (*undo)(const char *plugin_dir, const char *resource, struct err *e);
        void (*undo_failed)(const char *resource, const struct err *e);
        /* Pure: calls fn for each resource of an entry. It reads leniently: unreadable data must never
         * prevent that a claim is removed. */
        void (*each_resource)(const struct checkpoint_claim *entry, node_resource_fn *fn, void *fn_u);
        /* A prepared claim is about to be unprepared. -1: not yet, and e has the reason. Then nothing of it
         * is removed, and the kubelet asks again. 0 does not mean that the rest succeeds. NULL: always 0. */
        int (*unprepare)(void *u, const struct checkpoint_claim *entry, struct err *e);
        /* A claim has been prepared and answered, so there may be something to report. */
        void (*prepared)(void *u, struct op *op);
        /* After each batch: the table holds what is prepared now. */
        void (*follow)(void *u, const struct checkpoint *table);

        /* Pure: the devices in the CDI file of a claim: name, type and domain of each, in the arena. */
        size_t (*rebuild)(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret);
        /* The claim's object no longer exists, and the kubelet has not unprepared it: may the plugin do so?
         * If not, logs the reason. */
        bool (*may_collect)(void *u, const struct checkpoint_claim *entry);
        /* With the node lock held, when files without an entry are removed: removes the driver's resources
         * without an entry. */
        void (*remove_unused)(void *u, const struct checkpoint *table);
};
