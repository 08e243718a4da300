/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/names.h"
#include "cli/command_table.h"
#include "cli/overview.h"
#include "cli/pod_case.h"
#include "rules/message.h"

struct overview {
        struct cli *c;
        struct view *v;
        struct inventory inv;
        const char *ns;     /* only ComputeDomains of this namespace; NULL: all that may be read */
        const char *unread; /* which ComputeDomains may not be read; NULL: none */
        bool denied;        /* no ComputeDomain may be read */
        size_t n_problems;
        struct message_list next; /* objects for `why` */
        const char *controller, *plugins, *nodes;
        enum term_mark controller_mark, plugins_mark, nodes_mark;
};

static void add_problem(struct overview *o, const char *object) {
        o->n_problems++;
        if (object && o->next.n < 3)
                message_add(&o->next, "why %s", object);
}

/* Why these objects are missing. */
static const char *unread_words(const struct overview *o, const enum view_kind *kinds, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (view_failed(o->v, kinds[i]))
                        return "could not be read";
        return "may not be read";
}

static bool any_list_failed(const struct overview *o) {
        for (enum view_kind k = 0; k < VIEW_KINDS; k++)
                if (view_failed(o->v, k))
                        return true;
        return false;
}

/* ---- the driver ---- */

static void judge_controller(struct overview *o) {
        struct view *v = o->v;
        bool unclear = v->driver == VIEW_DRIVER_UNCLEAR;
        if (unclear || view_state(v, VIEW_DEPLOYMENTS, NULL) != VIEW_COMPLETE) {
                static const enum view_kind kinds[] = { VIEW_DEPLOYMENTS };
                o->controller = unclear ? "not known" : unread_words(o, kinds, ARRAY_LEN(kinds));
                o->controller_mark = TERM_UNKNOWN;
                return;
        }
        o->controller = "not installed";
        o->controller_mark = TERM_BAD;
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, d) {
                if (!view_is_driver(v, d, "compute-domain-controller"))
                        continue;
                o->controller =
                        arena_printf(v->a, "%lld/%lld", (long long)d->ready_replicas, (long long)d->replicas);
                o->controller_mark = d->ready_replicas >= d->replicas ? TERM_OK
                                     : d->ready_replicas              ? TERM_WAIT
                                                                      : TERM_BAD;
        }
        if (o->controller_mark == TERM_BAD)
                add_problem(o, NULL);
}

static void judge_plugins(struct overview *o) {
        struct view *v = o->v;
        struct message_list bad = { 0 };
        size_t n_ready = 0, n_gpu = 0;
        if (view_lacks_plugins(v)) {
                o->plugins = "not installed";
                o->plugins_mark = TERM_BAD;
                add_problem(o, NULL);
                return;
        }
        if (!v->driver_ns || view_state(v, VIEW_PODS, v->driver_ns) != VIEW_COMPLETE ||
            view_state(v, VIEW_NODES, NULL) != VIEW_COMPLETE) {
                static const enum view_kind kinds[] = { VIEW_DAEMON_SETS, VIEW_DEPLOYMENTS, VIEW_PODS,
                                                        VIEW_NODES };
                o->plugins = v->driver == VIEW_DRIVER_UNCLEAR ? "not known"
                                                              : unread_words(o, kinds, ARRAY_LEN(kinds));
                o->plugins_mark = TERM_UNKNOWN;
                return;
        }
        for (size_t i = 0; i < o->inv.n_nodes; i++) {
                const struct inventory_node *n = &o->inv.nodes[i];
                bool ready = n->plugin && pod_object_ready(n->plugin);
                n_gpu++;
                n_ready += ready;
                if (!ready) {
                        message_add(&bad, "%s: %s", n->name, n->plugin ? "its pod is not Ready" : "no pod");
                        add_problem(o, arena_printf(v->a, "node/%s", term_shell_word(v->a, n->name)));
                }
        }
        const char *text = message_end(&bad, v->a);
        o->plugins = arena_printf(v->a, "%zu/%zu%s%s", n_ready, n_gpu, *text ? "  " : "", text);
        o->plugins_mark = *text || !n_gpu ? TERM_BAD : TERM_OK;
}

static void judge_nodes(struct overview *o) {
        struct message_list bad = { 0 };
        size_t n_offer = 0, n_withhold = 0;
        if (!o->inv.complete) {
                static const enum view_kind kinds[] = { VIEW_NODES, VIEW_SLICES, VIEW_CLAIMS };
                o->nodes = unread_words(o, kinds, ARRAY_LEN(kinds));
                o->nodes_mark = TERM_UNKNOWN;
                return;
        }
        for (size_t i = 0; i < o->inv.n_nodes; i++) {
                const struct inventory_node *n = &o->inv.nodes[i];
                n_offer += n->seats > 0;
                if (n->seats || !n->plugin || !pod_object_ready(n->plugin))
                        continue;
                n_withhold++;
                message_add(&bad, "%s %s", n->name, str_or(n->withheld, "for an unknown reason"));
                add_problem(o, arena_printf(o->v->a, "node/%s", term_shell_word(o->v->a, n->name)));
        }
        const char *text = message_end(&bad, o->v->a);
        o->nodes = *text ? arena_printf(o->v->a, "%zu offer a channel, %zu withhold%s (%s)", n_offer,
                                        n_withhold, n_withhold == 1 ? "s" : "", text)
                         : arena_printf(o->v->a, "%zu offer a channel", n_offer);
        o->nodes_mark = *text || !n_offer ? TERM_BAD : TERM_OK;
        if (!n_offer && !n_withhold)
                add_problem(o, NULL);
}

/* ---- ComputeDomains ---- */

const char *overview_peers(const struct view *v, const struct compute_domain *cd) {
        const struct cd_condition *c = domain_condition(cd, CONDITION_PEERS_CONNECTED);
        return !c                                                  ? "-"
               : condition_status_decode(c->status) == STATUS_TRUE ? "all found"
               : domain_is_connecting(v, c)                        ? "connecting"
               : streq(c->reason, REASON_PEERS_MISSING)            ? "some missing"
                                                                   : "-";
}

const char *overview_racks(struct view *v, const struct compute_domain *cd) {
        struct message_list list = { 0 };
        for (size_t i = 0; i < cd->n_nodes; i++) {
                bool known = false;
                for (size_t k = 0; k < i; k++)
                        known = known || streq(cd->nodes[k].clique_id, cd->nodes[i].clique_id);
                if (!known && cd->nodes[i].clique_id && *cd->nodes[i].clique_id)
                        message_add(&list, "%s", inventory_rack_name(v, cd->nodes[i].clique_id));
        }
        return str_or(message_end(&list, v->a), "-");
}

static bool shows(const struct overview *o, const struct compute_domain *cd) {
        return !o->ns || streq(cd->o.meta.ns, o->ns);
}

/* The list of all namespaces may be denied, and that of the user's own namespace complete. */
static void find_unread_domains(struct overview *o) {
        if (view_state(o->v, VIEW_DOMAINS, o->ns) != VIEW_UNREADABLE)
                return;
        o->denied = o->ns || view_state(o->v, VIEW_DOMAINS, o->v->source->ns) == VIEW_UNREADABLE;
        o->unread = o->denied ? "ComputeDomains may not be read"
                              : "ComputeDomains of other namespaces may not be read";
}

static bool is_not_ready(const struct view *v, const struct compute_domain *cd) {
        const struct cd_condition *c = domain_condition(cd, CONDITION_READY);
        return domain_is_unexplained(cd) ||
               (c && domain_status_decode(cd->status) != DOMAIN_READY && domain_condition_fails(v, cd, c));
}

bool overview_fails(const struct view *v, const struct compute_domain *cd) {
        if (is_not_ready(v, cd))
                return true;
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (!streq(cd->conditions[i].type, CONDITION_READY) &&
                    domain_condition_fails(v, cd, &cd->conditions[i]))
                        return true;
        return false;
}

const char *overview_message(struct view *v, const struct compute_domain *cd) {
        const struct cd_condition *c = domain_condition(cd, CONDITION_READY);
        bool waits = c && domain_status_decode(cd->status) != DOMAIN_READY;
        const char *ready = waits && !streq(c->reason, REASON_NO_NODES) ? str_or(c->message, c->reason) : "",
                   *text = ready;
        for (size_t i = 0; i < cd->n_conditions; i++) {
                c = &cd->conditions[i];
                /* A node that is not ready has no peers, and Ready may have the same message. */
                bool known = streq(c->type, CONDITION_READY) || streq(c->message, ready) ||
                             (*ready && streq(c->type, CONDITION_PEERS_CONNECTED));
                if (!known && domain_condition_fails(v, cd, c))
                        text = arena_printf(v->a, "%s%s%s: %s", text, *text ? "; " : "",
                                            str_or(c->reason, c->type), str_or(c->message, ""));
        }
        return text;
}

static void domains_table(struct overview *o) {
        struct term_table x;
        struct arena *a = o->v->a;
        static const char *const head[] = { "DOMAIN", "STATUS", "NODES", "RACK", "PEERS", "AGE", "" };
        term_table_begin(&x, ARRAY_LEN(head));
        for (size_t i = 0; i < ARRAY_LEN(head); i++)
                term_cell(&x, head[i]);
        VIEW_EACH(o->v, VIEW_DOMAINS, struct compute_domain, cd) {
                if (!shows(o, cd))
                        continue;
                bool fails = overview_fails(o->v, cd);
                term_cell(&x, arena_printf(a, "%s/%s", cd->o.meta.ns, cd->o.meta.name));
                bool ready = domain_status_decode(cd->status) == DOMAIN_READY;
                term_cell_marked(&x,
                                 fails   ? TERM_BAD
                                 : ready ? TERM_OK
                                         : TERM_WAIT,
                                 cd->o.meta.deleted ? "Deleting" : str_or(cd->status, "-"));
                term_cell(&x, cd->nodes_wanted ? arena_printf(a, "%lld/%lld", (long long)cd->nodes_ready,
                                                              (long long)cd->nodes_wanted)
                                               : "-");
                term_cell(&x, overview_racks(o->v, cd));
                term_cell(&x, overview_peers(o->v, cd));
                term_cell(&x, term_age(a, o->v->source->now - cd->o.meta.created));
                term_cell(&x, overview_message(o->v, cd));
        }
        term_table_end(&o->c->t, &x, a);
}

static void racks_table(struct overview *o) {
        struct term_table x;
        struct arena *a = o->v->a;
        static const char *const head[] = { "RACK", "NODES", "FREE", "USED", "DOWN" };
        term_table_begin(&x, ARRAY_LEN(head));
        for (size_t i = 0; i < ARRAY_LEN(head); i++)
                term_cell(&x, head[i]);
        for (size_t i = 0; i < o->inv.n_racks; i++) {
                const struct inventory_rack *r = &o->inv.racks[i];
                term_cell(&x, r->name);
                term_cell(&x, arena_printf(a, "%zu", r->n_nodes));
                term_cell(&x, arena_printf(a, "%zu", r->n_free));
                term_cell(&x, arena_printf(a, "%zu", r->n_used));
                term_cell_marked(&x, r->n_down ? TERM_BAD : TERM_NONE, arena_printf(a, "%zu", r->n_down));
        }
        term_table_end(&o->c->t, &x, a);
}

/* ---- the whole ---- */

static void status_line(struct term *t, enum term_mark m, const char *label, const char *text) {
        term_printf(t, "  ");
        term_add_mark(t, m);
        term_line(t, "%-12s %s", label, text);
}

static void overview_text(struct overview *o, size_t n_domains) {
        struct term *t = &o->c->t;
        struct view *v = o->v;
        const char *ns = o->ns ? o->ns : o->unread ? v->source->ns : NULL;
        term_bold(t, "compute-domains");
        if (v->driver_ns)
                term_line(t, "   namespace %s   IMEX %s   isolation %s", v->driver_ns,
                          v->hosts ? "host-managed" : "driver-managed",
                          v->own_channels ? "channel" : "domain");
        else
                term_newline(t);
        status_line(t, o->controller_mark, "controller", o->controller);
        status_line(t, o->plugins_mark, "plugins", o->plugins);
        status_line(t, o->nodes_mark, "nodes", o->nodes);
        if (v->driver_doubt)
                term_paragraph(t, "", v->driver_doubt);
        if (o->inv.complete && o->inv.n_racks) {
                term_newline(t);
                racks_table(o);
        }
        term_newline(t);
        if (n_domains)
                domains_table(o);
        else if (view_lacks_definition(v))
                term_paragraph(t, "", "The " DEFINITION " is missing. " DEFINITION_FIX);
        else if (view_failed(v, VIEW_DOMAINS))
                term_line(t, "The ComputeDomains could not be read");
        else if (o->denied)
                term_line(t, "%s", o->unread);
        else
                term_line(t, "No ComputeDomain%s%s", ns ? " in namespace " : "", ns ? ns : "");
        bool partly = o->unread && !o->denied;
        if (any_list_failed(o) || partly)
                term_newline(t);
        if (partly) {
                term_add_mark(t, TERM_UNKNOWN);
                term_line(t, "%s", o->unread);
        }
        for (enum view_kind k = 0; k < VIEW_KINDS; k++) {
                const char *why = view_failed(v, k);
                if (!why)
                        continue;
                term_add_mark(t, TERM_UNKNOWN);
                term_line(t, "%s: %s", view_resource(k)->plural, why);
        }
        const char *next = message_end(&o->next, v->a);
        if (o->n_problems) {
                term_newline(t);
                term_line(t, "%zu problem%s%s%s", o->n_problems, o->n_problems == 1 ? "" : "s",
                          *next ? "   kubectl compute-domains " : "", next);
        }
}

static void overview_json(struct overview *o) {
        struct jw w = JW(&o->c->t.out);
        struct arena *a = o->v->a;
        jw_obj(&w, NULL);
        term_json(&w, "namespace", o->v->driver_ns, a);
        term_json(&w, "controller", o->controller, a);
        term_json(&w, "plugins", o->plugins, a);
        term_json(&w, "nodes", o->nodes, a);
        if (o->v->driver_doubt)
                term_json(&w, "driverDoubt", o->v->driver_doubt, a);
        if (o->unread)
                term_json(&w, "domainsUnread", o->unread, a);
        jw_bool(&w, "definitionMissing", view_lacks_definition(o->v));
        jw_bool(&w, "complete", o->inv.complete);
        jw_int(&w, "problems", (int64_t)o->n_problems);
        jw_arr(&w, "failed");
        for (enum view_kind k = 0; k < VIEW_KINDS; k++) {
                const char *why = view_failed(o->v, k);
                if (!why)
                        continue;
                jw_obj(&w, NULL);
                jw_str(&w, "what", view_resource(k)->plural);
                term_json(&w, "why", why, a);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_arr(&w, "racks");
        for (size_t i = 0; o->inv.complete && i < o->inv.n_racks; i++) {
                const struct inventory_rack *r = &o->inv.racks[i];
                jw_obj(&w, NULL);
                term_json(&w, "name", r->name, a);
                term_json(&w, "cliqueID", r->clique, a);
                jw_int(&w, "nodes", (int64_t)r->n_nodes);
                jw_int(&w, "free", (int64_t)r->n_free);
                jw_int(&w, "used", (int64_t)r->n_used);
                jw_int(&w, "down", (int64_t)r->n_down);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_arr(&w, "domains");
        VIEW_EACH(o->v, VIEW_DOMAINS, struct compute_domain, cd) {
                if (!shows(o, cd))
                        continue;
                jw_obj(&w, NULL);
                term_json(&w, "namespace", cd->o.meta.ns, a);
                term_json(&w, "name", cd->o.meta.name, a);
                term_json(&w, "status", cd->status, a);
                jw_int(&w, "nodesReady", cd->nodes_ready);
                jw_int(&w, "nodesWanted", cd->nodes_wanted);
                term_json(&w, "racks", overview_racks(o->v, cd), a);
                term_json(&w, "peers", overview_peers(o->v, cd), a);
                term_json(&w, "message", overview_message(o->v, cd), a);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        term_newline(&o->c->t);
}

int overview_add(struct cli *c, struct view *v) {
        struct overview o = { .c = c, .v = v, .ns = options.all_namespaces ? NULL : options.ns };
        size_t n_domains = 0;
        inventory_make(v, v->source->ns, &o.inv);
        judge_controller(&o);
        judge_plugins(&o);
        judge_nodes(&o);
        find_unread_domains(&o);
        VIEW_EACH(v, VIEW_DOMAINS, struct compute_domain, cd) {
                n_domains += shows(&o, cd);
                if (shows(&o, cd) && overview_fails(v, cd))
                        add_problem(&o, arena_printf(v->a, "computedomain/%s -n %s",
                                                     term_shell_word(v->a, cd->o.meta.name),
                                                     term_shell_word(v->a, cd->o.meta.ns)));
        }
        bool json = streq(options.output, "json"), served = !view_not_served(v, VIEW_DOMAINS);
        if (!served)
                add_problem(&o, NULL);
        if (!served && !view_lacks_definition(v) && !json) {
                buf_done(&o.next.text);
                term_line(&c->t, "The cluster has no ComputeDomains: %s.", view_no_driver(v));
                return COMMAND_PROBLEM;
        }
        if (json)
                overview_json(&o);
        else
                overview_text(&o, n_domains);
        buf_done(&o.next.text);
        if (o.n_problems)
                return COMMAND_PROBLEM;
        if (any_list_failed(&o) ||
            (v->driver == VIEW_DRIVER_UNCLEAR && view_state(v, VIEW_ADMISSION, NULL) != VIEW_UNREADABLE))
                return COMMAND_FAILED;
        /* Without -A, the user asks only for those that may be read. */
        bool lacks = o.denied || (o.unread && options.all_namespaces);
        return !lacks && v->driver != VIEW_DRIVER_UNCLEAR ? COMMAND_FINE : COMMAND_DENIED;
}

static int status_run(struct cli *c) {
        return c->n_args ? command_usage(c, "status has no arguments") : overview_add(c, &c->v);
}

const struct command command_status = {
        .name = "status",
        .args = "",
        .summary = "the driver, the racks and the ComputeDomains in one screen",
        .text = "Shows whether the driver works, which racks have free nodes, and the state of each "
                "ComputeDomain that you may read. "
                "With `--namespace`, shows only its ComputeDomains. This is the default command.\n\n"
                "With `-o json`, the output is one object. `problems` is the number of problems, `failed` "
                "has the lists that failed, with the error in `why`, and `definitionMissing` is true if "
                "the driver is installed without the CustomResourceDefinition of ComputeDomains. If you may "
                "not read all ComputeDomains, `domainsUnread` names those that are missing.",
        .reads = true,
        .run = status_run,
};
