/* SPDX-License-Identifier: Apache-2.0 */
/* memory: the file in which a daemon remembers its assignments (decision_memory) when its container or its
 * Pod is replaced. It is written before any action or report that relies on it. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/decision.h"

#define MEMORY_FILE "daemon.json"

struct memory {
        struct decision_memory decision;
        bool served;    /* IMEX has been READY in this Pod, in any domain */
        bool inherited; /* when loaded: the present assignment is that of another Pod */
};

/* Ignores what it has seen of the fabric object. The epoch identifies an assignment with all its members. */
bool memory_same(const struct memory *a, const struct memory *b);
/* A copy in the arena, including strings and lists. */
void memory_copy(const struct memory *m, struct arena *a, struct memory *ret);

/* Identifies the daemon that wrote the memory; borrowed. */
struct memory_identity {
        const char *boot_id, *fabric, *pod_uid;
};

int memory_save(const char *dir, const struct memory_identity *of, const struct memory *m, struct err *e);
/* Removes temporary files of a process that was killed during memory_save(). */
void memory_remove_temporary(const char *dir);
/* In the arena. ERR_NOT_FOUND: there is none of this boot and this partition. Memory from before a reboot
 * does not count. */
int memory_load(const char *dir, const struct memory_identity *of, struct arena *a, struct memory *ret,
                struct err *e);
/* The pure part of memory_load(). */
int memory_parse(struct str text, const struct memory_identity *of, struct arena *a, struct memory *ret,
                 struct err *e);
