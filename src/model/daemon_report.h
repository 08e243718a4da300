/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_report: decodes and renders the report of a compute-domain-daemon. The daemon writes the report for
 * the controller, as JSON, into the annotation IMEX_ANNOTATION_REPORT of its Pod:
 *
 *     {"claimUID": "<UID>", "bootID": "<UUID>", "fabricUID": "<UID, or \"\">",
 *      "assignment": "<clique ID>/<UID>/<index>/<epoch>", "ready": true,
 *      "left": "3,7", "seen": 9, "recount": 0, "served": true, "waitsFor": "a pod on this node uses it",
 *      "imexVersion": "580.95.05"}
 *
 * Anyone with the token of a node can write a report, so the controller treats it as untrusted input with
 * limits: if it cannot read any part, it ignores the whole report. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/assignment_id.h"

/* The maximum number of left epochs in a report. A daemon usually lists few: one for each IMEX domain that
 * the node is in or is leaving. */
enum { DAEMON_REPORT_LEFT_MAX = 256 };
/* The controller ignores an epoch that is further than this above the epochs of the others
 * (rules/assignment.h). */
#define DAEMON_REPORT_EPOCHS_AHEAD (INT64_C(1) << 32)

struct daemon_report {
        const char *claim;   /* UID of the daemon's ResourceClaim */
        const char *boot_id; /* boot ID of the node, as the daemon read it */
        const char *fabric;  /* UID of the fabric object that the daemon watches; "": it has seen none */
        bool has_assignment; /* the daemon runs IMEX with this assignment, or is about to start or stop
                                IMEX */
        struct assignment_id assignment;
        bool ready;          /* IMEX has been READY in this assignment */
        const int64_t *left; /* left epochs: IMEX does not run in them on this node, and never will again */
        size_t n_left;
        int64_t seen;     /* the highest epoch that the daemon has seen */
        int64_t recount;  /* the last recount that the daemon has answered; 0: none */
        bool served;      /* IMEX has been READY in this Pod, in any IMEX domain */
        const char *waits_for; /* why the daemon is still in an IMEX domain that it should leave, for people;
                                  "": no reason */
        const char *imex_version; /* the output of `nvidia-imex --version` in the daemon's container; "": none
                                     yet */
};

/* Decodes a report into the arena. ERR_INVALID: the message names the fault. Unknown members are ignored,
 * because a newer daemon may report more. */
int daemon_report_decode(struct str text, struct arena *a, struct daemon_report *ret, struct err *e);
void daemon_report_render(const struct daemon_report *r, struct buf *out);
/* Whether the epoch is in a list such as `left`. */
bool daemon_report_has_epoch(const int64_t *epochs, size_t n, int64_t epoch);
