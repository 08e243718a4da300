/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/json.h"
#include "hostile.h"
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
                        q->token = value;
                else if (str_eq(key, STR("resourceVersion")))
                        q->version = value;
                else if (str_eq(key, STR("limit")))
                        q->limit = atol(value);
                else if (str_eq(key, STR("watch")))
                        q->watch = streq(value, "true");
                else if (str_eq(key, STR("timeoutSeconds")))
                        q->timeout_s = atol(value);
        }
}

static bool find_kind(const char *group, const char *version, const char *plural, enum kind *ret) {
        for (enum kind k = 0; k < K_COUNT; k++)
                if (streq(kinds[k].plural, plural) && streq(kinds[k].group, group) &&
                    streq(kinds[k].version, version)) {
                        *ret = k;
                        return true;
                }
        return false;
}

void asked_init(struct asked *q, const char *method, const char *path) {
        struct arena *a = arena_new(1024);
        struct str rest = str_from(path), way;
        const char *root = "", *group = "", *version = "", *plural = "";
        *q = (struct asked){ .a = a, .method = arena_strdup(a, method) };
        str_next_field(&rest, '?', &way);
        if (rest.n)
                read_query(q, rest);
        way.p++;
        way.n--;
        next_part(&way, a, &root);
        if (streq(root, "apis"))
                next_part(&way, a, &group);
        if (!next_part(&way, a, &version)) {
                q->group = group;
                return;
        }
        next_part(&way, a, &plural);
        if (streq(plural, "namespaces")) {
                next_part(&way, a, &q->ns);
                next_part(&way, a, &plural);
        }
        next_part(&way, a, &q->name);
        next_part(&way, a, &q->subresource);
        q->known = find_kind(group, version, plural, &q->k);
}

void asked_done(struct asked *q) {
        arena_free(TAKE(q->a));
}

/* ---- which objects ---- */

/* "key", "key=value"; of fields those that the programs ask by. */
static bool selected(const struct asked *q, const struct version *v) {
        struct str rest, key;
        if (q->ns && !streq(q->ns, v->ns))
                return false;
        if (q->label) {
                char name[256];
                rest = str_from(q->label);
                bool any = !strchr(q->label, '=');
                str_next_field(&rest, '=', &key);
                snprintf(name, sizeof name, "%.*s", (int)key.n, key.p);
                const char *value = version_label(v, name);
                if (!value || (!any && !str_eq(rest, str_from(value))))
                        return false;
        }
        struct str fields = str_from(q->field), field;
        while (fields.n && str_next_field(&fields, ',', &field)) {
                str_next_field(&field, '=', &key);
                const char *value = str_eq(key, STR("metadata.name")) ? v->name
                                    : str_eq(key, STR("spec.driver")) ? version_str(v, "/spec/driver")
                                                                      : v->node;
                if (!str_eq(field, str_from(value)))
                        return false;
        }
        return true;
}

/* ---- answers ---- */

void server_status(int status, const char *reason, const struct asked *q, struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_str(&w, "kind", "Status");
        jw_str(&w, "apiVersion", "v1");
        jw_str(&w, "status", "Failure");
        jw_str(&w, "reason", reason);
        jw_str(&w, "message", reason);
        jw_int(&w, "code", status);
        if (q && q->known) {
                jw_obj(&w, "details");
                if (q->name)
                        jw_str(&w, "name", q->name);
                jw_str(&w, "group", kinds[q->k].group);
                jw_str(&w, "kind", kinds[q->k].plural);
                jw_end_obj(&w);
        }
        jw_end_obj(&w);
}

/* A list in pages shows what was when it began. */
struct snapshot {
        TAILQ_ENTRY(snapshot) entry;
        unsigned id;
        int64_t rv;
        struct version **items;
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

static struct snapshot *snapshot_new(const struct asked *q) {
        struct snapshot *s = xnew(struct snapshot);
        s->id = ++last_id;
        s->rv = store_rv();
        s->items = xnew_n(struct version *, store_count(q->k) + 1);
        for (size_t i = 0; i < store_count(q->k); i++)
                if (selected(q, store_nth(q->k, i)))
                        s->items[s->n++] = version_ref(store_nth(q->k, i));
        return s;
}

static int list(const struct asked *q, struct buf *out) {
        unsigned id = 0;
        size_t from = 0, n = 0;
        struct snapshot *s = NULL;
        if (q->token && sscanf(q->token, "%u-%zu", &id, &from) == 2)
                TAILQ_FOREACH (s, &snapshots, entry)
                        if (s->id == id)
                                break;
        if (q->token && !s) {
                server_status(410, "Expired", q, out);
                return 410;
        }
        bool fresh = !s;
        if (fresh)
                s = snapshot_new(q);
        buf_addf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"v1\",\"items\":[", kinds[q->k].kind);
        for (; from + n < s->n && (!q->limit || n < (size_t)q->limit); n++) {
                buf_adds(out, n ? "," : "");
                buf_adds(out, s->items[from + n]->json);
        }
        bool more = from + n < s->n;
        buf_addf(out, "],\"metadata\":{\"resourceVersion\":\"%" PRId64 "\"", s->rv);
        if (more)
                buf_addf(out, ",\"continue\":\"%u-%zu\"", s->id, from + n);
        buf_adds(out, "}}");
        if (fresh && more)
                TAILQ_INSERT_TAIL(&snapshots, s, entry);
        else if (fresh)
                snapshot_free(s);
        return 200;
}

static struct store_answer write_object(const struct asked *q, const char *who, const char *body) {
        bool status = streq(q->subresource, "status");
        if (streq(q->method, "POST"))
                return store_create(who, q->k, q->ns, body);
        if (streq(q->method, "PUT"))
                return store_update(who, q->k, q->ns, q->name, body);
        if (streq(q->method, "DELETE"))
                return store_delete(who, q->k, q->ns, q->name, body);
        /* Only DaemonSets and claim templates are applied, and only they carry an apiVersion in a patch. */
        if (strstr(body, "\"apiVersion\":\"apps/v1\"") ||
            (q->k == K_TEMPLATE && strstr(body, "\"kind\":\"R")))
                return store_apply(who, q->k, q->ns, q->name, body);
        return store_merge_patch(who, q->k, q->ns, q->name, body, status);
}

int server_answer(const struct asked *q, const char *who, const char *body, struct buf *out) {
        if (q->group) {
                buf_addf(out,
                         "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"%s\",\"versions\":[{"
                         "\"version\":\"v1\"}]}",
                         q->group);
                return 200;
        }
        if (!q->known) {
                buf_adds(out, "404 page not found\n");
                return 404;
        }
        if (q->k == K_FABRIC && hostile_fabrics_refused()) {
                int status = hostile_fabrics_refused();
                server_status(status, status == 403 ? "Forbidden" : "NotFound", NULL, out);
                return status;
        }
        if (streq(q->method, "GET") && !q->name)
                return list(q, out);
        if (streq(q->method, "GET")) {
                const struct version *v = store_get(q->k, q->ns, q->name);
                if (v)
                        buf_adds(out, v->json);
                else
                        server_status(404, "NotFound", q, out);
                return v ? 200 : 404;
        }
        struct store_answer a = write_object(q, who, body);
        /* After a deletion: the object while something holds it, else that it is gone. */
        if (a.v && streq(q->method, "DELETE") && !store_get(q->k, q->ns, q->name))
                buf_addf(out,
                         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
                         "\"details\":"
                         "{\"name\":\"%s\",\"uid\":\"%s\"}}",
                         a.v->name, a.v->uid);
        else if (a.v)
                buf_adds(out, a.v->json);
        else
                server_status(a.status, a.reason, q, out);
        return a.status;
}

void server_compact(void) {
        forget_snapshots();
        store_compact();
}

void server_restore(const struct backup *b) {
        forget_snapshots();
        store_restore(b);
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

/* What a change is for who sees only the selected objects. */
static const char *event_of(const struct asked *q, const struct change *c) {
        bool was = c->was && selected(q, c->was), is = !c->gone && selected(q, c->now);
        return was && is ? "MODIFIED" : is ? "ADDED" : was ? "DELETED" : NULL;
}

/* The first change behind a version; the history is in their order. */
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
                        buf_adds(out, c[i].now->json);
                        buf_adds(out, "}\n");
                }
                w->rv = c[i].rv;
        }
        return true;
}

void watch_bookmark(struct watch *w, struct buf *out) {
        if (w->rv > store_rv())
                return;
        buf_addf(out,
                 "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"metadata\":{\"resourceVersion\":"
                 "\"%" PRId64 "\"}}}\n",
                 kinds[w->q->k].kind, w->rv);
}
