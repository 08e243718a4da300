/* SPDX-License-Identifier: Apache-2.0 */
/* api: the API server as a plugin sees it, in the process of the test. It replaces kube_client and
 * event_recorder, and answers from stored objects. It answers nothing before api_serve(), so a test chooses
 * the moment. A failure fails the test. */
#pragma once

#include "base/err.h"
#include "kube/kube_client.h"
#include "world/store.h"

struct api {
        uv_loop_t *loop;
        struct store store;
        bool down;             /* it answers nothing */
        bool old_cache;        /* lists from its cache have no items yet */
        bool hold;             /* it answers nothing until api_answer() */
        const char *refuses;   /* it answers each attempt with 503 and this message; NULL: it does not */
        const char *fails_for; /* it answers requests for this object with the error below; NULL: none */
        enum err_kind fails_with;
        unsigned requests; /* requests so far */
        unsigned lists;    /* those of them that were lists and were answered */
        char patch[3000];  /* the last patch; "": none */
        char events[2000]; /* "Kind/name reason: message\n" */
};
extern struct api api;

void api_begin(uv_loop_t *loop); /* starts without objects */
void api_end(void);
/* Does the next thing that is due; false: nothing is due. */
bool api_serve(void);
/* Answers the last request, or fails it with ERR_RETRY. With `retry`, the request stays, and only its
 * callback `retry` is called. */
void api_answer(bool fails, bool retry);
/* The number of GETs of objects of this kind that were answered. */
unsigned api_gets(const struct kube_resource *res);
