/* SPDX-License-Identifier: Apache-2.0 */
/* kube_client: sends requests to the Kubernetes API, on the loop.
 *
 * It is an error if the server does not answer, or if the answer is not 2xx or has other content than
 * requested. The kind of the error shows what the caller can do (kube_error.h). NOT_FOUND always means that
 * Kubernetes itself reported that the requested object does not exist. The text of the error is the server's
 * Status.message, or a description of the unexpected answer. The client itself retries after an error of kind
 * RETRY, up to `attempts`, with exponential back-off and jitter, not before Retry-After, and at once when an
 * unreachable server answers again. The caller gets only the last error.
 *
 * Requests are divided into lanes, so that many requests in one lane do not delay the other lanes: see enum
 * kube_lane. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"
#include "kube/kube_config.h"
#include "kube/kube_object.h"

struct kube_client;
struct kube_call;
struct metrics;

struct kube_client_options {
        const struct kube_config *config; /* copied */
        const char *user_agent;
        double qps;     /* average requests per second, reads and writes together, without watches; 0: 1000 */
        unsigned burst; /* requests that may exceed the average at once; 0: 2000 */
        struct metrics *metrics; /* counts the requests; must outlive the client; NULL: no metrics */
        const char *metrics_prefix; /* the names are PREFIX_kube_...; required with metrics */
};

int kube_client_new(uv_loop_t *loop, const struct kube_client_options *o, struct kube_client **ret,
                    struct err *e);
/* Ends all requests without calling back, also from inside a callback. NULL is allowed. */
void kube_client_free(struct kube_client *c);
uv_loop_t *kube_client_loop(const struct kube_client *c);
void kube_client_metrics(struct kube_client *c); /* updates the gauges of waiting requests */

/* Returns the version that requests for a resource use now. If the resource has no fixed version, the client
 * begins with the first version of its list. When the server answers that it does not serve a version, the
 * client uses the next one, and after the last one the first again. Requests that wait or are retried use the
 * new version. So a caller that sends a body with an apiVersion must have read something of the group before,
 * and must render the body just before it sends the request. */
const char *kube_version(const struct kube_client *c, const struct kube_resource *res);
const char *kube_resource_api(const struct kube_client *c); /* the version of resource.k8s.io */

/* Returns true if the error means that no API server answered: there was no answer at all, or one that
 * Kubernetes did not write (a load balancer's page, a 200 with other content). Such an error proves nothing
 * about the object. */
bool kube_unreachable(const struct err *e);
/* Returns true if an API server has answered a call since this time of the loop's clock. */
bool kube_answered_since(const struct kube_client *c, uint64_t ms);

enum kube_verb {
        KUBE_GET,
        KUBE_LIST, /* one page; `query` contains limit and continue */
        KUBE_CREATE,
        KUBE_APPLY,       /* server-side apply, forced, as field manager `manager`; body: JSON or YAML */
        KUBE_MERGE_PATCH, /* JSON merge patch; for optimistic locking, put metadata.resourceVersion into the
                             body */
        KUBE_UPDATE,      /* PUT: only for objects that we wrote completely (Lease, ResourceSlice) */
        KUBE_DELETE,
};

/* Divides the connection between requests. Each lane has its own limit of requests in flight, so writes that
 * hang in an admission webhook delay neither reads nor the lease. */
enum kube_lane {
        KUBE_LANE_BY_VERB, /* READ or WRITE, by the verb */
        KUBE_LANE_URGENT,  /* for the lease: sent at once in any case; for single requests only */
        KUBE_LANE_READ,    /* 32 in flight */
        KUBE_LANE_WRITE,   /* 16 in flight; more requests wait in the client, with unchanged bodies */
        KUBE_LANE_BULK,    /* KUBE_BULK_MAX in flight, and none should wait: see kube_room() */
};
enum { KUBE_BULK_MAX = 32 };

/* Returns how many new requests in the bulk lane would be sent at once, because places in the lane and tokens
 * of the rate limit are free, and the server is not known to be unreachable. Render bodies only for so many
 * requests: further requests wait. */
unsigned kube_room(struct kube_client *c);
/* For callers that got 0 from kube_room(). The client calls fn once, in a later turn, when there is room. If
 * several callers wait, they are called in turn. */
struct kube_wants_room {
        TAILQ_ENTRY(kube_wants_room) entry;
        void (*fn)(struct kube_wants_room *r);
        bool waits;
};
void kube_on_room(struct kube_client *c, struct kube_wants_room *r); /* no effect if r already waits */
void kube_off_room(struct kube_client *c, struct kube_wants_room *r);

/* Called once, never from inside kube_start(). `obj` is the root of the answer (or NULL), and is valid only
 * during the call. `e` is NULL on success. */
typedef void(kube_done_fn)(void *u, yyjson_val *obj, const struct err *e);
/* Called when an attempt failed and another attempt will follow. */
typedef void(kube_retry_fn)(void *u, const struct err *e);

struct kube_request {
        enum kube_verb verb;
        enum kube_lane lane;
        const struct kube_resource *res; /* borrowed */
        const char *ns, *name;           /* ns NULL: a cluster-scoped object, or a list of all namespaces */
        const char *subresource;         /* "status", with KUBE_CREATE "eviction", or NULL */
        const char *label_selector, *field_selector; /* plain text; the client encodes it */
        const char *query;   /* more query parameters, already encoded, without '?', or NULL */
        const char *manager; /* field manager for writes; NULL: none */
        struct str body;
        bool fresh;              /* use a new connection, because the present one may be dead */
        bool metadata_only;      /* asks for PartialObjectMetadata(List) */
        unsigned timeout_ms;     /* for one attempt; 0: 30 s for reads, 65 s for writes */
        unsigned attempts;       /* 0: 5; UINT_MAX: forever; 1 for a create with generateName */
        unsigned backoff_max_ms; /* between attempts; 0: 10 s */
        kube_done_fn *done;
        kube_retry_fn *retry; /* or NULL */
        void *u;
};

/* Starts a request. Copies everything except res. Names and namespaces are percent-encoded, so a string from
 * an object cannot change the path. */
struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r);
void kube_cancel(struct kube_call *call); /* done will not be called; NULL is allowed */

/* Asks the server whether it serves the first version of resource.k8s.io. The client does not try it again by
 * itself while the server serves the version in use. If `done` gets no error, the client uses the first
 * version from now on. */
struct kube_call *kube_recheck_resource_api(struct kube_client *c, kube_done_fn *done, void *u);
