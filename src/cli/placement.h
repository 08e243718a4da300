/* SPDX-License-Identifier: Apache-2.0 */
/* placement: whether the scheduler may run a pod on a node, as far as the nodeSelector, the required node
 * affinity, and the taints decide. All other rules of the scheduler are in its message. Pure.
 *
 * The rules are those of the plugins NodeAffinity and TaintToleration of kube-scheduler. An operator or a
 * field that this version does not know excludes no node. */
#pragma once

#include "cli/tool_kinds.h"

enum placement {
        PLACEMENT_ALLOWED,
        PLACEMENT_TAINT,  /* the pod does not tolerate a taint NoSchedule or NoExecute */
        PLACEMENT_LABELS, /* the labels do not match the nodeSelector or the required node affinity */
};
/* Judges a node by its labels and taints. `n` may be NULL: it has neither. Ignores the taints of a node that
 * is not Ready or cordoned: for these states see inventory_is_up(). */
enum placement placement_judge(const struct pod_object *p, const struct node_object *n);
/* The first taint that the pod does not tolerate; NULL: there is none. */
const struct node_taint *placement_taint(const struct pod_object *p, const struct node_object *n);
