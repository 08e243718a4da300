/* SPDX-License-Identifier: Apache-2.0 */
/* leader: leader election with a coordination.k8s.io Lease, compatible with client-go's (same fields, same
 * rules).
 *
 * An attempt to write the Lease has half of the renew deadline, so that there is time for a second one. All
 * requests of a program share one connection, and TCP needs 30 s to notice that the host has died. So after
 * an attempt without an answer, the next one uses a new connection, which may reach another API server.
 * Attempts begin retry_ms +-25 % apart, unless another version of the Lease has been seen.
 *
 * After a restore of etcd (see kube_informer.h) writes conflict, because the known version belongs to the old
 * history. A read shows this: it returns an older version than was known when it was sent. Then the Lease is
 * listed at once. */
#pragma once

#include "kube/kube_client.h"

struct leader;

/* Strings are copied; the client is borrowed. */
struct leader_options {
        struct kube_client *client;
        const char *ns, *name, *identity;
        /* A Lease whose holder begins with this belongs to an earlier process of ours that has certainly
         * ended (the same pod before its container restarted), and is acquired at once. NULL: not known. */
        const char *earlier;
        /* 15 s, 10 s, 2 s in client-go; a watch on the Lease replaces retry where it can notify */
        unsigned duration_ms, renew_deadline_ms, retry_ms;
        void (*started)(void *u); /* we lead */
        void (*lost)(void *u);    /* we led and could not renew in time: end the process */
        void (*observed)(void *u,
                         const char *identity); /* the holder that was seen, on each change; may be NULL */
        /* The Lease cannot be listed or watched, so this candidate stands by forever. Called on each change
         * of the reason, with a text that names the Lease and what is needed; NULL when it works again. May
         * be NULL. */
        void (*failing)(void *u, const struct err *e);
        void *u;
};

struct leader *leader_new(const struct leader_options *o);
/* Releases the lease if we hold it (holderIdentity ""), so that the next leader starts at once. Calls done in
 * any case, within 2 s. */
void leader_release(struct leader *l, void (*done)(void *u), void *u);
/* Stops all callbacks; allowed inside one. NULL is allowed. Call it before kube_client_free(). */
void leader_free(struct leader *l);

struct leader_view {
        bool leads;
        const char *holder;   /* in the last seen version of the Lease; "": none, or there is no Lease */
        uint64_t observed_ms; /* time since that version was first seen */
        uint64_t renewed_ms;  /* time since the last renewal that counts; only if `leads` */
        bool writing;         /* a request is under way */
};
/* For the state dump. Valid until the next turn. */
void leader_view(struct leader *l, struct leader_view *ret);
