/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_report: what a compute-domain-daemon reports to the controller, as JSON in annotation
 * IMEX_ANNOTATION_REPORT of its Pod:
 *
 *     {"claimUID": "<UID>", "bootID": "<UUID>", "fabricUID": "<UID, or \"\">",
 *      "assignment": "<clique ID>/<UID>/<index>/<epoch>", "ready": true,
 *      "left": "3,7", "seen": 9, "recount": 0, "served": true, "waitsFor": "a pod on this node uses it",
 *      "imexVersion": "580.95.05"}
 *
 * Anyone with the token of a node can write it, so the controller treats it as untrusted input with limits:
 * if any part is not readable, there is no report. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/assignment_id.h"

/* The limit of the left epochs that a daemon lists. There are few: one for each IMEX domain that the node is
 * in or is leaving. */
enum { DAEMON_REPORT_LEFT_MAX = 256 };
/* An epoch that is further above all others does not count (rules/assignment.h). */
#define DAEMON_REPORT_EPOCHS_AHEAD (INT64_C(1) << 32)

struct daemon_report {
        const char *claim;   /* UID of the daemon's ResourceClaim */
        const char *boot_id; /* of the node, as the daemon read it */
        const char *fabric;  /* UID of the fabric object that it watches; "": it has seen none */
        bool has_assignment; /* it runs IMEX with this assignment, or is about to start or to stop it */
        struct assignment_id assignment;
        bool ready;          /* IMEX has been READY in this assignment */
        const int64_t *left; /* left epochs: they do not run on the node, and never will again */
        size_t n_left;
        int64_t seen;     /* the highest epoch that it has seen */
        int64_t recount;  /* the last recount that it has answered; 0: none */
        bool served;      /* IMEX has been READY in this Pod, in any IMEX domain */
        const char *
                waits_for; /* what keeps it in an IMEX domain that it should leave, for people; "": nothing */
        const char *imex_version; /* the output of `nvidia-imex --version` in its container; "": none yet */
};

/* Decodes a report, into the arena. ERR_INVALID: the message names the fault. Unknown members are ignored,
 * because a newer daemon may report more. */
int daemon_report_decode(struct str text, struct arena *a, struct daemon_report *ret, struct err *e);
void daemon_report_render(const struct daemon_report *r, struct buf *out);
