/* SPDX-License-Identifier: Apache-2.0 */
/* kube_calls: replaces kube_client for a controller in the process of the test. The linker redirects the
 * calls (see meson.build). The module keeps the requests and watches; the test answers them, and decides
 * which objects exist. A failure in this module ends the process. Loop thread only. */
#pragma once

#include <sys/queue.h>

#include "base/str.h"
#include "kube/kube_client_priv.h"

/* Which objects a label selector selects. The test has objects of this driver's daemons, and others; none of
 * the Go driver. */
enum kube_calls_selection { SELECT_ALL, SELECT_DAEMONS, SELECT_OTHERS };

/* A request that has no answer yet. */
struct kube_call {
        TAILQ_ENTRY(kube_call) entry;
        struct kube_request q; /* its strings are valid during kube_start() only; use those below */
        char *ns, *name, *query, *body;
        enum kube_calls_selection selection;
};

/* Sets the functions that are called for each new request and watch, inside kube_start(). Forgets all
 * watches. */
void kube_calls_begin(void (*started)(const struct kube_request *q), void (*watched)(void));
bool kube_calls_empty(void);
/* Answers all requests, and accepts the watches: calls `answer` for each request, which answers it with the
 * functions below. */
void kube_calls_serve(void (*answer)(struct kube_call *x));

/* Each answers a request. Objects are JSON texts. */
void kube_calls_answer(struct kube_call *x, struct str object);
/* Frees the text first, so that it does not count as memory of the controller. */
void kube_calls_answer_buf(struct kube_call *x, struct buf *object);
void kube_calls_answer_empty(struct kube_call *x);
void kube_calls_not_found(struct kube_call *x);

/* The part of a list that a request asks for: its first object, and the end. `all`: how many objects there
 * are. `per_page`: the size of a page, if the request does not limit it. */
struct kube_calls_page {
        size_t first, end;
};
struct kube_calls_page kube_calls_page_of(const struct kube_call *x, size_t all, size_t per_page);
/* Appends the end of a list whose items have been written. */
void kube_calls_list_end(const struct kube_calls_page *p, size_t all, int64_t version, struct buf *out);

/* Returns whether the selection contains an object of the daemons (`of_daemons`), or another object. */
bool kube_calls_selects(enum kube_calls_selection s, bool of_daemons);
/* Merges a patch or an apply into an object, and sets what the API server sets. Returns the text of the
 * object, which the caller frees. */
char *kube_calls_merge(const char *object, const char *change, int64_t version);

/* An event of one object. */
struct kube_calls_event {
        const struct kube_resource *res;
        const char *ns, *type; /* type NULL: MODIFIED */
        bool of_daemons;
        struct str object, metadata; /* metadata: for watches of metadata only; p NULL: as `object` */
};
/* Sends the event to each watch that selects the object. Returns the number of bytes. */
size_t kube_calls_send(const struct kube_calls_event *e);
/* Sends a bookmark to each watch, which has received all changes up to `version`. Returns the number
 * of bytes. */
size_t kube_calls_bookmark(int64_t version);
