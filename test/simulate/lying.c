/* SPDX-License-Identifier: Apache-2.0 */
#include "lying.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/json.h"
#include "base/mem.h"
#include "channels.h"
#include "model/channel_report.h"
#include "model/daemon_report.h"
#include "sim.h"
#include "world_state.h"

enum {
        BODY_MAX = 256 << 10,
        LONG_TEXT = 3000,
        MOST_CHANGES = 4,
        MOST_HELD = 4,
        CHANNELS_MAX = 2048, /* FABRIC_CHANNELS_MAX of model/fabric.h, whose struct node is another one */
        SLOTS_MOST = 4096,
        STUCK_MS = 60000,
        RESTART_MS = 5000
};
/* Still below DAEMON_REPORT_EPOCHS_AHEAD, so the report counts, and the next false report begins at this
 * epoch. */
#define FAR_AHEAD ((INT64_C(1) << 32) - 1)
#define IGNORED_EPOCH (INT64_C(1) << 40)
#define SOMEBODY "00000000-0000-4000-8000-%012u"

static bool used, lies, over, restarted[MAX_NODES];
static unsigned liar, n_lies;
static int64_t next_ms, stuck_ms;
/* The percentage of the daemon's reports that become false, and the pause between two false reports by
 * somebody with its token. */
static unsigned percent;
static int64_t pause_ms;

void lying_use(void) {
        used = true;
}

bool lying_used(void) {
        return used;
}

void lying_begin(void) {
        if (!used)
                return;
        lies = true;
        liar = (unsigned)sim_draw(w.n_nodes);
        percent = (unsigned)sim_between(20, 100);
        pause_ms = sim_chance(30) ? 2000 : 30000;
        sim_log("the daemon of %s writes false reports", w.nodes[liar].name);
}

bool lying_is(unsigned node) {
        return used && node == liar;
}

bool lying_excuses(unsigned node) {
        return lying_is(node) && !over;
}

unsigned lying_count(void) {
        return n_lies;
}

/* The daemon may have reported an assignment as left while a pod uses it. Then it stays in the assignment
 * until the pod has ended. */
void lying_calm(void) {
        if (lies)
                end_pods_on(&w.nodes[liar]);
        stuck_ms = sim_now_ms() + STUCK_MS;
        lies = false;
}

void lying_over(void) {
        over = true;
}

/* ---- values that it knows ---- */

static const struct version *any(enum kind k) {
        return store_count(k) ? store_nth(k, sim_draw(store_count(k))) : NULL;
}

static const char *some_uid(struct arena *a, enum kind k) {
        const struct version *v = sim_chance(85) ? any(k) : NULL;
        return v ? arena_strdup(a, v->uid) : arena_printf(a, SOMEBODY, (unsigned)sim_draw(1000));
}

static const char *some_boot(struct arena *a) {
        const struct node *n = &w.nodes[sim_draw(w.n_nodes)];
        return arena_printf(a, BOOT_ID, sim_chance(70) ? n->boots : (unsigned)sim_draw(1000));
}

static const char *some_clique(struct arena *a) {
        return arena_printf(a, CLIQUE, (unsigned)sim_draw((w.n_nodes - 1) / NODES_OF_CLIQUE + 2));
}

/* An assignment of any node; NULL: none. *domain is its owner. */
static yyjson_val *some_assignment(const char **domain) {
        const struct version *f = any(K_FABRIC);
        yyjson_val *domains = f ? yyjson_obj_get(f->root, "domains") : NULL;
        size_t n = yyjson_arr_size(domains);
        yyjson_val *d = n ? yyjson_arr_get(domains, (size_t)sim_draw(n)) : NULL,
                   *list = yyjson_obj_get(d, "assignments");
        n = yyjson_arr_size(list);
        *domain = yyjson_get_str(yyjson_ptr_get(d, "/owner/uid"));
        return n ? yyjson_arr_get(list, (size_t)sim_draw(n)) : NULL;
}

/* A report with a higher epoch raises the epoch of the fabric object. */
static int64_t some_epoch(void) {
        static const int64_t near[] = { -3, -2, -1, 0, 1, 2, 100 };
        const char *domain;
        yyjson_val *x = some_assignment(&domain);
        const struct version *f = any(K_FABRIC);
        int64_t epoch = f ? yyjson_get_sint(yyjson_obj_get(f->root, "epoch")) : 0;
        if (sim_chance(10))
                return sim_chance(50) ? IGNORED_EPOCH : INT64_MAX - (int64_t)sim_draw(3);
        if (x && sim_chance(50))
                return yyjson_get_sint(yyjson_obj_get(x, "epoch"));
        epoch += sim_chance(10) ? FAR_AHEAD : near[sim_draw(ARRAY_LEN(near))];
        return epoch > 0 ? epoch : 0;
}

/* A value of another node, or an invalid one. */
static int64_t some_index(void) {
        const char *domain;
        yyjson_val *x = some_assignment(&domain);
        if (x && sim_chance(60))
                return yyjson_get_sint(yyjson_obj_get(x, "index"));
        return sim_chance(10) ? INT64_MAX : sim_between(0, sim_chance(20) ? SLOTS_MOST : 8);
}

/* ---- false reports ---- */

static void change_assignment(struct daemon_report *r, struct arena *a) {
        const char *domain;
        yyjson_val *x = some_assignment(&domain);
        r->has_assignment = true;
        r->ready = sim_chance(50);
        snprintf(r->assignment.clique_id, sizeof r->assignment.clique_id, "%s",
                 sim_chance(80) ? w.nodes[liar].clique : some_clique(a));
        snprintf(r->assignment.domain_uid, sizeof r->assignment.domain_uid, "%s",
                 domain && sim_chance(70) ? domain : some_uid(a, K_DOMAIN));
        /* The value of another node in the fabric object, or of no node. */
        r->assignment.index =
                x && sim_chance(50) ? yyjson_get_sint(yyjson_obj_get(x, "index")) : some_index();
        r->assignment.epoch =
                x && sim_chance(40) ? yyjson_get_sint(yyjson_obj_get(x, "epoch")) : some_epoch();
}

static void change_left(struct daemon_report *r, struct arena *a) {
        size_t n = (size_t)sim_draw(sim_chance(10) ? DAEMON_REPORT_LEFT_MAX + 1 : 8);
        int64_t *left = arena_alloc(a, (n + 1) * sizeof *left);
        for (size_t i = 0; i < n; i++)
                left[i] = r->has_assignment && i == 0 ? r->assignment.epoch : some_epoch();
        r->left = left;
        r->n_left = n;
}

static void change_one(struct daemon_report *r, struct arena *a) {
        switch (sim_draw(12)) {
        case 0:
        case 1:
        case 2:
                change_assignment(r, a);
                return;
        case 3:
                r->has_assignment = false;
                return;
        case 4:
        case 5:
                change_left(r, a);
                return;
        case 6:
                r->ready = !r->ready;
                r->served = sim_chance(50);
                return;
        case 7:
                r->seen = some_epoch();
                return;
        case 8:
                r->recount = sim_chance(50) ? INT64_MAX : some_epoch();
                return;
        case 9:
                r->fabric = sim_chance(20) ? "" : some_uid(a, K_FABRIC);
                return;
        case 10:
                r->claim = some_uid(a, K_CLAIM);
                return;
        default:
                r->boot_id = some_boot(a);
                return;
        }
}

/* The report names a free index of an IMEX domain in which other nodes are, and has answered each recount. */
static void enter_domain(struct daemon_report *r, struct arena *a) {
        const struct version *f = store_get(K_FABRIC, "", w.nodes[liar].clique);
        yyjson_val *domains = f ? yyjson_obj_get(f->root, "domains") : NULL;
        size_t n = yyjson_arr_size(domains);
        const char *uid =
                n ? yyjson_get_str(yyjson_ptr_get(yyjson_arr_get(domains, (size_t)sim_draw(n)), "/owner/uid"))
                  : NULL;
        if (!uid)
                return;
        r->has_assignment = r->ready = r->served = true;
        snprintf(r->assignment.clique_id, sizeof r->assignment.clique_id, "%s", w.nodes[liar].clique);
        snprintf(r->assignment.domain_uid, sizeof r->assignment.domain_uid, "%s", uid);
        r->assignment.index = sim_between(NODES_OF_CLIQUE, 2 * NODES_OF_CLIQUE);
        r->assignment.epoch = yyjson_get_sint(yyjson_obj_get(f->root, "epoch")) + (int64_t)sim_draw(3);
        r->n_left = 0;
        r->fabric = arena_strdup(a, f->uid);
        r->recount = INT64_MAX;
}

static void add_undecodable(struct buf *out) {
        static const char *const texts[] = { "",
                                             "{",
                                             "[]",
                                             "null",
                                             "{\"claimUID\":7}",
                                             "\xc3\xa9\xe2\x82\xac",
                                             "{\"claimUID\":\"x\",\"bootID\":\"y\"}" };
        if (sim_chance(80)) {
                buf_adds(out, texts[sim_draw(ARRAY_LEN(texts))]);
                return;
        }
        for (int i = 0; i < LONG_TEXT; i++)
                buf_adds(out, sim_chance(50) ? "{\"a\":" : "[");
}

/* `truth` NULL: the daemon has not reported yet. */
static void add_lie(const char *truth, struct buf *out) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct daemon_report r;
        struct err e;
        if (sim_chance(10)) {
                add_undecodable(out);
                return;
        }
        if (!truth || daemon_report_decode(str_from(truth), a, &r, &e) < 0) {
                r = (struct daemon_report){ .waits_for = "", .fabric = "", .imex_version = "580.95.05" };
                r.claim = some_uid(a, K_CLAIM);
                r.boot_id = some_boot(a);
        }
        bool enters = sim_chance(20);
        for (uint64_t i = enters ? 0 : 1 + sim_draw(MOST_CHANGES); i > 0; i--)
                change_one(&r, a);
        if (enters)
                enter_domain(&r, a);
        daemon_report_render(&r, out);
}

static void add_patch(const char *truth, struct buf *out) {
        _cleanup_(buf_done) struct buf lie = BUF_INIT(BODY_MAX);
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct jw j = JW(out);
        add_lie(truth, &lie);
        n_lies++;
        jw_obj(&j, NULL);
        jw_obj(&j, "metadata");
        jw_obj(&j, "labels");
        if (sim_chance(10))
                jw_str(&j, CD_LABEL_CLIQUE, sim_chance(80) ? some_clique(a) : NULL);
        if (sim_chance(10))
                jw_str(&j, CD_LABEL, some_uid(a, K_DOMAIN));
        jw_end_obj(&j);
        jw_obj(&j, "annotations");
        jw_str(&j, IMEX_ANNOTATION_REPORT, buf_str(&lie));
        if (sim_chance(20))
                jw_str(&j, IMEX_ANNOTATION_READY, sim_chance(50) ? "true" : "false");
        if (sim_chance(20))
                jw_strf(&j, IMEX_ANNOTATION_INDEX, "%" PRId64, some_index());
        jw_end_obj(&j);
        jw_end_obj(&j);
        jw_end_obj(&j);
}

/* ---- false reports of the plugin ---- */

/* An ID that no ComputeDomain can have, or one that others may have, for a ComputeDomain that does not exist.
 * With the UID of one that exists, the ID would be its second one until it is deleted
 * (docs/explanation/security.md). */
static struct channel_report_hold some_hold(struct arena *a) {
        static const int64_t ids[] = { 0, CHANNELS_MAX, CHANNEL_REPORT_IDS_MAX - 1 };
        if (sim_chance(50))
                return (struct channel_report_hold){ ids[sim_draw(ARRAY_LEN(ids))], some_uid(a, K_DOMAIN) };
        return (struct channel_report_hold){ sim_chance(20) ? CHANNELS_MAX - 1
                                                            : sim_between(1, (int64_t)channels_count()),
                                             arena_printf(a, SOMEBODY, (unsigned)sim_draw(1000)) };
}

/* Adds channels to the plugin's report. The plugin corrects it as soon as it sees it. */
static void lie_about_channels(const struct version *pod) {
        const char *truth = version_annotation(pod, IMEX_ANNOTATION_HOST_CHANNELS);
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        _cleanup_(buf_done) struct buf text = BUF_INIT(BODY_MAX), body = BUF_INIT(BODY_MAX);
        struct channel_report r;
        struct err e;
        if (!truth || channel_report_decode(str_from(truth), a, &r, &e) < 0 || !r.n_fabrics)
                return;
        struct channel_report_fabric *f = &r.fabrics[sim_draw(r.n_fabrics)];
        size_t n = sim_chance(10) ? CHANNEL_REPORT_HELD_MAX + 1 : 1 + (size_t)sim_draw(MOST_HELD);
        struct channel_report_hold *held = arena_alloc(a, (f->n_held + n) * sizeof *held);
        for (size_t i = 0; i < f->n_held; i++)
                held[i] = f->held[i];
        for (size_t i = 0; i < n; i++)
                held[f->n_held++] = some_hold(a);
        f->held = held;
        channel_report_render(&r, &text);
        struct jw j = JW(&body);
        jw_obj(&j, NULL);
        jw_obj(&j, "metadata");
        jw_obj(&j, "annotations");
        jw_str(&j, IMEX_ANNOTATION_HOST_CHANNELS, buf_str(&text));
        jw_end_obj(&j);
        jw_end_obj(&j);
        jw_end_obj(&j);
        n_lies++;
        store_merge_patch("liar", K_POD, DRIVER_NS, pod->name, buf_str(&body), false);
}

/* ---- times ---- */

/* The report that a write contains; NULL: none. The caller frees it. */
static char *report_in(const char *body) {
        yyjson_doc *doc = yyjson_read(body, strlen(body), 0);
        const char *text = yyjson_get_str(yyjson_obj_get(
                yyjson_ptr_get(yyjson_doc_get_root(doc), "/metadata/annotations"), IMEX_ANNOTATION_REPORT));
        char *copy = text ? xstrdup(text) : NULL;
        yyjson_doc_free(doc);
        return copy;
}

void lying_take(const char *who, const struct asked *q, char **body) {
        char name[32];
        if (!lies || !*body || !q->known || q->k != K_POD || !streq(q->method, "PATCH"))
                return;
        snprintf(name, sizeof name, "daemon-%u", liar);
        if (!streq(who, name) || !sim_chance(percent))
                return;
        _cleanup_(freep) char *truth = report_in(*body);
        _cleanup_(buf_done) struct buf lie = BUF_INIT(BODY_MAX);
        if (!truth)
                return;
        add_patch(truth, &lie);
        free(*body);
        *body = xstrdup(buf_str(&lie));
}

/* False reports have raised the epochs, and only this node's daemon has seen that: the liar's, or that of the
 * only other node of its partition (rules/assignment.h). Its daemon reports that the node gets no assignment
 * until it reboots, whether it runs IMEX or not. Somebody reboots it, as docs/reference/reasons.md advises.
 */
static void restart_if_stuck(struct node *n) {
        for (unsigned k = 0; k < MAX_RUNS; k++) {
                const struct run *r = &n->runs[k];
                const struct version *pod = r->used && r->daemon ? store_get(K_POD, DRIVER_NS, r->pod) : NULL;
                const char *reason = pod ? version_annotation(pod, IMEX_ANNOTATION_REASON) : NULL;
                if (!reason || !strstr(reason, "until it reboots"))
                        continue;
                restarted[number_of(n)] = true;
                lose_power(n, RESTART_MS);
                return;
        }
}

void lying_step(void) {
        struct node *n = &w.nodes[liar];
        for (unsigned i = 0; used && !lies && sim_now_ms() >= stuck_ms && i < w.n_nodes; i++)
                if (!restarted[i] && w.nodes[i].power && w.nodes[i].connected && world_same_clique(i, liar))
                        restart_if_stuck(&w.nodes[i]);
        if (!lies || sim_now_ms() < next_ms || !n->power || !n->connected)
                return;
        next_ms = sim_now_ms() + sim_between(100, pause_ms);
        const struct version *plugin = store_get(K_POD, DRIVER_NS, n->plugin_pod);
        if (plugin && channels_used() && sim_chance(40)) {
                lie_about_channels(plugin);
                return;
        }
        for (unsigned k = 0; k < MAX_RUNS; k++) {
                const struct run *r = &n->runs[k];
                const struct version *pod = r->used && r->daemon ? store_get(K_POD, DRIVER_NS, r->pod) : NULL;
                if (!pod || !streq(pod->uid, r->uid))
                        continue;
                _cleanup_(buf_done) struct buf lie = BUF_INIT(BODY_MAX);
                add_patch(version_annotation(pod, IMEX_ANNOTATION_REPORT), &lie);
                store_merge_patch("liar", K_POD, DRIVER_NS, r->pod, buf_str(&lie), false);
                return;
        }
}
