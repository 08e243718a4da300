/* SPDX-License-Identifier: Apache-2.0 */
/* writes: sends the writes that the handlers decide. At most one write of an object (including its status) is
 * in flight. Writes that may wait are coalesced, and an object whose write fails gets a back-off. A write
 * that succeeds, but leaves the object in the version of the write before it, counts as refused.
 *
 * The module keeps no bodies. If a write may not start yet, the module queues the requester's key for the
 * time when the write may start, and the handler then decides again with the state of that time. So a burst
 * of changes becomes one write. A write does not start before the client has room for it (kube_room). Until
 * then, the requesters wait in the order in which they came, so that a body is rendered only when it can be
 * sent. Urgent requesters come first. Some places are reserved for urgent writes, and as many for the others,
 * so that writes of one class that hang in an admission webhook do not delay those of the other class. */
#pragma once

#include "base/metrics.h"
#include "kube/kube_client.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"

struct writes;

/* Identifies the write that an answer belongs to. */
struct writes_target {
        const char *requester, *ns, *name;
};
/* Called with the answer, before the requester is queued again. `e` is NULL on success. */
typedef void(writes_done_fn)(void *u, const struct writes_target *about, yyjson_val *obj,
                             const struct err *e);

enum { WRITES_RESERVED = 8 }; /* places for urgent writes only, and as many for the others only */

struct writes_options {
        struct kube_client *client;
        struct work_queue *queue;
        const char *manager;  /* field manager */
        struct metric *total; /* counter with labels resource, verb, result */
        /* Called when writes_error() of the requester has changed from no error to an error, or back. May be
         * NULL. */
        void (*error_changed)(void *u, const char *requester);
        void *u;
        bool (*is_urgent)(const char *requester); /* NULL: none is */
        unsigned away_ms, denied_ms; /* see writes_error(); 0: 60 s and 15 s */
};

struct writes *writes_new(const struct writes_options *o);
void writes_free(struct writes *w); /* cancels the writes in flight */

enum { WRITES_INTERVAL_MAX_MS = 10000 };

struct writes_request {
        const char *requester; /* key of the work queue */
        enum kube_verb verb;
        const struct kube_resource *res;
        const char *ns, *name, *subresource;
        struct str body;
        unsigned batch_ms;           /* the write waits this long after the first request, for more changes */
        unsigned interval_ms; /* the write waits this long after the last write of the same object; at most
                                 WRITES_INTERVAL_MAX_MS */
        bool metadata_only;          /* the answer contains only metadata */
        struct kube_informer *cache; /* gets the answer; may be NULL */
        writes_done_fn *done;        /* may be NULL */
        void *u;
};

/* Begins a pass of a requester, which writes_end() ends. During the pass, the requester tries each write that
 * it wants. A write that it does not try is no longer wanted: the module drops its error and its back-off,
 * and remembers the write only as long as its interval requires. */
void writes_begin(struct writes *w, const char *requester);
/* Returns true if the write is sent. Returns false if it waits for its time, for room or for the end of a
 * back-off; the requester is then queued again. */
bool writes_try(struct writes *w, const struct writes_request *r);
/* Replaces writes_try() if the write is wanted but its body cannot be rendered. The write counts as one that
 * keeps failing for the reason `why`, until the requester's write succeeds or is no longer wanted. */
void writes_cannot(struct writes *w, const struct writes_request *r, const char *why);
void writes_end(struct writes *w, const char *requester);

/* Returns metadata.generation from the answer to the last successful apply of an object. 0: there was no
 * apply, or it created the object, which then has WRITES_MADE_GENERATION. */
enum { WRITES_MADE_GENERATION = 1 };
int64_t writes_generation(const struct writes *w, const char *requester, const struct kube_resource *res,
                          const char *ns, const char *name);
/* Returns whether a write of the object (not of a subresource) is in flight. */
bool writes_sending(const struct writes *w, const char *requester, const struct kube_resource *res,
                    const char *ns, const char *name);
/* Returns why a write that the requester wanted in its latest pass keeps failing; NULL: none does. A failure
 * that may end without action (ERR_RETRY) does not count in its first minute. A refusal (ERR_DENIED) does not
 * count in its first 15 s, because an API server that has just started has not loaded the roles yet. A write
 * that no API server answered (kube_unreachable) does not count at all. A write of a subresource does not
 * count either: a status that cannot be written cannot show its own error, and when it can be written again,
 * the error no longer exists. */
const char *writes_error(const struct writes *w, const char *requester);
/* Returns whether writes_error() returns an error for any requester, now or later, without any further
 * failure. */
bool writes_failing(const struct writes *w);
/* Forgets a requester that has nothing to write any more. Writes in flight are kept. */
void writes_forget(struct writes *w, const char *requester);
/* Forgets successful writes after their interval. */
void writes_expire(struct writes *w);
size_t writes_in_flight(const struct writes *w);
size_t writes_remembered(const struct writes *w); /* the number of objects in memory */
/* Logs each write that is in flight, waits or fails. */
void writes_dump(const struct writes *w);
size_t writes_waiting(const struct writes *w); /* the number of requesters that wait for room */
