/* SPDX-License-Identifier: Apache-2.0 */
/* start_gate: decides whether the pods of a ComputeDomain with the annotation CD_ANNOTATION_START_GATE may
 * start: when spec.numNodes nodes are connected. The result is the condition StartGateOpen, which the kubelet
 * plugins obey. Pure.
 *
 * Once open, the gate stays open while a node has a claim of the ComputeDomain. Otherwise a pod that is
 * replaced after another pod has completed would wait forever, because fewer nodes remain. The condition in
 * the status is the record that the gate was opened. */
#pragma once

#include "model/domain.h"
#include "rules/host_health.h"
#include "rules/membership.h"

/* The nodes of a ComputeDomain. */
struct start_gate_nodes {
        size_t connected;
        size_t others;       /* nodes that belong to the ComputeDomain and are not connected */
        const char *lacking; /* names some of the others, and what they lack; "": none */
        bool used;           /* a claim brings a node into the ComputeDomain */
        bool go;             /* the Go driver formed the ComputeDomain, and its daemons serve it; the other
                                members are then not known */
};

/* A node with its own daemon is connected if it is ready and connected to all its peers. With a shared IMEX,
 * a host is connected if its state is UP: only nodes with pods of the ComputeDomain are in the list, and
 * their peers may be others. The texts are in the arena. */
void start_gate_of_members(const struct membership *all, struct arena *a, struct start_gate_nodes *ret);
void start_gate_of_hosts(const struct host *hosts, size_t n, struct arena *a, struct start_gate_nodes *ret);

/* Fills type, status, reason and message of the condition. Only for a ComputeDomain with domain_is_gated().
 */
void start_gate(const struct compute_domain *cd, const struct start_gate_nodes *nodes, struct arena *a,
                struct cd_condition *ret);
