/* SPDX-License-Identifier: Apache-2.0 */
/* memory: saves a daemon's assignments (decision_memory) in a file and loads them after the daemon's
 * container or Pod was replaced. The daemon writes the file before any action or report that
 * relies on its content. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/decision.h"

#define MEMORY_FILE "daemon.json"

struct memory {
        struct decision_memory decision;
        bool served;    /* IMEX has been READY in this Pod, in any domain */
        bool inherited; /* set by memory_load(): another Pod saved the present assignment */
};

/* Returns whether two memories are equal, without the facts seen in the fabric object. Assignments with the
 * same epoch are equal in all members. */
bool memory_same(const struct memory *a, const struct memory *b);
/* Copies a memory into the arena, including strings and lists. */
void memory_copy(const struct memory *m, struct arena *a, struct memory *ret);

/* Identifies the daemon that wrote the memory; borrowed. */
struct memory_identity {
        const char *boot_id, *fabric, *pod_uid;
};

int memory_save(const char *dir, const struct memory_identity *of, const struct memory *m, struct err *e);
/* Removes temporary files of a process that was killed during memory_save(). */
void memory_remove_temporary(const char *dir);
/* Loads the memory into the arena. ERR_NOT_FOUND: there is no memory of this boot and this partition. Memory
 * from before a reboot does not count, nor does a file that a power loss has emptied. */
int memory_load(const char *dir, const struct memory_identity *of, struct arena *a, struct memory *ret,
                struct err *e);
/* The pure part of memory_load(). */
int memory_parse(struct str text, const struct memory_identity *of, struct arena *a, struct memory *ret,
                 struct err *e);
