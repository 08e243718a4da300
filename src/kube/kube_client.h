/* SPDX-License-Identifier: Apache-2.0 */
/* kube_client: requests to the Kubernetes API, on the loop.
 *
 * No answer, an answer that is not 2xx, or one with other content than requested, is an error. Its kind shows
 * what the caller may do (kube_error.h). NOT_FOUND always means that Kubernetes itself reported that the
 * requested object does not exist. The text is the server's Status.message, or describes what came instead.
 * The client retries RETRY itself, up to `attempts`, with exponential back-off and jitter, not before
 * Retry-After, and at once when an unreachable server answers again. The caller gets only the last error.
 *
 * Requests travel in lanes, so that many of one sort do not delay others: see enum kube_lane. */
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
        double qps;     /* average requests per second, writes and gets alike (not watches); 0: 1000 */
        unsigned burst; /* 0: 2000 */
        struct metrics *metrics; /* counts the requests; must outlive the client; NULL: no metrics */
        const char *metrics_prefix; /* the names are PREFIX_kube_...; required with metrics */
};

int kube_client_new(uv_loop_t *loop, const struct kube_client_options *o, struct kube_client **ret,
                    struct err *e);
/* Ends all requests without calling back, also from inside a callback. NULL is allowed. */
void kube_client_free(struct kube_client *c);
uv_loop_t *kube_client_loop(const struct kube_client *c);
void kube_client_metrics(struct kube_client *c); /* updates the gauges of waiting requests */

/* The version that requests for a resource use now. Of a resource without a fixed version it is the first of
 * its list, until the server answers that it does not serve that one. Then it is the next one, and the first
 * again after the last. Requests that wait or
 * are retried use the new version, so a body that names an apiVersion must be rendered just before it is
 * sent, and by a caller that has read something of the group before. */
const char *kube_version(const struct kube_client *c, const struct kube_resource *res);
const char *kube_resource_api(const struct kube_client *c); /* of resource.k8s.io */

/* True when the error means that no API server answered: no answer at all, or one that Kubernetes did not
 * write (a load balancer's page, a 200 with other content). Then nothing is known about the object, and
 * nothing is wrong with it. */
bool kube_unreachable(const struct err *e);

enum kube_verb {
        KUBE_GET,
        KUBE_LIST, /* one page; limit and continue by query */
        KUBE_CREATE,
        KUBE_APPLY,       /* server-side apply, forced, as field manager `manager`; body JSON or YAML */
        KUBE_MERGE_PATCH, /* JSON merge patch; put metadata.resourceVersion into the body for optimistic
                             locking */
        KUBE_UPDATE,      /* PUT: only for objects that we wrote completely (Lease, ResourceSlice) */
        KUBE_DELETE,
};

/* How requests share the connection. Each lane has its own number of requests in flight, so 32 writes that
 * hang in an admission webhook delay neither reads nor the lease. */
enum kube_lane {
        KUBE_LANE_BY_VERB, /* READ or WRITE */
        KUBE_LANE_URGENT,  /* the lease: sent at once in any case; for single requests only */
        KUBE_LANE_READ,    /* 32 in flight */
        KUBE_LANE_WRITE,   /* 16 in flight; more wait in the client, with unchanged bodies */
        KUBE_LANE_BULK,    /* 32 in flight, and none should wait: see kube_room() */
};

/* How many requests started now in the bulk lane would be sent at once: a place and a token are free, and the
 * server is not known to be unreachable. Make a body only then. Requests started beyond this number wait. */
unsigned kube_room(struct kube_client *c);
/* For callers that got 0 from kube_room(). fn is called once, in a later turn, when there is room. Several
 * take turns. */
struct kube_wants_room {
        TAILQ_ENTRY(kube_wants_room) entry;
        void (*fn)(struct kube_wants_room *r);
        bool waits;
};
void kube_on_room(struct kube_client *c, struct kube_wants_room *r); /* no effect when it waits already */
void kube_off_room(struct kube_client *c, struct kube_wants_room *r);

/* Called once, never from inside kube_start(). obj is the root of the answer (or NULL), valid during the call
 * only. e is NULL on success. */
typedef void(kube_done_fn)(void *u, yyjson_val *obj, const struct err *e);
/* Called when an attempt failed and another will follow. */
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
        bool fresh;              /* on a new connection: the present one may be dead */
        bool metadata_only;      /* asks for PartialObjectMetadata(List) */
        unsigned timeout_ms;     /* for one attempt; 0: 30 s */
        unsigned attempts;       /* 0: 5; UINT_MAX: forever */
        unsigned backoff_max_ms; /* between attempts; 0: 10 s */
        kube_done_fn *done;
        kube_retry_fn *retry; /* or NULL */
        void *u;
};

/* Copies everything except res. Names and namespaces are percent-encoded: an object's string cannot become a
 * path. */
struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r);
void kube_cancel(struct kube_call *call); /* done will not be called; NULL is allowed */
