/* SPDX-License-Identifier: Apache-2.0 */
#include "world/kube_calls.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "base/stderr.h"

enum { WATCHES_MAX = 24 };

struct watched {
        const struct kube_resource *res;
        http_head_fn *head;
        http_data_fn *data;
        void *u;
        char *ns;
        enum kube_calls_selection selection;
        bool metadata_only, headed;
};

static TAILQ_HEAD(, kube_call) calls = TAILQ_HEAD_INITIALIZER(calls);
static struct watched watches[WATCHES_MAX];
static size_t n_watches;
static void (*on_started)(const struct kube_request *q);
static void (*on_watched)(void);

void kube_calls_begin(void (*started)(const struct kube_request *q), void (*watched)(void)) {
        BUG_ON(!TAILQ_EMPTY(&calls));
        for (size_t i = 0; i < n_watches; i++)
                free(watches[i].ns);
        n_watches = 0;
        on_started = started;
        on_watched = watched;
}

/* ---- the calls of the controller ---- */

struct kube_call *__wrap_kube_start(struct kube_client *client, const struct kube_request *q);
void __wrap_kube_cancel(struct kube_call *call);
unsigned __wrap_kube_room(struct kube_client *client);
const char *__wrap_kube_resource_api(const struct kube_client *client);
const char *__wrap_kube_version(const struct kube_client *client, const struct kube_resource *res);
struct http_call *__wrap_kube_client__watch(struct kube_client *client, const struct kube_request *r,
                                            http_head_fn *head, http_data_fn *data, http_done_fn *done,
                                            struct err *e);
void __wrap_http_cancel(struct http_call *call);

/* The selector of a list is plain, that of a watch is encoded in its query. */
static enum kube_calls_selection selection_of(const char *selector) {
        if (selector && strstr(selector, CD_DAEMON_OBJECT))
                return strstr(selector, "!=") || strstr(selector, "%21%3D") ? SELECT_OTHERS : SELECT_DAEMONS;
        return selector && strstr(selector, "computeDomain") ? SELECT_OTHERS : SELECT_ALL;
}

bool kube_calls_selects(enum kube_calls_selection s, bool of_daemons) {
        return s == SELECT_ALL || (s == SELECT_DAEMONS) == of_daemons;
}

struct kube_call *__wrap_kube_start(struct kube_client *client, const struct kube_request *q) {
        struct kube_call *x = xnew(struct kube_call);
        x->q = *q;
        x->ns = xstrdup_or_null(q->ns);
        x->name = xstrdup_or_null(q->name);
        x->query = xstrdup_or_null(q->query);
        x->selection = selection_of(q->label_selector);
        x->body = xstrndup(q->body.p ? q->body.p : "", q->body.n);
        TAILQ_INSERT_TAIL(&calls, x, entry);
        on_started(q);
        return x;
}

static void call_free(struct kube_call *x) {
        free(x->ns);
        free(x->name);
        free(x->query);
        free(x->body);
        free(x);
}

void __wrap_kube_cancel(struct kube_call *call) {
        if (!call)
                return;
        TAILQ_REMOVE(&calls, call, entry);
        call_free(call);
}

unsigned __wrap_kube_room(struct kube_client *client) {
        return 1000;
}

const char *__wrap_kube_resource_api(const struct kube_client *client) {
        return "v1";
}

const char *__wrap_kube_version(const struct kube_client *client, const struct kube_resource *res) {
        return "v1";
}

struct http_call *__wrap_kube_client__watch(struct kube_client *client, const struct kube_request *r,
                                            http_head_fn *head, http_data_fn *data, http_done_fn *done,
                                            struct err *e) {
        BUG_ON(n_watches == WATCHES_MAX);
        watches[n_watches] = (struct watched){ .res = r->res,
                                               .head = head,
                                               .data = data,
                                               .u = r->u,
                                               .ns = xstrdup_or_null(r->ns),
                                               .selection = selection_of(r->query),
                                               .metadata_only = r->metadata_only };
        on_watched();
        return (struct http_call *)(void *)&watches[n_watches++];
}

void __wrap_http_cancel(struct http_call *call) {
}

/* ---- the answers of the test ---- */

bool kube_calls_empty(void) {
        return TAILQ_EMPTY(&calls);
}

void kube_calls_serve(void (*answer)(struct kube_call *x)) {
        for (struct kube_call *x; (x = TAILQ_FIRST(&calls));) {
                TAILQ_REMOVE(&calls, x, entry);
                answer(x);
                call_free(x);
        }
        for (size_t i = 0; i < n_watches; i++)
                if (!watches[i].headed) {
                        watches[i].headed = true;
                        watches[i].head(watches[i].u, "application/json");
                }
}

static void answer_doc(struct kube_call *x, yyjson_doc *doc) {
        BUG_ON(!doc);
        x->q.done(x->q.u, yyjson_doc_get_root(doc), NULL);
        yyjson_doc_free(doc);
}

void kube_calls_answer(struct kube_call *x, struct str object) {
        answer_doc(x, yyjson_read(object.p, object.n, 0));
}

void kube_calls_answer_buf(struct kube_call *x, struct buf *object) {
        yyjson_doc *doc = yyjson_read(buf_str(object), object->n, 0);
        buf_done(object);
        answer_doc(x, doc);
}

void kube_calls_answer_empty(struct kube_call *x) {
        x->q.done(x->q.u, NULL, NULL);
}

void kube_calls_not_found(struct kube_call *x) {
        struct err e;
        err_set(&e, ERR_NOT_FOUND, 404, "not found");
        x->q.done(x->q.u, NULL, &e);
}

struct kube_calls_page kube_calls_page_of(const struct kube_call *x, size_t all, size_t per_page) {
        const char *at = x->query ? strstr(x->query, "continue=") : NULL,
                   *limit = x->query ? strstr(x->query, "limit=") : NULL;
        size_t first = at ? strtoul(at + strlen("continue="), NULL, 10) : 0,
               most = limit ? strtoul(limit + strlen("limit="), NULL, 10) : per_page;
        return (struct kube_calls_page){ first, all < first + most ? all : first + most };
}

void kube_calls_list_end(const struct kube_calls_page *p, size_t all, int64_t version, struct buf *out) {
        buf_addf(out, "],\"metadata\":{\"resourceVersion\":\"%lld\"", (long long)version);
        if (p->end < all)
                buf_addf(out, ",\"continue\":\"%zu\"", p->end);
        buf_adds(out, "}}");
}

char *kube_calls_merge(const char *object, const char *change, int64_t version) {
        yyjson_doc *old = yyjson_read(object, strlen(object), 0),
                   *patch = yyjson_read(change, strlen(change), 0);
        BUG_ON(!old || !patch);
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *root = yyjson_merge_patch(doc, yyjson_doc_get_root(old), yyjson_doc_get_root(patch)),
                       *meta = yyjson_mut_obj_get(root, "metadata");
        _cleanup_(freep) char *rv = xasprintf("%lld", (long long)version);
        yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "resourceVersion"), yyjson_mut_str(doc, rv));
        if (!yyjson_mut_obj_get(meta, "generation"))
                yyjson_mut_obj_add_int(doc, meta, "generation", 1);
        yyjson_mut_doc_set_root(doc, root);
        char *text = yyjson_mut_write(doc, 0, NULL);
        BUG_ON(!text);
        yyjson_mut_doc_free(doc);
        yyjson_doc_free(old);
        yyjson_doc_free(patch);
        return text;
}

size_t kube_calls_send(const struct kube_calls_event *e) {
        size_t sent = 0;
        for (size_t i = 0; i < n_watches; i++) {
                const struct watched *w = &watches[i];
                if (w->res != e->res || (w->ns && !streq(w->ns, e->ns)) ||
                    !kube_calls_selects(w->selection, e->of_daemons))
                        continue;
                struct str o = w->metadata_only && e->metadata.p ? e->metadata : e->object;
                char *text = xasprintf("{\"type\":\"%s\",\"object\":%.*s}\n", str_or(e->type, "MODIFIED"),
                                       (int)o.n, o.p);
                size_t n = strlen(text);
                w->data(w->u, text, n);
                free(text);
                sent += n;
        }
        return sent;
}

size_t kube_calls_bookmark(int64_t version) {
        char *text = xasprintf(
                "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%lld\"}}}\n",
                (long long)version);
        size_t n = strlen(text), sent = 0;
        for (size_t i = 0; i < n_watches; i++, sent += n)
                watches[i].data(watches[i].u, text, n);
        free(text);
        return sent;
}
