/* SPDX-License-Identifier: Apache-2.0 */
/* mode: how this installation has its IMEX domains, as a policy that the programs ask instead of asking for
 * gates.
 *
 * Driver-managed: a daemon of ours on each node runs IMEX for whichever ComputeDomain the node is in, or the
 * daemons of a partition run one IMEX domain, which stands before any ComputeDomain uses it. Host-managed,
 * which is imex.mode=hostManaged or feature gate HostManagedIMEX: the operator's own nvidia-imex (design note
 * "HostManagedIMEX", sections 6 to 8).
 */
#pragma once

#include <stdbool.h>

#include "api/gates.h"
#include "api/kinds.h"
#include "base/err.h"
#include "model/domain.h"

enum mode_runner {
        MODE_RUNNER_DAEMON, /* the daemon of ours on each node */
        MODE_RUNNER_HOST    /* the operator's nvidia-imex */
};

enum mode_span {
        MODE_SPAN_COMPUTE_DOMAIN, /* the nodes of one ComputeDomain in a partition, each with an assignment:
                                     node labels and status.nodes exist */
        MODE_SPAN_PARTITION       /* all nodes of a partition, whatever ComputeDomains use them */
};

enum mode_ids {
        MODE_IDS_SHARED, /* channel 0, which all workloads of an IMEX domain share: imex.isolation=domain */
        MODE_IDS_OWN     /* each ComputeDomain has a channel of its own in each partition, and a
                            ComputeDomainFabric says which: imex.isolation=channel */
};

/* Three words: who runs IMEX, what an IMEX domain spans, and which channels it gives. Only this module looks
 * at them; the questions below are for everybody. */
struct imex_mode {
        const char *name;      /* as recorded on ComputeDomains and read by people: one of those below */
        const char *chosen_by; /* the setting that a person would have to change, for messages */
        enum mode_runner runner;
        enum mode_span span;
        enum mode_ids ids;
};

#define MODE_DRIVER_MANAGED "driverManaged"
#define MODE_DRIVER_CHANNEL "driverManagedChannel"
#define MODE_HOST_MANAGED "hostManaged"
#define MODE_HOST_CHANNEL "hostManagedChannel"

/* The places for pods on a node where each ComputeDomain has a channel of its own. */
enum { MODE_SEATS = 16 };

/* Chooses the mode from the gates, IMEX_MODE and IMEX_ISOLATION (NULL or "": their defaults), forces the
 * gates that a host-managed mode has no use for to false (gates_log_forced() says so), and checks the gates'
 * dependencies after that. ERR_INVALID names the settings that contradict each other; *g is then not to be
 * used. *ret is static. */
int mode_resolve(struct gates *g, const char *imex_mode, const char *imex_isolation,
                 const struct imex_mode **ret, struct err *e);

/* Does Prepare wait until the host's IMEX is READY? `text` is imex.waitForHost. Without it (NULL or "") the
 * Go driver's spelling decides: IMEX_MODE=hostManaged with gate HostManagedIMEXDaemon waits. ERR_INVALID:
 * `text` is neither true nor false, or it is true and the driver runs IMEX. */
int mode_wait_for_host(const struct imex_mode *m, const struct gates *g, const char *imex_mode,
                       const char *text, bool *ret, struct err *e);

/* Do we run IMEX? */
static inline bool mode_runs_daemons(const struct imex_mode *m) {
        return m->runner != MODE_RUNNER_HOST;
}
/* Does a ComputeDomain have IMEX domains of its own, in which its nodes have assignments? */
static inline bool mode_forms_domains(const struct imex_mode *m) {
        return m->span == MODE_SPAN_COMPUTE_DOMAIN;
}
/* Do we run one IMEX domain in each partition, which stands also while no ComputeDomain uses it? */
static inline bool mode_is_standing(const struct imex_mode *m) {
        return mode_runs_daemons(m) && !mode_forms_domains(m);
}
/* Has each ComputeDomain a channel of its own in each fabric? Then the claim templates for workloads say so,
 * and the id comes from the fabric's object. */
static inline bool mode_assigns_channels(const struct imex_mode *m) {
        return m->ids == MODE_IDS_OWN;
}
/* How many channel devices a node offers, "channel-0" and on: places for pods. More than one only where
 * channels keep ComputeDomains apart, so that the scheduler need not. */
static inline unsigned mode_seats(const struct imex_mode *m) {
        return mode_assigns_channels(m) ? MODE_SEATS : 1;
}
/* Does Prepare take no allocationMode but "" and "Single", and no claim but with exactly one result of ours?
 */
static inline bool mode_one_channel(const struct imex_mode *m) {
        return !mode_forms_domains(m);
}
/* Is a channel on a node without a clique an error? */
static inline bool mode_needs_clique(const struct imex_mode *m) {
        return !mode_forms_domains(m);
}

/* Beyond the mode: an error of the fabric withholds the node's devices. */
static inline bool mode_strict_fabric(const struct gates *g) {
        return g->on[GATE_CRASH_ON_NVLINK_FABRIC_ERRORS];
}

/* What is left of the forming of a ComputeDomain. */
struct mode_traces {
        bool finalizer, status, daemon_template, workload_template;
        bool peers; /* its status has the condition PeersConnected, which only daemons of ours give it */
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

/* The name of the mode that something was formed in of which mode_is_other() is true. */
const char *mode_other_name(const struct imex_mode *m, const char *recorded, struct mode_traces t);

/* May a node carry the label of a domain that has a claim there? Only a domain with daemons of ours labels
 * nodes, and one that was formed in another mode than `m` keeps the labels it has and gets no new ones. */
bool mode_labels_node(const struct imex_mode *m, bool other, bool has_label);
