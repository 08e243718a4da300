/* SPDX-License-Identifier: Apache-2.0 */
/* memory: what a daemon remembers of its assignments (decision_memory), in a file that outlives its
 * container and its Pod. It is written before anything is done or reported that relies on it. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/decision.h"

#define MEMORY_FILE "daemon.json"

struct memory {
        struct decision_memory decision;
        bool served;    /* IMEX has been READY in this Pod, in whatever domain */
        bool inherited; /* when loaded: the assignment of now is that of another Pod */
};

/* But for what it has seen of the object. */
bool memory_same(const struct memory *a, const struct memory *b);
/* A copy, strings and lists included, in the arena. */
void memory_copy(const struct memory *m, struct arena *a, struct memory *ret);

/* Whose memory it is; borrowed. */
struct memory_identity {
        const char *boot_id, *fabric, *pod_uid;
};

int memory_save(const char *dir, const struct memory_identity *of, const struct memory *m, struct err *e);
/* Removes what a process that was killed was about to put in place. */
void memory_tidy(const char *dir);
/* In the arena. ERR_NOT_FOUND: there is none of this boot and this fabric; after a reboot nothing of before
 * holds. */
int memory_load(const char *dir, const struct memory_identity *of, struct arena *a, struct memory *ret,
                struct err *e);
/* The pure part of it. */
int memory_parse(struct str text, const struct memory_identity *of, struct arena *a, struct memory *ret,
                 struct err *e);
