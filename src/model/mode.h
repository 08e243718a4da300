/* SPDX-License-Identifier: Apache-2.0 */
/* mode: determines the mode of this installation from imex.mode, imex.isolation and the feature gates. The
 * programs call the functions below instead of checking settings and gates themselves.
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
        const char *name;      /* as recorded on ComputeDomains and shown to people: one of the MODE_ names
                                  below */
        const char *chosen_by; /* the setting that selects this mode, for messages */
        enum mode_runner runner;
        enum mode_span span;
        enum mode_ids ids;
};

#define MODE_DRIVER_MANAGED "driverManaged"
#define MODE_DRIVER_CHANNEL "driverManagedChannel"
#define MODE_HOST_MANAGED "hostManaged"
#define MODE_HOST_CHANNEL "hostManagedChannel"

/* The number of channel devices of a node if each ComputeDomain has an assigned channel. */
enum { MODE_CHANNEL_DEVICES = 16 };

/* Chooses the mode from the gates, IMEX_MODE and IMEX_ISOLATION (NULL or "": the default). Then switches off
 * the gates that have no meaning in a host-managed mode (gates_log_forced() logs them), and calls
 * gates_validate(). ERR_INVALID: the message names the settings that contradict each other, and *g must not
 * be used. *ret is static. */
int mode_resolve(struct gates *g, const char *imex_mode, const char *imex_isolation,
                 const struct imex_mode **ret, struct err *e);

/* Determines whether Prepare waits until the host's IMEX is READY. `text` is the value of imex.waitForHost.
 * If it is NULL or "", the settings of the Go driver decide: Prepare waits with IMEX_MODE=hostManaged and the
 * gate HostManagedIMEXDaemon. ERR_INVALID: `text` is neither true nor false, or it is true although the
 * driver runs IMEX. */
int mode_wait_for_host(const struct imex_mode *m, const struct gates *g, const char *imex_mode,
                       const char *text, bool *ret, struct err *e);

/* Returns whether the driver runs IMEX. */
static inline bool mode_runs_daemons(const struct imex_mode *m) {
        return m->runner != MODE_RUNNER_HOST;
}
/* Returns whether each ComputeDomain has its own IMEX domains, in which its nodes have assignments. */
static inline bool mode_forms_domains(const struct imex_mode *m) {
        return m->span == MODE_SPAN_COMPUTE_DOMAIN;
}
/* Returns whether the driver runs a standing domain in each partition, even while no ComputeDomain uses
 * it. */
static inline bool mode_is_standing(const struct imex_mode *m) {
        return mode_runs_daemons(m) && !mode_forms_domains(m);
}
/* Returns whether each ComputeDomain has an assigned channel in each partition. If so, the claim templates
 * for workloads request this channel, and the fabric object contains its ID. */
static inline bool mode_assigns_channels(const struct imex_mode *m) {
        return m->ids == MODE_IDS_OWN;
}
/* Returns the number of channel devices that a node offers, from "channel-0" on. A node offers more than one
 * only if channels isolate ComputeDomains, because otherwise the scheduler must keep different ComputeDomains
 * on different nodes. */
static inline unsigned mode_channel_devices(const struct imex_mode *m) {
        return mode_assigns_channels(m) ? MODE_CHANNEL_DEVICES : 1;
}
/* Returns whether Prepare accepts only the allocationModes "" and "Single", and only claims with exactly one
 * result of this driver. */
static inline bool mode_one_channel(const struct imex_mode *m) {
        return !mode_forms_domains(m);
}
/* Returns whether a channel on a node without a partition is an error. */
static inline bool mode_needs_clique(const struct imex_mode *m) {
        return !mode_forms_domains(m);
}

/* Returns whether a node with an error of the NVLink fabric withholds its devices. This does not depend on
 * the mode. */
static inline bool mode_strict_fabric(const struct gates *g) {
        return g->on[GATE_CRASH_ON_NVLINK_FABRIC_ERRORS];
}

/* The traces that a controller leaves when it forms a ComputeDomain. */
struct mode_traces {
        bool finalizer, status, daemon_template, workload_template;
        bool peers; /* the status has the condition PeersConnected, which exists only if daemons
                       run IMEX */
};

/* Returns the traces in the ComputeDomain itself; `cd` NULL: none. The caller then adds its claim templates
 * one by one with mode_traces_add(). A template of shared claims is no trace: only this driver creates it,
 * after it has recorded the mode. */
struct mode_traces mode_traces_of(const struct compute_domain *cd);
void mode_traces_add(struct mode_traces *t, const struct rct *template);

/* Returns whether a ComputeDomain was formed in another mode than `m`, so that it can only be deleted.
 *
 * `recorded` is the value of its annotation CD_ANNOTATION_MODE; NULL: none. The annotation counts only if
 * this object has been formed, that is, if it has a status or a claim template. The reason is that an
 * exported manifest contains the annotation and the finalizer, but neither status nor UID.
 *
 * The Go driver records no mode, so for its ComputeDomains the traces decide: the Go driver sets the
 * finalizer, then creates the claim template of the daemons unless the host runs IMEX, and then the claim
 * template of the workloads. */
bool mode_is_other(const struct imex_mode *m, const char *recorded, struct mode_traces t);

/* Returns whether `recorded` is the mode in which each ComputeDomain has its own IMEX domains. */
bool mode_formed_domains(const char *recorded);

/* Returns the name of the mode in which a ComputeDomain was formed. Call it only if mode_is_other() is
 * true. */
const char *mode_other_name(const struct imex_mode *m, const char *recorded, struct mode_traces t);

/* Returns whether a node may carry the label of a ComputeDomain that has a claim on it. Only a ComputeDomain
 * with its own IMEX domains labels nodes. A ComputeDomain that was formed in another mode than `m` (`other`)
 * keeps its labels (`has_label`) and gets no new ones. */
bool mode_labels_node(const struct imex_mode *m, bool other, bool has_label);
