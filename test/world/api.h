/* SPDX-License-Identifier: Apache-2.0 */
/* api: simulates the API server of a plugin, in the process of the test. It replaces kube_client and
 * event_recorder, and answers from stored objects. It answers a request only when the test calls api_serve(),
 * so the test chooses the moment. A failure in this module fails the test. */
#pragma once

#include "base/err.h"
#include "kube/kube_client.h"
#include "world/store.h"

struct api {
        uv_loop_t *loop;
        struct store store;
        bool down;             /* the server answers nothing */
        bool old_cache;        /* lists from its cache have no items yet */
        bool hold;             /* the server answers nothing until api_answer() */
        const struct kube_resource *holds; /* the server does not answer requests for this kind; NULL: none */
        const char *refuses;   /* answer each request with 503 and this message; NULL: do not */
        const char *fails_for; /* fail requests for this object with the error below; NULL: none */
        enum err_kind fails_with;
        unsigned requests; /* number of requests */
        unsigned lists;    /* number of answered lists */
        char patch[3000];  /* the last patch; "": none */
        char events[2000]; /* "Kind/name reason: message\n" */
};
extern struct api api;

void api_begin(uv_loop_t *loop); /* starts without objects */
void api_end(void);
/* Answers or delivers the next thing that is due. Returns false if nothing is due. */
bool api_serve(void);
/* Answers the last request, or fails it with ERR_RETRY. With `retry`, the request stays, and only its
 * callback `retry` is called. */
void api_answer(bool fails, bool retry);
/* Returns the number of answered GETs of objects of this kind. */
unsigned api_gets(const struct kube_resource *res);
