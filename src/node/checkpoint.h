/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: the table of a node's prepared claims. Pure. What the file is like that holds it:
 * checkpoint_layouts.h.
 *
 * What a claim's `status` and `preparedDevices` hold is kept as text, so that members which another version
 * wrote survive. What a device is beside its name belongs to the driver, whose codec reads and writes it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

enum checkpoint_state {
        CHECKPOINT_STARTED,   /* side effects may be half done */
        CHECKPOINT_COMPLETED, /* answered, or about to be; the devices are taken */
        CHECKPOINT_ABORTED,   /* unprepared while started: a late success of that Prepare must not count */
};

struct node_device {
        const char *name, *pool; /* NULL when the file did not say */
        const char **requests;   /* NULL-terminated */
        const char **cdi_ids;    /* NULL-terminated, may be empty */
        const char *type;        /* the driver's word for what it is; NULL and "": its usual one */
        const char *domain;      /* whom it serves, as the driver names it; "" or NULL when unknown */
        int64_t id;              /* the driver's number of what a container gets by it; 0: it has none */
        bool admin;              /* from the claim's status: by admin access, so the device is not taken */
        /* What only some drivers record; NULL: nothing. JSON, as it stands in the file: of the device itself,
         * and of what was set for all devices of its group, which are those with the same number. */
        const char *info, *group_info;
        unsigned group;
};

/* How a driver records its devices. */
struct device_codec {
        const char *driver; /* in the results of a claim's allocation */
        /* What was unprepared before it was prepared is remembered in this process only: others know no such
         * state. */
        bool no_tombstones;
        /* The list `preparedDevices`. A driver whose versions do not read each other's files has dialects,
         * with numbers from 1 on; 0: nothing is known of a file. */
        void (*encode)(struct jw *w, const struct node_device *devices, size_t n, int dialect);
        /* Of a claim's entry; 0: it does not tell. NULL: there are none. */
        int (*dialect_of)(yyjson_val *entry);
        /* Of a claim's entry, as any version has written it: an object with the member preparedDevices (no
         * member: no devices), or, before there was one, that list alone. `admin` is not for it to fill. All
         * in the arena. ERR_INVALID: what is wrong, and where. */
        int (*decode)(yyjson_val *entry, struct arena *a, struct node_device **ret, size_t *ret_n,
                      struct err *e);
};

struct checkpoint_claim {
        struct arena *arena; /* holds everything below */
        const struct device_codec *codec;
        const char *uid;
        const char *ns, *name; /* NULL in files of old versions */
        enum checkpoint_state state;
        int64_t aborted_at;  /* seconds since 1970 */
        struct str status;   /* ResourceClaimStatus as canonical JSON, "{}" when unknown */
        struct str prepared; /* preparedDevices as canonical JSON; empty: none */
        int dialect;         /* of `prepared` */
        struct node_device *devices;
        size_t n_devices;
        UT_hash_handle hh;
};

struct checkpoint {
        const struct device_codec *codec;
        int dialect;      /* in which the file is written, whatever it had; 0: the codec has no dialects */
        char boot_id[64]; /* "" in files of old versions */
        struct checkpoint_claim *claims; /* by uid */
};

enum { CHECKPOINT_MAX_BYTES = 32 << 20 };

void checkpoint_done(struct checkpoint *c); /* it is empty then, and keeps codec and dialect */

/* Of the prepared claims; `break` goes on with the next claim. */
#define CHECKPOINT_EACH_DEVICE(table, claim, device)                                                         \
        for (const struct checkpoint_claim *claim = (table)->claims; claim; claim = claim->hh.next)          \
                for (const struct node_device *device = claim->devices;                                      \
                     claim->state == CHECKPOINT_COMPLETED &&                                                 \
                     (size_t)(device - claim->devices) < claim->n_devices;                                   \
                     device++)

struct checkpoint_claim *checkpoint_find(const struct checkpoint *c, const char *uid);
/* A new entry in state STARTED, of which nothing is known; there must be none yet. */
struct checkpoint_claim *checkpoint_add(struct checkpoint *c, const char *uid);
/* The same with what is known, in place of the one that is there, of which the arguments may hold nothing. */
struct checkpoint_claim *checkpoint_put(struct checkpoint *c, const char *uid, const char *ns,
                                        const char *name, struct str status);
/* Fills `devices` and `prepared`; copies. */
void checkpoint_set_devices(struct checkpoint_claim *claim, const struct node_device *devices, size_t n);
void checkpoint_drop(struct checkpoint *c, struct checkpoint_claim *claim);
