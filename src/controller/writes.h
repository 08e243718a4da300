/* SPDX-License-Identifier: Apache-2.0 */
/* writes: sends what was decided, at most one write an object (with its status) in flight, coalescing what
 * may wait, and backing off an object that fails.
 *
 * It keeps no bodies: when a write may not start yet, the requester's key is queued for the moment when it
 * may, and decides again from what is known then. That is how a burst becomes one write. Nor may a write
 * start before the client has room for it (kube_room): then requesters take turns in the order in which they
 * came, so that ten thousand bodies are made when they can be sent. */
#pragma once

#include "base/metrics.h"
#include "kube/kube_client.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"

struct writes;

/* Which write an answer belongs to. */
struct writes_about {
        const char *requester, *ns, *name;
};
/* Called with the answer, before the requester is queued again. e NULL on success. */
typedef void(writes_done_fn)(void *u, const struct writes_about *about, yyjson_val *obj, const struct err *e);

struct writes_options {
        struct kube_client *client;
        struct work_queue *queue;
        const char *manager;  /* field manager */
        struct metric *total; /* counter with labels resource, verb, result */
        /* What writes_error() says of a requester has begun, or has ceased, to be an error. May be NULL. */
        void (*told)(void *u, const char *requester);
        void *u;
        unsigned away_ms, denied_ms; /* see writes_error(); 0: 60 s and 15 s */
};

struct writes *writes_new(const struct writes_options *o);
void writes_free(struct writes *w); /* cancels what is in flight */

struct writes_request {
        const char *requester; /* key of the work queue */
        enum kube_verb verb;
        const struct kube_resource *res;
        const char *ns, *name, *subresource;
        struct str body;
        unsigned gather_ms;          /* waits so long from the first request on, for more to come */
        unsigned interval_ms;        /* and so long after the last write of this object */
        struct kube_informer *cache; /* takes the answer, or NULL */
        writes_done_fn *done;        /* may be NULL */
        void *u;
};

/* A look at a requester begins and ends: between them each write that it wants is tried. What was not tried
 * is not wanted any more: it has no error and no back-off, and is not remembered longer than its pace
 * demands. */
void writes_begin(struct writes *w, const char *requester);
/* True: it is on its way. False: it waits, for its time or for room, or backs off; the requester will be
 * queued again. */
bool writes_try(struct writes *w, const struct writes_request *r);
/* In place of writes_try(): the write is wanted, and its body cannot be made. It counts as one that keeps
 * failing, for the reason given, until one that the requester tries succeeds, or it wants none. */
void writes_cannot(struct writes *w, const struct writes_request *r, const char *why);
void writes_end(struct writes *w, const char *requester);

/* metadata.generation in the answer to the last successful apply of an object; 0 when there was none, or when
 * that made the object, which has WRITES_MADE_GENERATION then. */
enum { WRITES_MADE_GENERATION = 1 };
int64_t writes_generation(const struct writes *w, const char *requester, const struct kube_resource *res,
                          const char *ns, const char *name);
/* Whether a write of that object (not of a subresource) has been sent, and not been answered. */
bool writes_sending(const struct writes *w, const char *requester, const struct kube_resource *res,
                    const char *ns, const char *name);
/* Why a write that this requester wanted at the latest look keeps failing, NULL when none does. A failure
 * that passes by itself is none for its first minute (ERR_RETRY), a refusal for its first 15 s (ERR_DENIED):
 * an API server that has just started knows nobody's roles. That no API server answered (kube_away) is none
 * at all. A subresource is left out: a status that cannot be written cannot say so either, and what it says
 * when it can be written again is true no more. */
const char *writes_error(const struct writes *w, const char *requester);
/* Whether writes_error() says anything of anybody, now or later, if nothing more fails. */
bool writes_failing(const struct writes *w);
/* Drops what is remembered for a requester that has nothing to write any more, except for what is in flight.
 */
void writes_forget(struct writes *w, const char *requester);
/* Drops what is remembered of writes that succeeded, and whose pace is over. */
void writes_tidy(struct writes *w);
size_t writes_in_flight(const struct writes *w);
size_t writes_remembered(const struct writes *w); /* objects that it knows anything of */
/* Logs each write that is wanted and not done: in flight, waiting, failing. */
void writes_dump(const struct writes *w);
size_t writes_waiting(const struct writes *w); /* requesters that want to write and wait for room */
