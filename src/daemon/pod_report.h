/* SPDX-License-Identifier: Apache-2.0 */
/* pod_report: writes the daemon's report to its own Pod with a merge patch: model/daemon_report for the
 * controller, annotations for people, and the label of the ComputeDomain that the daemon serves. */
#pragma once

#include "daemon/memory.h"
#include "imex/imex_runner.h"
#include "kube/kube_client.h"

struct pod_report_content {
        const char *claim, *boot_id; /* the daemon's own claim and boot ID */
        const char *fabric;          /* the clique ID; "": none */
        const char *fabric_uid;      /* UID of the fabric object that the daemon sees; "": it sees none */
        const struct memory *memory;
        const char *imex_version;       /* "": unknown */
        const char *waits_for;          /* why the node stays in a domain that it should leave; else "" */
        const struct imex_report *imex; /* NULL: no assignment */
        const char *reason;             /* why IMEX is not ready; "" if it is ready */
};

/* Keeps the newest report on the Pod, as kube/report_sender describes. A new highest epoch that the daemon
 * has seen causes no patch, but is sent with the next other change: otherwise each daemon of the partition
 * would write its Pod for each node that joins. The epoch is sent at once only if the fabric object has a
 * lower one (`behind`), as after a restore, because the controller must know that.
 *
 * If any part of the report is missing because etcd was restored, the module writes the whole report again.
 * Loop thread only. */
struct pod_report;

/* Creates the module for the Pod with this namespace and name, which are copied. */
struct pod_report *pod_report_new(struct kube_client *c, const char *ns, const char *name);
void pod_report_free(struct pod_report *r); /* not allowed inside a callback; NULL is allowed */
/* Sets the report. The content is copied. */
void pod_report_set(struct pod_report *r, const struct pod_report_content *content, bool behind);
