/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/isolation.h"

#include "api/names.h"
#include "api/reasons.h"
#include "base/log.h"
#include "base/loop.h"
#include "cd_plugin/may_prepare.h"

enum { FIRST_LOOK_MS = 6000 };

struct isolation {
        struct isolation_options o;
        struct fabric_watch *fabric;
        struct holdings *holdings;
        bool placed; /* this process has seen usable facts */
        struct toolkit_watch *toolkit;
        struct withhold_steady down, counts_differ, versions_differ;
        struct loop_timer due; /* of the states above */
        uint64_t born_ms;
        bool decided; /* has been decided before */
        struct standing standing;
        const char *withheld; /* why no devices are offered; NULL: they are */
        enum toolkit_answer reported;
        bool any_reported;
};

/* ---- the partition ---- */

static const char *imex_version(const struct isolation *i) {
        return i->o.standing ? i->standing.version : i->o.host ? host_imex_get(i->o.host)->version : "";
}

static void isolation_place(struct isolation *i) {
        const struct facts *f = facts_get(i->o.facts);
        const struct compute_domain_fabric *fabric = fabric_watch_get(i->fabric);
        const char *imex = imex_version(i);
        /* Without a driver, the node's next clique ID is not known. A plugin that starts without GPUs reports
         * that the node is in no partition, because the Pod may have the report of an earlier process. */
        i->placed = i->placed || (f->known && f->usable);
        if (f->known && (f->usable || (!i->placed && streq(f->reason, REASON_NO_GPUS))))
                holdings_node(i->holdings, &(struct holdings_node){
                                                   .clique = f->fabric.clique_id,
                                                   .fabric_uid = fabric ? fabric->o.meta.uid : "",
                                                   .channel_count = f->channel_count,
                                                   .imex = channel_report_is_token(imex) ? imex : NULL,
                                                   .withheld = i->withheld,
                                           });
}

static void isolation_on_fabric(void *u) {
        struct isolation *i = u;
        isolation_place(i);
        i->o.changed(i->o.u);
}

static void on_due(void *u) {
        struct isolation *i = u;
        i->o.changed(i->o.u);
}

void isolation_standing(struct isolation *i) {
        loop_timer_start(&i->due, 0);
}

void isolation_facts(struct isolation *i) {
        const struct facts *f = facts_get(i->o.facts);
        if (f->known && f->usable)
                fabric_watch_follow(i->fabric, f->fabric.clique_id);
        isolation_place(i);
}

struct fabric_watch *isolation_fabric(const struct isolation *i) {
        return i->fabric;
}

struct holdings *isolation_holdings(const struct isolation *i) {
        return i->holdings;
}

/* ---- the container toolkit ---- */

static void isolation_report_toolkit(struct isolation *i) {
        const char *why;
        enum toolkit_answer answer = toolkit_watch_get(i->toolkit, &why);
        cd_metrics_toolkit(i->o.metrics, answer);
        if (i->any_reported && answer == i->reported)
                return;
        log_info("how the container toolkit handles requests for IMEX channels",
                 kv_str("answer", toolkit_answer_names[answer]), kv_str("why", why));
        if (answer == TOOLKIT_NOT_FOUND && !i->o.trust_toolkit)
                event_record(
                        i->o.events, EVENT_NODE(i->o.node), EVENT_WARNING, REASON_CONTAINER_TOOLKIT_NOT_FOUND,
                        "no configuration of the NVIDIA container toolkit was found on this node (%s, %s, "
                        "%s, %s): if it is installed elsewhere, make sure that it sets " TOOLKIT_SETTING
                        "=true, because otherwise any container can get any IMEX channel by requesting it",
                        toolkit_paths[0], toolkit_paths[1], toolkit_paths[2], toolkit_paths[3]);
        else if (answer == TOOLKIT_GIVES && i->o.trust_toolkit)
                event_record(
                        i->o.events, EVENT_NODE(i->o.node), EVENT_WARNING,
                        REASON_CONTAINER_TOOLKIT_GIVES_CHANNELS,
                        "%s, so any container can get any IMEX channel by requesting it; devices are offered "
                        "nevertheless (imex.trustContainerToolkit)",
                        why);
        i->reported = answer;
        i->any_reported = true;
}

static void isolation_on_toolkit(void *u) {
        struct isolation *i = u;
        isolation_report_toolkit(i);
        i->o.changed(i->o.u);
}

/* ---- the devices ---- */

static bool is_unread(const struct isolation *i) {
        const struct facts *f = facts_get(i->o.facts);
        return i->o.standing && f->usable && *f->fabric.clique_id && i->standing.state == STANDING_NOT_KNOWN;
}

static bool is_undecided(struct isolation *i, uint64_t *ret_due) {
        bool unasked = i->o.host && host_imex_own(i->o.host) == HOST_IMEX_NOT_ASKED,
             unseen = !fabric_watch_seen(i->fabric);
        *ret_due = UINT64_MAX;
        /* The prepared claims are read before anything else is known; isolation_standing() reports them. */
        if (is_unread(i))
                return true;
        *ret_due = i->born_ms + FIRST_LOOK_MS;
        i->decided = i->decided || (!unasked && !unseen) || loop_now_ms(i->o.loop) >= *ret_due;
        return !i->decided;
}

static bool steady(struct isolation *i, struct withhold_steady *s, bool now, uint64_t *due) {
        uint64_t at;
        bool counts = withhold_steady(s, now, loop_now_ms(i->o.loop), &at);
        *due = at < *due ? at : *due;
        return counts;
}

/* A node that joins, again or for the first time, offers at once: that it left in an orderly way is no reason
 * to wait. */
static void look_at_standing(struct isolation *i, struct withhold_input *in, uint64_t *due) {
        in->of_daemon = true;
        in->imex_why = i->standing.why;
        in->terminating = i->standing.terminating;
        in->not_joined = i->standing.state == STANDING_NOT_JOINED;
        in->no_index = may_prepare_no_index(fabric_watch_get(i->fabric), i->o.node);
        if (in->not_joined)
                i->down = (struct withhold_steady){ .true_ms = WITHHOLD_DOWN_MS };
        else
                in->imex_down = steady(i, &i->down, i->standing.state == STANDING_NOT_READY, due);
        if (in->imex_down && i->standing.state == STANDING_READY)
                in->imex_why = "the nvidia-imex of this node has not been READY for a while";
}

/* An unknown state changes nothing. */
static void look_at_host(struct isolation *i, struct withhold_input *in, uint64_t *due) {
        enum host_imex_own own = i->o.host ? host_imex_own(i->o.host) : HOST_IMEX_NOT_KNOWN;
        bool known = own == HOST_IMEX_READY || own == HOST_IMEX_NOT_READY,
             now = known ? own == HOST_IMEX_NOT_READY : i->down.value;
        in->imex_down = steady(i, &i->down, now, due);
        in->imex_why = "the host's nvidia-imex has not been READY for a while";
        if (!i->o.host)
                return;
        const struct host_imex_status *s = host_imex_get(i->o.host);
        if (own == HOST_IMEX_NOT_READY && s->state == HOST_DOWN)
                in->imex_why = s->reason;
        host_imex_settle(i->o.host, i->down.turning);
}

static void look_at_others(struct isolation *i, const struct facts *f, struct withhold_input *in,
                           uint64_t *due) {
        const struct compute_domain_fabric *fabric = fabric_watch_get(i->fabric);
        in->fabric_count = fabric ? fabric->channel_count : 0;
        in->fabric_imex = fabric ? str_or(fabric->imex_version, "") : "";
        in->imex_version = imex_version(i);
        /* Without counts from other nodes there is no difference. */
        if (in->fabric_count)
                in->counts_differ = steady(i, &i->counts_differ, in->fabric_count != f->channel_count, due);
        if (*in->fabric_imex && *in->imex_version)
                in->versions_differ =
                        steady(i, &i->versions_differ, !streq(in->fabric_imex, in->imex_version), due);
}

bool isolation_evaluate(struct isolation *i, const struct facts *f, struct offering *ret) {
        struct withhold_input in = { .facts = f, .own_channels = i };
        uint64_t due;
        if (i && f->usable && i->o.standing)
                i->o.standing(i->o.u, &i->standing);
        if (i && f->usable && is_undecided(i, &due)) {
                loop_timer_at(&i->due, due);
                return false;
        }
        due = UINT64_MAX;
        if (i) {
                in.toolkit = toolkit_watch_get(i->toolkit, &in.toolkit_why);
                in.trust_toolkit = i->o.trust_toolkit;
                if (i->o.standing)
                        look_at_standing(i, &in, &due);
                else
                        look_at_host(i, &in, &due);
                look_at_others(i, f, &in, &due);
                loop_timer_at(&i->due, due);
        }
        withhold_evaluate(&in, ret);
        if (i) {
                i->withheld = *ret->reason ? ret->reason : NULL;
                isolation_place(i);
        }
        return true;
}

struct isolation *isolation_new(const struct isolation_options *o) {
        struct isolation *i = xnew(struct isolation);
        struct driver_root roots[TOOLKIT_ROOTS_MAX] = { o->root, { .host = "/", .here = o->host_root } };
        i->o = *o;
        i->down.true_ms = WITHHOLD_DOWN_MS;
        i->born_ms = loop_now_ms(o->loop);
        loop_timer_init(&i->due, o->loop, on_due, i);
        i->fabric = fabric_watch_new(o->kube, isolation_on_fabric, i);
        i->holdings = holdings_new(&(struct holdings_options){
                .own_pod = o->own_pod, .cdi_root = o->cdi_root, .cdi_kind = CD_CDI_KIND_CLAIM });
        i->toolkit =
                toolkit_watch_new(o->loop, &(struct toolkit_watch_options){ .roots = roots,
                                                                            .n_roots = *o->host_root ? 2 : 1,
                                                                            .changed = isolation_on_toolkit,
                                                                            .u = i });
        isolation_report_toolkit(i);
        return i;
}

void isolation_free(struct isolation *i) {
        if (!i)
                return;
        toolkit_watch_free(i->toolkit);
        holdings_free(i->holdings);
        fabric_watch_free(i->fabric);
        loop_timer_done(&i->due);
        free(i);
}
