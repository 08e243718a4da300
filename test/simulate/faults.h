/* SPDX-License-Identifier: Apache-2.0 */
/* faults: what goes wrong between a program and the API server, when, and for whom. Faults of the world
 * itself (nodes, users) are world.c's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

enum fate_what {
        FATE_SERVED,
        FATE_REFUSED, /* no connection */
        FATE_SILENT,  /* nothing moves on the connection until `until_ms` */
        FATE_PAGE,    /* something else answers, with a page and this status */
        FATE_STATUS,  /* the API server answers with this status, for the reason */
        FATE_LOST,    /* it is done, and the answer does not come */
};

struct fate {
        enum fate_what what;
        int64_t until_ms;
        int status, wait_s; /* wait_s: Retry-After, -1 for none */
        const char *reason;
};

/* A program is known by a number: the controllers, and behind them the nodes, with all that runs there. */

/* What happens now to a request of this program. */
struct fate faults_fate(unsigned program, bool about_kind, enum kind k, bool watch, bool writes);
/* By how much the API server that it talks to is behind the store. */
int64_t faults_lag_ms(unsigned program, enum kind k);
/* Until when the connection of the program is silent; 0: it is not. */
int64_t faults_silent_until_ms(unsigned program);
/* Whether a fault has kept the program's requests about its Lease since then, so that it may lose it. */
bool faults_touched_lease(unsigned replica, int64_t since_ms);
/* The network of a program is gone until then, or until the last fault is over. */
void faults_cut_off(unsigned program, int64_t until_ms);

/* Etcd is restored from a backup now and then, beside the other faults. */
void faults_use_restores(void);
bool faults_restores_used(void);
/* When that was last done; -1: never. */
int64_t faults_restored_ms(void);

/* Draws faults from now until then; `names` chooses among them ("pages,lag"), NULL: all. Whoever is hit by
 * one that needs more than answers is told by these. */
struct faults_hooks {
        void (*cut)(unsigned program);   /* its connection breaks */
        void (*kill)(unsigned replica);  /* the program ends without a word, and is started again */
        void (*stop)(unsigned replica);  /* SIGTERM, and started again */
        void (*world)(const char *name); /* a fault of the world, which it knows by its name */
};
void faults_begin(const struct faults_hooks *h, const char *names, unsigned programs, int64_t until_ms);
/* False: a name that is none; *ret is what could be chosen. */
bool faults_known(const char *names, struct buf *ret);
void faults_done(void);
