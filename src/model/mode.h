/* SPDX-License-Identifier: Apache-2.0 */
/* mode: the mode of this installation (imex.mode and imex.isolation). The programs ask the functions below
 * instead of feature gates.
 *
 * Driver-managed: a daemon on each node runs IMEX for the ComputeDomain that the node is in, or the daemons
 * of a partition run one standing domain for all ComputeDomains. Host-managed, by imex.mode=hostManaged or
 * the feature gate HostManagedIMEX: the operator of the hosts runs nvidia-imex. */
#pragma once

#include <stdbool.h>

#include "api/gates.h"
#include "api/kinds.h"
#include "base/err.h"
#include "model/domain.h"

enum mode_runner {
        MODE_RUNNER_DAEMON, /* the driver's daemon on each node */
        MODE_RUNNER_HOST    /* the operator's nvidia-imex */
};

enum mode_span {
        MODE_SPAN_COMPUTE_DOMAIN, /* the nodes of one ComputeDomain in a partition, each with an assignment:
                                     node labels and status.nodes exist */
        MODE_SPAN_PARTITION       /* all nodes of a partition, for all ComputeDomains */
};

enum mode_ids {
        MODE_IDS_SHARED, /* channel 0, which all workloads of an IMEX domain share: imex.isolation=domain */
        MODE_IDS_OWN     /* each ComputeDomain has an assigned channel in each partition, recorded in the
                            fabric object: imex.isolation=channel */
};

/* The three properties of a mode: who runs IMEX, which nodes an IMEX domain spans, and how channels are
 * shared. Only this module reads the fields; other modules use the functions below. */
struct imex_mode {
        const char *name;      /* as recorded on ComputeDomains and shown to people: one of those below */
        const char *chosen_by; /* the setting that a person would change, for messages */
        enum mode_runner runner;
        enum mode_span span;
        enum mode_ids ids;
};

#define MODE_DRIVER_MANAGED "driverManaged"
#define MODE_DRIVER_CHANNEL "driverManagedChannel"
#define MODE_HOST_MANAGED "hostManaged"
#define MODE_HOST_CHANNEL "hostManagedChannel"

/* The number of channel devices of a node if each ComputeDomain has an assigned channel. */
enum { MODE_SEATS = 16 };

/* Chooses the mode from the gates, IMEX_MODE and IMEX_ISOLATION (NULL or "": the default). Switches off the
 * gates that have no meaning in a host-managed mode (gates_log_forced() logs this), and then checks the
 * dependencies of the gates. ERR_INVALID: the message names the settings that contradict each other, and *g
 * must not be used. *ret is static. */
int mode_resolve(struct gates *g, const char *imex_mode, const char *imex_isolation,
                 const struct imex_mode **ret, struct err *e);

/* Does Prepare wait until the host's IMEX is READY? `text` is imex.waitForHost. Without it (NULL or ""), the
 * Go driver's settings decide: IMEX_MODE=hostManaged with the gate HostManagedIMEXDaemon waits. ERR_INVALID:
 * `text` is neither true nor false, or it is true although the driver runs IMEX. */
int mode_wait_for_host(const struct imex_mode *m, const struct gates *g, const char *imex_mode,
                       const char *text, bool *ret, struct err *e);

/* Does the driver run IMEX? */
static inline bool mode_runs_daemons(const struct imex_mode *m) {
        return m->runner != MODE_RUNNER_HOST;
}
/* Does each ComputeDomain have its own IMEX domains, in which its nodes have assignments? */
static inline bool mode_forms_domains(const struct imex_mode *m) {
        return m->span == MODE_SPAN_COMPUTE_DOMAIN;
}
/* Does the driver run a standing domain in each partition, even while no ComputeDomain uses it? */
static inline bool mode_is_standing(const struct imex_mode *m) {
        return mode_runs_daemons(m) && !mode_forms_domains(m);
}
/* Does each ComputeDomain have an assigned channel in each partition? Then the claim templates for workloads
 * request it, and its ID is in the fabric object. */
static inline bool mode_assigns_channels(const struct imex_mode *m) {
        return m->ids == MODE_IDS_OWN;
}
/* The number of channel devices that a node offers, from "channel-0" on. It is more than one only if channels
 * isolate ComputeDomains, because otherwise the scheduler must keep them on different nodes. */
static inline unsigned mode_seats(const struct imex_mode *m) {
        return mode_assigns_channels(m) ? MODE_SEATS : 1;
}
/* Does Prepare accept only the allocationModes "" and "Single", and only claims with exactly one result of
 * this driver? */
static inline bool mode_one_channel(const struct imex_mode *m) {
        return !mode_forms_domains(m);
}
/* Is a channel on a node without a partition an error? */
static inline bool mode_needs_clique(const struct imex_mode *m) {
        return !mode_forms_domains(m);
}

/* Independent of the mode: does an error of the NVLink fabric withhold the node's devices? */
static inline bool mode_strict_fabric(const struct gates *g) {
        return g->on[GATE_CRASH_ON_NVLINK_FABRIC_ERRORS];
}

/* Traces of the forming of a ComputeDomain. */
struct mode_traces {
        bool finalizer, status, daemon_template, workload_template;
        bool peers; /* its status has the condition PeersConnected, which only the driver's daemons cause */
};

/* The traces in a ComputeDomain (NULL: none). The caller then adds its claim templates one by one. */
struct mode_traces mode_traces_of(const struct compute_domain *cd);
void mode_traces_add(struct mode_traces *t, const struct rct *template);

/* Was a ComputeDomain formed in another mode than `m`, so that it can only be deleted?
 *
 * `recorded` is its annotation CD_ANNOTATION_MODE; NULL: none. It counts only if this object has been formed,
 * that is, if it has a status or a claim template. The reason is that an exported manifest contains the
 * annotation and the finalizer, but neither status nor UID.
 *
 * The Go driver records no mode, so its traces decide: it sets the finalizer, then creates the claim template
 * of the daemons unless the host runs IMEX, and then the claim template of the workloads. */
bool mode_is_other(const struct imex_mode *m, const char *recorded, struct mode_traces t);

/* The name of the mode in which a ComputeDomain was formed if mode_is_other() is true for it. */
const char *mode_other_name(const struct imex_mode *m, const char *recorded, struct mode_traces t);

/* May a node carry the label of a ComputeDomain that has a claim there? Only a ComputeDomain with its own
 * IMEX domains labels nodes. One that was formed in another mode than `m` keeps its labels and gets no new
 * ones. */
bool mode_labels_node(const struct imex_mode *m, bool other, bool has_label);
