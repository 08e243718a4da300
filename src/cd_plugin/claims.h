/* SPDX-License-Identifier: Apache-2.0 */
/* claims: what the kubelet asks for, one operation a claim, and the state machine of prepared claims
 * (reference sections 7.8 to 7.13).
 *
 * A Prepare fetches its claim, is judged, and either fails at once with the cause (what can never succeed),
 * waits (recorded, holding nothing and blocking nobody, until whatever it waits for happens or the kubelet's
 * deadline is near), or is carried out. All that is carried out in one turn of the loop shares the node lock
 * and two writes of the checkpoint: one before the side effects, one after. Loop thread only. */
#ifndef CD_PLUGIN_CLAIMS_H
#define CD_PLUGIN_CLAIMS_H

#include <stdbool.h>
#include <uv.h>

#include "dra/dra_plugin.h"
#include "kube/event_recorder.h"
#include "kube/kube_client.h"
#include "model/mode.h"
#include "cd_plugin/facts.h"
#include "cd_plugin/host_imex.h"
#include "cd_plugin/metrics.h"

struct claims;

struct claims_options {
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        struct plugin_metrics *metrics;
        struct facts_sampler *facts;
        const struct imex_mode *mode;
        struct host_imex
                *host; /* NULL: not asked, which a mode that waits for the host's IMEX does not allow */
        const char *node, *ns; /* this node; the driver's namespace, where daemons run */
        const char *more_ns;   /* comma separated: where daemons of an earlier installation may run, too */
        const char *plugin_dir, *cdi_root;
        const char *boot_id;
        struct driver_root root;
        const char *dev_root;    /* holds dev/ */
        const char *proc_driver; /* "/proc/driver/nvidia" or its substitute */
};

/* `ns` is one in which daemons may run. Pure. */
bool claims_manages(const struct claims_options *o, const char *ns);

/* Copies the strings. */
int claims_new(const struct claims_options *o, struct claims **ret, struct err *e);
/* Takes the node lock, reads the checkpoint, drops what a reboot or corruption made void, and sweeps what
 * nobody owns. `done` once, never from inside; operations may start after it. */
void claims_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u);

void claims_prepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_unprepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_cancelled(struct claims *c, struct dra_op *op, void *op_data);
/* Facts have changed: those who wait for them are judged again. */
void claims_facts_changed(struct claims *c);
/* The host's IMEX has answered: likewise. */
void claims_host_answered(struct claims *c);

/* Logs each operation with what it waits for, and each recorded claim. */
void claims_dump(const struct claims *c);

/* A thread still waits for the node lock: end by _exit(). */
bool claims_stuck(const struct claims *c);
/* After dra_plugin_free(). */
void claims_free(struct claims *c);

#endif
