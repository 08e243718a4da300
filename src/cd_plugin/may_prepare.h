/* SPDX-License-Identifier: Apache-2.0 */
/* may_prepare: decides whether a pod may have its channel on this node now. Pure.
 *
 * If the driver runs IMEX on the node, our daemon must be prepared here, alive, and READY with an assignment.
 * The ComputeDomainFabric must list exactly this assignment as active: the controller may have given the node
 * another assignment, or may want the node to leave, and the daemon may not have seen that yet.
 *
 * In a ComputeDomain that the Go driver formed, its daemon must be prepared here, and must be Ready with its
 * present address in the ComputeDomainClique. After a reboot, the entry there stays Ready until the daemon
 * writes its new address, and then its new state. Between these two writes, which follow each other at once,
 * the entry looks like that of a daemon that is Ready. The daemon ends when the Node has lost the label of
 * the ComputeDomain, and its entry stays Ready for a while. */
#pragma once

#include <stdbool.h>

#include "cd_plugin/go_daemon.h"
#include "imex/imex_state.h"
#include "model/assignment_id.h"
#include "model/clique.h"
#include "model/domain.h"
#include "model/fabric.h"

/* Which driver's daemon holds the node's daemon device. */
enum prepare_runner {
        PREPARE_RUNNER_NONE,
        PREPARE_RUNNER_OWN, /* our daemon, which serves any IMEX domain that the node is in */
        PREPARE_RUNNER_GO   /* the Go driver's daemon, which serves one ComputeDomain */
};

/* The observed state of the daemon. */
struct prepare_daemon {
        enum prepare_runner runner;
        const char *claim_uid; /* UID of its prepared claim; NULL: none */
        /* For our daemon: */
        struct imex_state state; /* its state file in the folder of the domain */
        bool held;               /* a living process holds the state file */
        struct err unread;       /* the error in reading the state file; kind ERR_NONE: it was read */
        /* For the Go driver's daemon: the UID of the ComputeDomain that it serves, and its namespace. */
        const char *go_domain, *go_ns;
        char go_address[GO_FOLDER_ADDRESS_SIZE]; /* the address with which it was started here; "": not
                                                    started */
};

struct prepare_question {
        const char *node; /* messages begin with the name; NULL: without it */
        const char *boot_id, *clique_id;
        const char *imex_uid; /* UID of the IMEX domain: that of the ComputeDomain, or that of the standing
                                 domain */
        bool is_standing;     /* the IMEX domain is the standing domain */
        const char *domain_ns, *domain_name, *domain_uid; /* the pod's ComputeDomain */
        bool admin_access; /* the claim has admin access, so the controller does not count it (claim_place())
                            */
        unsigned channel_count;                           /* as this node's NVIDIA driver states it */
        const struct compute_domain_fabric *fabric;       /* for our daemon; NULL: the object does not
                                                             exist */
        const struct clique *clique; /* for the Go driver's daemon; NULL: the object does not exist */
        bool go_unlabelled; /* the Node has lost the label with which the Go driver's daemon runs here */
};

/* Finds the channel that is assigned to the ComputeDomain in this node's partition. False: there is none yet;
 * `msg` has the reason and begins with the node's name. */
bool may_prepare_channel(const struct prepare_question *q, int64_t *ret, char *msg, size_t n);

/* Returns whether our daemon is READY for the IMEX domain. Uses only node, boot_id and imex_uid of the
 * question. False: `msg` has the reason and begins with the node's name. */
bool may_prepare_daemon(const struct prepare_question *q, const struct prepare_daemon *d,
                        struct assignment_id *ret_assignment, char *msg, size_t n);

/* Returns true if our daemon has received SIGTERM and recorded it, and no other daemon has been prepared
 * since. Uses only boot_id of the question. */
bool may_prepare_terminating(const struct prepare_question *q, const struct prepare_daemon *d);

/* Returns whether the daemon on this node serves the ComputeDomain. Our daemon serves it if it is READY and
 * the fabric object lists the assignment with which it is READY. A terminating daemon of a standing domain
 * serves no new pods, because otherwise it would never end. */
bool may_prepare(const struct prepare_question *q, const struct prepare_daemon *d, char *msg, size_t n);

/* What decides on the start gate of a ComputeDomain: the annotation of its users, and the condition of its
 * controller. */
struct gated_domain {
        struct kube_object o;
        const char *start_gate; /* annotation CD_ANNOTATION_START_GATE, NULL: none */
        struct cd_condition *conditions;
        size_t n_conditions;
};

/* Returns whether the pods of the ComputeDomain may start now. Only the controller sees all nodes, so its
 * condition StartGateOpen decides. Uses only node, domain_ns and domain_name of the question. `d` NULL: the
 * ComputeDomain does not exist. False: `msg` has the reason and begins with the node's name. */
bool may_prepare_start(const struct prepare_question *q, const struct gated_domain *d, char *msg, size_t n);

/* Returns why this node has no assignment in the standing domain, as the fabric object states it; the object
 * owns the string. NULL: the node has an assignment, or the object gives no reason. */
const char *may_prepare_no_index(const struct compute_domain_fabric *f, const char *node);
