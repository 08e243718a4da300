/* SPDX-License-Identifier: Apache-2.0 */
/* pod_report: the daemon's report on its own Pod, as a merge patch: model/daemon_report for the controller,
 * annotations for people, and the label of the ComputeDomain that it serves. */
#pragma once

#include "daemon/memory.h"
#include "imex/imex_runner.h"
#include "kube/kube_client.h"

struct pod_report_content {
        const char *claim, *boot_id; /* the daemon's own */
        const char *fabric;          /* the clique ID; "" without */
        const char *fabric_uid;      /* of the fabric object that it sees; "" while it sees none */
        const struct memory *memory;
        const char *imex_version;       /* "": unknown */
        const char *waits_for;          /* why it stays in a domain that it should leave; otherwise "" */
        const struct imex_report *imex; /* NULL: no assignment */
        const char *reason;             /* why it is not ready; "" when it is */
};

/* Keeps the newest report on the Pod: one patch at a time, and failures are retried with a growing pause. The
 * highest epoch that the daemon has seen is sent with the next change: otherwise each daemon of the partition
 * would write its Pod for each node that joins. It is sent at once only if the fabric object is behind it
 * (`behind`), as after a restore, because the controller must know that.
 *
 * The Pod is watched: if any part of the report is missing because etcd was restored, the whole report is
 * written again. If the API server does not allow the watch, each report is written once. Loop thread
 * only. */
struct pod_report;

/* `ns` and `name` are the Pod's, and are copied. */
struct pod_report *pod_report_new(struct kube_client *c, const char *ns, const char *name);
void pod_report_free(struct pod_report *r); /* not from inside a callback; NULL is allowed */
/* The content is copied. */
void pod_report_set(struct pod_report *r, const struct pod_report_content *content, bool behind);
