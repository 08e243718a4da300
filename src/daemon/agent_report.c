/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agent_report.h"

#include <stdio.h>

#include "api/names.h"
#include "base/json.h"
#include "model/agent_seat.h"

#define BODY_MAX ((size_t)64 * 1024)
enum { STATE_MS = 3000, JOINED_MS = 500 };

static void render_seat(const char *fabric, const struct turns_seat *s, struct buf *out) {
        if (s->domain)
                agent_seat_render(fabric, s->domain, s->index, s->epoch, out);
}

static void text(struct jw *w, const char *key, const char *value) {
        jw_str(w, key, *value ? value : NULL);
}

/* All of it each time, so that what another container of the Pod has left is none of ours. */
static void render(const struct agent_report *r, const char *seat, const char *left, struct buf *out) {
        const struct turns_memory *m = &r->memory->turns;
        const struct imex_report *i = r->imex;
        struct jw w = JW(out);

        jw_obj(&w, NULL);
        jw_obj(&w, "metadata");
        jw_obj(&w, "labels");
        text(&w, CD_LABEL_CLIQUE, r->fabric);
        jw_end_obj(&w);
        jw_obj(&w, "annotations");
        text(&w, IMEX_ANNOTATION_FABRIC, r->fabric_uid);
        text(&w, IMEX_ANNOTATION_SEAT, seat);
        text(&w, IMEX_ANNOTATION_SEAT_INFIX, m->now.domain ? str_or(m->now.infix, "") : "");
        text(&w, IMEX_ANNOTATION_LEFT, left);
        jw_strf(&w, IMEX_ANNOTATION_SEEN, "%lld", (long long)m->seen);
        text(&w, IMEX_ANNOTATION_HELD, r->held);
        jw_str(&w, IMEX_ANNOTATION_STATE, i ? i->status : "IDLE");
        text(&w, IMEX_ANNOTATION_REASON, r->reason);
        jw_str(&w, IMEX_ANNOTATION_READY, i && i->ready && !*r->reason ? "true" : "false");
        if (i)
                jw_strf(&w, IMEX_ANNOTATION_INDEX, "%lld", (long long)i->index);
        else
                jw_null(&w, IMEX_ANNOTATION_INDEX);
        if (i && i->node_id >= 0)
                jw_strf(&w, IMEX_ANNOTATION_NODE_ID, "%lld", (long long)i->node_id);
        else
                jw_null(&w, IMEX_ANNOTATION_NODE_ID);
        if (i)
                jw_strf(&w, IMEX_ANNOTATION_PEERS, "%u/%u", i->peers_connected, i->peers_known);
        else
                jw_null(&w, IMEX_ANNOTATION_PEERS);
        text(&w, IMEX_ANNOTATION_AWAITED, i ? i->awaited : "");
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

/* What was told, as far as it decides how soon the next is. */
struct told {
        char seat[AGENT_SEAT_MAX], left[512], fabric_uid[40];
        bool ready, failing, held;
        unsigned connected, known;
};

/* The controller waits for what an agent has left, people for the rest. The first report is worth a write by
 * itself: nothing is given to an agent of which nothing is known. Nobody waits for a place to be taken, so
 * that this is told with its IMEX ready, if that is soon: a write for each node that joins in place of two.
 */
static unsigned patience(const void *a, const void *b) {
        const struct told *sent = a, *now = b;

        if (!sent || !streq(sent->left, now->left) || !streq(sent->fabric_uid, now->fabric_uid) ||
            sent->ready != now->ready || sent->failing != now->failing || sent->held != now->held)
                return 0;
        if (streq(sent->seat, now->seat))
                return STATE_MS;
        return *now->seat && !*sent->seat ? JOINED_MS : 0;
}

struct pod_patch *agent_report_patch_new(struct kube_client *c, const char *ns, const char *name) {
        return pod_patch_new(&(struct pod_patch_options){
                .client = c, .ns = ns, .name = name, .patience = patience, .drop = free });
}

void agent_report_tell(struct pod_patch *p, const struct agent_report *r) {
        _cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX), seat = BUF_INIT(AGENT_SEAT_MAX),
                                       left = BUF_INIT(BODY_MAX);
        struct told *t = xnew(struct told);

        render_seat(r->fabric, &r->memory->turns.now, &seat);
        agent_epochs_render(r->memory->turns.left, r->memory->turns.n_left, &left);
        snprintf(t->seat, sizeof t->seat, "%s", buf_str(&seat));
        snprintf(t->left, sizeof t->left, "%s", buf_str(&left));
        snprintf(t->fabric_uid, sizeof t->fabric_uid, "%s", r->fabric_uid);
        t->ready = r->imex && r->imex->ready;
        t->failing = r->imex && r->imex->phase == IMEX_BACKOFF;
        t->held = *r->held;
        render(r, buf_str(&seat), buf_str(&left), &body);
        pod_patch_set(p, t, (struct str){ buf_str(&body), body.n });
}
