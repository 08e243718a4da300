/* SPDX-License-Identifier: Apache-2.0 */
/* may_prepare: may a pod have its channel on this node now? Pure.
 *
 * Where we run IMEX, the daemon of the node has to be prepared here, alive and READY with an assignment, and
 * the ComputeDomainFabric must list exactly this one as active: the controller may have given the node
 * another one, or may want it to leave, and the daemon may not have seen that yet. In a ComputeDomain that
 * the Go driver formed, its daemon has to be prepared here, and Ready in the ComputeDomainClique with the
 * address that it has now: after a reboot the entry says Ready until the daemon writes its new address, and
 * then its new state. Between these two writes, which follow each other at once, the entry cannot be told
 * from that of a daemon that is Ready. */
#pragma once

#include <stdbool.h>

#include "cd_plugin/go_folder.h"
#include "imex/imex_state.h"
#include "model/assignment_id.h"
#include "model/clique.h"
#include "model/fabric.h"

/* Whose daemon holds the daemon device of the node. */
enum prepare_runner {
        PREPARE_RUNNER_NONE,
        PREPARE_RUNNER_OWN, /* ours, which serves whichever domain the node is in */
        PREPARE_RUNNER_GO   /* the Go driver's, which serves one ComputeDomain */
};

/* What is seen of it. */
struct prepare_daemon {
        enum prepare_runner runner;
        const char *claim_uid; /* that is prepared for it; NULL: none */
        /* Of ours: */
        struct imex_state state; /* in the folder of the domain */
        bool held;               /* a living process holds the state file */
        struct err unread;       /* of the state file; kind ERR_NONE: it was read */
        /* Of the Go driver's: the ComputeDomain that it serves, and its own namespace. */
        const char *go_domain, *go_ns;
        char go_address[GO_FOLDER_ADDRESS_SIZE]; /* with which it was started here; "": it was not */
};

struct prepare_question {
        const char *node, *boot_id, *clique_id;
        const char *imex_uid; /* of the IMEX domain: of the ComputeDomain, or what stands for the fabric */
        bool stands;          /* the IMEX domain is the fabric's own */
        const char *domain_ns, *domain_name, *domain_uid; /* the pod's ComputeDomain */
        unsigned channel_count;                           /* of this node's driver */
        const struct compute_domain_fabric *fabric;       /* for our daemon; NULL: there is no object */
        const struct clique *clique;                      /* for the Go driver's; likewise */
};

/* The channel of its own that the ComputeDomain has on this node's fabric. False: not yet; `msg` has the
 * reason, beginning with the node's name. */
bool may_prepare_channel(const struct prepare_question *q, int64_t *ret, char *msg, size_t n);

/* Is our daemon READY for the domain? Of the question only node, boot_id and imex_uid count. False: `msg` as
 * above. */
bool may_prepare_daemon(const struct prepare_question *q, const struct prepare_daemon *d,
                        struct assignment_id *ret_assignment, char *msg, size_t n);

/* Our daemon has got SIGTERM, as far as it could write that down, and no other one has been prepared since.
 * Of the question only boot_id counts. */
bool may_prepare_terminating(const struct prepare_question *q, const struct prepare_daemon *d);

/* Does the daemon that is here serve the ComputeDomain? Ours: it is READY, and the fabric's object lists what
 * it is READY with. Where one IMEX domain stands for all, a daemon that terminates serves no new pods, or it
 * would never end. */
bool may_prepare(const struct prepare_question *q, const struct prepare_daemon *d, char *msg, size_t n);

/* Why this node has no assignment in the IMEX domain of the fabric itself, in the words of the fabric's
 * object, which owns them. NULL: it has one, or the object gives no reason. */
const char *may_prepare_no_place(const struct compute_domain_fabric *f, const char *node);
