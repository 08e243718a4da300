/* kube_client: requests to the Kubernetes API, on the loop.
 *
 * An answer that is no 2xx, or none at all, is an error whose kind says what may be done: 404 NOT_FOUND, 409
 * CONFLICT (code 409; message "already exists" included), 410 GONE, 401/403 DENIED, 400/422 INVALID, the rest
 * RETRY (429, 5xx, connection failures, and what only a proxy would say: a redirection, a page instead of
 * JSON). The text is the server's Status.message. RETRY is tried again inside, up to `attempts`, with
 * exponential back-off and jitter, after Retry-After, and at once when a server that was away is back; what
 * is left reaches the caller. */
#ifndef KUBE_KUBE_CLIENT_H
#define KUBE_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/metrics.h"
#include "base/str.h"
#include "kube/kube_config.h"

struct kube_client;
struct kube_call;

struct kube_client_options {
        const struct kube_config *config; /* copied */
        const char *user_agent;
        double qps;     /* requests a second on average, writes and gets alike (not watches); 0: 1000 */
        unsigned burst; /* 0: 2000 */
};

int kube_client_new(uv_loop_t *loop, const struct kube_client_options *o, struct kube_client **ret,
                    struct err *e);
void kube_client_free(struct kube_client *c);
uv_loop_t *kube_client_loop(const struct kube_client *c);

/* A kind of object on the server. version may be NULL for resource.k8s.io: see kube_discover_resource_api. */
struct kube_resource {
        const char *group; /* "" for core */
        const char *version;
        const char *plural, *kind;
        bool namespaced;
};

extern const struct kube_resource kube_nodes, kube_pods, kube_events, kube_leases, kube_daemonsets, kube_crds,
        kube_compute_domains, kube_cliques, kube_resource_claims, kube_resource_claim_templates,
        kube_resource_slices;

/* Asks which version of resource.k8s.io the server offers (v1, then v1beta2, then v1beta1) and remembers it
 * in the client for all resources of that group; requests for them before that fail with ERR_RETRY. Retries
 * while the server is away; ERR_INVALID when it offers none. Informers ask by themselves. */
typedef void(kube_ready_fn)(void *u, const struct err *e);
void kube_discover_resource_api(struct kube_client *c, kube_ready_fn *fn, void *u);
/* Takes that back: fn will not be called. Whoever asked and goes before the client must. */
void kube_undiscover_resource_api(struct kube_client *c, kube_ready_fn *fn, void *u);
/* "v1", "v1beta2", "v1beta1"; NULL before discovery. */
const char *kube_resource_api(const struct kube_client *c);

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

/* Once, never from inside kube_start. obj is the root of the answer (or NULL), valid during the call only; e
 * is NULL on success. */
typedef void(kube_done_fn)(void *u, yyjson_val *obj, const struct err *e);
/* An attempt failed, and there will be another. */
typedef void(kube_retry_fn)(void *u, const struct err *e);

struct kube_request {
        enum kube_verb verb;
        const struct kube_resource *res;
        const char *ns, *name;   /* ns NULL: cluster-scoped, or all namespaces for a list */
        const char *subresource; /* "status" or NULL */
        const char *label_selector, *field_selector; /* plain text, encoded here */
        const char *query;   /* more query parameters, already encoded, without '?', or NULL */
        const char *manager; /* field manager for writes, NULL: none given */
        struct str body;
        bool metadata_only;      /* asks for PartialObjectMetadata(List) */
        unsigned timeout_ms;     /* of one attempt; 0: 30 s */
        unsigned attempts;       /* 0: 5; UINT_MAX: for ever */
        unsigned backoff_max_ms; /* between attempts; 0: 10 s */
        kube_done_fn *done;
        kube_retry_fn *retry; /* or NULL */
        void *u;
};

/* Copies what it needs. Names and namespaces are percent-encoded: an object's string cannot become a path. */
struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r);
void kube_cancel(struct kube_call *call); /* done will not be called; NULL is allowed */

/* A raw watch stream, used by kube_informer: see kube_client__ functions in kube_client.c's private header.
 */

#endif
