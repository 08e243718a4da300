/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/go_clique.h"

#include <limits.h>
#include <stdio.h>

#include "api/resources.h"
#include "base/mem.h"
#include "node/fetch.h"

struct go_clique {
        struct kube_client *client;
        char *ns;
        struct buf name;
        struct kube_call *call;
        struct arena *arena; /* of the object; NULL: not read yet, or it does not exist */
        struct clique *object;
        char why[400]; /* why it is not known; "": it is known */
        void (*answered)(void *u);
        void *u;
};

static void go_clique_keep(struct go_clique *g, struct arena *a, struct clique *object) {
        arena_free(g->arena);
        g->arena = a;
        g->object = object;
        *g->why = '\0';
}

static void go_clique_fail(struct go_clique *g, const struct err *e) {
        snprintf(g->why, sizeof g->why, "cannot read ComputeDomainClique '%s/%s': %s", g->ns,
                 buf_str(&g->name), e->msg);
}

static void go_clique_take(struct go_clique *g, yyjson_val *obj) {
        struct arena *a = arena_new(1024);
        struct clique *c = arena_alloc(a, sizeof *c);
        struct err e;
        if (jd_decode(clique_fields, obj, "", a, c, &e) == 0) {
                go_clique_keep(g, a, c);
                return;
        }
        arena_free(a);
        go_clique_fail(g, &e);
}

static void go_clique_on_answer(void *u, yyjson_val *obj, const struct err *e) {
        struct go_clique *g = u;
        g->call = NULL;
        if (!e)
                go_clique_take(g, obj);
        else if (e->kind == ERR_NOT_FOUND)
                go_clique_keep(g, NULL, NULL);
        else
                go_clique_fail(g, e);
        g->answered(g->u);
}

static void go_clique_on_retry(void *u, const struct err *e) {
        struct go_clique *g = u;
        go_clique_fail(g, e);
        g->answered(g->u);
}

void go_clique_ask_again(struct go_clique *g) {
        if (!g->call)
                g->call =
                        kube_start(g->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                      .res = &kube_cliques,
                                                                      .ns = g->ns,
                                                                      .name = buf_str(&g->name),
                                                                      .attempts = UINT_MAX,
                                                                      .backoff_max_ms = FETCH_BACKOFF_MAX_MS,
                                                                      .done = go_clique_on_answer,
                                                                      .retry = go_clique_on_retry,
                                                                      .u = g });
}

struct go_clique *go_clique_ask(struct kube_client *c, const char *ns, const char *domain_uid,
                                const char *clique_id, void (*answered)(void *u), void *u) {
        struct go_clique *g = xnew(struct go_clique);
        g->client = c;
        g->ns = xstrdup(ns);
        g->name = (struct buf)BUF_INIT(1024);
        g->answered = answered;
        g->u = u;
        clique_object_name(domain_uid, clique_id, &g->name);
        snprintf(g->why, sizeof g->why, "ComputeDomainClique '%s/%s' has not been read yet", g->ns,
                 buf_str(&g->name));
        go_clique_ask_again(g);
        return g;
}

const char *go_clique_see(const struct go_clique *g, const struct clique **ret) {
        *ret = g->object;
        return *g->why ? g->why : NULL;
}

void go_clique_free(struct go_clique *g) {
        if (!g)
                return;
        kube_cancel(g->call);
        arena_free(g->arena);
        buf_done(&g->name);
        free(g->ns);
        free(g);
}
