/* SPDX-License-Identifier: Apache-2.0 */
/* kube_client: requests to the Kubernetes API, on the loop.
 *
 * An answer that is no 2xx, none at all, or not what was asked for, is an error whose kind says what may be
 * done; kube_error.h says which. NOT_FOUND means that Kubernetes said so of the object asked for, and nothing
 * else does. The text is the server's Status.message, or says what came instead. RETRY is tried again inside,
 * up to `attempts`, with exponential back-off and jitter, after Retry-After, and at once when a server that
 * was away is back; what is left reaches the caller.
 *
 * Requests travel in lanes, so that no crowd keeps others waiting: see enum kube_lane. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"
#include "kube/kube_config.h"
#include "kube/kube_resource.h"

struct kube_client;
struct kube_call;
struct metrics;

struct kube_client_options {
        const struct kube_config *config; /* copied */
        const char *user_agent;
        double qps;     /* requests a second on average, writes and gets alike (not watches); 0: 1000 */
        unsigned burst; /* 0: 2000 */
        struct metrics *metrics; /* counts the requests there, and outlives the client; NULL: nowhere */
};

int kube_client_new(uv_loop_t *loop, const struct kube_client_options *o, struct kube_client **ret,
                    struct err *e);
/* Ends all requests without calling back, also from inside a callback. NULL is allowed. */
void kube_client_free(struct kube_client *c);
uv_loop_t *kube_client_loop(const struct kube_client *c);
void kube_client_metrics(struct kube_client *c); /* brings the gauges of waiting requests up to date */

/* Asks which version of the resource's group the server offers, if it has no fixed one; requests for the
 * resources of that group fail with ERR_RETRY before it is known. fn is called once with NULL when it is, in
 * a later turn. Until then it is asked again for ever, and each failed attempt is told: as ERR_RETRY while
 * the server is away, or something else answers for it, as ERR_INVALID while the server offers none that we
 * know. Informers ask by themselves.
 *
 * The version may change later: an answer that says that it is not served has the group asked again, and
 * requests that wait or are repeated go to the new one. A body that names an apiVersion is therefore made
 * when it is sent. */
void kube_discover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u);
/* Takes that back: fn will not be called. Whoever asked and goes before the client must. */
void kube_undiscover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u);
/* The version that requests for a resource use now; NULL before discovery. */
const char *kube_version(const struct kube_client *c, const struct kube_resource *res);
const char *kube_resource_api(const struct kube_client *c); /* that of resource.k8s.io */

/* True when the error means that no API server answered: no answer at all, or one that is not Kubernetes' own
 * (the page of a load balancer, a 200 that is not what was asked for). Nothing is known of the object then,
 * and nothing is wrong with it. */
bool kube_away(const struct err *e);

enum kube_verb {
        KUBE_GET,
        KUBE_LIST, /* one page; limit and continue by query */
        KUBE_CREATE,
        KUBE_APPLY,       /* server-side apply, forced, as field manager `manager`; body JSON or YAML */
        KUBE_MERGE_PATCH, /* JSON merge patch; put metadata.resourceVersion into the body for optimistic
                             locking */
        KUBE_UPDATE,      /* PUT: only for objects we wrote in full ourselves (Lease, ResourceSlice) */
        KUBE_DELETE,
};

/* How requests share the way to the server. Each lane has a number of requests in flight of its own, so 32
 * writes that hang in an admission webhook keep neither reads nor the lease waiting. */
enum kube_lane {
        KUBE_LANE_BY_VERB, /* READ or WRITE */
        KUBE_LANE_URGENT,  /* the lease: at once, whatever else is under way; for single requests only */
        KUBE_LANE_READ,    /* 32 in flight */
        KUBE_LANE_WRITE,   /* 16 in flight; more wait in the client, with their bodies as they are */
        KUBE_LANE_BULK,    /* 32 in flight, and none should wait: see kube_room() */
};

/* How many requests may be started in the bulk lane that will be sent at once: a slot and a token are there,
 * and the server is not known to be away. Its users make a body only then; a request that is started all the
 * same waits. */
unsigned kube_room(struct kube_client *c);
/* Somebody whom kube_room() told 0. fn is called once, in a later turn, when there is room; several take
 * turns. */
struct kube_wants_room {
        TAILQ_ENTRY(kube_wants_room) entry;
        void (*fn)(struct kube_wants_room *r);
        bool waits;
};
void kube_on_room(struct kube_client *c, struct kube_wants_room *r); /* no effect when it waits already */
void kube_off_room(struct kube_client *c, struct kube_wants_room *r);

/* Once, never from inside kube_start. obj is the root of the answer (or NULL), valid during the call only; e
 * is NULL on success. */
typedef void(kube_done_fn)(void *u, yyjson_val *obj, const struct err *e);
/* An attempt failed, and there will be another. */
typedef void(kube_retry_fn)(void *u, const struct err *e);

struct kube_request {
        enum kube_verb verb;
        enum kube_lane lane;
        const struct kube_resource *res; /* borrowed */
        const char *ns, *name;           /* ns NULL: cluster-scoped, or all namespaces for a list */
        const char *subresource;         /* "status" or NULL */
        const char *label_selector, *field_selector; /* plain text, encoded here */
        const char *query;   /* more query parameters, already encoded, without '?', or NULL */
        const char *manager; /* field manager for writes, NULL: none given */
        struct str body;
        bool fresh;              /* on a new connection: the one in use may be dead */
        bool metadata_only;      /* asks for PartialObjectMetadata(List) */
        unsigned timeout_ms;     /* of one attempt; 0: 30 s */
        unsigned attempts;       /* 0: 5; UINT_MAX: for ever */
        unsigned backoff_max_ms; /* between attempts; 0: 10 s */
        kube_done_fn *done;
        kube_retry_fn *retry; /* or NULL */
        void *u;
};

/* Copies what it needs, but for res. Names and namespaces are percent-encoded: an object's string cannot
 * become a path. */
struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r);
void kube_cancel(struct kube_call *call); /* done will not be called; NULL is allowed */
