/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_status.h"

#include "base/mem.h"
#include "kube/kube_json.h"

static const char *status_member(yyjson_val *obj, const char *key) {
        return yyjson_get_str(yyjson_obj_get(obj, key));
}

bool kube_status_is(yyjson_val *root) {
        return yyjson_is_obj(root) && streq(status_member(root, "kind"), "Status") &&
               streq(status_member(root, "apiVersion"), "v1");
}

static enum err_kind kind_of_code(int code) {
        static const struct {
                int code;
                enum err_kind kind;
        } kinds[] = { { 400, ERR_INVALID }, { 405, ERR_INVALID }, { 406, ERR_INVALID },
                      { 413, ERR_INVALID }, { 415, ERR_INVALID }, { 422, ERR_INVALID },
                      { 401, ERR_DENIED },  { 403, ERR_DENIED },  { 409, ERR_CONFLICT } };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                if (kinds[i].code == code)
                        return kinds[i].kind;
        return ERR_RETRY;
}

enum err_kind kube_status_kind(yyjson_val *status, int code) {
        const char *reason = str_or(status_member(status, "reason"), "");

        if (code == 404)
                return ERR_RETRY;
        if (code == 410)
                return streq(reason, "Expired") || streq(reason, "Gone") ? ERR_GONE : ERR_RETRY;
        if (code == 401 || code == 403)
                return !*reason || streq(reason, "Forbidden") || streq(reason, "Unauthorized") ? ERR_DENIED
                                                                                               : ERR_RETRY;
        return kind_of_code(code);
}

/* kube-apiserver has a text for paths that it does not know, and a Status without details for resources that
 * a group does not have. */
bool kube_status_unserved(int code, struct str body) {
        if (code != 404)
                return false;
        if (str_eq(str_trim(body), STR("404 page not found")))
                return true;
        struct err ignored;
        yyjson_doc *doc = kube_json_read(body, &ignored);
        yyjson_val *root = yyjson_doc_get_root(doc);
        bool unserved = kube_status_is(root) && streq(status_member(root, "reason"), "NotFound") &&
                        !status_member(yyjson_obj_get(root, "details"), "name");
        yyjson_doc_free(doc);
        return unserved;
}
