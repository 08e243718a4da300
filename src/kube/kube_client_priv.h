/* kube_client_priv: what the informer needs of the client beyond its public face. */
#ifndef KUBE_KUBE_CLIENT_PRIV_H
#define KUBE_KUBE_CLIENT_PRIV_H

#include <sys/queue.h>

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

/* *e from an answer that is no 2xx, or none at all. *ret_wait_s is the time the server asks to wait, -1 when
 * it does not. */
void kube_client__error(const struct http_response *r, struct err *e, int *ret_wait_s);
/* *e from a Status object, as it also comes in ERROR events. */
void kube_client__status_error(yyjson_val *status, int code, struct err *e, int *ret_wait_s);

/* The server has been silent for too long on a healthy connection. */
void kube_client__reconnect(struct kube_client *c);
/* The server said 401: the token file is read again before the next request. */
void kube_client__refresh_token(struct kube_client *c);

/* Somebody who waits out his back-off because the server was away, and would rather come at once when it is
 * back. The first answer to anybody calls them all, from inside that answer: fn only sets a timer. */
struct kube__hope {
        TAILQ_ENTRY(kube__hope) entry;
        void (*fn)(struct kube__hope *h);
        bool waits;
};
void kube_client__hope(struct kube_client *c, struct kube__hope *h);
void kube_client__unhope(struct kube_client *c, struct kube__hope *h);
/* The server answered; for answers that the client does not see, those of watches. */
void kube_client__heard(struct kube_client *c);
/* True when the error means that no answer came. */
bool kube_client__away(const struct err *e);

/* Whether requests for this resource can be made, or its version is yet to be discovered. */
bool kube_client__knows(const struct kube_client *c, const struct kube_resource *res);

#endif
