/* SPDX-License-Identifier: Apache-2.0 */
/* imex_state: writes and reads the file in the domain's folder with which a daemon shows the kubelet plugin
 * on the same node whether its IMEX process is ready.
 *
 * The daemon replaces the file atomically, and holds an open-file-description write lock on the present file
 * until the daemon ends. A file without a lock was left by a daemon that has ended. The reader opens the file
 * without following links, reads at most 4 KiB, and checks whether the file is locked without taking the lock
 * (F_OFD_GETLK). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/states.h"
#include "base/err.h"
#include "base/str.h"
#include "imex/imex_links.h"

#define IMEX_STATE_FILE "state.json"

/* "<clique ID>/<domain UID>/<index>/<epoch>": a clique ID has 63 bytes at most. */
enum { IMEX_ASSIGNMENT_MAX = 160 };
/* Plugins refuse a file with a longer reason, so the daemon writes texts that fit. With the final NUL. */
enum { IMEX_STATE_REASON_MAX = 200 };

struct imex_state {
        char boot_id[37];
        char claim_uid[37]; /* UID of the daemon's claim */
        char pod_uid[37];
        int64_t index;      /* -1 on a node without fabric */
        int64_t generation; /* increases with each write of one daemon */
        bool ready;
        char status[40];                    /* a state of IMEX or of the daemon, from api/states.def */
        char reason[IMEX_STATE_REASON_MAX]; /* for people, when not ready */
        /* The assignment in which IMEX is ready (model/assignment_id), if one daemon process serves several
         * domains in turn. "" if the daemon serves one domain until it ends: then claim_uid identifies the
         * domain. */
        char assignment[IMEX_ASSIGNMENT_MAX];
        char version[40]; /* version of nvidia-imex; "": unknown */
        /* The daemon has received SIGTERM, and ends when no claim of its domain is prepared. Remains true in
         * the file after the daemon has ended. */
        bool terminating;
        /* The lost peers (imex_links_lost()), and whether they are known. An old daemon
         * does not know them. */
        bool lost_known;
        char lost[IMEX_LOST_MAX];
};

/* Replaces the file. *lock_fd is -1 before the first write. Afterwards it holds the lock of the newest file;
 * closing it releases the lock. If the write fails, the old file stays in place and locked. */
int imex_state_write(const char *dir, const struct imex_state *s, int *lock_fd, struct err *e);

/* Reads the file. ERR_NOT_FOUND: there is no file. *ret_held: a living process holds the lock. */
int imex_state_read(const char *dir, struct imex_state *ret, bool *ret_held, struct err *e);

/* Parses the content of the file. Pure. Ignores unknown members; all known members must exist and be
 * valid. */
int imex_state_parse(struct str text, struct imex_state *ret, struct err *e);

/* Returns NULL if the plugin may release a channel in this state, otherwise the reason why not. Pure. */
const char *imex_state_refusal(const struct imex_state *s, bool held, const char *boot_id,
                               const char *daemon_claim_uid);
