/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a node: plugin, devices, daemon, and who uses its channels. */
#include <string.h>

#include "api/names.h"
#include "api/states.h"
#include "cli/pod_case.h"

/* The plugin that reports the state of its host's IMEX, or why the state is unknown; NULL: none does. */
static const struct plugin_pod *node_host_imex(const struct diagnosis *d, const struct inventory_node *x) {
        const struct plugin_pod *p = d->v->hosts && x->plugin ? x->plugin->plugin : NULL;
        return p && (plugin_pod_reports(p) || (p->host_reason && pod_object_ready(x->plugin))) ? p : NULL;
}

static void node_lines(struct diagnosis *d, const struct inventory_node *x) {
        const struct node *n = &x->node->node;
        diagnosis_line(d, node_ready(n) ? TERM_OK : TERM_BAD, "node", "%s%s",
                       node_ready(n) ? "Ready" : "not Ready", n->unschedulable ? ", cordoned" : "");
        if (x->clique && *x->clique)
                diagnosis_line(d, TERM_OK, "partition", "%s", inventory_rack_name(d->v, x->clique));
        else
                diagnosis_line(d, TERM_WAIT, "partition", "%s",
                               x->clique ? "none: no multi-node NVLink" : "unknown");
        if (x->plugin)
                diagnosis_line(d, pod_object_ready(x->plugin) ? TERM_OK : TERM_BAD, "plugin", "%s %s",
                               x->plugin->o.meta.name, pod_object_ready(x->plugin) ? "Ready" : "not Ready");
        if (x->seats)
                diagnosis_line(d, TERM_OK, "channels", "%zu of %zu in use", x->n_holders, x->seats);
        else
                diagnosis_line(d, TERM_BAD, "channels", "none is published%s%s", x->withheld ? ": " : "",
                               x->withheld ? x->withheld : "");
        if (x->daemon) {
                const struct pod *p = &x->daemon->daemon->pod;
                diagnosis_line(d, pod_object_ready(x->daemon) ? TERM_OK : TERM_WAIT, "daemon", "%s %s",
                               x->daemon->o.meta.name, str_or(x->daemon->phase, "Unknown"));
                diagnosis_line(d,
                               streq(p->ready, "true") || imex_status_decode(p->state) == IMEX_STATE_IDLE
                                       ? TERM_OK
                                       : TERM_WAIT,
                               "IMEX", "%s%s%s", str_or(p->state, "no report yet"), p->reason ? ": " : "",
                               p->reason ? p->reason : "");
        }
        const struct plugin_pod *host = node_host_imex(d, x);
        if (host)
                diagnosis_line(d, host_state_decode(host->host_state) == HOST_UP ? TERM_OK : TERM_BAD,
                               "host's IMEX", "%s%s%s", str_or(host->host_state, "unknown"),
                               host->host_reason ? ": " : "", str_or(host->host_reason, ""));
        for (size_t i = 0; i < x->n_holders; i++)
                diagnosis_line(d, TERM_OK, "used by", "%s", inventory_user(d->v, x->holders[i]));
        for (size_t i = 0; i < x->n_sharers; i++)
                diagnosis_line(d, TERM_OK, "used by", "%s, with a shared claim", x->sharers[i]);
}

/* The Event, unless another one has ended it. */
static void add_event_of_host(struct diagnosis *d, const struct inventory_node *x, const char *reason) {
        static const char *const ends[] = { REASON_HOST_IMEX_STOPPED, REASON_HOST_IMEX_UP,
                                            REASON_HOST_IMEX_DEGRADED, REASON_HOST_IMEX_UNKNOWN };
        const struct event_object *e = view_event(d->v, "Node", NULL, x->name, NULL, reason);
        for (size_t i = 0; e && i < ARRAY_LEN(ends); i++) {
                const struct event_object *end = view_event(d->v, "Node", NULL, x->name, NULL, ends[i]);
                if (end && event_object_time(end) >= event_object_time(e))
                        return;
        }
        if (e)
                diagnosis_add(d, reason_find(REASON_OF_NODE, reason), NULL, "%s",
                              str_or(e->message, e->reason));
}

/* The report of the plugin, which is newer than each Event. Events are deleted after an hour. */
static void add_report_of_host(struct diagnosis *d, const struct inventory_node *x, enum host_state state,
                               const char *reason) {
        const struct plugin_pod *p = node_host_imex(d, x);
        if (p && host_state_decode(p->host_state) == state)
                diagnosis_add(d, reason_find(REASON_OF_NODE, reason), NULL,
                              "the state of nvidia-imex on the host %s is %s%s%s", x->name,
                              str_or(p->host_state, "unknown"), p->host_reason ? ": " : "",
                              str_or(p->host_reason, ""));
}

void node_diagnose_causes(struct diagnosis *d, const struct inventory_node *x) {
        const struct pod *daemon = x->daemon ? &x->daemon->daemon->pod : NULL;
        const struct reason *r =
                daemon && !streq(daemon->ready, "true") ? reason_find_message(daemon->reason) : NULL;
        static const char *const events[] = { REASON_HOST_IMEX_CONFLICT, REASON_HOST_IMEX_DOWN };
        view_read(d->v, VIEW_EVENTS, "default"); /* of Nodes */
        if (!x->node || !node_ready(&x->node->node))
                diagnosis_add(d, reason_cause(CAUSE_NODE_DOWN), NULL, "the Node %s is not Ready", x->name);
        if (!x->plugin || !pod_object_ready(x->plugin))
                plugin_diagnose(d, x->name);
        if (!x->seats && x->withheld) {
                const struct reason *why = reason_find(REASON_OF_NODE, x->withheld);
                diagnosis_add(d, why ? why : reason_cause(CAUSE_NO_CHANNEL_OFFERED), NULL,
                              "%s withholds its channel: %s%s%s", x->name, x->withheld,
                              x->withheld_why ? ": " : "", x->withheld_why ? x->withheld_why : "");
        } else if (!x->seats && (x->plugin ? pod_object_ready(x->plugin) : d->n_causes == 0)) {
                diagnosis_add(d, reason_cause(CAUSE_NO_CHANNEL_OFFERED),
                              x->plugin ? arena_printf(d->a, "kubectl -n %s logs %s",
                                                       term_shell_word(d->a, x->plugin->o.meta.ns),
                                                       term_shell_word(d->a, x->plugin->o.meta.name))
                                        : NULL,
                              "%s publishes no channel device, and no Event shows why", x->name);
        }
        if (r)
                diagnosis_add(d, r, NULL, "IMEX on %s is %s: %s", x->name, str_or(daemon->state, "not ready"),
                              daemon->reason);
        if (node_host_imex(d, x))
                add_report_of_host(d, x, HOST_DOWN, REASON_HOST_IMEX_DOWN);
        for (size_t i = 0; !node_host_imex(d, x) && i < ARRAY_LEN(events); i++)
                add_event_of_host(d, x, events[i]);
        if (x->node && streq(x->node->node.imex_daemon, "true"))
                daemon_diagnose(d, x->name);
}

bool node_diagnose(struct diagnosis *d, const char *name) {
        struct inventory inv;
        inventory_make(d->v, NULL, &inv);
        diagnosis_needs(d, VIEW_NODES, NULL);
        const struct node_object *n = view_find(d->v, VIEW_NODES, NULL, name);
        if (!n)
                return false;
        const struct inventory_node *known = inventory_node_of(&inv, name);
        struct inventory_node x = known ? *known : (struct inventory_node){ .name = name, .node = n };
        d->object = arena_printf(d->a, "node/%s", name);
        d->state = arena_printf(d->a, "%s, %s", str_or(n->kubelet, ""), str_or(n->runtime, ""));
        bool complete = diagnosis_needs(d, VIEW_SLICES, NULL);
        complete = diagnosis_needs(d, VIEW_CLAIMS, NULL) && complete;
        if (d->v->driver_ns)
                complete = diagnosis_needs(d, VIEW_PODS, d->v->driver_ns) && complete;
        complete = complete && d->v->driver != VIEW_DRIVER_UNCLEAR;
        if (!known && complete) {
                diagnosis_line(d, TERM_WAIT, "node", "not a GPU node: no label, no ResourceSlice, no plugin");
                d->fine = true;
                return true;
        }
        node_lines(d, &x);
        if (complete) {
                node_diagnose_causes(d, &x);
                add_report_of_host(d, &x, HOST_DEGRADED, REASON_HOST_IMEX_DEGRADED);
                add_report_of_host(d, &x, HOST_UNKNOWN, REASON_HOST_IMEX_UNKNOWN);
        }
        d->fine = complete && d->n_causes == 0;
        return true;
}
