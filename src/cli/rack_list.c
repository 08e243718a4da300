/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rack_list.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "model/channel_report.h"

struct inventory_building {
        struct view *v;
        struct inventory_node *list; /* not from the arena */
        size_t n, cap;
};

static struct inventory_node *building_node(struct inventory_building *b, const char *name) {
        for (size_t i = b->n; i-- > 0;)
                if (streq(b->list[i].name, name))
                        return &b->list[i];
        GROW(b->list, b->n, b->cap);
        b->list[b->n] = (struct inventory_node){ .name = name };
        return &b->list[b->n++];
}

const char *inventory_slice_clique(const struct view *v, const char *node) {
        const struct slice *newest = NULL;
        const char *clique = NULL;
        VIEW_EACH(v, VIEW_SLICES, struct slice, s)
        if (streq(s->node, node) && streq(s->driver, CD_DRIVER))
                newest = slice_choose(newest, s, !v->hosts, &clique);
        return clique;
}

const char *inventory_clique(struct view *v, const char *node) {
        const char *clique = inventory_slice_clique(v, node);
        const struct node_object *n = view_find(v, VIEW_NODES, NULL, node);
        if (!clique && n)
                clique = n->node.gpu_clique ? n->node.gpu_clique : n->node.clique_id;
        return clique;
}

const char *inventory_rack_name(const struct view *v, const char *clique) {
        if (!clique || !*clique)
                return "no partition";
        const struct compute_domain_fabric *f = view_find(v, VIEW_FABRICS, NULL, clique);
        return f ? str_or(f->rack, clique) : clique;
}

const char *inventory_user(const struct view *v, const struct claim_object *c) {
        const struct kube_meta *m = &c->claim.o.meta;
        const struct compute_domain *cd = view_domain(v, c->domain_uid);
        const char *name = jd_pair_get(c->claim.annotations, c->claim.n_annotations, CD_ANNOTATION_NAME);
        if (cd)
                return arena_printf(v->a, "%s/%s", cd->o.meta.ns, cd->o.meta.name);
        return arena_printf(v->a, "%s/%s", m->ns, name ? name : m->name);
}

bool inventory_is_ready_on(const struct view *v, const struct claim_object *c, const char *node) {
        const struct compute_domain *cd = view_domain(v, c->domain_uid);
        for (size_t i = 0; cd && i < cd->n_nodes; i++)
                if (streq(cd->nodes[i].node, node))
                        return domain_status_decode(cd->nodes[i].status) == DOMAIN_READY;
        return !cd || !cd->nodes_wanted;
}

/* "node-1 (FabricError), node-2 (NoGPUs)" in the message of the condition. */
static const char *reason_in_list(struct view *v, const char *message, const char *node) {
        _cleanup_(freep) char *words = xasprintf("%s (", node);
        const char *at = message ? strstr(message, words) : NULL;
        if (!at || (at > message && at[-1] != ' '))
                return NULL;
        at += strlen(words);
        return arena_strndup(v->a, at, strcspn(at, ")"));
}

const char *inventory_withheld_reason(struct arena *a, const char *message, const char **ret_why) {
        static const char lead[] = " on this node (";
        const char *at = message ? strstr(message, lead) : NULL, *end = at ? strchr(at, ':') : NULL;
        *ret_why = end ? arena_strdup(a, end + 1 + strspn(end + 1, " ")) : NULL;
        if (!at)
                return NULL;
        at += sizeof lead - 1;
        return arena_strndup(a, at, strcspn(at, ")"));
}

const char *inventory_withheld(struct view *v, const struct inventory_node *x, const char **ret_why) {
        view_read(v, VIEW_EVENTS, "default");
        const struct event_object **events;
        size_t n = view_events(v, "Node", NULL, x->name, NULL, &events);
        *ret_why = NULL;
        for (size_t i = 0; i < n; i++) {
                if (streq(events[i]->reason, REASON_COMPUTE_DOMAIN_DEVICES_OFFERED))
                        break;
                /* The Pod of such a plugin is being deleted, so it is not in the inventory. */
                if (streq(events[i]->reason, REASON_PLUGIN_WAITS_FOR_PODS) && !x->plugin) {
                        *ret_why = events[i]->message;
                        return events[i]->reason;
                }
                if (!streq(events[i]->reason, REASON_COMPUTE_DOMAIN_DEVICES_WITHHELD))
                        continue;
                const char *reason = inventory_withheld_reason(v->a, events[i]->message, ret_why);
                if (reason)
                        return reason;
        }
        const struct compute_domain_fabric *f =
                x->clique ? view_find(v, VIEW_FABRICS, NULL, x->clique) : NULL;
        const struct condition *c =
                f ? condition_true(f->conditions, f->n_conditions, FABRIC_NODES_WITHHOLD) : NULL;
        return c ? reason_in_list(v, c->message, x->name) : NULL;
}

/* Divides the report of a plugin: "FabricError: 2 of 4 GPUs are not registered". */
static const char *reported_reason(struct view *v, const char *report, const char **ret_why) {
        size_t n = strcspn(report, ":");
        *ret_why = report[n] ? arena_strdup(v->a, report + n + 1 + strspn(report + n + 1, " ")) : NULL;
        return arena_strndup(v->a, report, n);
}

static void add_slices(struct inventory_building *b) {
        VIEW_EACH(b->v, VIEW_SLICES, struct slice, s) {
                if (!streq(s->driver, CD_DRIVER) || !s->node)
                        continue;
                struct inventory_node *n = building_node(b, s->node);
                for (size_t i = 0; i < s->n_devices; i++)
                        n->seats += str_starts(str_or(s->devices[i].name, ""), CD_DEVICE_CHANNEL_PREFIX);
                if (slice_rack(s))
                        n->rack = slice_rack(s);
        }
}

static void add_claims(struct inventory_building *b) {
        VIEW_EACH(b->v, VIEW_CLAIMS, struct claim_object, c)
        for (size_t i = 0; i < c->claim.n_results; i++) {
                const struct claim_result *r = &c->claim.results[i];
                if (!claim_result_is_channel(r) || claim_result_is_shared(r) || r->admin_access)
                        continue;
                struct inventory_node *n = building_node(b, r->pool);
                GROW(n->holders, n->n_holders, n->cap_holders);
                n->holders[n->n_holders++] = c;
        }
}

static int inventory_by_name(const void *x, const void *y) {
        return strcmp(((const struct inventory_node *)x)->name, ((const struct inventory_node *)y)->name);
}

static int racks_by_name(const void *x, const void *y) {
        return strcmp(((const struct inventory_rack *)x)->name, ((const struct inventory_rack *)y)->name);
}

bool inventory_is_up(const struct inventory_node *n) {
        return n->node && node_ready(&n->node->node) && !n->node->node.unschedulable;
}

bool inventory_is_free(const struct inventory_node *n) {
        return inventory_is_up(n) && n->seats > n->n_holders;
}

static void make_racks(struct view *v, struct inventory *x) {
        x->racks = arena_alloc(v->a, (x->n_nodes + v->kinds[VIEW_FABRICS].n + 1) * sizeof *x->racks);
        for (size_t i = 0; i < x->n_nodes; i++) {
                const struct inventory_node *n = &x->nodes[i];
                struct inventory_rack *r = NULL;
                if (!n->clique || !*n->clique)
                        continue;
                for (size_t k = 0; k < x->n_racks && !r; k++)
                        if (streq(x->racks[k].clique, n->clique))
                                r = &x->racks[k];
                if (!r) {
                        r = &x->racks[x->n_racks++];
                        *r = (struct inventory_rack){ .clique = n->clique,
                                                      .name = inventory_rack_name(v, n->clique) };
                }
                r->n_nodes++;
                r->seats += n->seats;
                r->used += n->n_holders;
                if (!n->seats || !inventory_is_up(n))
                        r->n_down++;
                else if (inventory_is_free(n))
                        r->n_free++;
                r->n_used += n->n_holders || n->n_sharers;
        }
        if (x->n_racks)
                qsort(x->racks, x->n_racks, sizeof *x->racks, racks_by_name);
}

static bool holds_device_for(const struct inventory_node *n, const char *domain_uid) {
        for (size_t i = 0; i < n->n_holders; i++)
                if (streq(n->holders[i]->domain_uid, domain_uid))
                        return true;
        return false;
}

/* The plugin reports the channels that the node holds. The allocation of a shared claim names no node. */
static void add_sharers(struct view *v, struct inventory_node *n) {
        const struct plugin_pod *p = n->plugin ? n->plugin->plugin : NULL;
        struct channel_report report;
        struct err e;
        if (!p || !p->host_channels ||
            channel_report_decode(str_from(p->host_channels), v->a, &report, &e) < 0)
                return;
        for (size_t i = 0; i < report.n_fabrics; i++)
                for (size_t k = 0; k < report.fabrics[i].n_held; k++) {
                        const char *uid = report.fabrics[i].held[k].owner;
                        const struct compute_domain *cd = view_domain(v, uid);
                        if (!cd || !domain_shares(cd) || holds_device_for(n, uid))
                                continue;
                        const char *name = arena_printf(v->a, "%s/%s", cd->o.meta.ns, cd->o.meta.name);
                        if (has_string(n->sharers, n->n_sharers, name))
                                continue;
                        ARENA_GROW(v->a, n->sharers, n->n_sharers, n->cap_sharers);
                        n->sharers[n->n_sharers++] = name;
                }
}

/* Whether a node publishes no channel device. */
static bool lacks_channels(const struct inventory_building *b) {
        for (size_t i = 0; i < b->n; i++)
                if (!b->list[i].seats)
                        return true;
        return false;
}

static void inventory_fill(struct view *v, const char *ns, bool all_pods, struct inventory *ret) {
        struct inventory_building b = { .v = v };
        view_find_driver(v);
        view_read(v, VIEW_NODES, NULL);
        view_read(v, VIEW_SLICES, NULL);
        view_read(v, VIEW_FABRICS, NULL);
        view_read_all(v, VIEW_CLAIMS, ns);
        view_read_all(v, VIEW_DOMAINS, ns);
        add_slices(&b);
        add_claims(&b);
        VIEW_EACH(v, VIEW_NODES, struct node_object, n)
        if (node_has_gpu(&n->node))
                building_node(&b, n->node.o.meta.name);
        if (v->driver_ns && (all_pods || lacks_channels(&b)))
                view_read(v, VIEW_PODS, v->driver_ns);
        *ret = (struct inventory){ .n_nodes = b.n };
        ret->nodes = arena_alloc(v->a, (b.n + 1) * sizeof *ret->nodes);
        for (size_t i = 0; i < b.n; i++) {
                struct inventory_node *n = &b.list[i];
                const struct claim_object **holders = arena_alloc(v->a, (n->n_holders + 1) * sizeof(void *));
                if (n->n_holders)
                        memcpy(holders, n->holders, n->n_holders * sizeof(void *));
                free(n->holders);
                n->holders = holders;
                n->node = view_find(v, VIEW_NODES, NULL, n->name);
                n->clique = inventory_clique(v, n->name);
                ret->nodes[i] = *n;
        }
        free(b.list);
        if (ret->n_nodes)
                qsort(ret->nodes, ret->n_nodes, sizeof *ret->nodes, inventory_by_name);
        VIEW_EACH(v, VIEW_PODS, struct pod_object, p) {
                struct inventory_node key = { .name = p->node };
                struct inventory_node *n =
                        p->node && (p->plugin || p->daemon) && ret->n_nodes
                                ? bsearch(&key, ret->nodes, ret->n_nodes, sizeof key, inventory_by_name)
                                : NULL;
                if (n && p->plugin && !p->o.meta.deleted)
                        n->plugin = p;
                if (n && p->daemon && !p->o.meta.deleted)
                        n->daemon = p;
        }
        for (size_t i = 0; i < ret->n_nodes; i++) {
                struct inventory_node *n = &ret->nodes[i];
                add_sharers(v, n);
                if (!n->seats)
                        n->withheld = n->plugin && n->plugin->withheld
                                              ? reported_reason(v, n->plugin->withheld, &n->withheld_why)
                                              : inventory_withheld(v, n, &n->withheld_why);
        }
        make_racks(v, ret);
        ret->complete = view_state(v, VIEW_NODES, NULL) == VIEW_COMPLETE &&
                        view_state(v, VIEW_SLICES, NULL) == VIEW_COMPLETE &&
                        view_state(v, VIEW_CLAIMS, NULL) == VIEW_COMPLETE;
}

void inventory_make(struct view *v, const char *ns, struct inventory *ret) {
        inventory_fill(v, ns, true, ret);
}

void inventory_make_channels(struct view *v, const char *ns, struct inventory *ret) {
        inventory_fill(v, ns, false, ret);
}

const struct inventory_node *inventory_node_of(const struct inventory *x, const char *name) {
        struct inventory_node key = { .name = name };
        return name && x->n_nodes ? bsearch(&key, x->nodes, x->n_nodes, sizeof key, inventory_by_name) : NULL;
}
