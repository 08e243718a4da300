/* SPDX-License-Identifier: Apache-2.0 */
/* server: what the simulated API server answers: lists in pages, objects, writes, refusals as a Status, and
 * the events of watches. It knows nothing of connections: transport.c brings requests here and answers back.
 */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "store.h"

/* A request, taken to pieces. */
struct asked {
        struct arena *a;   /* of the texts */
        bool known;        /* it is about a resource that is served */
        bool known_group;  /* of a group of Kubernetes itself */
        const char *group; /* not NULL: which versions of this group are served */
        enum kind k;
        const char *method, *content_type, *ns, *name, *subresource;
        const char *label, *field, *token, *version, *manager;
        enum { ACCEPT_ALL, ACCEPT_METADATA, ACCEPT_NOTHING } accept;
        long limit;
        bool watch;
        long timeout_s;
};
/* content_type, accept NULL: application/json. */
void asked_init(struct asked *q, const char *method, const char *path, const char *content_type,
                const char *accept);
void asked_done(struct asked *q);

/* The status; the body is added to *out. */
int server_answer(const struct asked *q, const char *who, const char *body, struct buf *out);
/* A refusal as Kubernetes words it. q NULL: it names no object. */
void server_status(int status, const char *reason, const struct asked *q, struct buf *out);
/* No watch begins with this request, which server_answer() refuses instead. */
bool server_refuses_watch(const struct asked *q);
/* Tokens of lists that are under way are forgotten, and what was before now. */
void server_compact(void);
/* The same, and the objects are those of a backup: see store_restore(). */
void server_restore(const struct backup *b, bool all_kinds);
void server_done(void);

/* A watch: what it was asked for, and up to where it has been told. */
struct watch;
/* `q` stays the caller's, and outlives it. */
struct watch *watch_new(const struct asked *q);
void watch_free(struct watch *w);
/* Adds the events of what had happened until_ms; false: what it would resume from is forgotten, and it has
 * been told so. */
bool watch_take(struct watch *w, int64_t until_ms, struct buf *out);
/* Adds a bookmark at what it has been told; none while the watch is ahead of the store, as after a restore.
 * Such a watch is accepted, and gets what is newer than the version that it was asked from: see
 * kube_informer.h. */
void watch_bookmark(struct watch *w, struct buf *out);
