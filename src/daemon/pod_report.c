/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pod_report.h"

#include "api/names.h"
#include "base/json.h"
#include "base/mem.h"

#define BODY_MAX ((size_t)16 * 1024)
#define FIRST_MS 1000
#define STATE_MS 3000
#define PEERS_COMPLETE_MS 3000
#define PEERS_MS 20000

void pod_report_render(const char *clique_id, const struct imex_report *r, struct buf *out) {
        struct jw w = JW(out);

        jw_obj(&w, NULL);
        jw_obj(&w, "metadata");
        jw_obj(&w, "labels");
        jw_str(&w, CD_LABEL_CLIQUE, clique_id);
        jw_end_obj(&w);
        jw_obj(&w, "annotations");
        jw_str(&w, IMEX_ANNOTATION_STATE, r->status);
        jw_str(&w, IMEX_ANNOTATION_REASON, *r->reason ? r->reason : NULL);
        jw_str(&w, IMEX_ANNOTATION_READY, r->ready ? "true" : "false");
        jw_strf(&w, IMEX_ANNOTATION_INDEX, "%lld", (long long)r->index);
        if (r->node_id >= 0)
                jw_strf(&w, IMEX_ANNOTATION_NODE_ID, "%lld", (long long)r->node_id);
        else
                jw_null(&w, IMEX_ANNOTATION_NODE_ID);
        jw_strf(&w, IMEX_ANNOTATION_PEERS, "%u/%u", r->peers_connected, r->peers_known);
        jw_str(&w, IMEX_ANNOTATION_AWAITED, *r->awaited ? r->awaited : NULL);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

unsigned pod_report_patience(const struct imex_report *sent, const struct imex_report *now) {
        bool failing = streq(now->status, "BACKOFF");

        if (now->ready != (sent && sent->ready) || (sent && sent->index != now->index && now->ready))
                return 0;
        if (failing && !(sent && streq(sent->status, "BACKOFF")))
                return 0;
        if (!sent)
                return FIRST_MS;
        if (!streq(sent->status, now->status) || !streq(sent->reason, now->reason) ||
            sent->index != now->index || sent->node_id != now->node_id)
                return STATE_MS;
        return now->peers_connected >= now->peers_known ? PEERS_COMPLETE_MS : PEERS_MS;
}

static unsigned patience(const void *sent, const void *now) {
        return pod_report_patience(sent, now);
}

struct pod_patch *pod_report_patch_new(struct kube_client *c, const char *ns, const char *name) {
        return pod_patch_new(&(struct pod_patch_options){
                .client = c, .ns = ns, .name = name, .patience = patience, .drop = free });
}

void pod_report_tell(struct pod_patch *p, const char *clique_id, const struct imex_report *r) {
        _cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
        struct imex_report *copy = xnew(struct imex_report);

        *copy = *r;
        pod_report_render(clique_id, r, &body);
        pod_patch_set(p, copy, (struct str){ buf_str(&body), body.n });
}
