/* SPDX-License-Identifier: Apache-2.0 */
#include "looks.h"

#include <stdio.h>
#include <string.h>
#include <uthash.h>

#include "base/mem.h"
#include "base/str.h"
#include "sim.h"

struct look {
        UT_hash_handle hh;
        uint64_t seen, ended;
        int64_t seen_ms, ended_ms;
        const char *fault; /* the fault that caused `ended` */
        char key[64];
};
static struct look *looks;
static uint64_t last;

static struct look *look_at(unsigned node, const char *domain_uid) {
        struct look *l;
        char key[sizeof l->key];
        snprintf(key, sizeof key, "%u/%s", node, domain_uid);
        HASH_FIND_STR(looks, key, l);
        if (!l) {
                l = xnew(struct look);
                memcpy(l->key, key, sizeof key);
                HASH_ADD_STR(looks, key, l);
        }
        return l;
}

uint64_t looks_now(void) {
        return last;
}

void looks_ready(unsigned node, const char *domain_uid) {
        struct look *l = look_at(node, domain_uid);
        l->seen = ++last;
        l->seen_ms = sim_now_ms();
}

void looks_ended(unsigned node, const char *domain_uid, const char *fault) {
        struct look *l = look_at(node, domain_uid);
        l->ended = ++last;
        l->ended_ms = sim_now_ms();
        l->fault = fault;
        sim_log("IMEX of %s is no longer READY on node-%u: %s", domain_uid, node,
                str_or(fault, "its daemon stops it"));
}

bool looks_excuse(unsigned node, const char *domain_uid, uint64_t began) {
        const struct look *l = look_at(node, domain_uid);
        return l->seen > began && l->fault && (l->ended > l->seen || l->ended_ms == l->seen_ms);
}

void looks_done(void) {
        struct look *l, *next;
        HASH_ITER (hh, looks, l, next) {
                HASH_DEL(looks, l);
                free(l);
        }
}
