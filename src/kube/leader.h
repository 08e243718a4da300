/* SPDX-License-Identifier: Apache-2.0 */
/* leader: elects a leader with a coordination.k8s.io Lease, compatible with client-go (same fields, same
 * rules).
 *
 * An attempt to write the Lease may take half of the renew deadline, so that there is time for a second
 * attempt. All requests of a program share one connection, and TCP needs 30 s to notice that the host has
 * died. So if an attempt gets no answer, the next attempt uses a new connection, which may reach another API
 * server. Attempts begin retry_ms +-25 % apart, unless another version of the Lease has been seen. A renewal
 * also counts if its answer was lost, but a later read or the watch shows that it was written.
 *
 * After a restore of etcd (see kube_informer.h) writes conflict, because the known version belongs to the old
 * history. A read detects the restore: it returns an older version than the one that was known when the
 * request was sent. Then the module lists the Lease at once. */
#pragma once

#include "kube/kube_client.h"

struct leader;

/* Strings are copied; the client is borrowed. */
struct leader_options {
        struct kube_client *client;
        const char *ns, *name, *identity;
        /* If the name of a Lease's holder begins with this text, the holder is an earlier process of ours
         * that has certainly ended (the same pod before its container restarted). Then the Lease is acquired
         * at once. NULL: not known. */
        const char *earlier;
        /* 15 s, 10 s, 2 s in client-go. The module watches the Lease, so it does not wait for retry_ms when
         * the watch reports a change. */
        unsigned duration_ms, renew_deadline_ms, retry_ms;
        void (*started)(void *u); /* this process has become the leader */
        void (*lost)(void *u);    /* this process was the leader and did not renew in time: end the process */
        void (*observed)(void *u,
                         const char *identity); /* called with each new holder of the Lease; may be NULL */
        /* Called when the Lease cannot be listed or watched, so that this candidate can never lead, and again
         * each time the reason changes. The text of `e` names the Lease and what is needed; `e` is NULL when
         * the requests succeed again. May be NULL. */
        void (*failing)(void *u, const struct err *e);
        void *u;
};

struct leader *leader_new(const struct leader_options *o);
/* Releases the Lease if this process holds it (sets holderIdentity to ""), so that the next leader starts at
 * once. Calls `done` in any case, within 2 s. */
void leader_release(struct leader *l, void (*done)(void *u), void *u);
/* Stops all callbacks and frees `l`. Allowed inside a callback. NULL is allowed. Call it before
 * kube_client_free(). */
void leader_free(struct leader *l);

struct leader_view {
        bool leads;
        const char *holder;   /* the holder in the last seen version of the Lease; "": none, or no Lease */
        uint64_t observed_ms; /* time since this version was first seen */
        uint64_t renewed_ms;  /* time since the last renewal that counts; only if `leads` */
        bool writing;         /* a request is in flight */
};
/* Returns the state, for the state dump. The view is valid until the next turn. */
void leader_view(struct leader *l, struct leader_view *ret);
