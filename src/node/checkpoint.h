/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: manages the table of a node's prepared claims in memory. Pure. checkpoint_layouts.h describes
 * the format of its file.
 *
 * `status` and `preparedDevices` of a claim are kept as text, so that members written by another version
 * survive. Each driver has its own codec for the properties of a device other than its name. */
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
        CHECKPOINT_STARTED,   /* side effects may be incomplete */
        CHECKPOINT_COMPLETED, /* the Prepare has been answered, or is about to be; the devices are taken */
        CHECKPOINT_ABORTED,   /* unprepared while Prepare was still running: if that Prepare succeeds later,
                                 its result is ignored */
};

struct node_device {
        const char *name, *pool; /* NULL: the file has none */
        const char **requests;   /* NULL-terminated */
        const char **cdi_ids;    /* NULL-terminated, may be empty */
        const char *type;        /* the driver's name for its type; NULL and "": its usual type */
        const char *domain;      /* what the device serves, as the driver names it; "" or NULL: unknown */
        int64_t id;              /* the driver's number for the device that a container gets; 0: none */
        bool admin;              /* from the claim's status: allocated with admin access, so the device is not
                                    taken */
        /* Recorded by some drivers only; NULL: nothing. JSON as in the file: `info` for the device itself,
         * `group_info` for settings that all devices of its group share. Devices with the same number `group`
         * form a group. */
        const char *info, *group_info;
        unsigned group;
};

/* How a driver records its devices. */
struct device_codec {
        const char *driver; /* the driver's name in the results of a claim's allocation */
        /* An Unprepare that comes before its Prepare is remembered only in this process, because other
         * versions have no such state. */
        bool no_tombstones;
        /* Writes the list `preparedDevices`. A driver whose versions cannot read each other's files has
         * several dialects, with numbers from 1; 0: the dialect of a file is unknown. */
        void (*encode)(struct jw *w, const struct node_device *devices, size_t n, int dialect);
        /* Returns the dialect of a claim's entry; 0: it cannot be determined. NULL: the codec has no
         * dialects. */
        int (*dialect_of)(yyjson_val *entry);
        /* Reads the devices from a claim's entry of any version. The entry is an object with the member
         * preparedDevices (without that member: no devices), or, in the oldest versions, only that list. Does
         * not fill `admin`. All memory is in the arena. ERR_INVALID: *e states what is invalid, and where. */
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
        int dialect;         /* the dialect of `prepared` */
        struct node_device *devices;
        size_t n_devices;
        uint64_t answered_ms; /* when this process last answered a Prepare of the claim (uv_now()); 0: never.
                                 Not in the file */
        UT_hash_handle hh;
};

struct checkpoint {
        const struct device_codec *codec;
        int dialect;      /* the dialect in which the file is written, whatever dialect it had; 0: the codec
                             has none */
        char boot_id[64]; /* "" in files of old versions */
        struct checkpoint_claim *claims; /* by uid */
};

enum { CHECKPOINT_MAX_BYTES = 32 << 20 };

void checkpoint_done(struct checkpoint *c); /* empties the table, which keeps codec and dialect */

/* Iterates over the devices of the prepared claims; `break` continues with the next claim. */
#define CHECKPOINT_EACH_DEVICE(table, claim, device)                                                         \
        for (const struct checkpoint_claim *claim = (table)->claims; claim; claim = claim->hh.next)          \
                for (const struct node_device *device = claim->devices;                                      \
                     claim->state == CHECKPOINT_COMPLETED &&                                                 \
                     (size_t)(device - claim->devices) < claim->n_devices;                                   \
                     device++)

struct checkpoint_claim *checkpoint_find(const struct checkpoint *c, const char *uid);
/* Adds an entry in state STARTED without further data; the UID must be new. */
struct checkpoint_claim *checkpoint_add(struct checkpoint *c, const char *uid);
/* Adds an entry in state STARTED with this data, and replaces an existing entry except its `answered_ms`. So
 * the arguments must not point into the existing entry. */
struct checkpoint_claim *checkpoint_put(struct checkpoint *c, const char *uid, const char *ns,
                                        const char *name, struct str status);
/* Fills `devices` and `prepared`; copies its arguments. */
void checkpoint_set_devices(struct checkpoint_claim *claim, const struct node_device *devices, size_t n);
void checkpoint_drop(struct checkpoint *c, struct checkpoint_claim *claim);
