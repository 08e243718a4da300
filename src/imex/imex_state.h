/* SPDX-License-Identifier: Apache-2.0 */
/* imex_state: the file in the domain directory by which a daemon tells the kubelet plugin on the same node
 * that its IMEX process is ready.
 *
 * The daemon replaces the file atomically and holds an open-file-description write lock on the file that is
 * in place for as long as it lives; a file nobody holds locked was left behind by a dead daemon. The reader
 * opens without following links, reads at most 4 KiB and asks for the lock's holder without taking it
 * (F_OFD_GETLK). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/states.h"
#include "base/err.h"
#include "base/str.h"

#define IMEX_STATE_FILE "state.json"

/* "<fabric>/<domain UID>/<index>/<epoch>": a clique id has 63 bytes at most. */
enum { IMEX_ASSIGNMENT_MAX = 160 };

struct imex_state {
        char boot_id[37];
        char claim_uid[37]; /* of the daemon's claim */
        char pod_uid[37];
        int64_t index;      /* -1 on a node without fabric */
        int64_t generation; /* grows with each write of one daemon */
        bool ready;
        char status[40];  /* of api/states.def: IMEX's word or ours */
        char reason[200]; /* for people, when not ready */
        /* The assignment in which it is ready (model/assignment_id), where one process serves many domains in
         * turn; "" of a daemon that serves one domain all its life, which claim_uid names. */
        char assignment[IMEX_ASSIGNMENT_MAX];
        char version[40]; /* of nvidia-imex; "" unknown */
        /* The daemon has got SIGTERM, and ends when no claim of its domain is prepared. It stays true in the
         * file of a daemon that has ended since. */
        bool terminating;
};

/* Writer. *lock_fd is -1 before the first write; it holds the lock of the newest file, and closing it drops
 * the lock. On failure the old file stays in place, and locked. */
int imex_state_write(const char *dir, const struct imex_state *s, int *lock_fd, struct err *e);

/* Reader: ERR_NOT_FOUND when there is none; *ret_held tells whether a living process holds it. */
int imex_state_read(const char *dir, struct imex_state *ret, bool *ret_held, struct err *e);

/* The reader's pure part. Members it does not know are ignored; those it knows must all be there and fit. */
int imex_state_parse(struct str text, struct imex_state *ret, struct err *e);

/* The plugin's rule, pure: may this state release a channel? NULL when yes, else the reason. */
const char *imex_state_refusal(const struct imex_state *s, bool held, const char *boot_id,
                               const char *daemon_claim_uid);
