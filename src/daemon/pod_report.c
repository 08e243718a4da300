/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pod_report.h"

#include <stdio.h>

#include "api/names.h"
#include "base/json.h"
#include "base/mem.h"

#define BODY_MAX ((size_t)16 * 1024)
#define FIRST_MS 1000
#define STATE_MS 3000
#define PEERS_COMPLETE_MS 3000
#define PEERS_MS 20000

void pod_report_render(const struct pod_report *r, struct buf *out) {
        struct jw w = JW(out);
        char number[48];

        jw_obj(&w, NULL);
        jw_obj(&w, "metadata");
        jw_obj(&w, "labels");
        jw_str(&w, CD_LABEL_CLIQUE, r->clique_id);
        jw_end_obj(&w);
        jw_obj(&w, "annotations");
        jw_str(&w, IMEX_ANNOTATION_STATE, r->state);
        jw_str(&w, IMEX_ANNOTATION_REASON, *r->reason ? r->reason : NULL);
        jw_str(&w, IMEX_ANNOTATION_READY, r->ready ? "true" : "false");
        snprintf(number, sizeof number, "%lld", (long long)r->index);
        jw_str(&w, IMEX_ANNOTATION_INDEX, number);
        snprintf(number, sizeof number, "%lld", (long long)r->node_id);
        jw_str(&w, IMEX_ANNOTATION_NODE_ID, r->node_id >= 0 ? number : NULL);
        snprintf(number, sizeof number, "%u/%u", r->peers_connected, r->peers_known);
        jw_str(&w, IMEX_ANNOTATION_PEERS, number);
        jw_str(&w, IMEX_ANNOTATION_AWAITED, *str_or(r->awaited, "") ? r->awaited : NULL);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

unsigned pod_report_patience(const struct pod_report *sent, const struct pod_report *now) {
        bool failing = streq(now->state, "BACKOFF");

        if (now->ready != (sent && sent->ready) || (sent && sent->index != now->index && now->ready))
                return 0;
        if (failing && !(sent && streq(sent->state, "BACKOFF")))
                return 0;
        if (!sent)
                return FIRST_MS;
        if (!streq(sent->state, now->state) || !streq(sent->reason, now->reason) ||
            sent->index != now->index || sent->node_id != now->node_id)
                return STATE_MS;
        return now->peers_connected >= now->peers_known ? PEERS_COMPLETE_MS : PEERS_MS;
}

/* A report with its own strings. */
struct copy {
        struct arena *a;
        struct pod_report r;
};

static void drop(void *report) {
        struct copy *c = report;

        arena_free(c->a);
}

static unsigned patience(const void *sent, const void *now) {
        const struct copy *s = sent, *n = now;

        return pod_report_patience(s ? &s->r : NULL, &n->r);
}

struct pod_patch *pod_report_patch_new(struct kube_client *c, const char *ns, const char *name) {
        return pod_patch_new(&(struct pod_patch_options){
                .client = c, .ns = ns, .name = name, .patience = patience, .drop = drop });
}

void pod_report_tell(struct pod_patch *p, const struct pod_report *r) {
        _cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
        struct arena *a = arena_new(256);
        struct copy *c = arena_alloc(a, sizeof *c);

        *c = (struct copy){ .a = a, .r = *r };
        c->r.clique_id = arena_strdup(a, r->clique_id);
        c->r.state = arena_strdup(a, r->state);
        c->r.reason = arena_strdup(a, r->reason);
        c->r.awaited = arena_strdup(a, str_or(r->awaited, ""));
        pod_report_render(r, &body);
        pod_patch_set(p, c, (struct str){ buf_str(&body), body.n });
}
