#include "daemon/pod_report.h"

#include <stdio.h>

#include "base/json.h"
#include "domain/names.h"

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
        if (!streq(sent->state, now->state) || !streq(sent->reason, now->reason) || sent->index != now->index ||
            sent->node_id != now->node_id)
                return STATE_MS;
        return now->peers_connected >= now->peers_known ? PEERS_COMPLETE_MS : PEERS_MS;
}
