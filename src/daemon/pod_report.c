/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pod_report.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "api/states.h"
#include "base/stderr.h"
#include "base/json.h"
#include "kube/report_sender.h"
#include "model/daemon_report.h"

#define BODY_MAX ((size_t)64 * 1024)
enum { STATE_MS = 3000, JOINED_MS = 500, REPORT_MAX = 16384 };

static void render_report(const struct pod_report_content *r, int64_t seen, bool with_left, struct buf *out) {
        const struct decision_memory *m = &r->memory->decision;
        struct daemon_report d = { .claim = r->claim,
                                   .boot_id = r->boot_id,
                                   .fabric = r->fabric_uid,
                                   .has_assignment = m->now.domain != NULL,
                                   .ready = m->ready,
                                   .left = m->left,
                                   .n_left = with_left ? m->n_left : 0,
                                   .seen = seen,
                                   .recount = m->recount,
                                   .served = r->memory->served,
                                   .waits_for = r->waits_for,
                                   .imex_version = r->imex_version };

        if (m->now.domain) {
                snprintf(d.assignment.clique_id, sizeof d.assignment.clique_id, "%s", r->fabric);
                snprintf(d.assignment.domain_uid, sizeof d.assignment.domain_uid, "%s", m->now.domain);
                d.assignment.index = m->now.index;
                d.assignment.epoch = m->now.epoch;
        }
        daemon_report_render(&d, out);
}

static void pod_report_text(struct jw *w, const char *key, const char *value) {
        jw_str(w, key, *value ? value : NULL);
}

/* The ComputeDomain that the daemon serves, for other people's tools; "": none. The partition's standing
 * domain has no label. */
static const char *label_of(const struct pod_report_content *r) {
        const char *domain = r->memory->decision.now.domain;
        char standing[37];

        fabric_standing_uid(r->fabric, standing);
        return domain && !streq(domain, standing) ? domain : "";
}

/* Renders everything each time, so that no part of an earlier container's report stays. */
static void pod_report_render(const struct pod_report_content *r, const char *report, struct buf *out) {
        const struct imex_report *i = r->imex;
        struct jw w = JW(out);

        jw_obj(&w, NULL);
        jw_obj(&w, "metadata");
        jw_obj(&w, "labels");
        pod_report_text(&w, CD_LABEL_CLIQUE, r->fabric);
        pod_report_text(&w, CD_LABEL, label_of(r));
        jw_end_obj(&w);
        jw_obj(&w, "annotations");
        jw_str(&w, IMEX_ANNOTATION_REPORT, report);
        jw_str(&w, IMEX_ANNOTATION_STATE, imex_status_name(i ? i->status : IMEX_STATE_IDLE));
        pod_report_text(&w, IMEX_ANNOTATION_REASON, r->reason);
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
        pod_report_text(&w, IMEX_ANNOTATION_AWAITED, i ? i->awaited : "");
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

/* ---- messages ---- */

struct message {
        char *body;   /* the patch; NULL: there is none */
        char *urgent; /* the report without `left`, and without `seen` unless the object is behind it */
        int64_t *left;
        size_t n_left;
        bool in_domain, ready, failing;
        int64_t recount;
};

static int64_t *copy_epochs(const int64_t *epochs, size_t n) {
        int64_t *c = xnew_n(int64_t, n);

        for (size_t i = 0; i < n; i++)
                c[i] = epochs[i];
        return c;
}

static void pod_report_drop(struct message *m) {
        free(m->body);
        free(m->urgent);
        free(m->left);
        *m = (struct message){ 0 };
}

static struct message message(const struct pod_report_content *r, int64_t seen, bool behind) {
        const struct decision_memory *m = &r->memory->decision;
        _cleanup_(buf_done) struct buf text = BUF_INIT(REPORT_MAX), urgent = BUF_INIT(REPORT_MAX),
                                       body = BUF_INIT(BODY_MAX);

        render_report(r, seen, true, &text);
        render_report(r, behind ? seen : 0, false, &urgent);
        pod_report_render(r, buf_str(&text), &body);
        BUG_ON(text.failed || urgent.failed || body.failed);
        return (struct message){ .body = xstrdup(buf_str(&body)),
                                 .urgent = xstrdup(buf_str(&urgent)),
                                 .left = copy_epochs(m->left, m->n_left),
                                 .n_left = m->n_left,
                                 .in_domain = m->now.domain,
                                 .ready = r->imex && r->imex->ready,
                                 .failing = r->imex && r->imex->phase == IMEX_BACKOFF,
                                 .recount = m->recount };
}

static struct message pod_report_copy(const struct message *m) {
        struct message c = *m;

        c.body = xstrdup(m->body);
        c.urgent = xstrdup(m->urgent);
        c.left = copy_epochs(m->left, m->n_left);
        return c;
}

/* An index can be reused after its epoch was reported as left. The controller needs no report that an epoch
 * is no longer listed. */
static bool has_left_more(const struct message *sent, const struct message *wanted) {
        for (size_t i = 0; i < wanted->n_left; i++)
                if (!daemon_report_has_epoch(sent->left, sent->n_left, wanted->left[i]))
                        return true;
        return false;
}

/* How long a changed report may wait, so that several changes cost one write. The controller waits for every
 * change, with two exceptions. A daemon that joins a domain soon has its IMEX READY and reports both. And
 * `seen` changes with every node that joins, on all nodes of the partition: it is sent with the next report.
 * The annotations for people can wait, too. */
static unsigned patience(const struct message *sent, const struct message *wanted) {
        if (!sent->body || sent->ready != wanted->ready || sent->failing != wanted->failing ||
            sent->recount != wanted->recount || has_left_more(sent, wanted))
                return 0;
        if (streq(sent->urgent, wanted->urgent))
                return STATE_MS;
        return wanted->in_domain && !sent->in_domain ? JOINED_MS : 0;
}

/* ---- the Pod ---- */

struct pod_report {
        struct report_sender *sender;
        struct message wanted, sent; /* sent: the server has it, or a patch with it is in flight */
        int64_t seen;                /* the seen epoch in `wanted` */
};

struct own_pod {
        struct kube_object o;
        const char *text[10]; /* everything that render() writes; NULL: absent */
};
#define ANNOTATION(key, i) JD_STR(struct own_pod, "metadata>annotations>" key, text[i])
#define LABEL(key, i) JD_STR(struct own_pod, "metadata>labels>" key, text[i])
#define TEXTS                                                                                                \
        LABEL(CD_LABEL, 0), LABEL(CD_LABEL_CLIQUE, 1), ANNOTATION(IMEX_ANNOTATION_REPORT, 2),                \
                ANNOTATION(IMEX_ANNOTATION_STATE, 3), ANNOTATION(IMEX_ANNOTATION_REASON, 4),                 \
                ANNOTATION(IMEX_ANNOTATION_READY, 5), ANNOTATION(IMEX_ANNOTATION_INDEX, 6),                  \
                ANNOTATION(IMEX_ANNOTATION_NODE_ID, 7), ANNOTATION(IMEX_ANNOTATION_PEERS, 8),                \
                ANNOTATION(IMEX_ANNOTATION_AWAITED, 9), JD_END
static const struct jd_field f_texts[] = { TEXTS };
static const struct jd_field f_pod[] = { JD_OBJ(struct own_pod, "metadata", o.meta, kube_f_meta), TEXTS };

/* The server has other content than we sent: etcd was restored. */
static bool is_rolled_back(const struct pod_report *r) {
        const struct own_pod *pod = (const struct own_pod *)report_sender_object(r->sender);
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct own_pod sent = { 0 };
        struct err e;

        if (!pod || !r->sent.body)
                return false;
        int decoded = jd_decode_text(f_texts, str_from(r->sent.body), "", a, &sent, &e);
        BUG_ON(decoded < 0);
        return !jd_equal(f_texts, pod, &sent);
}

static bool pod_report_is_settled(const struct pod_report *r) {
        return !r->wanted.body || (streq(r->wanted.body, r->sent.body) && !is_rolled_back(r));
}

static int pod_report_wait_ms(void *u) {
        const struct pod_report *r = u;

        if (pod_report_is_settled(r))
                return -1;
        return is_rolled_back(r) ? 0 : (int)patience(&r->sent, &r->wanted);
}

static void pod_report_write(void *u, struct buf *out) {
        struct pod_report *r = u;

        pod_report_drop(&r->sent);
        r->sent = pod_report_copy(&r->wanted);
        buf_adds(out, r->sent.body);
}

static bool pod_report_sent(void *u, bool failed) {
        struct pod_report *r = u;

        if (!failed && !is_rolled_back(r))
                return true;
        pod_report_drop(&r->sent); /* it is not known what the server has */
        return false;
}

struct pod_report *pod_report_new(struct kube_client *c, const char *ns, const char *name) {
        struct pod_report *r = xnew(struct pod_report);

        r->sender = report_sender_new(&(struct report_sender_options){ .client = c,
                                                                       .ns = ns,
                                                                       .name = name,
                                                                       .fields = f_pod,
                                                                       .size = sizeof(struct own_pod),
                                                                       .wait_ms = pod_report_wait_ms,
                                                                       .render = pod_report_write,
                                                                       .sent = pod_report_sent,
                                                                       .u = r });
        return r;
}

void pod_report_free(struct pod_report *r) {
        if (!r)
                return;
        report_sender_free(r->sender);
        pod_report_drop(&r->wanted);
        pod_report_drop(&r->sent);
        free(r);
}

void pod_report_set(struct pod_report *r, const struct pod_report_content *content, bool behind) {
        int64_t seen = content->memory->decision.seen;
        struct message m = message(content, behind ? seen : r->seen, behind);

        if (!streq(m.body, r->wanted.body) || (behind && !streq(m.urgent, r->wanted.urgent))) {
                pod_report_drop(&m);
                pod_report_drop(&r->wanted);
                r->seen = seen;
                r->wanted = message(content, seen, behind);
                report_sender_check(r->sender);
        } else {
                pod_report_drop(&m);
        }
}
