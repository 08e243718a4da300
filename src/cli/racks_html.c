/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/racks_html.h"

#include <string.h>

#include "api/names.h"
#include "cli/overview.h"
#include "rules/message.h"

/* A ComputeDomain that uses nodes, or a claim whose ComputeDomain is unknown. */
struct page_user {
        const char *name, *label; /* "A" to "Z", then "A1" and so on */
        size_t color;
};

struct racks_page {
        struct view *v;
        const struct inventory *inv;
        struct buf *out;
        struct page_user *users;
        size_t n, cap;
};

enum { COLORS = 8 };

/* Light and dark colours. test/html checks the contrast of the texts: at least 4.5 to 1 (WCAG 2.2, 1.4.3). */
static const char style[] =
        ":root{color-scheme:light "
        "dark;--page:#fff;--text:#1b1f24;--dim:#57606a;--line:#d0d7de;--head:#f3f5f7;"
        "--bad:#a40e26;--wait:#7d4e00;--good:#1a6334;--onto:#fff;--c0:#1f5fa8;--c1:#a8431f;--c2:#2b7a3f;"
        "--c3:#7a3fa0;--c4:#7d5900;--c5:#0f7078;--c6:#a0265f;--c7:#555f6b}\n"
        "@media (prefers-color-scheme:dark){:root{--page:#14171b;--text:#e6e9ed;--dim:#a3acb7;--line:#3a424c;"
        "--head:#1e232a;--bad:#ff8b93;--wait:#e6b450;--good:#7fd69a;--onto:#101317;--c0:#8ab8f0;--c1:#f0a58a;"
        "--c2:#8fd6a3;--c3:#cfa6ee;--c4:#e3c06a;--c5:#7fd0da;--c6:#f09ac0;--c7:#b9c2cc}}\n"
        "body{background:var(--page);color:var(--text);font:15px/1.45 system-ui,sans-serif;margin:1.5rem "
        "auto;"
        "max-width:82rem;padding:0 1rem}\n"
        "h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:1.8rem 0 .5rem}\n"
        ".dim{color:var(--dim)}.bad{color:var(--bad)}.wait{color:var(--wait)}.good{color:var(--good)}\n"
        ".racks{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,36rem),1fr));gap:1rem}\n"
        "table{border-collapse:collapse;width:100%;border:1px solid var(--line)}\n"
        "caption{text-align:left;padding:.3rem 0;overflow-wrap:anywhere}"
        "caption b{font-size:1.05rem}\n"
        "th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-bottom:1px solid var(--line);"
        "overflow-wrap:anywhere}\n"
        "thead th{background:var(--head);font-weight:600}tbody th{font-weight:500}"
        ".racks section{overflow-x:auto}.racks th,.racks td,.racks td .dim{white-space:nowrap}\n"
        ".key{display:inline-block;min-width:1.1em;padding:0 .35em;margin-right:.4em;border-radius:.25em;"
        "color:var(--onto);font-weight:700;text-align:center}\n"
        ".k0{background:var(--c0)}.k1{background:var(--c1)}.k2{background:var(--c2)}.k3{background:var(--c3)}"
        ".k4{background:var(--c4)}.k5{background:var(--c5)}.k6{background:var(--c6)}.k7{background:var(--c7)}"
        "\n"
        "ul{padding-left:1.2rem}li{overflow-wrap:anywhere}\n"
        "@media (max-width:30rem){.racks{grid-template-columns:1fr}}\n"
        "@media print{:root{color-scheme:light;--page:#fff;--text:#000;--dim:#444;--line:#999;--head:#fff;"
        "--bad:#a40e26;--wait:#7d4e00;--good:#1a6334;--onto:#fff;--c0:#1f5fa8;--c1:#a8431f;--c2:#2b7a3f;"
        "--c3:#7a3fa0;--c4:#7d5900;--c5:#0f7078;--c6:#a0265f;--c7:#555f6b}"
        "body{margin:0;max-width:none;font-size:10pt}.racks{grid-template-columns:1fr 1fr}"
        "section,tr{break-inside:avoid}.key{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n";

void racks_html_text(struct buf *out, struct arena *a, const char *text) {
        for (const char *p = term_clean(a, str_or(text, ""), false, false); *p; p++)
                switch (*p) {
                case '&':
                        buf_adds(out, "&amp;");
                        break;
                case '<':
                        buf_adds(out, "&lt;");
                        break;
                case '>':
                        buf_adds(out, "&gt;");
                        break;
                case '"':
                        buf_adds(out, "&quot;");
                        break;
                case '\'':
                        buf_adds(out, "&#39;");
                        break;
                default:
                        buf_addc(out, *p);
                }
}

static void page_text(struct racks_page *p, const char *text) {
        racks_html_text(p->out, p->v->a, text);
}

/* An element with only text. `tag` may have attributes: "td class=bad". No tag is from an object. */
static void page_element(struct racks_page *p, const char *tag, const char *text) {
        buf_addf(p->out, "<%s>", tag);
        page_text(p, text);
        buf_addf(p->out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

static void page_head(struct racks_page *p, const char *const *titles, size_t n) {
        buf_adds(p->out, "<thead><tr>");
        for (size_t i = 0; i < n; i++)
                page_element(p, "th scope=\"col\"", titles[i]);
        buf_adds(p->out, "</tr></thead>\n<tbody>\n");
}

/* ---- users ---- */

static const struct page_user *page_user_of(struct racks_page *p, const char *name) {
        for (size_t i = 0; i < p->n; i++)
                if (streq(p->users[i].name, name))
                        return &p->users[i];
        ARENA_GROW(p->v->a, p->users, p->n, p->cap);
        char letter = (char)('A' + p->n % 26);
        const char *label = p->n < 26 ? arena_printf(p->v->a, "%c", letter)
                                      : arena_printf(p->v->a, "%c%zu", letter, p->n / 26);
        p->users[p->n] = (struct page_user){ name, label, p->n % COLORS };
        return &p->users[p->n++];
}

/* The letter repeats what the colour shows. */
static void page_key(struct racks_page *p, const char *name) {
        const struct page_user *u = page_user_of(p, name);
        buf_addf(p->out, "<span class=\"key k%zu\">%s</span>", u->color, u->label);
        page_text(p, name);
}

/* ---- nodes ---- */

static const char no_plugins[] = "ComputeDomains are not installed";

/* Why pods with a channel cannot run on the node, without or with the message of the plugin; NULL: they can.
 */
static const char *node_problem(const struct racks_page *p, const struct inventory_node *n, bool in_full) {
        struct arena *a = p->v->a;
        bool pods_known = p->v->driver_ns && view_state(p->v, VIEW_PODS, p->v->driver_ns) == VIEW_COMPLETE;
        if (!n->node)
                return "the Node does not exist";
        if (!node_ready(&n->node->node))
                return "the Node is not Ready";
        if (view_lacks_plugins(p->v))
                return no_plugins;
        if (pods_known && !n->plugin)
                return "no plugin Pod";
        if (pods_known && !pod_object_ready(n->plugin))
                return "its plugin Pod is not Ready";
        if (!n->seats)
                return in_full && n->withheld_why && *n->withheld_why
                               ? arena_printf(a, "no channel (%s): %s", str_or(n->withheld, "unknown"),
                                              n->withheld_why)
                               : arena_printf(a, "no channel (%s)", str_or(n->withheld, "unknown reason"));
        return n->node->node.unschedulable ? "cordoned" : NULL;
}

/* The channel devices of the node that a claim has. */
static const char *devices_of(const struct racks_page *p, const struct claim_object *c, const char *node) {
        struct message_list list = { 0 };
        for (size_t i = 0; i < c->claim.n_results; i++) {
                const struct claim_result *r = &c->claim.results[i];
                if (claim_result_is_channel(r) && !r->admin_access && streq(r->pool, node))
                        message_add(&list, "%s", str_or(r->device, ""));
        }
        return message_end(&list, p->v->a);
}

static void page_node_state(struct racks_page *p, const struct inventory_node *n, const char *problem) {
        if (problem)
                page_element(p, streq(problem, "cordoned") ? "td class=\"wait\"" : "td class=\"bad\"",
                             problem);
        else if (!n->n_holders)
                page_element(p, n->n_sharers ? "td" : "td class=\"good\"",
                             n->n_sharers ? "used by shared claims" : "free");
        else if (n->n_holders == 1 && !inventory_is_ready_on(p->v, n->holders[0], n->name))
                page_element(p, "td class=\"wait\"", "used, not ready");
        else
                page_element(p, "td",
                             n->seats > 1 ? arena_printf(p->v->a, "%zu of %zu channels used", n->n_holders,
                                                         n->seats)
                                          : "used");
}

static void page_node(struct racks_page *p, const struct inventory_node *n) {
        buf_adds(p->out, "<tr>");
        page_element(p, "th scope=\"row\"", n->name);
        page_node_state(p, n, node_problem(p, n, false));
        buf_adds(p->out, "<td>");
        for (size_t i = 0; i < n->n_holders; i++) {
                buf_adds(p->out, i ? "<br>" : "");
                page_key(p, inventory_user(p->v, n->holders[i]));
                buf_adds(p->out, " <span class=\"dim\">");
                page_text(p, devices_of(p, n->holders[i], n->name));
                buf_adds(p->out, "</span>");
        }
        for (size_t i = 0; i < n->n_sharers; i++) {
                buf_adds(p->out, i || n->n_holders ? "<br>" : "");
                page_key(p, n->sharers[i]);
                buf_adds(p->out, " <span class=\"dim\">shared claim</span>");
        }
        buf_adds(p->out, "</td></tr>\n");
}

/* The table of a rack; `r` NULL: of the nodes outside of partitions. */
static void page_rack(struct racks_page *p, const struct inventory_rack *r) {
        static const char *const titles[] = { "Node", "State", "ComputeDomain and device" };
        const struct compute_domain_fabric *f = r ? view_find(p->v, VIEW_FABRICS, NULL, r->clique) : NULL;
        buf_adds(p->out, "<section>\n<table>\n<caption>");
        page_element(p, "b", r ? r->name : "Nodes outside of NVLink partitions");
        buf_adds(p->out, "<br><span class=\"dim\">");
        if (r && !streq(r->name, r->clique))
                page_text(p, arena_printf(p->v->a, "partition %s, ", r->clique));
        if (r)
                page_text(p, arena_printf(p->v->a, "%zu node%s: %zu free, %zu used, %zu down", r->n_nodes,
                                          r->n_nodes == 1 ? "" : "s", r->n_free, r->n_used, r->n_down));
        if (f && p->v->own_channels && f->channel_count)
                page_text(p, arena_printf(p->v->a, "; %lld of %lld IMEX channels in use",
                                          (long long)f->channels_in_use, (long long)f->channel_count));
        buf_adds(p->out, "</span></caption>\n");
        page_head(p, titles, ARRAY_LEN(titles));
        for (size_t i = 0; i < p->inv->n_nodes; i++) {
                const char *clique = str_or(p->inv->nodes[i].clique, "");
                if (streq(clique, r ? r->clique : ""))
                        page_node(p, &p->inv->nodes[i]);
        }
        buf_adds(p->out, "</tbody>\n</table>\n</section>\n");
}

/* ---- ComputeDomains ---- */

static void page_domain(struct racks_page *p, const struct compute_domain *cd) {
        struct arena *a = p->v->a;
        const char *tag = overview_fails(p->v, cd)                           ? "td class=\"bad\""
                          : domain_status_decode(cd->status) == DOMAIN_READY ? "td class=\"good\""
                                                                             : "td class=\"wait\"";
        buf_adds(p->out, "<tr><th scope=\"row\">");
        page_key(p, arena_printf(a, "%s/%s", cd->o.meta.ns, cd->o.meta.name));
        buf_adds(p->out, "</th>");
        page_element(p, tag, cd->o.meta.deleted ? "Deleting" : str_or(cd->status, "no status"));
        page_element(p, "td",
                     cd->nodes_wanted ? arena_printf(a, "%lld of %lld ready", (long long)cd->nodes_ready,
                                                     (long long)cd->nodes_wanted)
                                      : "");
        page_element(p, "td", overview_racks(p->v, cd));
        page_element(p, "td", overview_peers(p->v, cd));
        page_element(p, "td", term_age(a, p->v->source->now - cd->o.meta.created));
        page_element(p, "td", overview_message(p->v, cd));
        buf_adds(p->out, "</tr>\n");
}

static void page_domains(struct racks_page *p) {
        static const char *const titles[] = { "ComputeDomain", "Status", "Nodes",  "Racks",
                                              "Peers",         "Age",    "Message" };
        size_t n = 0;
        buf_adds(p->out, "<section>\n<h2>ComputeDomains</h2>\n");
        VIEW_EACH(p->v, VIEW_DOMAINS, struct compute_domain, cd) {
                if (!n++) {
                        buf_adds(p->out, "<table>\n");
                        page_head(p, titles, ARRAY_LEN(titles));
                }
                page_domain(p, cd);
        }
        buf_adds(p->out, n ? "</tbody>\n</table>\n</section>\n" : "<p>None.</p>\n</section>\n");
        if (view_state(p->v, VIEW_DOMAINS, NULL) != VIEW_COMPLETE)
                buf_adds(p->out, "<p class=\"wait\">The list of ComputeDomains is not complete.</p>\n");
}

/* ---- problems ---- */

static void page_problem(struct racks_page *p, size_t *n, const char *object, const char *text) {
        if (!(*n)++)
                buf_adds(p->out, "<ul>\n");
        buf_adds(p->out, "<li>");
        page_element(p, "b", object);
        buf_adds(p->out, ": ");
        page_text(p, text);
        buf_adds(p->out, "</li>\n");
}

/* The lists that may contain more problems; NULL: all were read. */
static const char *page_unread(const struct racks_page *p) {
        const char *driver = p->v->driver_ns;
        const enum view_kind kinds[] = { VIEW_FABRICS, VIEW_DOMAINS, driver ? VIEW_PODS : VIEW_DAEMON_SETS };
        struct message_list list = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                if (view_state(p->v, kinds[i], kinds[i] == VIEW_PODS ? driver : NULL) != VIEW_COMPLETE)
                        message_add(&list, "%s", view_resource(kinds[i])->plural);
        }
        const char *names = message_end(&list, p->v->a);
        return *names ? names : NULL;
}

static void page_problems(struct racks_page *p) {
        size_t n = 0;
        buf_adds(p->out, "<section>\n<h2>Problems</h2>\n");
        if (view_lacks_plugins(p->v))
                page_problem(p, &n, "the driver", no_plugins);
        for (size_t i = 0; i < p->inv->n_nodes; i++) {
                const char *problem = node_problem(p, &p->inv->nodes[i], true);
                if (problem && !streq(problem, "cordoned") && problem != no_plugins)
                        page_problem(p, &n, p->inv->nodes[i].name, problem);
        }
        VIEW_EACH(p->v, VIEW_FABRICS, struct compute_domain_fabric, f)
        for (size_t i = 0; i < f->n_conditions; i++)
                if (condition_status_decode(f->conditions[i].status) == STATUS_TRUE)
                        page_problem(p, &n, inventory_rack_name(p->v, f->o.meta.name),
                                     arena_printf(p->v->a, "%s: %s",
                                                  str_or(f->conditions[i].type, "a condition"),
                                                  str_or(f->conditions[i].message, "")));
        VIEW_EACH(p->v, VIEW_DOMAINS, struct compute_domain, cd) {
                const char *message = overview_message(p->v, cd);
                if (overview_fails(p->v, cd))
                        page_problem(p, &n, arena_printf(p->v->a, "%s/%s", cd->o.meta.ns, cd->o.meta.name),
                                     *message ? message : "not Ready");
        }
        const char *unread = page_unread(p);
        if (n)
                buf_adds(p->out, "</ul>\n");
        else
                buf_adds(p->out, unread || p->v->driver_doubt ? "<p>None found.</p>\n"
                                                              : "<p class=\"good\">None.</p>\n");
        if (unread)
                page_element(p, "p class=\"wait\"",
                             arena_printf(p->v->a, "Not all objects could be read: %s", unread));
        if (p->v->driver_doubt)
                page_element(p, "p class=\"wait\"", p->v->driver_doubt);
        buf_adds(p->out, "</section>\n");
}

/* ---- the page ---- */

static void page_header(struct racks_page *p) {
        char time_text[32];
        size_t n_free = 0;
        str_time(p->v->source->now, time_text);
        for (size_t i = 0; i < p->inv->n_racks; i++)
                n_free += p->inv->racks[i].n_free;
        buf_adds(p->out,
                 "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                 "'unsafe-inline'; img-src data:\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<link rel=\"icon\" href=\"data:,\">\n");
        buf_addf(p->out, "<title>NVLink racks, %s</title>\n<style>\n%s</style>\n</head>\n<body>\n", time_text,
                 style);
        buf_addf(p->out, "<header>\n<h1>NVLink racks</h1>\n<p class=\"dim\"><time>%s</time>", time_text);
        if (p->v->driver_ns)
                page_text(p, arena_printf(p->v->a, ", IMEX %s, isolation %s",
                                          p->v->hosts ? "host-managed" : "driver-managed",
                                          p->v->own_channels ? "channel" : "domain"));
        page_text(p, arena_printf(p->v->a, ". %zu rack%s, %zu node%s, %zu of them free.", p->inv->n_racks,
                                  p->inv->n_racks == 1 ? "" : "s", p->inv->n_nodes,
                                  p->inv->n_nodes == 1 ? "" : "s", n_free));
        buf_adds(p->out, "</p>\n</header>\n<main>\n");
}

void racks_html(struct view *v, const struct inventory *inv, struct buf *out) {
        struct racks_page p = { .v = v, .inv = inv, .out = out };
        bool outside = false;
        for (size_t i = 0; i < inv->n_nodes; i++)
                outside = outside || !*str_or(inv->nodes[i].clique, "");
        page_header(&p);
        page_problems(&p);
        buf_adds(out, "<h2>Racks</h2>\n<div class=\"racks\">\n");
        for (size_t i = 0; i < inv->n_racks; i++)
                page_rack(&p, &inv->racks[i]);
        if (outside)
                page_rack(&p, NULL);
        buf_adds(out, inv->n_nodes ? "</div>\n" : "</div>\n<p>No node has a GPU.</p>\n");
        page_domains(&p);
        buf_adds(out, "</main>\n</body>\n</html>\n");
}
