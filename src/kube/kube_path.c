/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_path.h"

#include <string.h>

static bool is_plain(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_' || c == '~';
}

static void add_encoded(struct buf *b, const char *s) {
        static const char hex[] = "0123456789ABCDEF";

        while (*s) {
                size_t n = 0;
                while (is_plain(s[n]))
                        n++;
                buf_add(b, s, n);
                s += n;
                if (*s) {
                        unsigned char c = (unsigned char)*s++;
                        char code[3] = { '%', hex[c >> 4], hex[c & 15] };
                        buf_add(b, code, sizeof code);
                }
        }
}

static int add_segment(struct buf *b, const char *what, const char *s, struct err *e) {
        if (!*s || streq(s, ".") || streq(s, ".."))
                return err_set(e, ERR_INVALID, 0, "'%s' is not a valid %s", s, what);
        buf_addc(b, '/');
        add_encoded(b, s);
        return 0;
}

void kube_path_version(struct buf *b, const struct kube_resource *res, const char *version) {
        buf_adds(b, *res->group ? "/apis/" : "/api/");
        if (*res->group) {
                buf_adds(b, res->group);
                buf_addc(b, '/');
        }
        buf_adds(b, version);
}

int kube_path_object(struct buf *b, const struct kube_resource *res, const char *ns, const char *name,
                     const char *subresource, struct err *e) {
        if (ns && res->namespaced) {
                buf_adds(b, "/namespaces");
                if (add_segment(b, "namespace", ns, e) < 0)
                        return -1;
        } else if (name && res->namespaced) {
                return err_set(e, ERR_INVALID, 0, "%s '%s' without a namespace", res->kind, name);
        }
        buf_addc(b, '/');
        buf_adds(b, res->plural);
        if (name && add_segment(b, "name", name, e) < 0)
                return -1;
        if (name && subresource && add_segment(b, "subresource", subresource, e) < 0)
                return -1;
        return b->failed ? err_set(e, ERR_INVALID, 0, "path longer than %zu bytes", b->limit) : 0;
}

void kube_path_query(struct buf *b, unsigned *n_query, const char *key, const char *value) {
        if (!value)
                return;
        buf_addc(b, (*n_query)++ ? '&' : '?');
        buf_adds(b, key);
        buf_addc(b, '=');
        add_encoded(b, value);
}
