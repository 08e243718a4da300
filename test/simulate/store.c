/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "apply.h"
#include "base/stderr.h"
#include "base/mem.h"
#include "sim.h"
#include "store_priv.h"

#define RESOURCE "resource.k8s.io", "v1"
#define OURS "resource.nvidia.com", "v1beta1"

const struct kind_info kinds[K_COUNT] = {
        [K_NODE] = { "", "v1", "nodes", "Node", .status = true, .created_whole = true },
        [K_POD] = { "", "v1", "pods", "Pod", .namespaced = true, .status = true, .answers_deleted = true,
                    .generation = GENERATION_SPEC },
        [K_EVENT] = { "", "v1", "events", "Event", .namespaced = true, .created_by_put = true },
        [K_LEASE] = { "coordination.k8s.io", "v1", "leases", "Lease", .namespaced = true,
                      .created_by_put = true, .put_needs_version = true },
        [K_SET] = { "apps", "v1", "daemonsets", "DaemonSet", .namespaced = true, .status = true,
                    .generation = GENERATION_SPEC, .immutable = { "/spec/selector" } },
        [K_CLAIM] = { RESOURCE, "resourceclaims", "ResourceClaim", .namespaced = true, .status = true,
                      .answers_deleted = true, .immutable = { "/spec" } },
        [K_TEMPLATE] = { RESOURCE, "resourceclaimtemplates", "ResourceClaimTemplate", .namespaced = true,
                         .answers_deleted = true, .immutable = { "/spec" } },
        [K_SLICE] = { RESOURCE, "resourceslices", "ResourceSlice", .answers_deleted = true,
                      .generation = GENERATION_SPEC,
                      .immutable = { "/spec/driver", "/spec/nodeName", "/spec/pool/name" } },
        [K_DOMAIN] = { OURS, "computedomains", "ComputeDomain", .namespaced = true, .custom = true,
                       .status = true, .put_needs_version = true, .generation = GENERATION_ALL },
        [K_CLIQUE] = { OURS, "computedomaincliques", "ComputeDomainClique", .namespaced = true,
                       .custom = true, .put_needs_version = true, .generation = GENERATION_ALL },
        [K_NAMESPACE] = { "", "v1", "namespaces", "Namespace", .status = true, .answers_deleted = true },
        [K_FABRIC] = { OURS, "computedomainfabrics", "ComputeDomainFabric", .custom = true,
                       .put_needs_version = true, .generation = GENERATION_ALL },
        [K_POD_GROUP] = { "scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", .namespaced = true,
                          .status = true },
};

const char *kind_api_version(enum kind k) {
        static char texts[K_COUNT][64];
        if (!*texts[k])
                snprintf(texts[k], sizeof texts[k], "%s%s%s", kinds[k].group, *kinds[k].group ? "/" : "",
                         kinds[k].version);
        return texts[k];
}

enum { BUCKETS = 256 };

static struct {
        struct version **objects; /* sorted */
        size_t n, cap;
        struct version *by_hash[BUCKETS]; /* the same objects */
        struct change *history;
        size_t n_history, cap_history;
        uint64_t changes;
} all[K_COUNT];
static int64_t rv = 1000, compacted;
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
        owners_unref(v->owners);
        free(v->json);
        free(v);
}

size_t version_name_kind(enum kind k, yyjson_mut_doc *d) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(d);
        yyjson_mut_obj_remove_key(root, "kind");
        yyjson_mut_obj_remove_key(root, "apiVersion");
        yyjson_mut_obj_insert(root, yyjson_mut_str(d, "kind"), yyjson_mut_str(d, kinds[k].kind), 0);
        yyjson_mut_obj_insert(root, yyjson_mut_str(d, "apiVersion"), yyjson_mut_str(d, kind_api_version(k)),
                              1);
        return strlen("{\"kind\":\"\",\"apiVersion\":\"\",") + strlen(kinds[k].kind) +
               strlen(kind_api_version(k));
}

static uint32_t hash_of(const char *ns, const char *name) {
        uint32_t h = 5381;
        for (; *ns; ns++)
                h = h * 33 + (unsigned char)*ns;
        for (; name && *name; name++)
                h = h * 33 + (unsigned char)*name;
        return h;
}

/* A node may withhold its channels. */
static unsigned channels_of(yyjson_val *slice) {
        size_t i, max;
        unsigned n = 0;
        yyjson_val *d;
        yyjson_arr_foreach (yyjson_ptr_get(slice, "/spec/devices"), i, max, d)
                n += str_starts(member_text(d, "name"), "channel-");
        return n;
}

static int number_of_node(const char *name) {
        return str_starts(name, "node-") ? (int)strtoul(name + strlen("node-"), NULL, 10) : -1;
}

struct version *version_new(enum kind k, yyjson_mut_doc *doc) {
        struct version *v = xnew(struct version);
        size_t named = version_name_kind(k, doc);
        v->refs = 1;
        v->json = yyjson_mut_write(doc, 0, NULL);
        v->item = v->json + (kinds[k].custom ? 1 : named);
        v->doc = yyjson_read(v->json, strlen(v->json), 0);
        v->root = yyjson_doc_get_root(v->doc);
        v->meta = yyjson_obj_get(v->root, "metadata");
        v->ns = str_or(member_text(v->meta, "namespace"), "");
        v->name = member_text(v->meta, "name");
        v->uid = member_text(v->meta, "uid");
        v->node = member_text(yyjson_obj_get(v->root, "spec"), "nodeName");
        v->target = member_text(yyjson_obj_get(v->root, "spec"), "target");
        if (k == K_CLAIM) {
                yyjson_val *device = yyjson_ptr_get(v->root, "/status/allocation/devices/results/0");
                v->pool = member_text(device, "pool");
                v->device = member_text(device, "device");
        }
        if (k == K_POD) {
                yyjson_val *status = yyjson_obj_get(v->root, "status");
                v->phase = member_text(status, "phase");
                v->condition =
                        member_text(yyjson_arr_get_first(yyjson_obj_get(status, "conditions")), "status");
        }
        if (k == K_LEASE)
                v->renewed_s = strtoll(str_or(version_annotation(v, "renewed"), "0"), NULL, 10);
        if (k == K_SLICE)
                v->channels = channels_of(v->root);
        v->node_no = number_of_node(k == K_NODE ? v->name : v->node);
        v->target_no = number_of_node(v->target);
        v->for_daemons = k == K_NODE && streq(version_label(v, CD_LABEL_DAEMON), "true");
        v->domain = version_label(v, CD_LABEL);
        v->deleted = yyjson_obj_get(v->meta, "deletionTimestamp") != NULL;
        v->hash = hash_of(v->ns, v->name);
        v->rv = strtoll(str_or(member_text(v->meta, "resourceVersion"), "0"), NULL, 10);
        return v;
}

const char *version_label(const struct version *v, const char *key) {
        return member_text(yyjson_obj_get(v->meta, "labels"), key);
}

const char *version_annotation(const struct version *v, const char *key) {
        return member_text(yyjson_obj_get(v->meta, "annotations"), key);
}

const char *version_str(const struct version *v, const char *pointer) {
        return yyjson_get_str(yyjson_ptr_get(v->root, pointer));
}

/* ---- objects ---- */

int64_t store_rv(void) {
        return rv;
}

/* Sorted by their keys in etcd, "<namespace>/<name>": "a-b/x" comes before "a/x". */
static int compare(const struct version *v, const char *ns, const char *name) {
        size_t i = 0;
        while (v->ns[i] && v->ns[i] == ns[i])
                i++;
        int a = v->ns[i] ? (unsigned char)v->ns[i] : '/', b = ns[i] ? (unsigned char)ns[i] : '/';
        return v->ns[i] == ns[i] ? strcmp(v->name, name) : a - b;
}

/* The position of the object, or the position for it. */
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

static void add_hash(enum kind k, struct version *v) {
        struct version **head = &all[k].by_hash[v->hash % BUCKETS];
        v->next = *head;
        *head = v;
}

static void remove_hash(enum kind k, struct version *v) {
        struct version **at = &all[k].by_hash[v->hash % BUCKETS];
        while (*at != v)
                at = &(*at)->next;
        *at = v->next;
        v->next = NULL;
}

struct version *store_get(enum kind k, const char *ns, const char *name) {
        uint32_t hash = hash_of(str_or(ns, ""), name);
        struct version *v = all[k].by_hash[hash % BUCKETS];
        while (v && !(v->hash == hash && streq(v->name, name) && streq(v->ns, str_or(ns, ""))))
                v = v->next;
        return v;
}

uint64_t store_changes(enum kind k) {
        return all[k].changes;
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

void store_on_change(void (*fn)(enum kind k, const struct change *c)) {
        on_change = fn;
}

void store_done(void) {
        writes_done();
        for (enum kind k = 0; k < K_COUNT; k++) {
                forget_history(k, all[k].n_history);
                free(all[k].history);
                for (size_t i = 0; i < all[k].n; i++)
                        version_unref(all[k].objects[i]);
                free(all[k].objects);
        }
}

/* ---- changes ---- */

static void record(enum kind k, struct version *was, struct version *now, bool gone) {
        GROW(all[k].history, all[k].n_history, all[k].cap_history);
        all[k].changes++;
        all[k].history[all[k].n_history++] =
                (struct change){ rv, sim_now_ms(), was ? version_ref(was) : NULL, version_ref(now), gone };
}

static const struct version *changed(enum kind k) {
        struct change c = all[k].history[all[k].n_history - 1];
        if (on_change)
                on_change(k, &c);
        return c.now;
}

static void set_next_version(yyjson_mut_doc *d) {
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, ++rv);
        set_text(d, yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata"), "resourceVersion", number);
}

bool store_is_applied(enum kind k) {
        return k == K_SET || k == K_TEMPLATE;
}

const struct version *store_put(enum kind k, yyjson_mut_doc *d, struct owners *owners) {
        set_next_version(d);
        struct version *now = version_new(k, d), *was = NULL;
        yyjson_mut_doc_free(d);
        bool there;
        size_t i = place(k, now->ns, now->name, &there);
        if (there)
                was = all[k].objects[i];
        now->owners = owners;
        if (store_is_applied(k) && !owners)
                now->owners = owners_updated(was ? was->owners : NULL, was ? was->root : NULL, now->root);
        record(k, was, now, false);
        if (was)
                remove_hash(k, was);
        add_hash(k, now);
        if (!there) {
                GROW(all[k].objects, all[k].n, all[k].cap);
                memmove(all[k].objects + i + 1, all[k].objects + i,
                        (all[k].n++ - i) * sizeof *all[k].objects);
        }
        all[k].objects[i] = now; /* the history has its own reference */
        version_unref(was);
        return changed(k);
}

const struct version *store_remove(enum kind k, const struct version *v) {
        yyjson_mut_doc *d = yyjson_doc_mut_copy(v->doc, NULL);
        bool there;
        size_t i = place(k, v->ns, v->name, &there);
        BUG_ON(!there || all[k].objects[i] != v);
        struct version *was = all[k].objects[i];
        set_next_version(d);
        struct version *now = version_new(k, d);
        yyjson_mut_doc_free(d);
        record(k, was, now, true);
        remove_hash(k, was);
        memmove(all[k].objects + i, all[k].objects + i + 1, (--all[k].n - i) * sizeof *all[k].objects);
        version_unref(was);
        version_unref(now);
        return changed(k);
}

/* ---- backups ---- */

struct backup {
        int64_t rv;
        struct {
                struct version **objects;
                size_t n;
        } kinds[K_COUNT];
};

struct backup *store_backup(void) {
        struct backup *b = xnew(struct backup);
        b->rv = rv;
        for (enum kind k = 0; k < K_COUNT; k++) {
                b->kinds[k].n = all[k].n;
                b->kinds[k].objects = xnew_n(struct version *, all[k].n + 1);
                for (size_t j = 0; j < all[k].n; j++)
                        b->kinds[k].objects[j] = version_ref(all[k].objects[j]);
        }
        return b;
}

void backup_free(struct backup *b) {
        for (enum kind k = 0; k < K_COUNT; k++) {
                for (size_t j = 0; j < b->kinds[k].n; j++)
                        version_unref(b->kinds[k].objects[j]);
                free(b->kinds[k].objects);
        }
        free(b);
}

static void restore_kind(enum kind k, struct version *const *objects, size_t n) {
        struct version **list = xnew_n(struct version *, n + 1);
        for (size_t j = 0; j < n; j++)
                list[j] = version_ref(objects[j]);
        for (size_t j = 0; j < all[k].n; j++)
                version_unref(all[k].objects[j]);
        free(all[k].objects);
        all[k].objects = list;
        all[k].n = n;
        all[k].cap = n + 1;
}

static void rehash(enum kind k) {
        memset(all[k].by_hash, 0, sizeof all[k].by_hash);
        for (size_t j = 0; j < all[k].n; j++)
                add_hash(k, all[k].objects[j]);
        all[k].changes++;
}

static void write_again(enum kind k, struct version **v) {
        yyjson_mut_doc *d = yyjson_doc_mut_copy((*v)->doc, NULL);
        set_next_version(d);
        struct version *now = version_new(k, d);
        now->owners = (*v)->owners ? owners_ref((*v)->owners) : NULL;
        version_unref(*v);
        *v = now;
        yyjson_mut_doc_free(d);
}

enum { BUMP = 1000000000 };

/* Replaces the labels and annotations by those of the backup, which contain the reports of the programs. */
static void roll_back(enum kind k, struct version **v, const struct version *was) {
        static const char *const members[] = { "labels", "annotations" };
        bool same = true;
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                yyjson_val *x = yyjson_obj_get((*v)->meta, members[i]),
                           *y = yyjson_obj_get(was->meta, members[i]);
                same = same && (x && y ? yyjson_equals(x, y) : x == y);
        }
        if (same)
                return;
        yyjson_mut_doc *d = yyjson_doc_mut_copy((*v)->doc, NULL);
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(d), "metadata");
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                yyjson_val *value = yyjson_obj_get(was->meta, members[i]);
                yyjson_mut_obj_remove_key(meta, members[i]);
                if (value)
                        yyjson_mut_obj_add_val(d, meta, members[i], yyjson_val_mut_copy(d, value));
        }
        set_next_version(d);
        struct version *now = version_new(k, d);
        version_unref(*v);
        *v = now;
        yyjson_mut_doc_free(d);
}

static void roll_back_pods(const struct backup *b) {
        for (size_t j = 0; j < all[K_POD].n; j++)
                for (size_t i = 0; i < b->kinds[K_POD].n; i++)
                        if (streq(all[K_POD].objects[j]->uid, b->kinds[K_POD].objects[i]->uid))
                                roll_back(K_POD, &all[K_POD].objects[j], b->kinds[K_POD].objects[i]);
}

static bool with_fabrics;

void store_back_up_fabrics(void) {
        with_fabrics = true;
}

/* Replaces the ComputeDomains of workloads, which the controllers have created, by those of the backup. */
static void restore_workloads(const struct backup *b) {
        const enum kind k = K_DOMAIN;
        struct version **list = xnew_n(struct version *, all[k].n + b->kinds[k].n + 1);
        size_t n = 0, i = 0, j = 0;
        while (i < all[k].n || j < b->kinds[k].n) {
                struct version *now = i < all[k].n ? all[k].objects[i] : NULL,
                               *was = j < b->kinds[k].n ? b->kinds[k].objects[j] : NULL;
                int order = !now ? 1 : !was ? -1 : compare(now, was->ns, was->name);
                bool of_backup = was && version_label(was, CD_LABEL_AUTO) && order >= 0,
                     of_now = now && !version_label(now, CD_LABEL_AUTO) && order <= 0;
                if (of_backup || of_now)
                        list[n++] = of_backup ? was : now;
                i += order <= 0;
                j += order >= 0;
        }
        restore_kind(k, list, n);
        free(list);
}

/* Kinds that only our programs write, and that no other client depends on at once. */
static bool is_ours_alone(enum kind k) {
        return k == K_SLICE || k == K_TEMPLATE || k == K_LEASE || (k == K_FABRIC && with_fabrics);
}

void store_restore(const struct backup *b, bool all_kinds, bool bumps) {
        sim_log("etcd is restored: from version %" PRId64 " to %" PRId64, b->rv, rv);
        rv = b->rv + (bumps ? BUMP : 0);
        for (enum kind k = 0; k < K_COUNT; k++)
                forget_history(k, all[k].n_history);
        compacted = rv;
        for (enum kind k = 0; k < K_COUNT; k++)
                if (all_kinds || is_ours_alone(k))
                        restore_kind(k, b->kinds[k].objects, b->kinds[k].n);
        if (!all_kinds)
                roll_back_pods(b);
        if (!all_kinds)
                restore_workloads(b);
        for (enum kind k = 0; k < K_COUNT; k++)
                for (size_t j = 0; j < all[k].n; j++)
                        if (all[k].objects[j]->rv > b->rv)
                                write_again(k, &all[k].objects[j]);
        for (enum kind k = 0; k < K_COUNT; k++)
                rehash(k);
}
