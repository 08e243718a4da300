/* SPDX-License-Identifier: Apache-2.0 */
/* mode: who owns the IMEX domains of this installation, as a policy that the controller and the plugin ask
 * instead of asking for gates.
 *
 * Driver-managed: a daemon pod of ours per node and domain. Host-managed: the operator's own nvidia-imex, in
 * two variants: gate HostManagedIMEX (design note "HostManagedIMEX", sections 6 to 8) and the Go driver's
 * IMEX_MODE=hostManaged (reference 4.4), which waits for the host's IMEX and lets pods without a fabric run.
 */
#ifndef MODEL_MODE_H
#define MODEL_MODE_H

#include <stdbool.h>

#include "api/gates.h"
#include "api/kinds.h"
#include "base/err.h"
#include "model/domain.h"

struct imex_mode {
        const char *name;      /* as recorded on ComputeDomains and read by people: MODE_DRIVER_MANAGED or
                                  MODE_HOST_MANAGED */
        const char *chosen_by; /* the setting that a person would have to change, for messages */
        bool daemons;          /* we run the IMEX daemons: DaemonSet, daemon claims, node labels, cliques and
                                  status.nodes exist */
        bool single_template;  /* the workload template says Single, whatever the ComputeDomain says */
        bool single_only;      /* Prepare takes no allocationMode but "" and "Single" */
        bool one_result;       /* Prepare takes a channel claim with exactly one result of ours only */
        bool needs_clique; /* a channel on a node without a clique is an error; otherwise the pod runs without
                              one */
        bool waits_for_host; /* Prepare waits until the host's IMEX says READY */
};

#define MODE_DRIVER_MANAGED "driverManaged"
#define MODE_HOST_MANAGED "hostManaged"

/* Chooses the mode from the gates, IMEX_MODE and IMEX_ISOLATION (NULL or "": their defaults), forces the
 * gates that a host-managed mode has no use for to false (gates_log_forced() says so), and checks the gates'
 * dependencies, in the order of the mode's specification. ERR_INVALID names the settings that contradict each
 * other; *g is then not to be used. *ret is static. */
int mode_resolve(struct gates *g, const char *imex_mode, const char *imex_isolation,
                 const struct imex_mode **ret, struct err *e);

/* The mode of what was formed in another one than `m`. */
const char *mode_other_name(const struct imex_mode *m);

/* What is left of the forming of a ComputeDomain. */
struct mode_traces {
        bool finalizer, status, daemon_template, workload_template;
};

struct mode_traces
mode_traces_of(const struct compute_domain *cd); /* NULL: none. Its claim templates follow one by one: */
void mode_traces_add(struct mode_traces *t, const struct rct *template);

/* Was a ComputeDomain formed in another mode than `m`, so that it can only be taken down?
 *
 * `recorded` is its annotation CD_ANNOTATION_MODE, NULL: none. It tells of this object only if the object has
 * been formed, so if it has a status or a claim template: annotation and finalizer also come with a manifest
 * that was exported once, status and UID do not.
 *
 * The Go driver records none, and is judged by what it leaves: it sets the finalizer, then makes the daemon
 * claim template unless the host runs IMEX, then the workload template (reference 6.4, 6.5). */
bool mode_is_other(const struct imex_mode *m, const char *recorded, struct mode_traces t);

/* May a node carry the label of a domain that has a claim there? Only a domain with daemons of ours labels
 * nodes, and one that was formed in another mode than `m` keeps the labels it has and gets no new ones. */
bool mode_labels_node(const struct imex_mode *m, bool other, bool has_label);

#endif
