/* SPDX-License-Identifier: Apache-2.0 */
/* leader: leader election with a coordination.k8s.io Lease, compatible with client-go's (same fields, same
 * rules).
 *
 * An attempt to write the Lease has half of the renew deadline, so that there is time for a second one. All
 * requests of a program share one connection, and TCP notices only after 30 s that its host has died. So an
 * attempt that follows one without an answer uses a new connection, which may reach another API server.
 * Attempts begin retry_ms +-25 % apart, unless another version of the Lease has been seen.
 *
 * After a restore of etcd (see kube_informer.h) writes conflict, because the version that we know is of the
 * old history. A read that brings an older version than was known when it was sent shows that; then the Lease
 * is listed at once. */
#pragma once

#include "kube/kube_client.h"

struct leader;

/* Strings are copied; the client is borrowed. */
struct leader_options {
        struct kube_client *client;
        const char *ns, *name, *identity;
        /* A Lease whose holder begins with this belongs to an earlier life of ours that has certainly ended
         * (the same pod before its container was restarted), and is taken at once. NULL: there is no way to
         * know. */
        const char *earlier;
        /* 15 s, 10 s, 2 s in client-go; a watch on the Lease replaces retry where it can notify */
        unsigned duration_ms, renew_deadline_ms, retry_ms;
        void (*started)(void *u); /* we lead */
        void (*lost)(void *u);    /* we led and could not renew in time: end the process */
        void (*observed)(void *u, const char *identity); /* the leader seen, on change; may be NULL */
        /* The Lease cannot be listed or watched, so that this candidate stands by for ever: told on each
         * change of the reason, in words that name the Lease and what it takes; NULL when well again. May be
         * NULL. */
        void (*failing)(void *u, const struct err *e);
        void *u;
};

struct leader *leader_new(const struct leader_options *o);
/* Gives the lease back if we hold it (holderIdentity ""), so that the next one starts at once; calls done in
 * any case, within 2 s. */
void leader_release(struct leader *l, void (*done)(void *u), void *u);
/* No more callbacks, also from inside one. NULL is allowed. Before kube_client_free. */
void leader_free(struct leader *l);

struct leader_view {
        bool leads;
        const char *holder;   /* by the Lease as it was seen last; "": nobody, or it is not there */
        uint64_t observed_ms; /* since that version was first seen */
        uint64_t renewed_ms;  /* since the last renewal that counts for us; only when it leads */
        bool writing;         /* a request is under way */
};
/* For people. Valid until the next turn. */
void leader_view(struct leader *l, struct leader_view *ret);
