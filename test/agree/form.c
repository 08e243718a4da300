/* SPDX-License-Identifier: Apache-2.0 */
#include "form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "base/mem.h"

/* ---- the path ---- */

struct path {
        struct str group, resource, sub, query;
        bool ns, name;
};

static bool next(struct str *rest, struct str *ret) {
        return rest->n && str_next_field(rest, '/', ret);
}

static bool read_path(const char *text, struct path *p) {
        struct str rest = str_from(text), way, root, part;
        *p = (struct path){ .query = { 0 } };
        str_next_field(&rest, '?', &way);
        p->query = rest;
        if (!way.n || *way.p != '/')
                return false;
        way.p++;
        way.n--;
        if (!next(&way, &root) || !(str_eq(root, STR("api")) || str_eq(root, STR("apis"))))
                return false;
        if (str_eq(root, STR("apis")) && !next(&way, &p->group))
                return false;
        if (!next(&way, &part))
                return p->group.n; /* the versions of a group */
        if (!next(&way, &p->resource))
                return false;
        if (str_eq(p->resource, STR("namespaces")) && next(&way, &part)) {
                p->ns = next(&way, &p->resource);
                p->name = !p->ns;
        }
        p->name = next(&way, &part) || p->name;
        next(&way, &p->sub);
        return true;
}

/* ---- the query ---- */

static void add_decoded(struct str s, struct buf *out) {
        for (size_t i = 0; i < s.n; i++) {
                unsigned byte;
                if (s.p[i] == '%' && i + 2 < s.n && sscanf(s.p + i + 1, "%2x", &byte) == 1) {
                        buf_addc(out, (char)byte);
                        i += 2;
                } else {
                        buf_addc(out, s.p[i]);
                }
        }
}

/* The operator of a requirement of a label selector, with its operand. */
static const char *operator_of(struct str key, bool valued) {
        if (!valued)
                return "";
        return key.n && key.p[key.n - 1] == '!' ? "!=value" : "=value";
}

/* "key", "key=value" or "key!=value" of a label selector, "a+b" of a field selector: the values do not
 * matter. */
static void add_selector(struct str value, bool fields, struct buf *out) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(4096);
        struct str rest, term, key;
        bool first = true;
        add_decoded(value, &text);
        rest = (struct str){ text.p, text.n };
        while (rest.n && str_next_field(&rest, ',', &term)) {
                bool valued = memchr(term.p, '=', term.n);
                str_next_field(&term, '=', &key);
                buf_adds(out, first ? "" : "+");
                if (fields)
                        buf_add(out, key.p, key.n);
                else
                        buf_addf(out, "key%s", operator_of(key, valued));
                first = false;
        }
}

static void add_term(struct str pair, struct buf *out) {
        static const char *const whole[] = { "watch", "allowWatchBookmarks", "force" };
        struct str key;
        str_next_field(&pair, '=', &key);
        buf_add(out, key.p, key.n);
        for (size_t i = 0; i < ARRAY_LEN(whole); i++)
                if (str_eq(key, str_from(whole[i]))) {
                        buf_addc(out, '=');
                        buf_add(out, pair.p, pair.n);
                }
        if (str_eq(key, STR("resourceVersion")) && str_eq(pair, STR("0")))
                buf_adds(out, "=0");
        if (str_eq(key, STR("labelSelector")) || str_eq(key, STR("fieldSelector"))) {
                buf_addc(out, '=');
                add_selector(pair, *key.p == 'f', out);
        }
}

static int by_text(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_query(struct str query, struct buf *out) {
        char *terms[16];
        size_t n = 0;
        struct str pair;
        while (query.n && n < ARRAY_LEN(terms) && str_next_field(&query, '&', &pair)) {
                struct buf term = BUF_INIT(4096);
                add_term(pair, &term);
                terms[n++] = buf_steal(&term);
        }
        qsort(terms, n, sizeof *terms, by_text);
        for (size_t i = 0; i < n; i++) {
                buf_addf(out, "%s%s", i ? "," : "", terms[i]);
                free(terms[i]);
        }
        if (!n)
                buf_adds(out, "-");
}

/* ---- the body ---- */

static const char *type_of(const char *content_type, bool body) {
        static const char *const types[][2] = { { "application/json", "json" },
                                                { "application/merge-patch+json", "merge" },
                                                { "application/apply-patch+yaml", "apply" } };
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (streq(str_or(content_type, "application/json"), types[i][0]))
                        return body ? types[i][1] : "-";
        return content_type;
}

static void add_condition(yyjson_val *object, const char *key, struct buf *out) {
        if (yyjson_obj_get(object, key))
                buf_addf(out, "%s%s", out->n && out->p[out->n - 1] != ' ' ? "," : "", key);
}

static void add_conditions(const char *verb, struct str body, struct buf *out) {
        yyjson_doc *doc = body.n ? yyjson_read(body.p, body.n, 0) : NULL;
        yyjson_val *root = yyjson_doc_get_root(doc),
                   *conditions = yyjson_obj_get(root, streq(verb, "delete") ? "preconditions" : "metadata");
        size_t before = out->n;
        add_condition(conditions, "resourceVersion", out);
        add_condition(conditions, "uid", out);
        if (yyjson_is_int(yyjson_obj_get(root, "gracePeriodSeconds")))
                buf_addf(out, "%sgracePeriodSeconds=%lld", out->n > before ? "," : "",
                         (long long)yyjson_get_sint(yyjson_obj_get(root, "gracePeriodSeconds")));
        if (streq(verb, "create") && yyjson_obj_get(conditions, "generateName"))
                buf_addf(out, "%sgenerateName", out->n > before ? "," : "");
        if (out->n == before)
                buf_adds(out, "-");
        yyjson_doc_free(doc);
}

/* ---- the whole form ---- */

static const char *verb_of(const char *method, const char *content_type, const struct path *p) {
        static const char *const verbs[][2] = { { "POST", "create" },
                                                { "PUT", "update" },
                                                { "DELETE", "delete" } };
        if (streq(method, "GET"))
                return p->name || !p->resource.n                                        ? "get"
                       : p->query.n && memmem(p->query.p, p->query.n, "watch=true", 10) ? "watch"
                                                                                        : "list";
        if (streq(method, "PATCH"))
                return streq(content_type, "application/apply-patch+yaml") ? "apply" : "patch";
        for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
                if (streq(method, verbs[i][0]))
                        return verbs[i][1];
        return method;
}

bool form_of(const char *method, const char *path, const char *content_type, const char *accept,
             struct str body, char ret[FORM_MAX]) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(FORM_MAX - 1);
        struct path p;
        if (!read_path(path, &p))
                return false;
        const char *verb = verb_of(method, content_type, &p);
        buf_addf(&out, "%s ", verb);
        if (p.resource.n)
                buf_addf(&out, "%.*s%s%.*s%s%.*s", (int)p.resource.n, p.resource.p, p.group.n ? "." : "",
                         (int)p.group.n, p.group.n ? p.group.p : "", p.sub.n ? "/" : "", (int)p.sub.n,
                         p.sub.n ? p.sub.p : "");
        else
                buf_addf(&out, "apis/%.*s", (int)p.group.n, p.group.p);
        buf_addf(&out, " %s %s %s ", p.ns ? "ns" : "-", type_of(content_type, body.n),
                 streq(str_or(accept, "application/json"), "application/json")     ? "json"
                 : str_starts(accept, "application/json;as=PartialObjectMetadata") ? "metadata"
                                                                                   : accept);
        add_query(p.query, &out);
        buf_adds(&out, " ");
        add_conditions(verb, body, &out);
        if (out.failed)
                return false;
        snprintf(ret, FORM_MAX, "%s", buf_str(&out));
        return true;
}
