/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: the prepared claims of a node as a document, in the layout of the Go driver (reference
 * sections 7.12 and 12.1). Pure; fuzzed.
 *
 * Both layouts of the Go driver are written each time, v1 for those who go back to it, and both checksums.
 * What a claim's `status` and `preparedDevices` hold is kept as text, so that members which another version
 * wrote survive. */
#ifndef NODE_CHECKPOINT_H
#define NODE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum checkpoint_state {
        CHECKPOINT_STARTED,   /* side effects may be half done */
        CHECKPOINT_COMPLETED, /* answered, or about to be; the devices are taken */
        CHECKPOINT_ABORTED,   /* unprepared while started: a late success of that Prepare must not count */
};

struct checkpoint_device {
        const char *name, *pool; /* "channel-0", "daemon-0"; NULL when the file did not say */
        const char **requests;   /* NULL-terminated */
        const char **cdi_ids;    /* NULL-terminated, may be empty */
        const char *domain;      /* UID of the ComputeDomain; "" or NULL when unknown */
        bool is_daemon;
        bool admin; /* from the claim's status: by admin access, so the device is not taken */
};

struct checkpoint_claim {
        struct arena *arena; /* holds everything below */
        const char *uid;
        const char *ns, *name; /* NULL in files of old versions */
        enum checkpoint_state state;
        int64_t aborted_at;  /* seconds since 1970 */
        struct str status;   /* ResourceClaimStatus as canonical JSON, "{}" when unknown */
        struct str prepared; /* preparedDevices as canonical JSON; empty: none */
        struct checkpoint_device *devices;
        size_t n_devices;
        UT_hash_handle hh;
};

struct checkpoint {
        char boot_id[64];                /* "" in files of old versions */
        struct checkpoint_claim *claims; /* by uid */
};

enum { CHECKPOINT_MAX_BYTES = 32 << 20 };

void checkpoint_done(struct checkpoint *c);
/* ERR_INVALID: the file is corrupt, and why. Reads v2, else v1, else v1 as 25.3.0-rc2 wrote it. */
int checkpoint_decode(struct str text, struct checkpoint *ret, struct err *e);
/* One line without a newline at its end. Fails only by the size limit of the buffer. */
void checkpoint_encode(const struct checkpoint *c, struct buf *out);

struct checkpoint_claim *checkpoint_find(const struct checkpoint *c, const char *uid);
/* A new entry in state STARTED, or the one that is there, emptied. */
struct checkpoint_claim *checkpoint_put(struct checkpoint *c, const char *uid, const char *ns,
                                        const char *name, struct str status);
/* Fills `devices` and `prepared`; copies. */
void checkpoint_set_devices(struct checkpoint_claim *claim, const struct checkpoint_device *devices,
                            size_t n);
void checkpoint_drop(struct checkpoint *c, struct checkpoint_claim *claim);

/* A JSON value in the form that the checksums cover: no white space, key order kept, Go's escapes. False when
 * it nests too deep. */
bool checkpoint_canonical(yyjson_val *v, struct buf *out);
/* The same of a ResourceClaimStatus, with the members only that resource.k8s.io/v1 has had since
 * Kubernetes 1.34: the Go driver verifies the checksums over what its own types make of the text, so a member
 * of a newer API server would be a corrupt checkpoint to it. What is recorded already stays as it is. */
bool checkpoint_status(yyjson_val *status, struct buf *out);
/* The checksum of a JSON text: FNV-1a over Go's print form of its bytes. */
uint32_t checkpoint_checksum(struct str json);

#endif
