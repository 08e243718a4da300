/* SPDX-License-Identifier: Apache-2.0 */
/* faults: decides which faults occur between a program and the API server, when, and for which program.
 * world.c causes the faults of the world itself (nodes, users). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

enum fate_what {
        FATE_SERVED,
        FATE_REFUSED, /* no connection */
        FATE_SILENT,  /* the connection transfers nothing until `until_ms` */
        FATE_PAGE,    /* another server answers with a page and this status */
        FATE_STATUS,  /* the API server answers with this status and reason */
        FATE_LOST,    /* the request is executed, and the answer is lost */
};

struct fate {
        enum fate_what what;
        int64_t until_ms;
        int status, wait_s; /* wait_s: Retry-After, -1 for none */
        const char *reason;
};

/* Programs have numbers: first the controllers, then the nodes. All programs on a node have the number of the
 * node. */

/* Returns the fate of a request that this program sends now. */
struct fate faults_fate(unsigned program, bool about_kind, enum kind k, bool watch, bool writes);
/* Returns how far the API server of this program is behind the store. */
int64_t faults_lag_ms(unsigned program, enum kind k);
/* Returns until when the program's connection is silent; 0: it is not silent. */
int64_t faults_silent_until_ms(unsigned program);
/* Returns true if a fault has affected the controller's requests for its Lease since `since_ms`, so that it
 * may lose the Lease. */
bool faults_touched_lease(unsigned replica, int64_t since_ms);
/* Cuts the program off from the network until then, or until the last fault ends. */
void faults_cut_off(unsigned program, int64_t until_ms);

/* For worlds without faults_begin(). An admission policy refuses all writes of the kind until the end, or the
 * programs of a node may not read it. */
void faults_refuse(enum kind k);
void faults_forbid(enum kind k, unsigned program);

/* Enables another fault: etcd is occasionally restored from a backup, as docs/how-to/restore.md describes it.
 * `careless`: the operator does not stop the controllers. */
void faults_use_restores(bool careless);
bool faults_careless(void);
/* Returns the time of the last restore, or -1 if there was none. */
int64_t faults_restored_ms(void);
int64_t faults_served_ms(void); /* when the API server answers again after it; -1: never */
/* Draws faults from now until `until_ms`. `names` selects the faults ("pages,lag"); NULL: all. The hooks
 * carry out faults that change more than an answer. */
struct faults_hooks {
        void (*cut)(unsigned program);   /* its connection breaks */
        void (*kill)(unsigned replica);  /* the program is killed, and restarts */
        void (*stop)(unsigned replica);  /* SIGTERM, and the program restarts */
        void (*scale)(bool up);          /* SIGTERM to all controllers, or starts all of them */
        void (*world)(const char *name); /* a fault of the world, by its name: world_fault() */
};
void faults_begin(const struct faults_hooks *h, const char *names, unsigned programs, int64_t until_ms);
/* Returns false if a name in `names` is unknown; *ret then lists the known names. */
bool faults_known(const char *names, struct buf *ret);
void faults_done(void);
