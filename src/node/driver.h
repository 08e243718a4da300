/* SPDX-License-Identifier: Apache-2.0 */
/* driver: defines the table of functions by which one DRA plugin differs from the others.
 *
 * A prepared claim needs its CDI file, which src/node writes and removes, and resources of the driver. A
 * resource has an ID, which the driver chooses. Several claims may share a resource: it is set up for each of
 * them, and undone with the last one. Functions marked "in the thread" run in the disk's thread and use only
 * their arguments. All other functions run in the loop's thread. A member is required unless its comment
 * states what NULL means. `u` is the value that claims_new() received. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/claim.h"
#include "cdi/cdi.h"
#include "dra/dra_health.h"
#include "node/checkpoint.h"

struct claims;
struct op;

enum verdict {
        VERDICT_FETCH,  /* the claim must be read first */
        VERDICT_WAIT,   /* it cannot be carried out now; msg has the reason */
        VERDICT_REFUSE, /* it can never succeed; msg has the reason */
        VERDICT_FAIL,   /* it failed or was superseded; msg has the reason */
        VERDICT_GO,
        VERDICT_ANSWER, /* already prepared: the recorded devices are the answer */
};

/* One of the driver's devices in a claim's allocation. */
struct node_request {
        const struct claim_result *result;
        void *own; /* the driver's data, in the operation's arena */
};

/* The changes that preparing a device makes. */
struct node_effect {
        struct cdi_edits edits; /* none: no CDI device */
        const char *resource;   /* ID of the resource to set up before the CDI file; NULL: none */
};

/* Reasons for which an operation waits (op.waits_for). The driver defines the values from WAITS_FOR_DRIVER to
 * 31. */
enum { WAITS_FOR_NOTHING, WAITS_FOR_CLAIM /* until another claim is unprepared */, WAITS_FOR_DRIVER };

typedef enum verdict(node_step_fn)(void *u, struct op *op, struct node_request *w);
typedef void(node_resource_fn)(void *u, const char *id);

struct node_driver {
        const char *name; /* in claims, slices and metrics; also the name of its plugin folder */
        const char *peer; /* another driver, whose devices many pods use as well; NULL: none */
        const char *cdi_kind;
        /* The text before "<namespace>/<name>:<uid>" and the cause in the answer to the kubelet, for example
         * "error preparing devices for claim"; unprepare_fails is the same for Unprepare. NULL: the answer
         * has only the cause. */
        const char *prepare_fails, *unprepare_fails;
        const struct device_codec *codec;

        /* Called when the state machine of claims (claims.h) starts and ends. free() releases `u`, whether
         * attach() was called or not. */
        void (*attach)(void *u, struct claims *c);
        void (*free)(void *u);

        /* fetch() is called when a claim is being read for an operation. The driver can request other objects
         * that it needs at the same time, and keep them as op->own until release(), which is called for every
         * operation. */
        void (*fetch)(void *u, struct op *op); /* NULL: nothing more is needed; the same for release() */
        void (*release)(void *u, struct op *op);
        /* Fills w->own. Fails only on errors that waiting cannot fix. Pure. */
        int (*take)(void *u, const struct op *op, struct node_request *w, struct err *e);
        /* Checks the claim as a whole, after take() has succeeded for all its devices. Fails only on errors
         * that waiting cannot fix. NULL: no such check. */
        int (*check)(void *u, const struct op *op, struct err *e);
        /* Called when take() and check() have succeeded. The driver calls op_fetched(), at once or when
         * everything else that it needs has arrived. NULL: the node half calls it at once. */
        void (*await_inputs)(void *u, struct op *op);
        /* Returns whether the driver knows enough to judge any claim. NULL: it always does. known() and the
         * steps change nothing and may be called at any time. A function that does not return VERDICT_GO sets
         * the reason with prepare_verdict_set(), and sets op->waits_for. */
        enum verdict (*known)(void *u, struct op *op);
        /* The checks of a Prepare, NULL-terminated. A step runs for all devices of the claim before the next
         * step runs. */
        node_step_fn *const *steps;
        /* waits() is called when an operation begins to wait for op->waits_for. waited_for() receives the set
         * (bits) of everything that operations wait for. */
        void (*waits)(void *u, const struct op *op);
        void (*waited_for)(void *u, unsigned what);
        /* Called when an operation has waited for a while (WAITS_INVESTIGATE_MS): it is now worth a watch, or
         * a check of the holder. May be NULL. */
        void (*investigate)(void *u, struct op *op);

        /* Slow work, such as running programs. NULL: there is none. work() is called when a Prepare has been
         * recorded as started, before plan(). unwork() is called before anything that belongs to an entry is
         * removed, or before the entry is replaced by another allocation of the claim; the entry is valid
         * during the call. Both return false if there is nothing to do. Otherwise the driver calls
         * op_worked() later, never from inside. Until then no lock is held, and other operations that are for
         * the claim or need its devices wait. If the process is killed, the next one calls both again.
         * work_cancel() is called when the plugin ends. */
        bool (*work)(void *u, struct op *op);
        bool (*unwork)(void *u, struct op *op, const struct checkpoint_claim *entry);
        void (*work_cancel)(void *u, struct op *op);

        /* Makes the edits that every container gets that uses a device of the claim, in the arena. The
         * devices are planned immediately after this call, so the driver can keep data that they share until
         * then. ret is zeroed. NULL: no such edits. */
        int (*plan_claim)(void *u, const struct op *op, struct arena *a, struct cdi_edits *ret,
                          struct err *e);
        /* Determines the effect of preparing the device, in the arena. ret is zeroed. */
        int (*plan)(void *u, const struct op *op, const struct node_request *w, struct arena *a,
                    struct node_effect *ret, struct err *e);
        /* Fills the driver's part of the device's record: type, domain, info and group. */
        void (*record)(const struct node_request *w, struct node_device *ret);
        /* Returns text for the comment of the CDI file, which rebuild() reads; in the arena. */
        const char *(*comment)(const struct op *op, struct arena *a);
        /* Set up and undo a resource, in the thread. `again`: the resource may already be in use.
         * undo_failed() runs in the loop's thread. A driver without resources has none of these functions. */
        int (*set_up)(const char *plugin_dir, const char *resource, bool again, struct err *e);
        int (*undo)(const char *plugin_dir, const char *resource, struct err *e);
        void (*undo_failed)(const char *resource, const struct err *e);
        /* Calls fn for each resource of an entry. Ignores unreadable data, which must never prevent the
         * removal of a claim. Pure. NULL: the driver has no resources. */
        void (*each_resource)(const struct checkpoint_claim *entry, node_resource_fn *fn, void *fn_u);
        /* Called before a prepared claim is unprepared. -1: it must not be unprepared yet, and e has the
         * reason; then nothing that belongs to it is removed, and the kubelet retries. 0 does not mean that
         * the remaining steps succeed. NULL: always 0. */
        int (*unprepare)(void *u, const struct checkpoint_claim *entry, struct err *e);
        /* Called when a claim has been prepared and the kubelet has its answer. The driver can then report
         * problems. May be NULL. */
        void (*prepared)(void *u, struct op *op);
        /* Called after each batch. The table contains the claims that are prepared now. */
        void (*follow)(void *u, const struct checkpoint *table);
        /* Lists the health of the devices of prepared claims. The plugin calls dra_plugin_health_changed()
         * when it may have changed. NULL: the driver reports none. */
        dra_health_fn *health;

        /* Reads the devices from the CDI file of a claim: name, type and domain of each, in the arena.
         * Pure. */
        size_t (*rebuild)(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret);
        /* Returns the configuration of a rebuilt device, as JSON in the arena. The Go driver reads it from
         * the claim's status when it unprepares the claim. NULL: it does not need it. Pure. */
        const char *(*rebuild_config)(const struct node_device *d, struct arena *a);
        /* Returns whether the plugin may unprepare a claim whose object no longer exists and which the
         * kubelet has not unprepared. If not, logs the reason. NULL: it always may. */
        bool (*may_collect)(void *u, const struct checkpoint_claim *entry);
        /* Removes the driver's resources that have no entry. Called with the node lock held, when files
         * without an entry are removed. May be NULL. */
        void (*remove_unused)(void *u, const struct checkpoint *table);
};
