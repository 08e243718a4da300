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

/* What changes metadata.generation: nothing, for there is none; the spec; all but metadata and what the
 * status subresource has. */
enum generation { GENERATION_NONE, GENERATION_SPEC, GENERATION_ALL };

/* How the API server treats a kind: what its strategies in Kubernetes' pkg/registry, and for `custom` the
 * CustomResourceDefinition, say. */
struct kind_info {
        const char *group, *version, *plural, *kind;
        bool namespaced, custom;
        bool status;          /* has the status subresource */
        bool created_whole;   /* a create may set the status all the same */
        bool answers_deleted; /* a DELETE is answered with the object, and not with a Status */
        bool created_by_put;
        bool put_needs_version;
        enum generation generation;
        const char *immutable[3]; /* JSON pointers */
};
extern const struct kind_info kinds[K_COUNT];
const char *kind_api_version(enum kind k); /* "apps/v1" */

/* No object is larger, unless another limit is set. The limit of etcd is 1.5 MiB; a lower one shows sooner
 * what grows. */
enum { STORE_MOST_BYTES = 64 << 10 };
void store_set_limit(size_t bytes);

/* An object as it was from one write to the next. Nothing in it changes. */
struct version {
        unsigned refs;
        int64_t rv;
        yyjson_doc *doc;
        yyjson_val *root, *meta;
        char *json;
        const char
                *item; /* behind "{": its text in a list, in which built-in kinds have no kind of their own */
        struct owners *owners;       /* who has applied what; NULL: nobody asks */
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

/* `was` NULL: created. `gone`: deleted, and `now` is `was` with the rv of the deletion. */
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
/* A backup of etcd. */
struct backup;
struct backup *store_backup(void);
/* From now on a backup also has the objects of fabrics: what daemons have from them they report. */
void store_back_up_fabrics(void);
void backup_free(struct backup *b);
/* As etcdctl snapshot restore without --bump-revision, with the API server started again: versions count on
 * from the backup's, and no history is known. With all_kinds that is all. Without, only the kinds that our
 * programs alone write, and that nobody else depends on at once, are as in the backup: slices, claim
 * templates and Leases. All others are as they are now, because their owners have written them again, with
 * versions of the new history. */
void store_restore(const struct backup *b, bool all_kinds);
/* Called after each change, by which the watches and the promises see it. */
const char *store_writer(void); /* whose change it is, while that is told */
void store_on_change(void (*fn)(enum kind k, const struct change *c));
void store_done(void);

/* The name that the next generateName leads to ends in these five characters, and not in some of our own: for
 * test/agree, where another server has drawn them. */
void store_set_suffix(const char *suffix);
/* The writes of the API. `who` is for the log. 2xx: the object (borrowed until the next write), which may be
 * gone by now. */
struct store_answer {
        int status;
        const char *reason;   /* of a refusal */
        const char *about_ns; /* the namespace that a create misses */
        const char *name;     /* of what was not created; static */
        bool about_kind;      /* the refusal names the kind of the object, and not its resource */
        const struct version *v;
        bool gone; /* it was deleted */
};
struct store_answer store_create(const char *who, enum kind k, const char *ns, const char *body);
struct store_answer store_merge_patch(const char *who, enum kind k, const char *ns, const char *name,
                                      const char *body, bool status);
/* Server-side apply, forced: see apply.h. */
struct store_answer store_apply(const char *who, enum kind k, const char *ns, const char *name,
                                const char *manager, const char *body);
struct store_answer store_update(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body);
/* body: DeleteOptions or NULL. */
struct store_answer store_delete(const char *who, enum kind k, const char *ns, const char *name,
                                 const char *body);

/* Writes of the world itself, where ' stands for ". They succeed, or the simulation is wrong, but for an
 * object that is not there. They may do what no request may: set the status of a new object, place a Pod, and
 * leave out what does not matter here. */
void world_create(enum kind k, const char *ns, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void world_patch(enum kind k, const struct version *v, bool status, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void world_delete(enum kind k, const struct version *v, bool at_once);
