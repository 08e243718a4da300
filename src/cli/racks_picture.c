/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "cli/command_table.h"
#include "cli/rack_list.h"
#include "cli/racks_html.h"

/* A ComputeDomain in the picture, or a claim whose ComputeDomain is unknown. */
struct picture_user {
        const char *name;
        char letter;
};

struct picture {
        struct cli *c;
        struct inventory inv;
        struct picture_user *users;
        size_t n, cap;
};

static const char picture_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWYZ"; /* X means: withheld */

static char letter_of(struct picture *p, const char *name) {
        for (size_t i = 0; i < p->n; i++)
                if (streq(p->users[i].name, name))
                        return p->users[i].letter;
        ARENA_GROW(p->c->v.a, p->users, p->n, p->cap);
        char letter = p->n < sizeof picture_letters - 1 ? picture_letters[p->n] : '#';
        p->users[p->n++] = (struct picture_user){ name, letter };
        return letter;
}

static char symbol_of(struct picture *p, const struct inventory_node *n) {
        if (n->n_holders + n->n_sharers > 1)
                return '*';
        if (n->n_sharers)
                return letter_of(p, n->sharers[0]);
        if (n->n_holders) {
                char letter = letter_of(p, inventory_user(&p->c->v, n->holders[0]));
                return inventory_is_ready_on(&p->c->v, n->holders[0], n->name) ? letter
                                                                               : (char)(letter | 0x20);
        }
        return n->seats && inventory_is_up(n) ? '.' : 'X';
}

/* The length of the beginning that all names of the rack have in common, but not a whole name. */
static size_t common_prefix(const struct inventory *inv, const char *clique) {
        const char *first = NULL;
        size_t n = 0;
        for (size_t i = 0; i < inv->n_nodes; i++) {
                const char *name = inv->nodes[i].name;
                if (!streq(inv->nodes[i].clique, clique))
                        continue;
                if (!first) {
                        first = name;
                        n = strlen(name);
                }
                size_t k = 0;
                while (k < n && name[k] == first[k] && name[k + 1])
                        k++;
                n = k;
        }
        return n;
}

static void picture_rack(struct picture *p, const struct inventory_rack *r) {
        struct term *t = &p->c->t;
        enum { WIDTH = 96 };
        size_t cut = common_prefix(&p->inv, r->clique), width = 1;
        const struct inventory_node **list = arena_alloc(p->c->v.a, (r->n_nodes + 1) * sizeof *list);
        size_t n = 0;
        for (size_t i = 0; i < p->inv.n_nodes; i++)
                if (streq(p->inv.nodes[i].clique, r->clique))
                        list[n++] = &p->inv.nodes[i];
        for (size_t i = 0; i < n; i++)
                width = strlen(list[i]->name + cut) > width ? strlen(list[i]->name + cut) : width;
        term_bold(t, "%s", r->name);
        if (!streq(r->name, r->clique))
                term_printf(t, "   partition %s", r->clique);
        term_line(t, "   %zu node%s   free %zu%s%.*s", r->n_nodes, r->n_nodes == 1 ? "" : "s", r->n_free,
                  cut ? "   names begin with " : "", (int)cut, n ? list[0]->name : "");
        size_t columns = WIDTH / (width + 1) ? WIDTH / (width + 1) : 1;
        for (size_t from = 0; from < n; from += columns) {
                size_t to = from + columns < n ? from + columns : n;
                term_printf(t, "  ");
                for (size_t i = from; i < to; i++)
                        term_printf(t, " %*s", (int)width, list[i]->name + cut);
                term_newline(t);
                term_printf(t, "  ");
                for (size_t i = from; i < to; i++)
                        term_printf(t, " %*c", (int)width, symbol_of(p, list[i]));
                term_newline(t);
        }
        term_newline(t);
}

static void picture_legend(struct picture *p) {
        struct term *t = &p->c->t;
        const struct inventory_rack *best = NULL;
        for (size_t i = 0; i < p->n; i++)
                term_printf(t, "%c %s   ", p->users[i].letter, p->users[i].name);
        term_line(t, "%s. free   X no channel", p->n ? "small letter: not ready   * several   " : "");
        for (size_t i = 0; i < p->inv.n_racks; i++)
                if (!best || p->inv.racks[i].n_free > best->n_free)
                        best = &p->inv.racks[i];
        if (best && best->n_free)
                term_line(t, "A job of up to %zu node%s fits on %s.", best->n_free,
                          best->n_free == 1 ? "" : "s", best->name);
        else if (best)
                term_line(t, "No rack has a free node.");
}

static void picture_json(struct picture *p) {
        struct jw w = JW(&p->c->t.out);
        struct arena *a = p->c->v.a;
        jw_arr(&w, NULL);
        for (size_t i = 0; i < p->inv.n_racks; i++) {
                const struct inventory_rack *r = &p->inv.racks[i];
                jw_obj(&w, NULL);
                term_json(&w, "name", r->name, a);
                term_json(&w, "cliqueID", r->clique, a);
                jw_int(&w, "free", (int64_t)r->n_free);
                jw_arr(&w, "nodes");
                for (size_t k = 0; k < p->inv.n_nodes; k++) {
                        const struct inventory_node *n = &p->inv.nodes[k];
                        if (!streq(n->clique, r->clique))
                                continue;
                        jw_obj(&w, NULL);
                        term_json(&w, "name", n->name, a);
                        jw_int(&w, "channels", (int64_t)n->seats);
                        jw_bool(&w, "up", inventory_is_up(n));
                        term_json(&w, "withheld", n->withheld, a);
                        jw_arr(&w, "usedBy");
                        for (size_t h = 0; h < n->n_holders; h++)
                                term_json(&w, NULL, inventory_user(&p->c->v, n->holders[h]), a);
                        for (size_t h = 0; h < n->n_sharers; h++)
                                term_json(&w, NULL, n->sharers[h], a);
                        jw_end_arr(&w);
                        jw_end_obj(&w);
                }
                jw_end_arr(&w);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        term_newline(&p->c->t);
}

static bool racks_as_page;

static int racks_page_write(struct picture *p, const char *path) {
        struct cli *c = p->c;
        struct err e;
        if (!path) {
                racks_html(&c->v, &p->inv, &c->t.out);
                return COMMAND_FINE;
        }
        _cleanup_(buf_done) struct buf page = BUF_INIT(TERM_OUT_MAX);
        racks_html(&c->v, &p->inv, &page);
        if (page.failed)
                return command_usage(c, "the page is too large");
        if (command_write(path, true, (struct str){ buf_str(&page), page.n }, &e) < 0)
                return command_usage(c, "%s", e.msg);
        term_line(&c->t, "%s: %zu bytes", path, page.n);
        return COMMAND_FINE;
}

static int racks_run(struct cli *c) {
        static const enum view_kind kinds[] = { VIEW_NODES, VIEW_SLICES, VIEW_CLAIMS };
        struct picture p = { .c = c };
        if (c->n_args > racks_as_page || (racks_as_page && streq(options.output, "json")))
                return command_usage(c, "usage: racks [-o json], or racks --html [FILE]");
        inventory_make(&c->v, c->source->ns, &p.inv);
        int r = command_needs(c, "racks", kinds, ARRAY_LEN(kinds));
        if (r)
                return r;
        if (racks_as_page)
                return racks_page_write(&p, c->n_args ? c->args[0] : NULL);
        if (streq(options.output, "json")) {
                picture_json(&p);
                return COMMAND_FINE;
        }
        for (size_t i = 0; i < p.inv.n_racks; i++)
                picture_rack(&p, &p.inv.racks[i]);
        if (!p.inv.n_racks)
                term_line(&c->t, "No node is in an NVLink partition.");
        else
                picture_legend(&p);
        return COMMAND_FINE;
}

static const struct option racks_options[] = {
        { .name = "html",
          .type = OPTION_BOOL,
          .dest = &racks_as_page,
          .help = "print a page for a browser, or write it to FILE" },
        { 0 },
};

const struct command command_racks = {
        .name = "racks",
        .args = "[--html [FILE]]",
        .summary = "a picture of the racks: which ComputeDomain uses which node",
        .text = "Shows each NVLink partition with its nodes. A letter stands for a ComputeDomain that uses "
                "the node. Needs permission to "
                "list Nodes, ResourceSlices and the ResourceClaims of all namespaces.\n\n"
                "With `--html`, prints one page for a browser, with the nodes, ComputeDomains, channels and "
                "problems. The page needs no network and no other file. If FILE exists, it is replaced.\n\n"
                " kubectl compute-domains racks --html racks.html",
        .options = racks_options,
        .reads = true,
        .run = racks_run,
};
