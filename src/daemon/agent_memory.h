/* SPDX-License-Identifier: Apache-2.0 */
/* agent_memory: what an agent remembers of its seats (turns_memory), in a file that outlives its container
 * and its Pod. It is written before anything is done, or said, that counts on it. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/turns.h"

#define AGENT_MEMORY_FILE "agent.json"

struct agent_memory {
        struct turns_memory turns;
        bool served;    /* IMEX has been ready in the seat of now: others may map this node's memory */
        bool inherited; /* when loaded: the seat of now is that of another Pod */
};

bool agent_memory_same(const struct agent_memory *a, const struct agent_memory *b);
/* A copy, strings and lists included, in the arena. */
void agent_memory_copy(const struct agent_memory *m, struct arena *a, struct agent_memory *ret);

/* Whose memory it is; borrowed. */
struct agent_identity {
        const char *boot_id, *fabric, *pod_uid;
};

int agent_memory_save(const char *dir, const struct agent_identity *of, const struct agent_memory *m,
                      struct err *e);
/* Removes what a process that was killed was about to put in place. */
void agent_memory_tidy(const char *dir);
/* In the arena. ERR_NOT_FOUND: there is none of this boot and this fabric; after a reboot nothing of before
 * holds. */
int agent_memory_load(const char *dir, const struct agent_identity *of, struct arena *a,
                      struct agent_memory *ret, struct err *e);
/* The pure part of it. */
int agent_memory_parse(struct str text, const struct agent_identity *of, struct arena *a,
                       struct agent_memory *ret, struct err *e);
