/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/mem.h"
#include "schema.h"
#include "sim.h"

const struct kind_info kinds[K_COUNT] = {
        [K_NODE] = { "", "v1", "nodes", "Node", false },
        [K_POD] = { "", "v1", "pods", "Pod", true },
        [K_EVENT] = { "", "v1", "events", "Event", true },
        [K_LEASE] = { "coordination.k8s.io", "v1", "leases", "Lease", true },
        [K_SET] = { "apps", "v1", "daemonsets", "DaemonSet", true },
        [K_CLAIM] = { "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true },
        [K_TEMPLATE] = { "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", true },
        [K_SLICE] = { "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false },
        [K_DOMAIN] = { "resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain", true },
        [K_CLIQUE] = { "resource.nvidia.com", "v1beta1", "computedomaincliques", "ComputeDomainClique",
                       true },
        [K_NAMESPACE] = { "", "v1", "namespaces", "Namespace", false },
        [K_FABRIC] = { "resource.nvidia.com", "v1beta1", "computedomainfabrics", "ComputeDomainFabric",
                       false },
};

static struct {
        struct version **objects;
        size_t n;
        struct change *history;
        size_t n_history;
} all[K_COUNT];
static int64_t rv = 1000, compacted;
static const char *writer = "";
static void (*on_change)(enum kind k, const struct change *c);

/* ---- versions ---- */

struct version *version_ref(struct version *v) {
        v->refs++;
        return v;
}

void version_unref(struct version *v) {
        if (!v || --v->refs)
                return;
        yyjson_doc_free(v->doc);
        free(v->json);
        free(v);
}

static const char *text(yyjson_val *object, const char *key) {
        return yyjson_get_str(yyjson_obj_get(object, key));
}

static struct version *version_new(yyjson_mut_doc *doc) {
        struct version *v = xnew(struct version);
        v->refs = 1;
        v->json = yyjson_mut_write(doc, 0, NULL);
        v->doc = yyjson_read(v->json, strlen(v->json), 0);
        v->root = yyjson_doc_get_root(v->doc);
        v->meta = yyjson_obj_get(v->root, "metadata");
        v->ns = str_or(text(v->meta, "namespace"), "");
        v->name = text(v->meta, "name");
        v->uid = text(v->meta, "uid");
        v->node = text(yyjson_obj_get(v->root, "spec"), "nodeName");
        v->target = text(yyjson_obj_get(v->root, "spec"), "target");
        yyjson_val *device = yyjson_ptr_get(v->root, "/status/allocation/devices/results/0");
        v->pool = text(device, "pool");
        v->device = text(device, "device");
        v->domain = version_label(v, CD_LABEL);
        v->rv = strtoll(str_or(text(v->meta, "resourceVersion"), "0"), NULL, 10);
        return v;
}

const char *version_label(const struct version *v, const char *key) {
        return text(yyjson_obj_get(v->meta, "labels"), key);
}

const char *version_annotation(const struct version *v, const char *key) {
        return text(yyjson_obj_get(v->meta, "annotations"), key);
}

bool version_deleted(const struct version *v) {
        return yyjson_obj_get(v->meta, "deletionTimestamp") != NULL;
}

const char *version_str(const struct version *v, const char *pointer) {
        return yyjson_get_str(yyjson_ptr_get(v->root, pointer));
}

/* ---- what is there ---- */

int64_t store_rv(void) {
        return rv;
}

static int compare(const struct version *v, const char *ns, const char *name) {
        int d = strcmp(v->ns, ns);
        return d ? d : strcmp(v->name, name);
}

/* Where the object is, or belongs. */
static size_t place(enum kind k, const char *ns, const char *name, bool *ret_there) {
        size_t low = 0, high = all[k].n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (compare(all[k].objects[middle], ns, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_there = low < all[k].n && compare(all[k].objects[low], ns, name) == 0;
        return low;
}

struct version *store_get(enum kind k, const char *ns, const char *name) {
        bool there;
        size_t i = place(k, str_or(ns, ""), name, &there);
        return there ? all[k].objects[i] : NULL;
}

size_t store_count(enum kind k) {
        return all[k].n;
}

struct version *store_nth(enum kind k, size_t i) {
        return all[k].objects[i];
}

size_t store_history(enum kind k, const struct change **ret) {
        *ret = all[k].history;
        return all[k].n_history;
}

static void change_done(struct change *c) {
        version_unref(c->was);
        version_unref(c->now);
}

static void forget_history(enum kind k, size_t n) {
        for (size_t i = 0; i < n; i++)
                change_done(&all[k].history[i]);
        all[k].n_history -= n;
        if (all[k].n_history)
                memmove(all[k].history, all[k].history + n, all[k].n_history * sizeof *all[k].history);
}

void store_compact(void) {
        for (enum kind k = 0; k < K_COUNT; k++)
                forget_history(k, all[k].n_history);
        compacted = rv;
}

int64_t store_compacted(void) {
        return compacted;
}

const char *store_writer(void) {
        return writer;
}

void store_on_change(void (*fn)(enum kind k, const struct change *c)) {
        on_change = fn;
}

void store_done(void) {
        for (enum kind k = 0; k < K_COUNT; k++) {
                forget_history(k, all[k].n_history);
                free(all[k].history);
                for (size_t i = 0; i < all[k].n; i++)
                        version_unref(all[k].objects[i]);
                free(all[k].objects);
        }
}

/* ---- changes ---- */

static void set_text(yyjson_mut_doc *d, yyjson_mut_val *object, const char *key, const char *value) {
        yyjson_mut_obj_remove_key(object, key);
        yyjson_mut_obj_add_strcpy(d, object, key, value);
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

static void record(enum kind k, struct version *was, struct version *now, bool gone) {
        all[k].history = xrealloc(all[k].history, (all[k].n_history + 1) * sizeof *all[k].history);
        all[k].history[all[k].n_history++] =
                (struct change){ rv, sim_now_ms(), was ? version_ref(was) : NULL, version_ref(now), gone };
}

/* Takes the document, and the place of what had its name. Objects that are being deleted and have no
 * finalizer left go, but for a Pod on a node, for which its kubelet says so. */
static const struct version *store(enum kind k, yyjson_mut_doc *d, bool at_once) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, ++rv);
        set_text(d, meta, "resourceVersion", number);
        struct version *now = version_new(d), *was = NULL;
        yyjson_mut_doc_free(d);
        bool there, held = yyjson_arr_size(yyjson_obj_get(now->meta, "finalizers")) ||
                           (k == K_POD && !at_once && now->node);
        bool gone = version_deleted(now) && !held;
        size_t i = place(k, now->ns, now->name, &there);
        if (there)
                was = all[k].objects[i];
        record(k, was, now, gone);
        if (gone && there) {
                memmove(all[k].objects + i, all[k].objects + i + 1,
                        (--all[k].n - i) * sizeof *all[k].objects);
        } else if (there) {
                all[k].objects[i] = version_ref(now);
        } else {
                all[k].objects = xrealloc(all[k].objects, (all[k].n + 1) * sizeof *all[k].objects);
                memmove(all[k].objects + i + 1, all[k].objects + i,
                        (all[k].n++ - i) * sizeof *all[k].objects);
                all[k].objects[i] = version_ref(now);
        }
        if (there)
                version_unref(was);
        version_unref(now); /* the history has it */
        struct change c = all[k].history[all[k].n_history - 1];
        if (on_change)
                on_change(k, &c);
        return c.now;
}

static yyjson_mut_doc *parse(const char *body) {
        yyjson_doc *d = yyjson_read(body, strlen(body), 0);
        yyjson_mut_doc *m = d ? yyjson_doc_mut_copy(d, NULL) : NULL;
        yyjson_doc_free(d);
        return m;
}

static struct store_answer refusal(int status, const char *reason) {
        return (struct store_answer){ .status = status, .reason = reason };
}

static void tell(const char *who, const char *verb, enum kind k, const char *ns, const char *name,
                 const char *body, struct store_answer a) {
        if (k != K_LEASE && k != K_EVENT)
                sim_log("%s: %s %s %s/%s -> %d %s", who, verb, kinds[k].plural, str_or(ns, ""),
                        str_or(name, ""), a.status, str_or(body, ""));
}

static void make_uid(char *ret, size_t n) {
        snprintf(ret, n, "%08" PRIx64 "-0000-4000-8000-%012" PRIx64, sim_draw(UINT64_C(1) << 32),
                 (uint64_t)rv + 1);
}

/* A DNS subdomain. */
static bool is_name(const char *s) {
        size_t n = strlen(s);
        return n && n <= 253 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == n && s[0] != '-' &&
               s[n - 1] != '-';
}

/* Status 0: it may be stored. The limit of etcd is 1.5 MiB; a lower one shows sooner what grows. */
static struct store_answer judged(enum kind k, yyjson_mut_doc *d, const struct version *was) {
        struct store_answer a = { 0 };
        yyjson_doc *now = yyjson_mut_doc_imut_copy(d, NULL);
        yyjson_val *root = yyjson_doc_get_root(now), *meta = yyjson_obj_get(root, "metadata"), *key, *value;
        size_t i, max, n;
        _cleanup_(freep) char *json = yyjson_write(now, 0, &n);
        const char *why = NULL;
        if (n > STORE_MOST_BYTES) {
                a = refusal(413, "RequestEntityTooLarge");
                why = "too large";
        } else if (!is_name(text(meta, "name"))) {
                why = "metadata.name";
        } else {
                yyjson_obj_foreach (yyjson_obj_get(meta, "labels"), i, max, key, value)
                        if (yyjson_get_len(value) > 63)
                                why = "metadata.labels";
                why = str_or(why, schema_refuses(k, root, was ? was->root : NULL));
        }
        if (why) {
                sim_log("%s of %s %.80s is refused: %.200s", writer, kinds[k].kind, text(meta, "name"), why);
                if (!a.status)
                        a = refusal(422, "Invalid");
        }
        yyjson_doc_free(now);
        return a;
}

struct store_answer store_create(const char *who, enum kind k, const char *ns, const char *body) {
        writer = who;
        yyjson_mut_doc *d = parse(body);
        yyjson_mut_val *root = d ? yyjson_mut_doc_get_root(d) : NULL,
                       *meta = yyjson_mut_obj_get(root, "metadata");
        const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name")),
                   *prefix = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "generateName"));
        struct store_answer a;
        if (!name && prefix) {
                char made[256];
                snprintf(made, sizeof made, "%s%05" PRId64, prefix, rv % 100000);
                set_text(d, meta, "name", made);
                name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
        }
        if (!name) {
                yyjson_mut_doc_free(d);
                return refusal(422, "Invalid");
        }
        if (store_get(k, ns, name)) {
                a = refusal(409, "AlreadyExists");
                tell(who, "create", k, ns, name, NULL, a);
                yyjson_mut_doc_free(d);
                return a;
        }
        char uid[64];
        make_uid(uid, sizeof uid);
        if (kinds[k].namespaced)
                set_text(d, meta, "namespace", ns);
        set_text(d, meta, "uid", uid);
        set_text(d, root, "kind", kinds[k].kind);
        yyjson_mut_obj_remove_key(meta, "deletionTimestamp");
        set_time(d, meta, "creationTimestamp", sim_wall_s());
        set_int(d, meta, "generation", 1);
        a = judged(k, d, NULL);
        if (a.status) {
                tell(who, "create", k, ns, name, NULL, a);
                yyjson_mut_doc_free(d);
                return a;
        }
        a = (struct store_answer){ 201, NULL, store(k, d, false) };
        tell(who, "create", k, ns, a.v->name, body, a);
        return a;
}

/* ---- changes of what is there ---- */

/* Preconditions, as a patch or an update may carry them in its metadata. */
static bool is_meant(const struct version *v, yyjson_mut_val *meta) {
        const char *uid = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "uid"));
        const char *version = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "resourceVersion"));
        return (!uid || streq(uid, v->uid)) && (!version || strtoll(version, NULL, 10) == v->rv);
}

static bool has_status(enum kind k) {
        return k == K_NODE || k == K_POD || k == K_SET || k == K_CLAIM || k == K_DOMAIN;
}

/* The status is not for a request about the rest to change. */
static void keep_status(yyjson_mut_doc *d, const struct version *was) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(d);
        yyjson_val *old = yyjson_obj_get(was->root, "status");
        yyjson_mut_obj_remove_key(root, "status");
        if (old)
                yyjson_mut_obj_add_val(d, root, "status", yyjson_val_mut_copy(d, old));
}

/* Nor the rest for one about the status. */
static void keep_all_but_status(yyjson_mut_doc *d, const struct version *was) {
        yyjson_mut_val *status = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "status"),
                       *root = yyjson_val_mut_copy(d, was->root);
        yyjson_mut_obj_remove_key(root, "status");
        if (status)
                yyjson_mut_obj_add_val(d, root, "status", yyjson_mut_val_mut_copy(d, status));
        yyjson_mut_doc_set_root(d, root);
}

static void keep_meta(yyjson_mut_doc *d, const struct version *was) {
        static const char *const server_owned[] = {
                "uid", "namespace", "creationTimestamp", "deletionTimestamp", "generation", "resourceVersion"
        };
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        for (size_t i = 0; i < ARRAY_LEN(server_owned); i++) {
                yyjson_val *old = yyjson_obj_get(was->meta, server_owned[i]);
                yyjson_mut_obj_remove_key(meta, server_owned[i]);
                if (old)
                        yyjson_mut_obj_add_val(d, meta, server_owned[i], yyjson_val_mut_copy(d, old));
        }
}

static bool same_member(const struct version *was, yyjson_mut_doc *d, const char *key) {
        yyjson_mut_val *old = yyjson_val_mut_copy(d, yyjson_obj_get(was->root, key));
        yyjson_mut_val *now = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), key);
        return (!old && !now) || (old && now && yyjson_mut_equals(old, now));
}

/* Stores what has become of `was`, unless nothing has. */
static struct store_answer store_changed(enum kind k, const struct version *was, yyjson_mut_doc *d) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        keep_meta(d, was);
        if (yyjson_mut_equals(yyjson_val_mut_copy(d, was->root), yyjson_mut_doc_get_root(d))) {
                yyjson_mut_doc_free(d);
                return (struct store_answer){ 200, NULL, was };
        }
        struct store_answer a = judged(k, d, was);
        if (a.status) {
                yyjson_mut_doc_free(d);
                return a;
        }
        if (!same_member(was, d, "spec"))
                set_int(d, meta, "generation", yyjson_get_sint(yyjson_obj_get(was->meta, "generation")) + 1);
        return (struct store_answer){ 200, NULL, store(k, d, false) };
}

static struct store_answer change(enum kind k, const char *ns, const char *name, const char *body,
                                  bool status, bool whole) {
        const struct version *was = store_get(k, ns, name);
        yyjson_mut_doc *by = parse(body);
        if (!was || !by) {
                yyjson_mut_doc_free(by);
                return was ? refusal(400, "BadRequest") : refusal(404, "NotFound");
        }
        yyjson_mut_val *root = yyjson_mut_doc_get_root(by);
        if (!is_meant(was, yyjson_mut_obj_get(root, "metadata"))) {
                yyjson_mut_doc_free(by);
                return refusal(409, "Conflict");
        }
        yyjson_mut_doc *old = yyjson_doc_mut_copy(was->doc, NULL), *d = yyjson_mut_doc_new(NULL);
        yyjson_mut_doc_set_root(d, whole ? yyjson_mut_val_mut_copy(d, root)
                                         : yyjson_mut_merge_patch(d, yyjson_mut_doc_get_root(old), root));
        if (status)
                keep_all_but_status(d, was);
        else if (has_status(k))
                keep_status(d, was);
        yyjson_mut_doc_free(old);
        yyjson_mut_doc_free(by);
        return store_changed(k, was, d);
}

struct store_answer store_merge_patch(const char *who, enum kind k, const char *ns, const char *name,
                                      const char *body, bool status) {
        writer = who;
        struct store_answer a = change(k, ns, name, body, status, false);
        tell(who, status ? "patch status of" : "patch", k, ns, name, body, a);
        return a;
}

/* The only manager applies: what it says is so, and what it does not say stays. */
struct store_answer store_apply(const char *who, enum kind k, const char *ns, const char *name,
                                const char *body) {
        if (!store_get(k, ns, name))
                return store_create(who, k, ns, body);
        struct store_answer a = change(k, ns, name, body, false, false);
        tell(who, "apply", k, ns, name, NULL, a);
        return a;
}

struct store_answer store_update(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body) {
        writer = who;
        struct store_answer a = change(k, ns, name, body, false, true);
        tell(who, "update", k, ns, name, body, a);
        return a;
}

struct store_answer store_delete(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body) {
        writer = who;
        const struct version *was = store_get(k, ns, name);
        struct store_answer a = refusal(404, "NotFound");
        yyjson_doc *options = body && *body ? yyjson_read(body, strlen(body), 0) : NULL;
        yyjson_val *root = yyjson_doc_get_root(options), *conditions = yyjson_obj_get(root, "preconditions"),
                   *grace = yyjson_obj_get(root, "gracePeriodSeconds");
        const char *uid = text(conditions, "uid"), *version = text(conditions, "resourceVersion");
        if (was && ((uid && !streq(uid, was->uid)) || (version && strtoll(version, NULL, 10) != was->rv))) {
                a = refusal(409, "Conflict");
        } else if (was) {
                yyjson_mut_doc *d = yyjson_doc_mut_copy(was->doc, NULL);
                yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
                bool at_once = yyjson_is_int(grace) && yyjson_get_int(grace) == 0;
                a = (struct store_answer){ 200, NULL, was };
                if (!version_deleted(was))
                        set_time(d, meta, "deletionTimestamp", sim_wall_s());
                if (!version_deleted(was) || at_once)
                        a.v = store(k, d, at_once);
                else
                        yyjson_mut_doc_free(d);
        }
        yyjson_doc_free(options);
        tell(who, "delete", k, ns, name, body, a);
        return a;
}

/* ---- backups ---- */

static const enum kind backed_up[] = { K_SLICE, K_TEMPLATE, K_LEASE };

struct backup {
        int64_t rv;
        struct {
                struct version **objects;
                size_t n;
        } kinds[ARRAY_LEN(backed_up)];
};

struct backup *store_backup(void) {
        struct backup *b = xnew(struct backup);
        b->rv = rv;
        for (size_t i = 0; i < ARRAY_LEN(backed_up); i++) {
                enum kind k = backed_up[i];
                b->kinds[i].n = all[k].n;
                b->kinds[i].objects = xnew_n(struct version *, all[k].n + 1);
                for (size_t j = 0; j < all[k].n; j++)
                        b->kinds[i].objects[j] = version_ref(all[k].objects[j]);
        }
        return b;
}

void backup_free(struct backup *b) {
        for (size_t i = 0; i < ARRAY_LEN(backed_up); i++) {
                for (size_t j = 0; j < b->kinds[i].n; j++)
                        version_unref(b->kinds[i].objects[j]);
                free(b->kinds[i].objects);
        }
        free(b);
}

static void restore_kind(enum kind k, struct version *const *objects, size_t n) {
        for (size_t j = 0; j < all[k].n; j++)
                version_unref(all[k].objects[j]);
        free(all[k].objects);
        all[k].objects = xnew_n(struct version *, n + 1);
        all[k].n = n;
        for (size_t j = 0; j < n; j++)
                all[k].objects[j] = version_ref(objects[j]);
}

static void write_again(struct version **v) {
        char number[32];
        yyjson_mut_doc *d = yyjson_doc_mut_copy((*v)->doc, NULL);
        snprintf(number, sizeof number, "%" PRId64, ++rv);
        set_text(d, yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata"), "resourceVersion", number);
        version_unref(*v);
        *v = version_new(d);
        yyjson_mut_doc_free(d);
}

void store_restore(const struct backup *b) {
        sim_log("etcd is restored: version %" PRId64 " after %" PRId64, b->rv, rv);
        rv = b->rv;
        for (enum kind k = 0; k < K_COUNT; k++)
                forget_history(k, all[k].n_history);
        compacted = rv;
        for (size_t i = 0; i < ARRAY_LEN(backed_up); i++)
                restore_kind(backed_up[i], b->kinds[i].objects, b->kinds[i].n);
        for (enum kind k = 0; k < K_COUNT; k++)
                for (size_t j = 0; j < all[k].n; j++)
                        if (all[k].objects[j]->rv > b->rv)
                                write_again(&all[k].objects[j]);
}

/* ---- the world's own ---- */

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
        BUG_ON(store_create("world", k, ns, body).status != 201);
}

void world_patch(enum kind k, const struct version *v, bool status, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        _cleanup_(freep) char *body = quoted(fmt, ap);
        va_end(ap);
        int s = store_merge_patch("world", k, v->ns, v->name, body, status).status;
        BUG_ON(s != 200 && s != 404);
}

void world_delete(enum kind k, const struct version *v, bool at_once) {
        store_delete("world", k, v->ns, v->name, at_once ? "{\"gracePeriodSeconds\":0}" : NULL);
}
