/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `doctor` about the nodes, partitions and ComputeDomains of an installation. The causes are
 * those that `why` names. */
#include <string.h>

#include "api/names.h"
#include "api/states.h"
#include "cli/doctor.h"
#include "cli/pod_case.h"
#include "rules/message.h"

enum {
        EVENT_SECONDS = 3600,   /* Events are kept for an hour */
        FABRIC_SECONDS = 60,    /* conditions of a fabric object that are younger may end by themselves */
        DOMAIN_SECONDS = 5 * 60 /* the same for ComputeDomains, whose nodes take a while to start */
};

/* ---- causes of nodes ---- */

struct node_cause {
        const char *check;
        enum doctor_fault fault;
        const struct reason *reason;
        const char *text, *fix, *node;
        const char *shape; /* the text without the names of the node and its Pods */
        bool added;
};

/* States in which a daemon starts. They become a condition of the ComputeDomain if they last. */
static bool is_start(const struct reason *r) {
        static const char *const anchors[] = { "imex-starting", "no-index-yet", "waiting-for-peers",
                                               "recovery" };
        return r->is_message && has_string(anchors, ARRAY_LEN(anchors), r->anchor);
}

static void classify(struct node_cause *x) {
        static const struct {
                const char *name;
                enum doctor_fault fault;
        } known[] = {
                { CAUSE_NODE_DOWN, FAULT_NODE_DOWN },
                { CAUSE_NO_PLUGIN, FAULT_PLUGIN_MISSING },
                { CAUSE_NO_DRIVER, FAULT_PLUGIN_MISSING },
                { CAUSE_DAEMON_NOT_CREATED, FAULT_DAEMON_NOT_CREATED },
                { CAUSE_DAEMON_NOT_RUNNING, FAULT_DAEMON_NOT_RUNNING },
                { REASON_HOST_IMEX_CONFLICT, FAULT_HOST_IMEX },
                { REASON_HOST_IMEX_DOWN, FAULT_HOST_IMEX },
        };
        enum doctor_fault named = doctor_fault_find(x->reason->name);
        x->fault = x->reason->is_message ? FAULT_DAEMON_NOT_RUNNING
                   : named < DOCTOR_FAULTS && doctor_faults[named].modes & DOCTOR_RUNNING ? named
                                                                                          : FAULT_WITHHOLDS;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                if (streq(known[i].name, x->reason->name))
                        x->fault = known[i].fault;
        x->check = doctor_faults[x->fault].check;
}

/* Removes a name from a text. */
static const char *without(struct arena *a, const char *text, const char *name) {
        struct buf b = BUF_INIT(64 << 10);
        size_t n = strlen(name);
        for (const char *at; n && (at = strstr(text, name)); text = at + n)
                buf_add(&b, text, (size_t)(at - text));
        buf_adds(&b, text);
        const char *shape = arena_strdup(a, buf_str(&b));
        buf_done(&b);
        return shape;
}

/* A name of a Pod contains that of the node only by chance, so it is removed first. */
static const char *shape_of(struct doctor *d, const char *text, const struct inventory_node *n) {
        if (n->plugin)
                text = without(d->a, text, n->plugin->o.meta.name);
        if (n->daemon)
                text = without(d->a, text, n->daemon->o.meta.name);
        return without(d->a, text, n->name);
}

/* Finds the causes of all nodes once. */
static void find_causes(struct doctor *d) {
        if (d->has_causes)
                return;
        d->has_causes = true;
        for (size_t i = 0; i < d->inv.n_nodes; i++) {
                struct diagnosis x = { .v = d->v, .a = d->a };
                node_diagnose_causes(&x, &d->inv.nodes[i]);
                for (size_t k = 0; k < x.n_causes; k++) {
                        const struct diagnosis_cause *c = &x.causes[k];
                        if (is_start(c->reason))
                                continue;
                        ARENA_GROW(d->a, d->causes, d->n_causes, d->cap_causes);
                        struct node_cause *n = &d->causes[d->n_causes++];
                        *n = (struct node_cause){ .reason = c->reason,
                                                  .text = c->text,
                                                  .fix = c->fix,
                                                  .node = d->inv.nodes[i].name,
                                                  .shape = shape_of(d, c->text, &d->inv.nodes[i]) };
                        classify(n);
                }
        }
}

static bool nodes_are_readable(struct doctor *d) {
        return doctor_needs(d, VIEW_NODES, NULL) && doctor_needs(d, VIEW_SLICES, NULL) &&
               doctor_needs(d, VIEW_CLAIMS, NULL) && doctor_needs(d, VIEW_PODS, d->ns);
}

/* Adds the causes of the running check, with one line for the nodes that differ only in names. Returns
 * whether there are any. */
static bool add_causes(struct doctor *d) {
        bool any = false;
        find_causes(d);
        for (size_t i = 0; i < d->n_causes; i++) {
                struct node_cause *c = &d->causes[i];
                struct message_list same = { 0 };
                if (c->added || !streq(c->check, d->check))
                        continue;
                for (size_t k = i + 1; k < d->n_causes; k++)
                        if (d->causes[k].reason == c->reason && streq(d->causes[k].check, c->check) &&
                            streq(d->causes[k].shape, c->shape)) {
                                message_add(&same, "%s", d->causes[k].node);
                                d->causes[k].added = true;
                        }
                const char *list = message_end(&same, d->a);
                doctor_fail_reason(d, c->fault, c->reason, c->fix,
                                   arena_printf(d->a, "%s%s%s%s%s", strstr(c->text, c->node) ? "" : c->node,
                                                strstr(c->text, c->node) ? "" : ": ", c->text,
                                                *list ? "; the same on " : "", list));
                any = true;
        }
        return any;
}

static void check_nodes(struct doctor *d) {
        size_t n = d->inv.n_nodes;
        if (nodes_are_readable(d) && !add_causes(d))
                doctor_ok(d, "%zu GPU node%s Ready", n, n == 1 ? " is" : "s are");
}

static void check_plugins(struct doctor *d) {
        size_t n = 0;
        for (size_t i = 0; i < d->inv.n_nodes; i++)
                n += d->inv.nodes[i].plugin && pod_object_ready(d->inv.nodes[i].plugin);
        if (nodes_are_readable(d) && !add_causes(d))
                doctor_ok(d, "Ready on %zu node%s", n, n == 1 ? "" : "s");
}

static void doctor_check_devices(struct doctor *d) {
        size_t n = 0;
        for (size_t i = 0; i < d->inv.n_nodes; i++)
                n += d->inv.nodes[i].seats > 0;
        if (nodes_are_readable(d) && !add_causes(d))
                doctor_ok(d, "%zu node%s a channel", n, n == 1 ? " offers" : "s offer");
}

static void check_host_imex(struct doctor *d) {
        if (nodes_are_readable(d) && doctor_needs(d, VIEW_EVENTS, "default") && !add_causes(d))
                doctor_ok(d, d->v->hosts ? "no Event reports that the hosts' nvidia-imex is down"
                                         : "no Event reports a host with nvidia-imex");
}

/* ---- Events of Nodes ---- */

static const struct {
        const char *reason, *end; /* `end`: the reason of the Event that ends it; NULL: none */
} node_events[] = {
        { REASON_HOOK_NOT_EXECUTABLE, NULL },
        { REASON_HOOK_FAILS_SELF_TEST, NULL },
        { REASON_UVM_NOT_LOADED, NULL },
        { REASON_GPU_LEFT_OUT, NULL },
        { REASON_GPU_INVENTORY_STALE, NULL },
        { REASON_GPU_LOST, NULL },
        { REASON_GPU_REPORTS_XID, NULL },
        { REASON_GPU_UNMONITORED, NULL },
        { REASON_TOOLKIT_GIVES_GPUS, NULL },
        { REASON_CONTAINER_TOOLKIT_GIVES_CHANNELS, NULL },
        { REASON_CHECKPOINT_UNREADABLE, NULL },
        { REASON_DEVICE_TAINTS_NOT_SERVED, NULL },
        { REASON_TIME_SLICE_NOT_RESET, NULL },
        { REASON_DECISION_WRONG, NULL },
        { REASON_RACK_LABEL_MISSING, NULL },
        { REASON_PLUGIN_WAITS_FOR_PODS, NULL },
        { REASON_DEVICE_PLUGIN_ACTIVE, REASON_DEVICE_PLUGIN_INACTIVE },
        { REASON_GPU_DEVICES_WITHHELD, REASON_GPU_DEVICES_OFFERED },
        { REASON_HOST_IMEX_DEGRADED, REASON_HOST_IMEX_UP },
        { REASON_HOST_IMEX_UNKNOWN, REASON_HOST_IMEX_UP },
};

/* Whether the Event describes the present: it is recent, no other Event has ended it, and the plugin that
 * wrote it still runs. */
static bool is_present(const struct doctor *d, const struct event_object *e, const char *end) {
        int64_t t = event_object_time(e);
        const struct inventory_node *n = inventory_node_of(&d->inv, e->name);
        if (d->v->source->now - t > EVENT_SECONDS || (n && n->plugin && n->plugin->o.meta.created > t))
                return false;
        const struct event_object *over = end ? view_event(d->v, "Node", NULL, e->name, NULL, end) : NULL;
        return !over || event_object_time(over) < t;
}

static const struct reason *withheld_reason(struct doctor *d, const struct event_object *e) {
        const char *why, *name = inventory_withheld_reason(d->a, e->message, &why);
        return name ? reason_find(REASON_OF_NODE, name) : NULL;
}

static void add_event(struct doctor *d, const char *reason, const char *end) {
        struct message_list nodes = { 0 };
        const struct event_object *first = NULL;
        VIEW_EACH(d->v, VIEW_EVENTS, struct event_object, e) {
                if (!streq(e->kind, "Node") || !streq(e->reason, reason) || !e->name ||
                    view_event(d->v, "Node", NULL, e->name, NULL, reason) != e || !is_present(d, e, end))
                        continue;
                if (first)
                        message_add(&nodes, "%s", e->name);
                else
                        first = e;
        }
        const char *more = message_end(&nodes, d->a);
        if (!first)
                return;
        const struct reason *r = reason_find(REASON_OF_NODE, reason), *inner = withheld_reason(d, first);
        enum doctor_fault fault = doctor_fault_find(inner ? inner->name : reason);
        doctor_fail_reason(d, fault < DOCTOR_FAULTS ? fault : FAULT_NODE_EVENT, inner ? inner : r, NULL,
                           arena_printf(d->a, "%s: %s%s%s", first->name, str_or(first->message, reason),
                                        *more ? "; the same reason on " : "", more));
}

static void check_node_events(struct doctor *d) {
        size_t before = d->n;
        if (!doctor_needs(d, VIEW_EVENTS, "default"))
                return;
        for (size_t i = 0; i < ARRAY_LEN(node_events); i++)
                add_event(d, node_events[i].reason, node_events[i].end);
        if (d->n == before)
                doctor_ok(d, "no Event of a Node reports a problem of the last hour");
}

/* ---- daemons ---- */

/* A rollout that has stopped: the Event is recent, and the DaemonSet is not complete. */
static void add_crash(struct doctor *d) {
        VIEW_EACH(d->v, VIEW_DAEMON_SETS, struct workload_object, w) {
                if (!streq(w->o.meta.ns, d->ns) || !workload_object_runs(w, CD_DAEMON_OBJECT))
                        continue;
                const struct event_object *e = view_event(d->v, "DaemonSet", d->ns, w->o.meta.name,
                                                          w->o.meta.uid, REASON_DAEMONS_CRASH);
                if (e && w->ready < w->desired && d->v->source->now - event_object_time(e) <= EVENT_SECONDS)
                        doctor_fail_reason(d, FAULT_DAEMONS_CRASH,
                                           reason_find(REASON_OF_DAEMON_SET, REASON_DAEMONS_CRASH), NULL,
                                           str_or(e->message, "daemons crash"));
        }
}

static void doctor_check_daemons(struct doctor *d) {
        size_t before = d->n, n = 0;
        if (d->v->hosts) {
                doctor_ok(d, "IMEX is host-managed");
                return;
        }
        if (!nodes_are_readable(d) || !doctor_needs(d, VIEW_DAEMON_SETS, d->ns) ||
            !doctor_needs(d, VIEW_EVENTS, d->ns))
                return;
        add_crash(d);
        add_causes(d);
        for (size_t i = 0; i < d->inv.n_nodes; i++)
                n += d->inv.nodes[i].daemon != NULL;
        if (d->n == before)
                doctor_ok(d, "%zu daemon%s", n, n == 1 ? "" : "s");
}

/* ---- partitions and ComputeDomains ---- */

static void judge_fabric(struct doctor *d, const struct compute_domain_fabric *f) {
        for (size_t i = 0; i < f->n_conditions; i++) {
                const struct condition *c = &f->conditions[i];
                /* The check of devices reports nodes that withhold them. */
                if (condition_status_decode(c->status) != STATUS_TRUE ||
                    streq(c->type, FABRIC_NODES_WITHHOLD) || d->v->source->now - c->since < FABRIC_SECONDS)
                        continue;
                const struct reason *r = reason_find(REASON_OF_FABRIC, c->reason);
                bool wrong = streq(c->type, FABRIC_DECISION_WRONG);
                enum doctor_fault fault = streq(c->reason, REASON_NODES_HOLD_CHANNELS) ? FAULT_CHANNELS_HELD
                                          : wrong                                      ? FAULT_DECISION_WRONG
                                                  : FAULT_FABRIC_CONDITION;
                doctor_fail_reason(d, fault, r ? r : reason_find(REASON_OF_FABRIC, c->type), NULL,
                                   arena_printf(d->a, "%s: %s: %s", str_or(f->rack, f->o.meta.name),
                                                str_or(c->type, "a condition"),
                                                str_or(c->message, str_or(c->reason, "is True"))));
        }
}

static void check_fabrics(struct doctor *d) {
        size_t before = d->n, n = 0;
        if (!doctor_needs(d, VIEW_FABRICS, NULL))
                return;
        VIEW_EACH(d->v, VIEW_FABRICS, struct compute_domain_fabric, f) {
                n++;
                judge_fabric(d, f);
        }
        if (d->n == before)
                doctor_ok(d, "%zu NVLink partition%s", n, n == 1 ? "" : "s");
}

static void judge_domain(struct doctor *d, const struct compute_domain *cd) {
        if (domain_is_unexplained(cd) && d->v->source->now - cd->o.meta.created >= DOMAIN_SECONDS)
                doctor_fail_reason(d, FAULT_DOMAIN_CONDITION, reason_cause(CAUSE_UNKNOWN),
                                   arena_printf(d->a, "kubectl compute-domains why computedomain/%s -n %s",
                                                term_shell_word(d->a, cd->o.meta.name),
                                                term_shell_word(d->a, cd->o.meta.ns)),
                                   arena_printf(d->a,
                                                "%s: ComputeDomain %s has the status %s, and no "
                                                "condition shows why",
                                                cd->o.meta.ns, cd->o.meta.name, str_or(cd->status, "\"\"")));
        for (size_t i = 0; i < cd->n_conditions; i++) {
                const struct cd_condition *c = &cd->conditions[i];
                bool wrong = streq(c->reason, REASON_DECISION_WRONG);
                struct diagnosis x = { .v = d->v, .a = d->a };
                if (!wrong && d->v->source->now - c->last_transition < DOMAIN_SECONDS)
                        continue;
                if (domain_diagnose_condition(&x, cd, c))
                        doctor_fail_reason(d, wrong ? FAULT_DECISION_WRONG : FAULT_DOMAIN_CONDITION,
                                           x.causes[0].reason, x.causes[0].fix,
                                           arena_printf(d->a, "%s: %s", cd->o.meta.ns, x.causes[0].text));
        }
}

static void check_domains(struct doctor *d) {
        size_t before = d->n, n = 0;
        if (!doctor_needs(d, VIEW_DOMAINS, NULL))
                return;
        VIEW_EACH(d->v, VIEW_DOMAINS, struct compute_domain, cd) {
                n++;
                judge_domain(d, cd);
        }
        if (d->n == before)
                doctor_ok(d, "%zu ComputeDomain%s", n, n == 1 ? "" : "s");
}

const struct doctor_check doctor_node_checks[] = {
        { "nodes", DOCTOR_RUNNING, check_nodes },
        { "plugins", DOCTOR_RUNNING, check_plugins },
        { "devices", DOCTOR_RUNNING, doctor_check_devices },
        { "host-imex", DOCTOR_RUNNING, check_host_imex },
        { "node-events", DOCTOR_RUNNING, check_node_events },
        { "daemons", DOCTOR_RUNNING, doctor_check_daemons },
        { "fabrics", DOCTOR_RUNNING, check_fabrics },
        { "computedomains", DOCTOR_RUNNING, check_domains },
        { 0 },
};
