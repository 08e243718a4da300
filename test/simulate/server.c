/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/json.h"
#include "sim.h"

/* ---- requests ---- */

static char *decoded(struct arena *a, struct str s) {
        char *text = arena_strndup(a, s.p, s.n), *to = text;
        for (const char *p = text; *p; p++) {
                unsigned byte;
                if (*p == '%' && sscanf(p + 1, "%2x", &byte) == 1) {
                        *to++ = (char)byte;
                        p += 2;
                } else {
                        *to++ = *p;
                }
        }
        *to = '\0';
        return text;
}

static bool next_part(struct str *rest, struct arena *a, const char **ret) {
        struct str part;
        if (!rest->n || !str_next_field(rest, '/', &part))
                return false;
        *ret = decoded(a, part);
        return true;
}

static void read_query(struct asked *q, struct str rest) {
        struct str pair, key;
        while (rest.n && str_next_field(&rest, '&', &pair)) {
                str_next_field(&pair, '=', &key);
                const char *value = decoded(q->a, pair);
                if (str_eq(key, STR("labelSelector")))
                        q->label = value;
                else if (str_eq(key, STR("fieldSelector")))
                        q->field = value;
                else if (str_eq(key, STR("continue")))
                        q->token = *value ? value : NULL;
                else if (str_eq(key, STR("resourceVersion")))
                        q->version = value;
                else if (str_eq(key, STR("fieldManager")))
                        q->manager = value;
                else if (str_eq(key, STR("limit")))
                        q->limit = atol(value);
                else if (str_eq(key, STR("watch")))
                        q->watch = streq(value, "true");
                else if (str_eq(key, STR("timeoutSeconds")))
                        q->timeout_s = atol(value);
        }
}

static enum kind end_of_served = K_POD_GROUP;

void server_serve_pod_groups(void) {
        end_of_served = K_COUNT;
}

static bool find_kind(const char *group, const char *version, const char *plural, enum kind *ret) {
        for (enum kind k = 0; k < end_of_served; k++)
                if (streq(kinds[k].plural, plural) && streq(kinds[k].group, group) &&
                    streq(kinds[k].version, version)) {
                        *ret = k;
                        return true;
                }
        return false;
}

static int read_accept(const char *accept) {
        if (streq(str_or(accept, "application/json"), "application/json"))
                return ACCEPT_ALL;
        return str_starts(accept, "application/json;as=PartialObjectMetadata") ? ACCEPT_METADATA
                                                                               : ACCEPT_NOTHING;
}

void asked_init(struct asked *q, const char *method, const char *path, const char *content_type,
                const char *accept) {
        struct arena *a = arena_new(1024);
        struct str rest = str_from(path), way;
        const char *root = "", *group = "", *version = "", *plural = "";
        *q = (struct asked){ .a = a,
                             .method = arena_strdup(a, method),
                             .content_type = arena_strdup(a, str_or(content_type, "application/json")),
                             .accept = read_accept(accept) };
        str_next_field(&rest, '?', &way);
        if (rest.n)
                read_query(q, rest);
        way.p++;
        way.n--;
        next_part(&way, a, &root);
        if (streq(root, "apis"))
                next_part(&way, a, &group);
        next_part(&way, a, &version);
        next_part(&way, a, &plural);
        if (streq(plural, "namespaces")) {
                next_part(&way, a, &q->ns);
                next_part(&way, a, &plural);
        }
        if (streq(plural, "namespaces"))
                q->name = TAKE(q->ns); /* the request is for the namespace itself */
        else
                next_part(&way, a, &q->name);
        next_part(&way, a, &q->subresource);
        q->known = find_kind(group, version, plural, &q->k);
        for (enum kind k = 0; k < end_of_served; k++)
                q->known_group = q->known_group || (!kinds[k].custom && streq(kinds[k].group, group));
}

void asked_done(struct asked *q) {
        arena_free(TAKE(q->a));
}

/* ---- selected objects ---- */

/* One requirement of a label selector: "key", "key=value" or "key!=value". */
static bool meets(struct str requirement, const struct version *v) {
        struct str key;
        char name[256];
        bool valued = memchr(requirement.p, '=', requirement.n);
        str_next_field(&requirement, '=', &key);
        bool differs = valued && key.n && key.p[key.n - 1] == '!';
        snprintf(name, sizeof name, "%.*s", (int)(key.n - differs), key.p);
        const char *value = version_label(v, name);
        if (!valued)
                return value;
        return differs != (value && str_eq(requirement, str_from(value)));
}

/* Only the fields that the programs use. */
static bool selected(const struct asked *q, const struct version *v) {
        struct str key;
        if (q->ns && kinds[q->k].namespaced && !streq(q->ns, v->ns))
                return false;
        struct str labels = str_from(q->label), label;
        while (labels.n && str_next_field(&labels, ',', &label))
                if (!meets(label, v))
                        return false;
        struct str fields = str_from(q->field), field;
        while (fields.n && str_next_field(&fields, ',', &field)) {
                str_next_field(&field, '=', &key);
                const char *value = str_eq(key, STR("metadata.name"))   ? v->name
                                    : str_eq(key, STR("spec.driver"))   ? version_str(v, "/spec/driver")
                                    : str_eq(key, STR("status.phase!")) ? str_or(v->phase, "")
                                                                        : v->node;
                if (str_eq(field, str_from(value)) == (key.n && key.p[key.n - 1] == '!'))
                        return false;
        }
        return true;
}

/* ---- an object in an answer ---- */

static void add_value(yyjson_val *v, struct buf *out) {
        size_t n;
        _cleanup_(freep) char *json = yyjson_val_write(v, 0, &n);
        buf_add(out, json, n);
}

static void add_partial(yyjson_val *meta, struct buf *out) {
        buf_adds(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
        add_value(meta, out);
        buf_adds(out, "}");
}

static void add_object(const struct asked *q, const struct version *v, struct buf *out) {
        if (q->accept == ACCEPT_METADATA)
                add_partial(v->meta, out);
        else
                buf_adds(out, v->json);
}

static void add_item(const struct asked *q, const struct version *v, struct buf *out) {
        if (q->accept == ACCEPT_METADATA) {
                add_partial(v->meta, out);
        } else {
                buf_adds(out, "{");
                buf_adds(out, v->item);
        }
}

/* The previous object, with the resource version of the change by which it left the selection. */
static void add_left(const struct asked *q, const struct version *v, int64_t rv, struct buf *out) {
        char number[32];
        yyjson_mut_doc *d = yyjson_doc_mut_copy(v->doc, NULL);
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        snprintf(number, sizeof number, "%" PRId64, rv);
        yyjson_mut_obj_remove_key(meta, "resourceVersion");
        yyjson_mut_obj_add_str(d, meta, "resourceVersion", number);
        yyjson_doc *left = yyjson_mut_doc_imut_copy(d, NULL);
        yyjson_val *root = yyjson_doc_get_root(left);
        if (q->accept == ACCEPT_METADATA)
                add_partial(yyjson_obj_get(root, "metadata"), out);
        else
                add_value(root, out);
        yyjson_doc_free(left);
        yyjson_mut_doc_free(d);
}

/* ---- refusals ---- */

/* The name of the only object that a list can have. */
static const char *selected_name(const struct asked *q) {
        static const char selects[] = "metadata.name=";
        bool one = q->field && str_starts(q->field, selects) && (q->ns || !kinds[q->k].namespaced);
        return one ? q->field + sizeof selects - 1 : NULL;
}

static bool names_object(const char *reason) {
        static const char *const with[] = { "NotFound", "AlreadyExists", "Conflict", "Forbidden", "Invalid" };
        for (size_t i = 0; i < ARRAY_LEN(with); i++)
                if (streq(with[i], reason))
                        return true;
        return false;
}

static void status_json(int status, const char *reason, const char *name, const char *group, const char *kind,
                        struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_str(&w, "kind", "Status");
        jw_str(&w, "apiVersion", "v1");
        jw_obj(&w, "metadata");
        jw_end_obj(&w);
        jw_str(&w, "status", "Failure");
        jw_str(&w, "message", reason);
        jw_str(&w, "reason", reason);
        if (kind) {
                jw_obj(&w, "details");
                if (name)
                        jw_str(&w, "name", name);
                if (*group)
                        jw_str(&w, "group", group);
                jw_str(&w, "kind", kind);
                jw_end_obj(&w);
        }
        jw_int(&w, "code", status);
        jw_end_obj(&w);
}

void server_status(int status, const char *reason, const struct asked *q, struct buf *out) {
        bool named = q && q->known && names_object(reason);
        const char *name = named ? q->name : NULL;
        if (named && !name)
                name = selected_name(q);
        status_json(status, reason, name, named ? kinds[q->k].group : NULL, named ? kinds[q->k].plural : NULL,
                    out);
}

static int refuse(const struct asked *q, int status, const char *reason, struct buf *out) {
        server_status(status, reason, q, out);
        return status;
}

/* The answer for a resource that is not served. The mux of Kubernetes' own groups names no object. A group or
 * version that is not served is answered with a page. */
static int refuse_unserved(bool group, struct buf *out) {
        if (group)
                server_status(404, "NotFound", NULL, out);
        else
                buf_adds(out, "404 page not found\n");
        return 404;
}

/* ---- lists ---- */

/* A list in pages shows the objects at its beginning. */
struct snapshot {
        TAILQ_ENTRY(snapshot) entry;
        unsigned id;
        int64_t rv;
        struct version **items; /* all of the namespace, selected or not */
        size_t n;
};
static TAILQ_HEAD(, snapshot) snapshots = TAILQ_HEAD_INITIALIZER(snapshots);
static unsigned last_id;

static void snapshot_free(struct snapshot *s) {
        for (size_t i = 0; i < s->n; i++)
                version_unref(s->items[i]);
        free(s->items);
        free(s);
}

static void forget_snapshots(void) {
        struct snapshot *s;
        while ((s = TAILQ_FIRST(&snapshots))) {
                TAILQ_REMOVE(&snapshots, s, entry);
                snapshot_free(s);
        }
}

/* The node of a field selector with an index. */
static const char *selected_node(const struct asked *q, size_t *ret_n) {
        static const char selects[] = "spec.nodeName=";
        const char *field = q->k == K_POD || q->k == K_SLICE ? strstr(str_or(q->field, ""), selects) : NULL;
        if (!field)
                return NULL;
        *ret_n = strcspn(field + sizeof selects - 1, ",");
        return field + sizeof selects - 1;
}

static struct snapshot *snapshot_new(const struct asked *q) {
        struct snapshot *s = xnew(struct snapshot);
        s->id = ++last_id;
        s->rv = store_rv();
        s->items = xnew_n(struct version *, store_count(q->k) + 1);
        for (size_t i = 0; i < store_count(q->k); i++)
                if (!q->ns || !kinds[q->k].namespaced || streq(q->ns, store_nth(q->k, i)->ns))
                        s->items[s->n++] = version_ref(store_nth(q->k, i));
        return s;
}

/* A page is not the last one while some objects were not examined, even if none of them is selected. A list
 * by name has one page. The index of the node's name serves the first page. */
static bool has_more(const struct asked *q, const struct snapshot *s, size_t next) {
        size_t n;
        const char *node = q->token ? NULL : selected_node(q, &n);
        if (selected_name(q))
                return false;
        for (size_t i = next; node && i < s->n; i++)
                if (str_eq((struct str){ node, n }, str_from(s->items[i]->node)))
                        return true;
        return !node && next < s->n;
}

static void add_list_meta(const struct asked *q, const struct snapshot *s, size_t from, size_t next,
                          bool more, struct buf *out) {
        buf_addf(out, ",\"metadata\":{\"resourceVersion\":\"%" PRId64 "\"", s->rv);
        if (more)
                buf_addf(out, ",\"continue\":\"%u-%zu\"", s->id, next);
        if (more && !q->label && !q->field)
                buf_addf(out, ",\"remainingItemCount\":%zu", s->n - from - (size_t)q->limit);
        buf_adds(out, "}}");
}

static int list(const struct asked *q, struct buf *out) {
        unsigned id = 0;
        size_t from = 0, next, n = 0;
        struct snapshot *s = NULL;
        if (q->token && sscanf(q->token, "%u-%zu", &id, &from) == 2)
                TAILQ_FOREACH (s, &snapshots, entry)
                        if (s->id == id)
                                break;
        if (q->token && !s)
                return refuse(q, 410, "Expired", out);
        bool fresh = !s;
        if (fresh)
                s = snapshot_new(q);
        bool partial = q->accept == ACCEPT_METADATA;
        buf_addf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"items\":",
                 partial ? "PartialObjectMetadata" : kinds[q->k].kind,
                 partial ? "meta.k8s.io/v1" : kind_api_version(q->k));
        for (next = from; next < s->n && (!q->limit || n < (size_t)q->limit); next++)
                if (selected(q, s->items[next])) {
                        buf_adds(out, n++ ? "," : "[");
                        add_item(q, s->items[next], out);
                }
        /* An empty list of metadata has null, others have an empty array. */
        buf_adds(out, n ? "]" : partial ? "null" : "[]");
        bool more = has_more(q, s, next);
        add_list_meta(q, s, from, next, more, out);
        if (fresh && more)
                TAILQ_INSERT_TAIL(&snapshots, s, entry);
        else if (fresh)
                snapshot_free(s);
        return 200;
}

/* ---- writes ---- */

enum { MOST_BODY = 3 << 20 };

/* The body of a create, an update or an apply must agree with the path. NULL: it does. */
static const char *body_refused(const struct asked *q, yyjson_val *root, bool applies) {
        yyjson_val *meta = yyjson_obj_get(root, "metadata");
        const char *kind = yyjson_get_str(yyjson_obj_get(root, "kind")),
                   *version = yyjson_get_str(yyjson_obj_get(root, "apiVersion")),
                   *name = yyjson_get_str(yyjson_obj_get(meta, "name")),
                   *ns = yyjson_get_str(yyjson_obj_get(meta, "namespace"));
        if (!yyjson_is_obj(root))
                return "no object";
        if ((kinds[q->k].custom && !kind) || (kind && !streq(kind, kinds[q->k].kind)) ||
            (version && !streq(version, kind_api_version(q->k))))
                return "another kind";
        if ((q->name && !streq(name, q->name) && (name || !applies)) ||
            (ns && kinds[q->k].namespaced && !streq(ns, q->ns)))
                return "another name";
        return NULL;
}

static bool takes(const struct asked *q) {
        static const char *const patches[] = { "application/merge-patch+json",
                                               "application/apply-patch+yaml" };
        if (!streq(q->method, "PATCH"))
                return streq(q->content_type, "application/json");
        return streq(q->content_type, patches[0]) || streq(q->content_type, patches[1]);
}

static struct store_answer write_object(const struct asked *q, const char *who, const char *body) {
        bool applies = streq(q->content_type, "application/apply-patch+yaml");
        yyjson_doc *doc = yyjson_read(body, strlen(body), 0);
        bool refused = !doc || ((applies || !streq(q->method, "PATCH")) &&
                                body_refused(q, yyjson_doc_get_root(doc), applies));
        bool json = doc != NULL;
        yyjson_doc_free(doc);
        if (streq(q->method, "DELETE"))
                return store_delete(who, q->k, q->ns, q->name, body);
        /* A merge patch is checked only if its object exists. */
        if (!json || (refused && (applies || !streq(q->method, "PATCH"))))
                return (struct store_answer){ .status = 400, .reason = "BadRequest" };
        if (streq(q->method, "POST"))
                return store_create(who, q->k, q->ns, body);
        if (streq(q->method, "PUT"))
                return store_update(who, q->k, q->ns, q->name, body);
        if (applies)
                return store_apply(who, q->k, q->ns, q->name, str_or(q->manager, ""), body);
        return store_merge_patch(who, q->k, q->ns, q->name, body, q->subresource != NULL);
}

static bool (*patch_pod)(const char *ns, const char *name, const char *body);

void server_set_pods(bool (*fn)(const char *ns, const char *name, const char *body)) {
        patch_pod = fn;
}

static int answer_write(const struct asked *q, const char *who, const char *body, struct buf *out) {
        if (q->k == K_POD && streq(q->method, "PATCH") && patch_pod && patch_pod(q->ns, q->name, body)) {
                sim_log("%s patches the pod %s/%s: %s", who, q->ns, q->name, body);
                buf_addf(
                        out,
                        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
                        "\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\"}}",
                        q->ns, q->name, q->name);
                return 200;
        }
        struct store_answer a = write_object(q, who, body);
        const char *name = str_or(q->name, a.name);
        if (a.about_ns)
                status_json(a.status, a.reason, a.about_ns, "", "namespaces", out);
        else if (a.v && a.gone && !kinds[q->k].answers_deleted)
                buf_addf(out,
                         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
                         "\"details\":{\"name\":\"%s\",\"group\":\"%s\",\"kind\":\"%s\",\"uid\":\"%s\"}}",
                         a.v->name, kinds[q->k].group, kinds[q->k].plural, a.v->uid);
        else if (a.v)
                add_object(q, a.v, out);
        else if (names_object(a.reason))
                status_json(a.status, a.reason, name, kinds[q->k].group,
                            a.about_kind ? kinds[q->k].kind : kinds[q->k].plural, out);
        else
                server_status(a.status, a.reason, NULL, out);
        return a.status;
}

/* ---- answers ---- */

static bool is_served(const char *method, bool object) {
        static const char *const of_object[] = { "GET", "PUT", "PATCH", "DELETE" }, *const of_collection[] = {
                "GET", "POST"
        };
        const char *const *list = object ? of_object : of_collection;
        for (size_t i = 0; i < (object ? ARRAY_LEN(of_object) : ARRAY_LEN(of_collection)); i++)
                if (streq(method, list[i]))
                        return true;
        return false;
}

/* Refusals that do not depend on the objects; 0: none. */
static int refused_at_once(const struct asked *q, const char *body, struct buf *out) {
        if (!q->known)
                return refuse_unserved(q->known_group, out);
        if (q->subresource && !(streq(q->subresource, "status") && kinds[q->k].status))
                return kinds[q->k].custom ? refuse(q, 404, "NotFound", out) : refuse_unserved(true, out);
        if (!is_served(q->method, q->name))
                return kinds[q->k].custom ? refuse(q, 400, "BadRequest", out)
                                          : refuse(q, 405, "MethodNotAllowed", out);
        if (q->accept == ACCEPT_NOTHING)
                return refuse(q, 406, "NotAcceptable", out);
        if (streq(q->method, "GET"))
                return 0;
        if (!takes(q))
                return refuse(q, 415, "UnsupportedMediaType", out);
        return strlen(body) > MOST_BODY ? refuse(q, 413, "RequestEntityTooLarge", out) : 0;
}

bool server_refuses_watch(const struct asked *q) {
        struct buf b = BUF_INIT(4096);
        bool refuses = refused_at_once(q, "", &b);
        buf_done(&b);
        return refuses;
}

int server_answer(const struct asked *q, const char *who, const char *body, struct buf *out) {
        int status = refused_at_once(q, body, out);
        if (status)
                return status;
        if (!streq(q->method, "GET"))
                return answer_write(q, who, body, out);
        if (!q->name)
                return list(q, out);
        const struct version *v = store_get(q->k, kinds[q->k].namespaced ? q->ns : "", q->name);
        if (!v)
                return refuse(q, 404, "NotFound", out);
        add_object(q, v, out);
        return 200;
}

void server_compact(void) {
        forget_snapshots();
        store_compact();
}

void server_restore(const struct backup *b, bool all_kinds, bool bumps) {
        forget_snapshots();
        store_restore(b, all_kinds, bumps);
}

void server_done(void) {
        forget_snapshots();
}

/* ---- watches ---- */

struct watch {
        const struct asked *q;
        int64_t rv;
};

struct watch *watch_new(const struct asked *q) {
        struct watch *w = xnew(struct watch);
        *w = (struct watch){ q, q->version ? strtoll(q->version, NULL, 10) : store_rv() };
        return w;
}

void watch_free(struct watch *w) {
        free(w);
}

/* The type of a change for a watch that sees only the selected objects. */
static const char *event_of(const struct asked *q, const struct change *c) {
        bool was = c->was && selected(q, c->was), is = !c->gone && selected(q, c->now);
        return was && is ? "MODIFIED" : is ? "ADDED" : was ? "DELETED" : NULL;
}

/* The first change after a version. The history is sorted by version. */
static size_t first_after(const struct change *c, size_t n, int64_t rv) {
        size_t low = 0;
        while (low < n) {
                size_t middle = low + (n - low) / 2;
                if (c[middle].rv > rv)
                        n = middle;
                else
                        low = middle + 1;
        }
        return low;
}

bool watch_take(struct watch *w, int64_t until_ms, struct buf *out) {
        const struct change *c;
        size_t n = store_history(w->q->k, &c);
        if (w->rv < store_compacted()) {
                buf_adds(out, "{\"type\":\"ERROR\",\"object\":");
                server_status(410, "Expired", NULL, out);
                buf_adds(out, "}\n");
                return false;
        }
        for (size_t i = first_after(c, n, w->rv); i < n && c[i].ms <= until_ms; i++) {
                const char *type = event_of(w->q, &c[i]);
                if (type) {
                        buf_addf(out, "{\"type\":\"%s\",\"object\":", type);
                        if (streq(type, "DELETED") && !c[i].gone)
                                add_left(w->q, c[i].was, c[i].rv, out);
                        else
                                add_object(w->q, c[i].now, out);
                        buf_adds(out, "}\n");
                }
                w->rv = c[i].rv;
        }
        return true;
}

void watch_bookmark(struct watch *w, struct buf *out) {
        if (w->rv > store_rv())
                return;
        bool partial = w->q->accept == ACCEPT_METADATA;
        buf_addf(out,
                 "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
                 "\"resourceVersion\":\"%" PRId64 "\"}}}\n",
                 partial ? "PartialObjectMetadata" : kinds[w->q->k].kind,
                 partial ? "meta.k8s.io/v1" : kind_api_version(w->q->k), w->rv);
}
