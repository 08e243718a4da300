/* SPDX-License-Identifier: Apache-2.0 */
/* store: the objects of the simulated API server, their versions and their history, as etcd and the API
 * machinery of Kubernetes keep them (https://kubernetes.io/docs/reference/using-api/api-concepts/). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"

enum kind {
        K_NODE,
        K_POD,
        K_EVENT,
        K_LEASE,
        K_SET,
        K_CLAIM,
        K_TEMPLATE,
        K_SLICE,
        K_DOMAIN,
        K_CLIQUE,
        K_NAMESPACE,
        K_FABRIC,
        K_COUNT
};

struct kind_info {
        const char *group, *version, *plural, *kind;
        bool namespaced;
};
extern const struct kind_info kinds[K_COUNT];

/* No object is larger. */
enum { STORE_MOST_BYTES = 64 << 10 };

/* An object as it was from one write to the next. Nothing in it changes. */
struct version {
        unsigned refs;
        int64_t rv;
        yyjson_doc *doc;
        yyjson_val *root, *meta;
        char *json;
        const char *ns, *name, *uid; /* of the document; ns "" for what has none */
        /* What the world asks for at each step: spec.nodeName, spec.target, and of the first device that is
         * allocated to a claim its pool and its name. NULL: it says none. */
        const char *node, *target, *pool, *device;
        const char *domain; /* its label with the UID of a ComputeDomain */
};
struct version *version_ref(struct version *v);
void version_unref(struct version *v); /* NULL is allowed */
const char *version_label(const struct version *v, const char *key);
const char *version_annotation(const struct version *v, const char *key);
bool version_deleted(const struct version *v);                         /* it has a deletionTimestamp */
const char *version_str(const struct version *v, const char *pointer); /* JSON pointer; NULL: no text there */

/* `was` NULL: created. `gone`: deleted, and `now` is the last version, with the rv of the deletion. */
struct change {
        int64_t rv, ms;
        struct version *was, *now;
        bool gone;
};

int64_t store_rv(void);
struct version *store_get(enum kind k, const char *ns, const char *name); /* NULL: none; borrowed */
size_t store_count(enum kind k);
struct version *store_nth(enum kind k, size_t i); /* sorted by namespace and name; borrowed */
/* The changes of a kind that are still known, oldest first. */
size_t store_history(enum kind k, const struct change **ret);
/* What was before is not known any more: who wants to resume there gets 410. */
void store_compact(void);
int64_t store_compacted(void);
/* What a backup of etcd has of the objects that our programs alone write and that nobody else depends on at
 * once: slices, claim templates, Leases. */
struct backup;
struct backup *store_backup(void);
void backup_free(struct backup *b);
/* As etcdctl snapshot restore without --bump-revision, and what the rest of the cluster does then: versions
 * count on from the backup's. The objects that the backup has are as they were in it. All others are as they
 * are now, because their owners have written them again, with versions of the new history. The API server has
 * been started again: it knows no history. */
void store_restore(const struct backup *b);
/* Called after each change, by which the watches and the promises see it. */
const char *store_writer(void); /* whose change it is, while that is told */
void store_on_change(void (*fn)(enum kind k, const struct change *c));
void store_done(void);

/* The writes of the API. `who` is for the log. 2xx: *ret is the object (borrowed), which may be gone by now.
 */
struct store_answer {
        int status;
        const char *reason; /* of a refusal */
        const struct version *v;
};
struct store_answer store_create(const char *who, enum kind k, const char *ns, const char *body);
struct store_answer store_merge_patch(const char *who, enum kind k, const char *ns, const char *name,
                                      const char *body, bool status);
struct store_answer store_apply(const char *who, enum kind k, const char *ns, const char *name,
                                const char *body);
struct store_answer store_update(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body);
/* body: DeleteOptions or NULL. */
struct store_answer store_delete(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body);

/* Writes of the world itself, where ' stands for ". They succeed, or the simulation is wrong, but for an
 * object that is not there. */
void world_create(enum kind k, const char *ns, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void world_patch(enum kind k, const struct version *v, bool status, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void world_delete(enum kind k, const struct version *v, bool at_once);
