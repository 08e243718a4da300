/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apply.h"
#include "base/stderr.h"
#include "base/json.h"
#include "base/mem.h"
#include "schema.h"
#include "sim.h"
#include "store_priv.h"

static size_t most_bytes = STORE_MOST_BYTES;
static char next_suffix[8];
static const char *writer = "";
static bool by_world;            /* the world itself writes */
static struct version *answered; /* an object that was never stored, but is the answer of a write */

void store_set_limit(size_t bytes) {
        most_bytes = bytes;
}

void store_set_suffix(const char *suffix) {
        snprintf(next_suffix, sizeof next_suffix, "%s", suffix);
}

const char *store_writer(void) {
        return writer;
}

void writes_done(void) {
        version_unref(TAKE(answered));
}

static void set_int(yyjson_mut_doc *d, yyjson_mut_val *object, const char *key, int64_t value) {
        yyjson_mut_obj_remove_key(object, key);
        yyjson_mut_obj_add_int(d, object, key, value);
}

static void set_time(yyjson_mut_doc *d, yyjson_mut_val *object, const char *key, int64_t unix_s) {
        struct buf b = BUF_INIT(64);
        struct jw w = JW(&b);
        jw_time(&w, NULL, unix_s);
        b.p[b.n - 1] = '\0';
        set_text(d, object, key, b.p + 1);
        buf_done(&b);
}

static yyjson_mut_doc *parse(const char *body) {
        yyjson_doc *d = yyjson_read(body, strlen(body), 0);
        yyjson_mut_doc *m = yyjson_is_obj(yyjson_doc_get_root(d)) ? yyjson_doc_mut_copy(d, NULL) : NULL;
        yyjson_doc_free(d);
        return m;
}

static struct store_answer refusal(int status, const char *reason) {
        return (struct store_answer){ .status = status, .reason = reason };
}

static void log_write(const char *who, const char *verb, enum kind k, const char *ns, const char *name,
                      const char *body, struct store_answer a) {
        if (k != K_LEASE && k != K_EVENT)
                sim_log("%s: %s %s %s/%s -> %d %s", who, verb, kinds[k].plural, str_or(ns, ""),
                        str_or(name, ""), a.status, str_or(body, ""));
}

static void make_uid(char *ret, size_t n) {
        snprintf(ret, n, "%08" PRIx64 "-0000-4000-8000-%012" PRIx64, sim_draw(UINT64_C(1) << 32),
                 (uint64_t)store_rv() + 1);
}

/* ---- validation ---- */

static bool is_word(const char *s, size_t n) {
        static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
        return n && n <= 63 && strspn(s, inside) >= n && !strchr("-_.", s[0]) && !strchr("-_.", s[n - 1]);
}

/* "name" or "a.subdomain/name". */
static bool is_qualified(const char *s) {
        const char *slash = strchr(s, '/');
        char prefix[256];
        snprintf(prefix, sizeof prefix, "%.*s", slash ? (int)(slash - s) : 0, s);
        if (slash && (slash - s > 253 || !str_is_dns_subdomain(prefix)))
                return false;
        s = slash ? slash + 1 : s;
        return is_word(s, strlen(s));
}

static const char *meta_refuses(enum kind k, yyjson_val *meta) {
        enum { MOST_ANNOTATIONS = 256 << 10 };
        yyjson_val *key, *value;
        size_t i, max, n = 0;
        const char *name = member_text(meta, "name");
        if (!(k == K_NAMESPACE ? str_is_dns_label(name) : k == K_EVENT || str_is_dns_subdomain(name)))
                return "metadata.name";
        yyjson_obj_foreach (yyjson_obj_get(meta, "labels"), i, max, key, value)
                if (!is_qualified(yyjson_get_str(key)) || !yyjson_is_str(value) ||
                    (yyjson_get_len(value) && !is_word(yyjson_get_str(value), yyjson_get_len(value))))
                        return "metadata.labels";
        yyjson_obj_foreach (yyjson_obj_get(meta, "annotations"), i, max, key, value) {
                if (!is_qualified(yyjson_get_str(key)) || !yyjson_is_str(value))
                        return "metadata.annotations";
                n += yyjson_get_len(key) + yyjson_get_len(value);
        }
        if (n > MOST_ANNOTATIONS)
                return "metadata.annotations";
        yyjson_arr_foreach (yyjson_obj_get(meta, "finalizers"), i, max, value)
                if (!yyjson_is_str(value) || !is_qualified(yyjson_get_str(value)))
                        return "metadata.finalizers";
        return NULL;
}

static bool has_finalizer(yyjson_val *meta, const char *name) {
        yyjson_val *x;
        size_t i, max;
        yyjson_arr_foreach (yyjson_obj_get(meta, "finalizers"), i, max, x)
                if (streq(yyjson_get_str(x), name))
                        return true;
        return false;
}

/* An invalid change of `was`; NULL: it is valid. */
static const char *change_refused(enum kind k, yyjson_val *root, const struct version *was) {
        yyjson_val *meta = yyjson_obj_get(root, "metadata"), *x;
        size_t i, max;
        if (version_deleted(was))
                yyjson_arr_foreach (yyjson_obj_get(meta, "finalizers"), i, max, x)
                        if (!has_finalizer(was->meta, yyjson_get_str(x)))
                                return "metadata.finalizers: no new finalizers while the object is being "
                                       "deleted";
        for (i = 0; !by_world && i < ARRAY_LEN(kinds[k].immutable) && kinds[k].immutable[i]; i++) {
                yyjson_val *a = yyjson_ptr_get(was->root, kinds[k].immutable[i]),
                           *b = yyjson_ptr_get(root, kinds[k].immutable[i]);
                if (!a != !b || (a && !yyjson_equals(a, b)))
                        return kinds[k].immutable[i];
        }
        return NULL;
}

/* The size of the text of a value, at most: each byte may need an escape. */
static size_t most_text(yyjson_val *v) {
        enum { ESCAPE = 6, NUMBER = 32 };
        size_t i, max, n = NUMBER;
        yyjson_val *key, *x;
        if (yyjson_is_str(v))
                return ESCAPE * yyjson_get_len(v) + 3;
        yyjson_arr_foreach (v, i, max, x)
                n += most_text(x);
        yyjson_obj_foreach (v, i, max, key, x)
                n += most_text(key) + most_text(x);
        return n;
}

static bool is_too_large(yyjson_doc *d) {
        size_t n;
        if (most_text(yyjson_doc_get_root(d)) <= most_bytes)
                return false;
        free(yyjson_write(d, 0, &n));
        return n > most_bytes;
}

/* Status 0: the object is valid. */
static struct store_answer judged(enum kind k, yyjson_mut_doc *d, const struct version *was) {
        struct store_answer a = { 0 };
        yyjson_doc *now = yyjson_mut_doc_imut_copy(d, NULL);
        yyjson_val *root = yyjson_doc_get_root(now), *meta = yyjson_obj_get(root, "metadata");
        const char *why = NULL;
        if (is_too_large(now)) {
                a = refusal(413, "RequestEntityTooLarge");
                why = "too large";
        } else {
                why = meta_refuses(k, meta);
                why = why || !was ? why : change_refused(k, root, was);
                why = str_or(why, schema_refuses(k, root, was ? was->root : NULL));
        }
        if (why) {
                sim_log("%s of %s %.80s is refused: %.200s", writer, kinds[k].kind,
                        str_or(member_text(meta, "name"), ""), why);
                if (!a.status)
                        a = (struct store_answer){ .status = 422, .reason = "Invalid", .about_kind = true };
        }
        yyjson_doc_free(now);
        return a;
}

/* ---- from a body to an object ---- */

static bool is_empty(yyjson_mut_val *v) {
        return !v || yyjson_mut_is_null(v) || (yyjson_mut_is_ctn(v) && !unsafe_yyjson_get_len(v));
}

static const char *const server_owned[] = { "uid",
                                            "namespace",
                                            "creationTimestamp",
                                            "deletionTimestamp",
                                            "deletionGracePeriodSeconds",
                                            "generation",
                                            "resourceVersion" };

/* Metadata have a type: unknown and empty members are dropped. */
static void clean_meta(enum kind k, yyjson_mut_doc *d) {
        static const char *const others[] = { "name",        "generateName",    "labels",
                                              "annotations", "ownerReferences", "finalizers" };
        yyjson_mut_val *root = yyjson_mut_doc_get_root(d), *meta = yyjson_mut_obj_get(root, "metadata"), *key;
        yyjson_mut_obj_iter it;
        if (!yyjson_mut_is_obj(meta)) {
                yyjson_mut_obj_remove_key(root, "metadata");
                meta = yyjson_mut_obj_add_obj(d, root, "metadata");
        }
        yyjson_mut_obj_iter_init(meta, &it);
        while ((key = yyjson_mut_obj_iter_next(&it))) {
                bool known = false;
                for (size_t i = 0; i < ARRAY_LEN(others); i++)
                        known = known || streq(yyjson_mut_get_str(key), others[i]);
                for (size_t i = 0; i < ARRAY_LEN(server_owned); i++)
                        known = known || streq(yyjson_mut_get_str(key), server_owned[i]);
                if (!known || is_empty(yyjson_mut_obj_iter_get_val(key)))
                        yyjson_mut_obj_iter_remove(&it);
        }
        if (k == K_NAMESPACE) {
                yyjson_mut_val *labels = yyjson_mut_obj_get(meta, "labels");
                const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
                if (!labels)
                        labels = yyjson_mut_obj_add_obj(d, meta, "labels");
                if (name)
                        set_text(d, labels, "kubernetes.io/metadata.name", name);
        }
}

/* A new object: sets its metadata, and keeps the status if that is allowed. */
static void begin(enum kind k, yyjson_mut_doc *d, const char *ns) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(d), *meta = yyjson_mut_obj_get(root, "metadata");
        char uid[64];
        for (size_t i = 0; i < ARRAY_LEN(server_owned); i++)
                yyjson_mut_obj_remove_key(meta, server_owned[i]);
        make_uid(uid, sizeof uid);
        if (kinds[k].namespaced)
                set_text(d, meta, "namespace", ns);
        set_text(d, meta, "uid", uid);
        set_time(d, meta, "creationTimestamp", sim_wall_s());
        if (kinds[k].generation != GENERATION_NONE)
                set_int(d, meta, "generation", 1);
        if (kinds[k].status && !kinds[k].created_whole && !by_world)
                yyjson_mut_obj_remove_key(root, "status");
        if (k == K_POD && !by_world)
                set_text(d, yyjson_mut_obj_add_obj(d, root, "status"), "phase", "Pending");
        schema_complete(k, d);
}

static void set_name(yyjson_mut_doc *d, yyjson_mut_val *meta) {
        const char *prefix = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "generateName"));
        char made[256];
        if (yyjson_mut_obj_get(meta, "name") || !prefix)
                return;
        if (*next_suffix)
                snprintf(made, sizeof made, "%s%s", prefix, next_suffix);
        else
                snprintf(made, sizeof made, "%s%05" PRId64, prefix, store_rv() % 100000);
        *next_suffix = '\0';
        set_text(d, meta, "name", made);
}

/* Takes the document. */
static struct store_answer create(enum kind k, const char *ns, yyjson_mut_doc *d, struct owners *owners) {
        struct store_answer a = { 0 };
        clean_meta(k, d);
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        set_name(d, meta);
        const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
        if (kinds[k].namespaced && !by_world && !store_get(K_NAMESPACE, "", ns)) {
                a = refusal(404, "NotFound");
                a.about_ns = ns;
        } else if (!name) {
                a = (struct store_answer){ .status = 422, .reason = "Invalid", .about_kind = true };
        } else {
                begin(k, d, ns);
                a = judged(k, d, NULL);
                if (!a.status && store_get(k, ns, name))
                        a = refusal(409, "AlreadyExists");
        }
        if (a.status) {
                static char refused[256];
                snprintf(refused, sizeof refused, "%s", str_or(name, ""));
                a.name = *refused ? refused : NULL;
                yyjson_mut_doc_free(d);
                owners_unref(owners);
                return a;
        }
        return (struct store_answer){ .status = 201, .v = store_put(k, d, owners) };
}

struct store_answer store_create(const char *who, enum kind k, const char *ns, const char *body) {
        writer = who;
        yyjson_mut_doc *d = parse(body);
        struct store_answer a = d ? create(k, ns, d, NULL) : refusal(400, "BadRequest");
        log_write(who, "create", k, ns, a.v ? a.v->name : "", a.v ? body : NULL, a);
        return a;
}

/* ---- changes of an existing object ---- */

/* A request without the subresource cannot change the status. */
static void keep_status(yyjson_mut_doc *d, const struct version *was) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(d);
        yyjson_val *old = yyjson_obj_get(was->root, "status");
        yyjson_mut_obj_remove_key(root, "status");
        if (old)
                yyjson_mut_obj_add_val(d, root, "status", yyjson_val_mut_copy(d, old));
}

/* A request for the status cannot change the rest. */
static void keep_all_but_status(yyjson_mut_doc *d, const struct version *was) {
        yyjson_mut_val *status = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "status"),
                       *root = yyjson_val_mut_copy(d, was->root);
        yyjson_mut_obj_remove_key(root, "status");
        if (status)
                yyjson_mut_obj_add_val(d, root, "status", yyjson_mut_val_mut_copy(d, status));
        yyjson_mut_doc_set_root(d, root);
}

static void keep_meta(yyjson_mut_doc *d, const struct version *was) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        for (size_t i = 0; i < ARRAY_LEN(server_owned); i++) {
                yyjson_val *old = yyjson_obj_get(was->meta, server_owned[i]);
                yyjson_mut_obj_remove_key(meta, server_owned[i]);
                if (old)
                        yyjson_mut_obj_add_val(d, meta, server_owned[i], yyjson_val_mut_copy(d, old));
        }
}

/* As yyjson_equals(): the order of members does not matter. */
static bool same_value(yyjson_val *a, yyjson_mut_val *b) {
        size_t i, max;
        yyjson_val *key, *x;
        if (yyjson_get_type(a) != yyjson_mut_get_type(b))
                return false;
        if (yyjson_is_obj(a)) {
                if (yyjson_obj_size(a) != yyjson_mut_obj_size(b))
                        return false;
                yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(b);
                yyjson_obj_foreach (a, i, max, key, x) {
                        yyjson_mut_val *y =
                                yyjson_mut_obj_iter_getn(&it, yyjson_get_str(key), yyjson_get_len(key));
                        if (!y || !same_value(x, y))
                                return false;
                }
                return true;
        }
        if (yyjson_is_arr(a)) {
                yyjson_mut_val *y = yyjson_mut_arr_get_first(b);
                if (yyjson_arr_size(a) != yyjson_mut_arr_size(b))
                        return false;
                yyjson_arr_foreach (a, i, max, x) {
                        if (!same_value(x, y))
                                return false;
                        y = y->next;
                }
                return true;
        }
        if (yyjson_is_str(a))
                return yyjson_get_len(a) == yyjson_mut_get_len(b) &&
                       memcmp(yyjson_get_str(a), yyjson_mut_get_str(b), yyjson_get_len(a)) == 0;
        if (yyjson_is_int(a) && yyjson_mut_is_int(b))
                return a->uni.u64 == b->uni.u64 &&
                       (yyjson_get_subtype(a) == yyjson_mut_get_subtype(b) || a->uni.i64 >= 0);
        return a->tag == b->tag && (!yyjson_is_num(a) || a->uni.u64 == b->uni.u64);
}

static bool same_member(const struct version *was, yyjson_mut_doc *d, const char *key) {
        yyjson_val *old = yyjson_obj_get(was->root, key);
        yyjson_mut_val *now = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), key);
        return (!old && !now) || (old && now && same_value(old, now));
}

static bool starts_generation(enum kind k, const struct version *was, yyjson_mut_doc *d) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(d), *key, *value;
        yyjson_val *old_key, *old;
        size_t i, max;
        if (kinds[k].generation != GENERATION_ALL)
                return kinds[k].generation == GENERATION_SPEC && !same_member(was, d, "spec");
        yyjson_mut_obj_foreach(root, i, max, key, value) {
                const char *name = yyjson_mut_get_str(key);
                if (!streq(name, "metadata") && !(kinds[k].status && streq(name, "status")) &&
                    !same_member(was, d, name))
                        return true;
        }
        yyjson_obj_foreach (was->root, i, max, old_key, old)
                if (!yyjson_mut_obj_get(root, yyjson_get_str(old_key)))
                        return !kinds[k].status || !streq(yyjson_get_str(old_key), "status");
        return false;
}

static bool is_released(const struct version *was, yyjson_mut_val *meta) {
        return version_deleted(was) && !yyjson_mut_obj_get(meta, "finalizers") &&
               yyjson_get_sint(yyjson_obj_get(was->meta, "deletionGracePeriodSeconds")) == 0;
}

/* metadata.managedFields of a Node, as far as the controller uses it: who has written taints and
 * unschedulable, and when, to the second. Here, all clients are one. */
static void keep_writers(yyjson_mut_doc *d, const struct version *was) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(d), *meta = yyjson_mut_obj_get(root, "metadata"),
                       *spec = yyjson_mut_obj_get(root, "spec"), *entry, *fields;
        yyjson_val *old = yyjson_obj_get(was->meta, "managedFields");
        static const char *const members[][2] = { { "taints", "f:taints" },
                                                  { "unschedulable", "f:unschedulable" } };
        yyjson_mut_obj_remove_key(meta, "managedFields");
        if (same_member(was, d, "spec")) {
                if (old)
                        yyjson_mut_obj_add_val(d, meta, "managedFields", yyjson_val_mut_copy(d, old));
                return;
        }
        if (is_empty(spec))
                return;
        entry = yyjson_mut_arr_add_obj(d, yyjson_mut_obj_add_arr(d, meta, "managedFields"));
        yyjson_mut_obj_add_str(d, entry, "manager", "world");
        yyjson_mut_obj_add_str(d, entry, "operation", "Update");
        set_time(d, entry, "time", sim_wall_s());
        fields = yyjson_mut_obj_add_obj(d, yyjson_mut_obj_add_obj(d, entry, "fieldsV1"), "f:spec");
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                if (yyjson_mut_obj_get(spec, members[i][0]))
                        yyjson_mut_obj_add_obj(d, fields, members[i][1]);
}

/* Stores the new version of `was`, if it has changed. Takes the document and the owners, which are a part of
 * it. */
static struct store_answer store_changed(enum kind k, const struct version *was, yyjson_mut_doc *d,
                                         struct owners *owners) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        keep_meta(d, was);
        if (k == K_NODE)
                keep_writers(d, was);
        if (same_value(was->root, yyjson_mut_doc_get_root(d)) &&
            (!owners || owners_equal(owners, was->owners)) && !is_released(was, meta)) {
                yyjson_mut_doc_free(d);
                owners_unref(owners);
                return (struct store_answer){ .status = 200, .v = was };
        }
        struct store_answer a = judged(k, d, was);
        if (a.status) {
                yyjson_mut_doc_free(d);
                owners_unref(owners);
                return a;
        }
        if (starts_generation(k, was, d))
                set_int(d, meta, "generation", yyjson_get_sint(yyjson_obj_get(was->meta, "generation")) + 1);
        if (is_released(was, meta)) {
                /* The object is not written again, but the answer shows it. */
                version_unref(answered);
                answered = version_new(k, d);
                yyjson_mut_doc_free(d);
                owners_unref(owners);
                store_remove(k, was);
                return (struct store_answer){ .status = 200, .v = answered };
        }
        return (struct store_answer){ .status = 200, .v = store_put(k, d, owners) };
}

/* Preconditions in the metadata of a patch or an update: status 0 if they hold. An update is refused if it
 * has the UID of another object, and a patch if it changes the UID. */
static struct store_answer is_meant(enum kind k, const struct version *v, yyjson_mut_val *meta, bool whole,
                                    bool status) {
        const char *uid = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "uid"));
        const char *version = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "resourceVersion"));
        bool same = !uid || !*uid || streq(uid, v->uid);
        if (!same && whole)
                return refusal(409, "Conflict");
        if (version && *version && strtoll(version, NULL, 10) != v->rv)
                return refusal(409, "Conflict");
        if (whole && (!version || !*version) && kinds[k].put_needs_version)
                return refusal(422, "Invalid");
        if (!same && !(status && kinds[k].custom))
                return (struct store_answer){ .status = 422, .reason = "Invalid", .about_kind = true };
        return (struct store_answer){ 0 };
}

/* Takes the document `by`: a merge patch, or the `whole` object. */
static struct store_answer change(enum kind k, const struct version *was, yyjson_mut_doc *by, bool status,
                                  bool whole) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(by);
        struct store_answer a = is_meant(k, was, yyjson_mut_obj_get(root, "metadata"), whole, status);
        if (a.status) {
                yyjson_mut_doc_free(by);
                return a;
        }
        yyjson_mut_doc *old = yyjson_doc_mut_copy(was->doc, NULL), *d = yyjson_mut_doc_new(NULL);
        yyjson_mut_doc_set_root(d, whole ? yyjson_mut_val_mut_copy(d, root)
                                         : yyjson_mut_merge_patch(d, yyjson_mut_doc_get_root(old), root));
        version_name_kind(k, d);
        clean_meta(k, d);
        if (status)
                keep_all_but_status(d, was);
        else if (kinds[k].status)
                keep_status(d, was);
        schema_complete(k, d);
        if (!kinds[k].custom && is_empty(yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "status")))
                yyjson_mut_obj_remove_key(yyjson_mut_doc_get_root(d), "status");
        yyjson_mut_doc_free(old);
        yyjson_mut_doc_free(by);
        return store_changed(k, was, d, NULL);
}

struct store_answer store_merge_patch(const char *who, enum kind k, const char *ns, const char *name,
                                      const char *body, bool status) {
        const struct version *was = store_get(k, ns, name);
        struct store_answer a = refusal(404, "NotFound");
        yyjson_mut_doc *by = was ? parse(body) : NULL;
        writer = who;
        if (was)
                a = by ? change(k, was, by, status, false) : refusal(400, "BadRequest");
        log_write(who, status ? "patch status of" : "patch", k, ns, name, body, a);
        return a;
}

struct store_answer store_update(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body) {
        const struct version *was = store_get(k, ns, name);
        struct store_answer a = refusal(404, "NotFound");
        yyjson_mut_doc *by = parse(body);
        writer = who;
        if (!by)
                a = refusal(400, "BadRequest");
        else if (was)
                a = change(k, was, by, false, true);
        else if (!kinds[k].created_by_put)
                yyjson_mut_doc_free(by);
        else
                a = create(k, ns, by, NULL);
        log_write(who, "update", k, ns, name, body, a);
        return a;
}

/* An apply to an existing object replaces it as an update does, and has the preconditions of a patch. */
static struct store_answer apply_to(enum kind k, const struct version *was, yyjson_val *config,
                                    const char *manager) {
        yyjson_mut_doc *d = yyjson_mut_doc_new(NULL);
        struct owners *owners;
        struct store_answer a =
                is_meant(k, was, yyjson_val_mut_copy(d, yyjson_obj_get(config, "metadata")), false, false);
        if (a.status) {
                yyjson_mut_doc_free(d);
                return a;
        }
        yyjson_mut_doc_set_root(d, apply_merged(d, was->root, config, was->owners, manager, &owners));
        version_name_kind(k, d);
        clean_meta(k, d);
        if (kinds[k].status)
                keep_status(d, was);
        return store_changed(k, was, d, owners);
}

struct store_answer store_apply(const char *who, enum kind k, const char *ns, const char *name,
                                const char *manager, const char *body) {
        const struct version *was = store_get(k, ns, name);
        yyjson_doc *doc = yyjson_read(body, strlen(body), 0);
        yyjson_val *config = yyjson_doc_get_root(doc);
        struct store_answer a;
        writer = who;
        BUG_ON(!store_is_applied(k));
        if (!yyjson_is_obj(config) || (!was && !member_text(yyjson_obj_get(config, "metadata"), "name"))) {
                a = refusal(400, "BadRequest");
        } else if (was) {
                a = apply_to(k, was, config, manager);
        } else if (member_text(yyjson_obj_get(config, "metadata"), "uid")) {
                a = refusal(409, "Conflict");
        } else {
                yyjson_mut_doc *d = yyjson_mut_doc_new(NULL);
                struct owners *owners;
                yyjson_mut_doc_set_root(d, apply_merged(d, NULL, config, NULL, manager, &owners));
                a = create(k, ns, d, owners);
        }
        yyjson_doc_free(doc);
        log_write(who, "apply", k, ns, name, NULL, a);
        return a;
}

/* ---- deletions ---- */

static struct store_answer mark(enum kind k, const struct version *was, int64_t at_s, int64_t grace_s) {
        yyjson_mut_doc *d = yyjson_doc_mut_copy(was->doc, NULL);
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        set_time(d, meta, "deletionTimestamp", at_s);
        set_int(d, meta, "deletionGracePeriodSeconds", grace_s);
        if (!version_deleted(was) && kinds[k].generation != GENERATION_NONE)
                set_int(d, meta, "generation", yyjson_get_sint(yyjson_obj_get(was->meta, "generation")) + 1);
        struct owners *owners = was->owners ? owners_ref(was->owners) : NULL;
        return (struct store_answer){ .status = 200, .v = store_put(k, d, owners) };
}

static struct store_answer removed(enum kind k, const struct version *v) {
        return (struct store_answer){ .status = 200, .v = store_remove(k, v), .gone = true };
}

static struct store_answer delete_marked(enum kind k, const struct version *was) {
        return yyjson_obj_get(was->meta, "finalizers") ? (struct store_answer){ .status = 200, .v = was }
                                                       : removed(k, was);
}

/* A Pod has time to end, unless it is on no node or has ended. */
static struct store_answer delete_pod(const struct version *was, yyjson_val *asked) {
        enum { DEFAULT_S = 30 };
        const char *phase = str_or(was->phase, "");
        yyjson_val *own = yyjson_ptr_get(was->root, "/spec/terminationGracePeriodSeconds"),
                   *before = yyjson_obj_get(was->meta, "deletionGracePeriodSeconds");
        int64_t now = sim_wall_s(), at = 0,
                grace = yyjson_is_int(asked) ? yyjson_get_sint(asked)
                        : yyjson_is_int(own) ? yyjson_get_sint(own)
                                             : DEFAULT_S;
        if (version_deleted(was)) {
                int64_t was_s = yyjson_get_sint(before);
                if (was_s == 0)
                        return delete_marked(K_POD, was);
                if (!yyjson_is_int(asked) || grace >= was_s)
                        return (struct store_answer){ .status = 200, .v = was };
                jd_time(member_text(was->meta, "deletionTimestamp"), &at);
                at += grace - was_s;
                if (at < now) {
                        at = now;
                        grace = grace ? 1 : 0;
                }
        } else {
                if (!was->node || streq(phase, "Succeeded") || streq(phase, "Failed"))
                        grace = 0;
                at = now + grace;
        }
        struct store_answer a = mark(K_POD, was, at, grace);
        return grace ? a : delete_marked(K_POD, a.v);
}

struct store_answer store_delete(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body) {
        writer = who;
        const struct version *was = store_get(k, ns, name);
        struct store_answer a = refusal(404, "NotFound");
        yyjson_doc *options = body && *body ? yyjson_read(body, strlen(body), 0) : NULL;
        yyjson_val *root = yyjson_doc_get_root(options), *conditions = yyjson_obj_get(root, "preconditions");
        const char *uid = member_text(conditions, "uid"),
                   *version = member_text(conditions, "resourceVersion");
        if (body && *body && !yyjson_is_obj(root)) {
                a = refusal(400, "BadRequest");
        } else if (was &&
                   ((uid && !streq(uid, was->uid)) || (version && strtoll(version, NULL, 10) != was->rv))) {
                a = refusal(409, "Conflict");
                a.about_kind = true;
        } else if (was && k == K_POD) {
                a = delete_pod(was, yyjson_obj_get(root, "gracePeriodSeconds"));
        } else if (was && yyjson_obj_get(was->meta, "finalizers") && !version_deleted(was)) {
                a = mark(k, was, sim_wall_s(), 0);
        } else if (was) {
                a = delete_marked(k, was);
        }
        yyjson_doc_free(options);
        log_write(who, "delete", k, ns, name, body, a);
        return a;
}

/* ---- writes of the world ---- */

static char *quoted(const char *fmt, va_list ap) {
        struct buf b = BUF_INIT(1 << 20);
        buf_vaddf(&b, fmt, ap);
        char *s = buf_steal(&b);
        for (char *p = s; *p; p++)
                if (*p == '\'')
                        *p = '"';
        return s;
}

void world_create(enum kind k, const char *ns, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        _cleanup_(freep) char *body = quoted(fmt, ap);
        va_end(ap);
        by_world = true;
        BUG_ON(store_create("world", k, ns, body).status != 201);
        by_world = false;
}

void world_patch(enum kind k, const struct version *v, bool status, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        _cleanup_(freep) char *body = quoted(fmt, ap);
        va_end(ap);
        by_world = true;
        int s = store_merge_patch("world", k, v->ns, v->name, body, status).status;
        by_world = false;
        BUG_ON(s != 200 && s != 404);
}

void world_delete(enum kind k, const struct version *v, bool at_once) {
        store_delete("world", k, v->ns, v->name, at_once ? "{\"gracePeriodSeconds\":0}" : NULL);
}
