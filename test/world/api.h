/* SPDX-License-Identifier: Apache-2.0 */
/* api: the API server as the code of a plugin sees it, in this process: takes the place of kube_client and
 * event_recorder, and answers from objects. Nothing is answered before api_serve(), so a test chooses the
 * moment. A failure fails the test. */
#pragma once

#include "base/err.h"
#include "kube/kube_client.h"
#include "world/store.h"

struct api {
        uv_loop_t *loop;
        struct store store;
        bool down;             /* it answers nothing */
        bool unknown;          /* the version of resource.k8s.io is not known yet */
        bool old_cache;        /* lists from its cache have no items yet */
        bool hold;             /* nothing is answered until api_answer() */
        const char *refuses;   /* it answers every attempt with 503 and this message; NULL: it does not */
        const char *fails_for; /* the object for which it answers with an error of this kind; NULL: none */
        enum err_kind fails_with;
        unsigned requests; /* so far, */
        unsigned lists;    /* and of these, the lists that were answered */
        char patch[3000];  /* the last one; "": none */
        char events[2000]; /* "Kind/name reason: message\n" */
};
extern struct api api;

void api_begin(uv_loop_t *loop); /* without objects */
void api_end(void);
/* Does the next thing that is due; false: there is nothing. */
bool api_serve(void);
/* Answers the request that came last, or fails it with ERR_RETRY; retry: it stays, and only its `retry` is
 * called. */
void api_answer(bool fails, bool retry);
/* How many GETs of objects of this kind were answered. */
unsigned api_gets(const struct kube_resource *res);
