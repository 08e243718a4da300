/* SPDX-License-Identifier: Apache-2.0 */
/* report: what a daemon reports on its own Pod, as a merge patch: model/daemon_report for the
 * controller, annotations for people, and the label of the ComputeDomain that it serves. */
#pragma once

#include "daemon/memory.h"
#include "imex/imex_runner.h"
#include "kube/kube_client.h"

struct report_content {
        const char *claim, *boot_id; /* the daemon's own */
        const char *fabric;          /* the clique's id; "" without */
        const char *fabric_uid;      /* of the object that it sees; "" while it sees none */
        const struct memory *memory;
        const char *imex_version;       /* "": unknown */
        const char *held;               /* why it stays in a domain that it should leave; "" */
        const struct imex_report *imex; /* NULL: no assignment */
        const char *reason;             /* why it is not ready, "" when it is */
};

/* Keeps the Pod at the newest report: one patch at a time, and a failure is repeated with a growing pause.
 * The highest epoch that the daemon has seen is sent with the next change: otherwise each daemon of the
 * partition would write its Pod for each node that joins. It is sent at once only if the object is behind it
 * (`behind`), as after a restore, because the controller must know that.
 *
 * The Pod is watched: if anything of the report is not there any more, because etcd was restored, all of it
 * is written again. Where the API server does not let us watch it, each report is written once. Loop thread
 * only. */
struct report;

/* `ns` and `name`, the Pod's, are copied. */
struct report *report_new(struct kube_client *c, const char *ns, const char *name);
void report_free(struct report *r); /* not from inside a callback; NULL is allowed */
/* The content is copied. */
void report_set(struct report *r, const struct report_content *content, bool behind);
