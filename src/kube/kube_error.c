/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_error.h"

#include <string.h>

#include "base/mem.h"
#include "kube/kube_json.h"
#include "kube/kube_status.h"

enum {
        MAX_WAIT_S = 60,
        MAX_FOREIGN_WAIT_S = 10, /* a proxy or load balancer cannot know when the server is back */
        SHOWN = 200,
};

static const char *text_of(yyjson_val *obj, const char *key) {
        return yyjson_get_str(yyjson_obj_get(obj, key));
}

/* ---- failures ---- */

static bool may_create(enum kube_verb v) {
        return v == KUBE_CREATE || v == KUBE_APPLY;
}

/* What a Status with reason NotFound means for the request. */
static enum err_kind missing(yyjson_val *status, const struct kube_request *a) {
        yyjson_val *details = yyjson_obj_get(status, "details");
        const char *name = text_of(details, "name"), *kind = text_of(details, "kind"),
                   *group = str_or(text_of(details, "group"), "");

        if (!a || !name)
                return ERR_RETRY;
        if (may_create(a->verb) && a->ns && streq(kind, "namespaces") && !*group && streq(name, a->ns))
                return ERR_NOT_FOUND;
        if (a->verb == KUBE_LIST || !streq(name, a->name) || !streq(kind, a->res->plural) ||
            !streq(group, a->res->group))
                return ERR_RETRY;
        return a->subresource ? ERR_CONFLICT : ERR_NOT_FOUND;
}

static enum err_kind kind_of_answer(yyjson_val *status, int code, const struct kube_request *a) {
        return code == 404 && streq(text_of(status, "reason"), "NotFound") ? missing(status, a)
                                                                           : kube_status_kind(status, code);
}

static void status_error(yyjson_val *status, int code, const struct kube_request *a, struct err *e,
                         int *ret_wait_s) {
        yyjson_val *wait = yyjson_obj_get(yyjson_obj_get(status, "details"), "retryAfterSeconds");
        const char *message = text_of(status, "message"), *reason = text_of(status, "reason");
        enum err_kind kind = kind_of_answer(status, code, a);
        /* A 404 that does not name the requested object does not count as an answer of Kubernetes. */
        int shown = code == 404 && kind == ERR_RETRY ? -code : code;

        if (*ret_wait_s < 0 && yyjson_is_int(wait) && yyjson_get_int(wait) > 0)
                *ret_wait_s = yyjson_get_int(wait);
        if (message && *message)
                err_set(e, kind, shown, "%s", message);
        else
                err_set(e, kind, shown, "the server answered %d %s", code,
                        str_or(reason, "without a message"));
}

static void foreign(struct err *e, int status, const char *what, const char *text, size_t n) {
        struct str shown = str_trim((struct str){ text, n > SHOWN ? SHOWN : n });
        err_set(e, ERR_RETRY, -status, "the server answered %d, %s: %.*s", status, what, (int)shown.n,
                shown.p);
}

static void refusal(const struct http_response *r, const struct kube_request *a, struct err *e,
                    int *ret_wait_s) {
        *ret_wait_s = r->retry_after_s;
        if (r->transport) {
                *e = *r->transport;
                err_wrap(e, "API server");
                return;
        }
        struct err ignored;
        yyjson_doc *doc = kube_json_read((struct str){ r->body, r->body_len }, &ignored);
        if (kube_status_is(yyjson_doc_get_root(doc)))
                status_error(yyjson_doc_get_root(doc), r->status, a, e, ret_wait_s);
        else
                foreign(e, r->status, "which is not an answer of Kubernetes", r->body, r->body_len);
        if (e->code < 0 && *ret_wait_s > MAX_FOREIGN_WAIT_S)
                *ret_wait_s = MAX_FOREIGN_WAIT_S;
        yyjson_doc_free(doc);
}

void kube_error_watch(const struct http_response *r, const struct kube_resource *res, struct err *e,
                      int *ret_wait_s) {
        refusal(r, &(struct kube_request){ .verb = KUBE_LIST, .res = res }, e, ret_wait_s);
}

void kube_error_page(struct err *e, const char *content_type) {
        foreign(e, 200, "which is not a watch", content_type, strlen(content_type));
}

void kube_error_event(yyjson_val *object, struct err *e, int *ret_wait_s) {
        *ret_wait_s = -1;
        if (kube_status_is(object))
                status_error(object, yyjson_get_int(yyjson_obj_get(object, "code")), NULL, e, ret_wait_s);
        else
                err_set(e, ERR_RETRY, 0, "the watch reported an error without a Status");
}

/* ---- successes ---- */

static bool is_object(yyjson_val *root, const struct kube_request *a) {
        const char *kind = text_of(root, "kind"), *name = text_of(yyjson_obj_get(root, "metadata"), "name");

        if (!streq(kind, a->res->kind) && !(a->metadata_only && streq(kind, "PartialObjectMetadata")))
                return false;
        return name && (a->verb == KUBE_CREATE || streq(name, a->name));
}

static bool is_list(yyjson_val *root, const struct kube_request *a) {
        const char *kind = str_or(text_of(root, "kind"), "");
        size_t n = strlen(a->res->kind);
        yyjson_val *items = yyjson_obj_get(root, "items");
        bool ours = strncmp(kind, a->res->kind, n) == 0 && streq(kind + n, "List");

        return (ours || (a->metadata_only && streq(kind, "PartialObjectMetadataList"))) &&
               text_of(yyjson_obj_get(root, "metadata"), "resourceVersion") &&
               (!items || yyjson_is_arr(items) || yyjson_is_null(items));
}

static bool is_what_was_asked_for(yyjson_val *root, const struct kube_request *a) {
        if (a->verb == KUBE_LIST)
                return is_list(root, a);
        /* An eviction is created, and answered like a deletion. */
        bool deletes = a->verb == KUBE_DELETE || (a->verb == KUBE_CREATE && a->subresource);
        if (deletes && kube_status_is(root))
                return streq(text_of(root, "status"), "Success");
        return is_object(root, a);
}

int kube_answer(const struct http_response *r, const struct kube_request *a, yyjson_doc **ret, struct err *e,
                int *ret_wait_s) {
        *ret = NULL;
        if (r->transport || r->status < 200 || r->status >= 300) {
                refusal(r, a, e, ret_wait_s);
                return -1;
        }
        *ret_wait_s = -1;
        *ret = kube_json_read((struct str){ r->body, r->body_len }, e);
        if (*ret && is_what_was_asked_for(yyjson_doc_get_root(*ret), a))
                return 0;
        foreign(e, r->status, "which is not what was requested", r->body, r->body_len);
        yyjson_doc_free(*ret);
        *ret = NULL;
        return -1;
}

/* ---- what callers may do ---- */

/* The codes of transport errors are libcurl's number or errno; of Kubernetes' own answers, the HTTP status;
 * of all others, minus the HTTP status. */
bool kube_unreachable(const struct err *e) {
        return e->kind == ERR_RETRY && e->code != 0 && e->code < 100;
}

bool kube_error_unserved(const struct http_response *r) {
        return !r->transport && kube_status_unserved(r->status, (struct str){ r->body, r->body_len });
}

/* The only error of the transport that the network does not cause. */
bool kube_error_too_large(const struct err *e) {
        return e->kind == ERR_INVALID && e->code > 0 && e->code < 100;
}

uint64_t kube_wait_ms(uint64_t ms, int wait_s) {
        uint64_t asked = wait_s > 0 ? (uint64_t)(wait_s > MAX_WAIT_S ? MAX_WAIT_S : wait_s) * 1000 : 0;
        return asked > ms ? asked + ms : ms;
}
