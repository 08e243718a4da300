/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_pages.h"

#include "base/log.h"
#include "base/mem.h"
#include "kube/kube_error.h"
#include "kube/kube_path.h"

enum {
        PAGE_OBJECTS = 500,
        PAGES_FIT = 16, /* after so many pages of a smaller size, the size is doubled */
};

struct kube_pages {
        struct kube_client *client;
        struct kube_pages_options o;
        struct kube_call *call;
        char *token;     /* of the page that is requested; NULL: the first */
        bool from_cache; /* the request is for a whole list from the cache */
        bool interrupted;
        unsigned limit, n_fit; /* pages that were not too large, since the limit changed */
        size_t n, n_pages;     /* objects in the pages so far */
};

static void kube_pages_ask(struct kube_pages *p);

static void set_token(struct kube_pages *p, const char *token) {
        free(p->token);
        p->token = *str_or(token, "") ? xstrdup(token) : NULL;
}

/* False: a page has one object already. */
static bool smaller(struct kube_pages *p) {
        if (!p->from_cache && p->limit == 1)
                return false;
        if (!p->from_cache)
                p->limit /= 2;
        p->n_fit = 0;
        p->from_cache = false;
        log_v(2, "a page of a list is too large", kv_str("resource", p->o.res->plural),
              kv_int("next_limit", p->limit));
        return true;
}

/* A few large objects must not make all later pages small. */
static void larger(struct kube_pages *p) {
        if (++p->n_fit < PAGES_FIT)
                return;
        p->limit = p->limit > p->o.limit / 2 ? p->o.limit : 2 * p->limit;
        p->n_fit = 0;
}

static void kube_pages_on_page(void *u, yyjson_val *obj, const struct err *e) {
        struct kube_pages *p = u;
        struct err large;

        p->call = NULL;
        if (e && kube_error_too_large(e)) {
                if (smaller(p)) {
                        kube_pages_ask(p);
                        return;
                }
                large = *e;
                err_wrap(&large, "one of the %s, after %zu that can be listed", p->o.res->plural, p->n);
                e = &large;
        }
        if (!e) {
                p->n_pages++;
                p->n += yyjson_arr_size(yyjson_obj_get(obj, "items"));
                set_token(p, yyjson_get_str(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "continue")));
                /* Before the callback for this page, which may free this object. */
                p->from_cache = false;
                if (p->token) {
                        larger(p);
                        kube_pages_ask(p);
                }
        }
        p->o.page(p->o.u, e ? NULL : obj, !e && !p->token, e);
}

static void kube_pages_on_retry(void *u, const struct err *e) {
        struct kube_pages *p = u;
        p->interrupted = p->interrupted || (p->token && kube_unreachable(e));
        if (p->o.retry)
                p->o.retry(p->o.u, e);
}

static void kube_pages_ask(struct kube_pages *p) {
        struct buf query = BUF_INIT(KUBE_PATH_MAX);
        unsigned n = 1;

        if (p->from_cache) /* the API server's cache returns whole lists only */
                buf_adds(&query, "resourceVersion=0");
        else
                buf_addf(&query, "limit=%u", p->limit);
        kube_path_query(&query, &n, "continue", p->token);
        p->call = kube_start(p->client, &(struct kube_request){
                                                .verb = KUBE_LIST,
                                                .res = p->o.res,
                                                .ns = p->o.ns,
                                                .label_selector = p->o.label_selector,
                                                .field_selector = p->o.field_selector,
                                                .query = buf_str(&query),
                                                .metadata_only = p->o.metadata_only,
                                                .attempts = p->o.attempts,
                                                .backoff_max_ms = p->o.backoff_max_ms,
                                                .done = kube_pages_on_page,
                                                .retry = kube_pages_on_retry,
                                                .u = p,
                                        });
        buf_done(&query);
}

void kube_pages_start(struct kube_pages *p, bool from_cache) {
        kube_cancel(TAKE(p->call));
        p->from_cache = from_cache;
        p->interrupted = false;
        p->n = p->n_pages = 0;
        set_token(p, NULL);
        kube_pages_ask(p);
}

bool kube_pages_under_way(const struct kube_pages *p) {
        return p->call;
}

bool kube_pages_short(const struct kube_pages *p) {
        return p->n_pages == 1 && p->n <= p->o.limit;
}

bool kube_pages_interrupted(const struct kube_pages *p) {
        return p->interrupted;
}

struct kube_pages *kube_pages_new(struct kube_client *c, const struct kube_pages_options *o) {
        struct kube_pages *p = xnew(struct kube_pages);
        p->client = c;
        p->o = *o;
        p->o.limit = o->limit ? o->limit : PAGE_OBJECTS;
        p->limit = p->o.limit;
        return p;
}

void kube_pages_free(struct kube_pages *p) {
        if (!p)
                return;
        kube_cancel(p->call);
        free(p->token);
        free(p);
}
