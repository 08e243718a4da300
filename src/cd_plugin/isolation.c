/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/isolation.h"

#include "api/names.h"
#include "base/log.h"
#include "base/loop.h"

struct isolation {
        struct isolation_options o;
        struct fabric_watch *fabric;
        struct holdings *holdings;
        struct toolkit_watch *toolkit;
        struct withhold_steady differs;
        struct loop_timer due; /* of `differs` */
        enum toolkit_answer told;
        bool told_any;
};

/* ---- the fabric ---- */

static void place(struct isolation *i) {
        const struct facts *f = facts_get(i->o.facts);
        const struct compute_domain_fabric *fabric = fabric_watch_get(i->fabric);
        /* Of a driver that is away nobody knows which clique it will be in. */
        if (f->known && f->usable)
                holdings_place(i->holdings, f->fabric.clique_id, fabric ? fabric->o.meta.uid : "",
                               f->channel_count);
}

static void on_fabric(void *u) {
        struct isolation *i = u;
        place(i);
        i->o.changed(i->o.u);
}

static void on_due(void *u) {
        struct isolation *i = u;
        i->o.changed(i->o.u);
}

void isolation_facts(struct isolation *i) {
        const struct facts *f = facts_get(i->o.facts);
        if (f->known && f->usable)
                fabric_watch_follow(i->fabric, f->fabric.clique_id);
        place(i);
}

struct fabric_watch *isolation_fabric(const struct isolation *i) {
        return i->fabric;
}

struct holdings *isolation_holdings(const struct isolation *i) {
        return i->holdings;
}

/* ---- the container toolkit ---- */

static void tell_toolkit(struct isolation *i) {
        const struct event_about node = { "v1", "Node", NULL, i->o.node, i->o.node };
        const char *why;
        enum toolkit_answer answer = toolkit_watch_get(i->toolkit, &why);
        plugin_metrics_toolkit(i->o.metrics, answer);
        if (i->told_any && answer == i->told)
                return;
        log_info("the container toolkit and requests for IMEX channels",
                 kv_str("answer", toolkit_answer_names[answer]), kv_str("why", why));
        if (answer == TOOLKIT_NOT_FOUND && !i->o.trust_toolkit)
                event_record(
                        i->o.events, &node, EVENT_WARNING, "ContainerToolkitNotFound",
                        "no configuration of the NVIDIA container toolkit was found on this node (%s, %s): "
                        "if it is installed elsewhere, see to it that it sets " TOOLKIT_SETTING
                        "=true, because otherwise any container may have any IMEX channel by asking for it",
                        toolkit_paths[0], toolkit_paths[1]);
        else if (answer == TOOLKIT_GIVES && i->o.trust_toolkit)
                event_record(
                        i->o.events, &node, EVENT_WARNING, "ContainerToolkitGivesChannels",
                        "%s, so that any container may have any IMEX channel by asking for it; devices are "
                        "offered all the same (imex.trustContainerToolkit)",
                        why);
        i->told = answer;
        i->told_any = true;
}

static void on_toolkit(void *u) {
        struct isolation *i = u;
        tell_toolkit(i);
        i->o.changed(i->o.u);
}

/* ---- the devices ---- */

static bool counts_differ(struct isolation *i, const struct facts *f, int64_t *ret_count) {
        const struct compute_domain_fabric *fabric = fabric_watch_get(i->fabric);
        uint64_t due = UINT64_MAX;
        bool differ = i->differs.value;
        *ret_count = fabric ? fabric->channel_count : 0;
        /* Before anybody has said how many channels the fabric has, nobody differs. */
        if (*ret_count)
                differ = withhold_steady(&i->differs, *ret_count != f->channel_count, loop_now_ms(i->o.loop),
                                         &due);
        loop_timer_at(&i->due, due);
        return differ && *ret_count;
}

void isolation_judge(struct isolation *i, const struct facts *f, struct offering *ret) {
        struct withhold_input in = { .facts = f, .own_channels = i };
        if (i) {
                in.toolkit = toolkit_watch_get(i->toolkit, &in.toolkit_why);
                in.trust_toolkit = i->o.trust_toolkit;
                in.counts_differ = counts_differ(i, f, &in.fabric_count);
        }
        withhold_judge(&in, ret);
}

struct isolation *isolation_new(const struct isolation_options *o) {
        struct isolation *i = xnew(struct isolation);
        struct driver_root roots[TOOLKIT_ROOTS_MAX] = { o->root, { .host = "/", .here = o->host_root } };
        i->o = *o;
        loop_timer_init(&i->due, o->loop, on_due, i);
        i->fabric = fabric_watch_new(o->kube, on_fabric, i);
        i->holdings = holdings_new(&(struct holdings_options){ .kube = o->kube,
                                                               .ns = o->ns,
                                                               .pod = o->pod,
                                                               .cdi_root = o->cdi_root,
                                                               .cdi_kind = CD_CDI_KIND_CLAIM });
        i->toolkit = toolkit_watch_new(
                o->loop,
                &(struct toolkit_watch_options){
                        .roots = roots, .n_roots = *o->host_root ? 2 : 1, .changed = on_toolkit, .u = i });
        tell_toolkit(i);
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
