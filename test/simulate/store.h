/* SPDX-License-Identifier: Apache-2.0 */
/* store: keeps the objects of the simulated API server, their versions and their history, as etcd and the API
 * machinery of Kubernetes do (https://kubernetes.io/docs/reference/using-api/api-concepts/). */
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
        K_POD_GROUP, /* the last: not every world has it */
        K_COUNT
};

/* The changes that increase metadata.generation. GENERATION_NONE: the kind has no generation.
 * GENERATION_SPEC: changes of the spec. GENERATION_ALL: all changes, except those of metadata and of members
 * that the status subresource has. */
enum generation { GENERATION_NONE, GENERATION_SPEC, GENERATION_ALL };

/* How the API server treats a kind. For a built-in kind, the strategy in Kubernetes' pkg/registry defines
 * this; for a `custom` kind, the CustomResourceDefinition does. */
struct kind_info {
        const char *group, *version, *plural, *kind;
        bool namespaced, custom;
        bool status;          /* has the status subresource */
        bool created_whole;   /* a create may set the status nevertheless */
        bool answers_deleted; /* a DELETE is answered with the object, and not with a Status */
        bool created_by_put;
        bool put_needs_version;
        enum generation generation;
        const char *immutable[3]; /* JSON pointers */
};
extern const struct kind_info kinds[K_COUNT];
const char *kind_api_version(enum kind k); /* "apps/v1" */

/* The largest size of an object, unless store_set_limit() sets another limit. The limit of etcd is 1.5 MiB; a
 * lower limit detects a growing object earlier. */
enum { STORE_MOST_BYTES = 64 << 10 };
void store_set_limit(size_t bytes);

/* An object between two writes. It is immutable. */
struct version {
        unsigned refs;
        int64_t rv;
        yyjson_doc *doc;
        yyjson_val *root, *meta;
        char *json;
        const char *item; /* behind "{": its text in a list, where objects of built-in kinds have no `kind` */
        struct owners *owners;       /* the owners of fields; NULL: not needed */
        const char *ns, *name, *uid; /* of the document; ns "": not namespaced */
        /* Values that the world reads at each step: spec.nodeName, spec.target, and the pool and the name of
         * the first device that is allocated to a claim. NULL: the object has none. */
        const char *node, *target, *pool, *device;
        const char *domain; /* the value of the label with the UID of a ComputeDomain */
        const char *phase, *condition; /* of a Pod: status.phase, and the status of its first condition */
        int64_t renewed_s;             /* of a Lease: its annotation "renewed" */
        /* The numbers in `node` and `target`, and in the name of a Node, which is "node-<number>"; -1: none.
         */
        int node_no, target_no;
        bool for_daemons;              /* of a Node: its label selects the daemons */
        unsigned channels;             /* of a ResourceSlice: its channel devices */
        bool deleted;                  /* see version_deleted() */
        struct version *next;          /* while it is stored: the next object with the same hash */
        uint32_t hash;
};
struct version *version_ref(struct version *v);
void version_unref(struct version *v); /* NULL is allowed */
const char *version_label(const struct version *v, const char *key);
const char *version_annotation(const struct version *v, const char *key);
/* Returns true if the object has a deletionTimestamp. */
static inline bool version_deleted(const struct version *v) {
        return v->deleted;
}
/* Returns the text at a JSON pointer, or NULL if there is no text. */
const char *version_str(const struct version *v, const char *pointer);

/* A change of an object. `was` NULL: the object was created. `gone`: the object was deleted, and `now` is
 * `was` with the rv of the deletion. */
struct change {
        int64_t rv, ms;
        struct version *was, *now;
        bool gone;
};

int64_t store_rv(void);
/* Returns a number that increases with each change of an object of the kind, and with each restore. */
uint64_t store_changes(enum kind k);
struct version *store_get(enum kind k, const char *ns, const char *name); /* NULL: none; borrowed */
size_t store_count(enum kind k);
struct version *store_nth(enum kind k, size_t i); /* sorted by namespace and name; borrowed */
/* Returns the number of recorded changes of a kind, and the changes in *ret, oldest first. */
size_t store_history(enum kind k, const struct change **ret);
/* Drops the history before now: a client that wants to resume from it gets 410. */
void store_compact(void);
int64_t store_compacted(void);
/* A backup of etcd. */
struct backup;
struct backup *store_backup(void);
/* Lets backups from now on also contain the fabric objects. After a restore, the daemons report their
 * assignments again. */
void store_back_up_fabrics(void);
void backup_free(struct backup *b);
/* Restores a backup, as `etcdutl snapshot restore` and a restart of the API server do: versions continue from
 * those of the backup, and the history is lost. `bumps`: with `--bump-revision 1000000000 --mark-compacted`,
 * so that a client that wants to resume a watch gets 410. With all_kinds all kinds are
 * restored. Without it, only the kinds that only our programs write, and that no other client depends on
 * immediately, are restored: slices, claim templates and Leases, the ComputeDomains of workloads, and the
 * labels and annotations of Pods, which contain reports. All other objects stay as they are, because their
 * owners have written them again,
 * with versions of the new history. */
void store_restore(const struct backup *b, bool all_kinds, bool bumps);
/* Returns the client that made the change, while `fn` of store_on_change() runs. */
const char *store_writer(void);
/* Sets the function that is called after each change: it passes the change to the watches and the
 * promises. */
void store_on_change(void (*fn)(enum kind k, const struct change *c));
void store_done(void);

/* Sets the five characters at the end of the next name that is generated from a generateName, instead of
 * random ones. test/agree uses the characters that the real server has drawn. */
void store_set_suffix(const char *suffix);
/* Writes through the API. `who` is the client, for the log. With a status of 2xx `v` is the object, borrowed
 * until the next write; it may be deleted already. */
struct store_answer {
        int status;
        const char *reason;   /* the reason of a refusal */
        const char *about_ns; /* the namespace of a create, which does not exist */
        const char *name;     /* the name of the object that was not created; static */
        bool about_kind;      /* the refusal contains the kind of the object, and not its resource */
        const struct version *v;
        bool gone; /* the object was deleted */
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

/* Writes of the simulated world itself. In `fmt`, ' means ". A write of an object that does not exist is
 * ignored; any other failure is an error of the simulation. Unlike requests, these writes may set the status
 * of a new object, set the node of a Pod, and omit fields that do not matter here. */
void world_create(enum kind k, const char *ns, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void world_patch(enum kind k, const struct version *v, bool status, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void world_delete(enum kind k, const struct version *v, bool at_once);
