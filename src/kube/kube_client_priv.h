/* kube_client_priv: what the informer needs of the client beyond its public face. */
#ifndef KUBE_KUBE_CLIENT_PRIV_H
#define KUBE_KUBE_CLIENT_PRIV_H

#include "base/http_client.h"
#include "kube/kube_client.h"

/* A watch stream. One attempt, no rate limit, no time-out: the caller judges silence and retries. */
struct kube__watch {
        const struct kube_resource *res;
        const char *ns, *label_selector, *field_selector, *resource_version;
        bool metadata_only;
        unsigned timeout_s; /* asked of the server: it ends the stream then */
        http_head_fn *head;
        http_data_fn *data;
        http_done_fn *done;
        void *u;
};

/* NULL and *e when the path cannot be built. Cancel with http_cancel(). */
struct http_call *kube_client__watch(struct kube_client *c, const struct kube__watch *w, struct err *e);

/* *e from an answer that is no 2xx, or none at all. *ret_wait_s is the time the server asks to wait, -1 when it does not. */
void kube_client__error(const struct http_response *r, struct err *e, int *ret_wait_s);
/* *e from a Status object, as it also comes in ERROR events. */
void kube_client__status_error(yyjson_val *status, int code, struct err *e, int *ret_wait_s);

/* The server has been silent for too long on a healthy connection. */
void kube_client__reconnect(struct kube_client *c);
/* The server said 401: the token file is read again before the next request. */
void kube_client__refresh_token(struct kube_client *c);

/* Whether requests for this resource can be made, or its version is yet to be discovered. */
bool kube_client__knows(const struct kube_client *c, const struct kube_resource *res);
/* Takes back kube_discover_resource_api(c, fn, u). */
void kube_client__undiscover(struct kube_client *c, kube_ready_fn *fn, void *u);

#endif
