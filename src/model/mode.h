/* SPDX-License-Identifier: Apache-2.0 */
/* mode: how this installation has its IMEX domains, as a policy that the programs ask instead of asking for
 * gates.
 *
 * Driver-managed: a daemon pod of ours per node and domain, or an agent of ours on each node for whichever
 * domain it is in; a domain keeps the one of the two that it was formed with. Or the agents of a partition
 * run one IMEX domain, which stands before any ComputeDomain uses it. Host-managed: the operator's own
 * nvidia-imex, in two variants: gate HostManagedIMEX (design note "HostManagedIMEX", sections 6 to 8) and the
 * Go driver's IMEX_MODE=hostManaged (reference 4.4), which waits for the host's IMEX and lets pods without a
 * fabric run.
 */
#pragma once

#include <stdbool.h>

#include "api/gates.h"
#include "api/kinds.h"
#include "base/err.h"
#include "model/domain.h"

enum mode_runner {
        MODE_RUNNER_PODS,   /* daemon pods of ours: DaemonSets and daemon claims exist */
        MODE_RUNNER_AGENTS, /* a resident agent of ours on each node: imex.agents=true */
        MODE_RUNNER_HOST    /* the operator's nvidia-imex */
};

enum mode_span {
        MODE_SPAN_COMPUTE_DOMAIN, /* the nodes of one ComputeDomain in a partition, each with a seat: node
                                     labels, cliques and status.nodes exist */
        MODE_SPAN_PARTITION       /* all nodes of a partition, whatever ComputeDomains use them */
};

enum mode_channels {
        MODE_CHANNELS_WHEN_READY, /* when IMEX says READY; on a node without a clique the pod runs without */
        MODE_CHANNELS_AT_ONCE     /* whatever IMEX says, and only on a node with a clique */
};

enum mode_ids {
        MODE_IDS_SHARED, /* channel 0, which all workloads of an IMEX domain share: imex.isolation=domain */
        MODE_IDS_OWN     /* each ComputeDomain has a channel of its own in each partition, and a
                            ComputeDomainFabric says which: imex.isolation=channel */
};

/* Four words: who runs IMEX, what an IMEX domain spans, how channels are given, and which. Only this module
 * looks at them; the questions below are for everybody. */
struct imex_mode {
        const char *name;      /* as recorded on ComputeDomains and read by people: one of those below */
        const char *chosen_by; /* the setting that a person would have to change, for messages */
        enum mode_runner runner;
        enum mode_span span;
        enum mode_channels channels;
        enum mode_ids ids;
};

#define MODE_DRIVER_MANAGED "driverManaged"
#define MODE_DRIVER_AGENTS "driverManagedAgents"
#define MODE_DRIVER_CHANNEL "driverManagedChannel"
#define MODE_HOST_MANAGED "hostManaged"
#define MODE_HOST_CHANNEL "hostManagedChannel"

/* The places for pods on a node where each ComputeDomain has a channel of its own. */
enum { MODE_SEATS = 16 };

/* Chooses the mode from the gates, IMEX_MODE, IMEX_ISOLATION (NULL or "": their defaults) and imex.agents,
 * forces the gates that a host-managed mode has no use for to false (gates_log_forced() says so), and checks
 * the gates' dependencies, in the order of the mode's specification. ERR_INVALID names the settings that
 * contradict each other; *g is then not to be used. *ret is static. */
int mode_resolve(struct gates *g, const char *imex_mode, const char *imex_isolation, bool imex_agents,
                 const struct imex_mode **ret, struct err *e);

/* Do we run the IMEX daemons, in pods of the domain or by agents? */
static inline bool mode_runs_daemons(const struct imex_mode *m) {
        return m->runner != MODE_RUNNER_HOST;
}
/* By agents? */
static inline bool mode_runs_agents(const struct imex_mode *m) {
        return m->runner == MODE_RUNNER_AGENTS;
}
/* Does a ComputeDomain have IMEX domains of its own, in which its nodes have seats? */
static inline bool mode_forms_domains(const struct imex_mode *m) {
        return m->span == MODE_SPAN_COMPUTE_DOMAIN;
}
/* Do agents run one IMEX domain in each partition, which stands while no ComputeDomain uses it, too? */
static inline bool mode_is_standing(const struct imex_mode *m) {
        return mode_runs_agents(m) && !mode_forms_domains(m);
}
/* Does Prepare wait until the host's IMEX says READY? */
static inline bool mode_waits_for_host(const struct imex_mode *m) {
        return m->runner == MODE_RUNNER_HOST && m->channels == MODE_CHANNELS_WHEN_READY;
}
/* Has each ComputeDomain a channel of its own in each fabric? Then the claim templates for workloads say so,
 * and the id comes from the fabric's object. */
static inline bool mode_assigns_channels(const struct imex_mode *m) {
        return m->ids == MODE_IDS_OWN;
}
/* Is there a ComputeDomainFabric for each fabric? */
static inline bool mode_has_fabrics(const struct imex_mode *m) {
        return mode_assigns_channels(m) || mode_runs_agents(m);
}
/* How many channel devices a node offers, "channel-0" and on: places for pods. More than one only where
 * channels keep ComputeDomains apart, so that the scheduler need not. */
static inline unsigned mode_seats(const struct imex_mode *m) {
        return mode_assigns_channels(m) ? MODE_SEATS : 1;
}
/* Does the workload template say Single, whatever the ComputeDomain says? As the Go driver does it. */
static inline bool mode_template_is_single(const struct imex_mode *m) {
        return mode_waits_for_host(m) && !mode_assigns_channels(m);
}
/* Does Prepare take no allocationMode but "" and "Single", and no claim but with exactly one result of ours?
 */
static inline bool mode_one_channel(const struct imex_mode *m) {
        return m->channels == MODE_CHANNELS_AT_ONCE || mode_assigns_channels(m);
}
/* Is a channel on a node without a clique an error? */
static inline bool mode_needs_clique(const struct imex_mode *m) {
        return m->channels == MODE_CHANNELS_AT_ONCE || mode_assigns_channels(m);
}

/* What gates say beyond the mode: IMEX daemons know each other by names that do not change, not by addresses;
 * an error of the fabric withholds the node's devices. */
static inline bool mode_dns_names(const struct gates *g) {
        return g->on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES];
}
static inline bool mode_strict_fabric(const struct gates *g) {
        return g->on[GATE_CRASH_ON_NVLINK_FABRIC_ERRORS];
}

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

/* Is the ComputeDomain, as far as its annotation is to be believed (mode_is_other()), one with agents? One
 * that has a daemon template is not. */
bool mode_was_agents(const char *recorded, struct mode_traces t);

/* Does an installation in mode `m` look after a ComputeDomain that has `recorded` written on it? Whether pods
 * or agents run its IMEX makes no difference: the one goes on beside the other. */
bool mode_serves(const struct imex_mode *m, const char *recorded);

/* The mode that a ComputeDomain is looked after in where `m` is that of the installation, of one that is not
 * other: with pods or with agents, as it was formed. What it has decides, and only then what is written on
 * it, which its owner may change: a daemon claim template, which is in a namespace of ours, or `seated`,
 * places in a fabric's object. */
const struct imex_mode *mode_of_domain(const struct imex_mode *m, const char *recorded, struct mode_traces t,
                                       bool seated);

/* The name of the mode that something was formed in of which mode_is_other() is true. */
const char *mode_other_name(const struct imex_mode *m, const char *recorded, struct mode_traces t);

/* May a node carry the label of a domain that has a claim there? Only a domain with daemons of ours labels
 * nodes, and one that was formed in another mode than `m` keeps the labels it has and gets no new ones. */
bool mode_labels_node(const struct imex_mode *m, bool other, bool has_label);
