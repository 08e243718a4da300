/* SPDX-License-Identifier: Apache-2.0 */
/* server: computes the answers of the simulated API server: lists in pages, objects, writes, refusals as a
 * Status, and the events of watches. It has no connections: transport.c passes it requests and carries the
 * answers. */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "store.h"

/* A parsed request. */
struct asked {
        struct arena *a;   /* owns the texts */
        bool known;       /* the resource is served */
        bool known_group; /* the group is one of Kubernetes itself */
        enum kind k;
        const char *method, *content_type, *ns, *name, *subresource;
        const char *label, *field, *token, *version, *manager;
        enum { ACCEPT_ALL, ACCEPT_METADATA, ACCEPT_NOTHING } accept;
        long limit;
        bool watch;
        long timeout_s;
};
/* Parses a request. content_type or accept NULL: application/json. */
void asked_init(struct asked *q, const char *method, const char *path, const char *content_type,
                const char *accept);
void asked_done(struct asked *q);

/* Sets the function that handles merge patches of pods that are no objects of the store. It returns false if
 * there is no such pod. */
void server_set_pods(bool (*fn)(const char *ns, const char *name, const char *body));
/* Serves PodGroups from now on. */
void server_serve_pod_groups(void);
/* Returns the HTTP status, and adds the body to *out. */
int server_answer(const struct asked *q, const char *who, const char *body, struct buf *out);
/* Adds a refusal with the text of Kubernetes. q NULL: the refusal names no object. */
void server_status(int status, const char *reason, const struct asked *q, struct buf *out);
/* Returns true if the request is for a watch that cannot begin; server_answer() returns the refusal. */
bool server_refuses_watch(const struct asked *q);
/* Drops the history before now, and the continue tokens of lists in progress. */
void server_compact(void);
/* Like server_compact(), and replaces the objects by those of a backup: see store_restore(). */
void server_restore(const struct backup *b, bool all_kinds, bool bumps);
void server_done(void);

/* A watch: its request, and the version up to which its events were sent. */
struct watch;
/* `q` is borrowed, and must outlive the watch. */
struct watch *watch_new(const struct asked *q);
void watch_free(struct watch *w);
/* Adds the events until `until_ms`. Returns false if the version to resume from is compacted; it then adds
 * the error event. */
bool watch_take(struct watch *w, int64_t until_ms, struct buf *out);
/* Adds a bookmark with the version of the last event. It adds none while the watch is ahead of the store, as
 * after a restore. Such a watch is accepted, and gets the events after the version from which it was
 * requested: see kube_informer.h. */
void watch_bookmark(struct watch *w, struct buf *out);
