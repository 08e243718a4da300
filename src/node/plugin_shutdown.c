/* SPDX-License-Identifier: Apache-2.0 */
#include "node/plugin_shutdown.h"

#include "api/reasons.h"
#include "base/log.h"
#include "kube/kube_informer.h"

enum { NAMED_AT_MOST = 5 };

struct plugin_shutdown {
        struct plugin_shutdown_options o;
        struct kube_informer *informer;
        struct loop_turn turn;
        struct loop_timer ask;
        bool stays, unknown; /* unknown: the server has not answered about the Node */
};

static bool is_used(const struct checkpoint_claim *c, const char *own_device) {
        for (size_t i = 0; c->state == CHECKPOINT_COMPLETED && i < c->n_devices; i++)
                if (!own_device || !streq(c->devices[i].name, own_device))
                        return true;
        return false;
}

bool plugin_shutdown_is_used(const struct checkpoint *table, const char *own_device) {
        for (const struct checkpoint_claim *c = table->claims; c; c = c->hh.next)
                if (is_used(c, own_device))
                        return true;
        return false;
}

static void name_claims(const struct plugin_shutdown *l, struct buf *out) {
        size_t n = 0;
        for (const struct checkpoint_claim *c = l->o.table->claims; c; c = c->hh.next)
                if (is_used(c, l->o.own_device) && n++ < NAMED_AT_MOST)
                        buf_addf(out, "%s%s/%s", n > 1 ? ", " : "", str_or(c->ns, "?"),
                                 str_or(c->name, c->uid));
        if (n > NAMED_AT_MOST)
                buf_addf(out, " and %zu more", n - NAMED_AT_MOST);
}

static void plugin_shutdown_report(const struct plugin_shutdown *l) {
        _cleanup_(buf_done) struct buf claims = BUF_INIT(4096);
        name_claims(l, &claims);
        log_warn("asked to end, but the node no longer matches the node selector of this plugin: it stays "
                 "until the claims are unprepared",
                 kv_str("node", l->o.node), kv_str("claims", buf_str(&claims)));
        event_record(
                l->o.events, EVENT_NODE(l->o.node), EVENT_WARNING, REASON_PLUGIN_WAITS_FOR_PODS,
                "this Node no longer matches the node selector of the kubelet plugin of %s. The plugin "
                "offers no devices to new pods, and ends when the pods that use these ResourceClaims have "
                "ended: %s. Drain the Node, or restore its labels",
                l->o.driver, buf_str(&claims));
}

static void plugin_shutdown_check_node(void *u) {
        struct plugin_shutdown *l = u;
        const struct labelled_node *n =
                (const struct labelled_node *)kube_informer_get(l->informer, NULL, l->o.node);
        bool known = kube_informer_synced(l->informer);
        bool matches = n && node_selector_matches(l->o.selector, l->o.node, n->labels, n->n_labels, false);
        if (!plugin_shutdown_is_used(l->o.table, l->o.own_device) || matches || (!known && l->unknown)) {
                l->o.ends(l->o.u);
                return;
        }
        if (!known || l->stays)
                return;
        l->stays = true;
        loop_timer_stop(&l->ask);
        plugin_shutdown_report(l);
        l->o.stays(l->o.u);
}

static void plugin_shutdown_on_changed(void *u, const struct kube_object *old,
                                       const struct kube_object *now) {
        struct plugin_shutdown *l = u;
        loop_turn_start(&l->turn);
}

static void plugin_shutdown_on_synced(void *u) {
        struct plugin_shutdown *l = u;
        loop_turn_start(&l->turn);
}

/* A request that is refused once stays refused: for example if the plugin's role is of another chart version.
 */
static void plugin_shutdown_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct plugin_shutdown *l = u;
        if (!e)
                return;
        log_warn("cannot read the node", kv_str("node", l->o.node), kv_err(e));
        l->unknown = l->unknown || e->kind == ERR_DENIED;
        loop_turn_start(&l->turn);
}

static void on_late(void *u) {
        struct plugin_shutdown *l = u;
        l->unknown = true;
        loop_turn_start(&l->turn);
}

struct plugin_shutdown *plugin_shutdown_new(const struct plugin_shutdown_options *o) {
        struct plugin_shutdown *l = xnew(struct plugin_shutdown);
        l->o = *o;
        loop_turn_init(&l->turn, o->loop, plugin_shutdown_check_node, l);
        loop_timer_init(&l->ask, o->loop, on_late, l);
        loop_timer_start(&l->ask, PLUGIN_SHUTDOWN_ASK_MS);
        l->informer = kube_informer_new(o->kube, &(struct kube_informer_options){
                                                         .res = &kube_nodes,
                                                         .name = o->node,
                                                         .fields = labelled_node_fields,
                                                         .size = sizeof(struct labelled_node),
                                                         .metadata_only = true,
                                                         .changed = plugin_shutdown_on_changed,
                                                         .synced = plugin_shutdown_on_synced,
                                                         .failing = plugin_shutdown_on_failing,
                                                         .u = l,
                                                 });
        return l;
}

void plugin_shutdown_claims(struct plugin_shutdown *l) {
        if (l)
                loop_turn_start(&l->turn);
}

void plugin_shutdown_free(struct plugin_shutdown *l) {
        if (!l)
                return;
        kube_informer_free(l->informer);
        loop_turn_done(&l->turn);
        loop_timer_done(&l->ask);
        free(l);
}
