/* SPDX-License-Identifier: Apache-2.0 */
/* pod_report: what a daemon reports on its own Pod, as a merge patch, and how soon it has to be known. */
#pragma once

#include "imex/imex_agent.h"
#include "kube/pod_patch.h"

/* Pure, as is pod_report_patience(). clique_id: the label; "" without fabric. */
void pod_report_render(const char *clique_id, const struct imex_report *r, struct buf *out);

/* Milliseconds that the step from `sent` (NULL: nothing was reported yet) to `now` may wait for more to come
 * with it. What the formation of a domain waits for goes at once. The first report, which by itself tells
 * nothing but that we live, waits for IMEX, which is usually ready in this time: one write a node less when
 * hundreds come at once. */
unsigned pod_report_patience(const struct imex_report *sent, const struct imex_report *now);

/* What keeps the Pod ns/name at the report that was told last. */
struct pod_patch *pod_report_patch_new(struct kube_client *c, const char *ns, const char *name);
void pod_report_tell(struct pod_patch *p, const char *clique_id, const struct imex_report *r); /* copied */
