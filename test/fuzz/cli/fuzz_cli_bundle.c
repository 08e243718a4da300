/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: every command that reads can be run with every bundle that can be opened. No output contains a
 * control character. */
#include <stdlib.h>
#include <string.h>

#include "cli/bundle.h"
#include "cli/command.h"
#include "cli/command_table.h"
#include "cli/doctor.h"
#include "cli/pod_case.h"
#include "cli/racks_html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_text(const struct buf *out) {
        for (size_t i = 0; i < out->n; i++)
                if ((unsigned char)out->p[i] < 0x20 && out->p[i] != '\n')
                        abort();
}

static void run_quietly(struct source *s, const struct command *command) {
        struct cli c = { .a = arena_new(1024), .source = s, .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c.v, s);
        command->run(&c);
        check_text(&c.t.out);
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
}

/* Draws the page of the racks. Its own text contains no script. */
static void draw_page(struct source *s) {
        struct buf page = BUF_INIT(TERM_OUT_MAX);
        struct inventory inv;
        struct view v;
        view_init(&v, s);
        inventory_make(&v, s->ns, &inv);
        racks_html(&v, &inv, &page);
        check_text(&page);
        if (strstr(buf_str(&page), "<script"))
                abort();
        buf_done(&page);
        view_done(&v);
}

/* Explains every Pod, Node and ComputeDomain of the bundle. */
static void explain_all(struct source *s) {
        struct view all;
        view_init(&all, s);
        view_read(&all, VIEW_PODS, NULL);
        view_read(&all, VIEW_NODES, NULL);
        view_read(&all, VIEW_DOMAINS, NULL);
        const enum view_kind kinds[] = { VIEW_PODS, VIEW_NODES, VIEW_DOMAINS };
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
                for (size_t i = 0; i < all.kinds[kinds[k]].n && i < 20; i++) {
                        const struct kube_object *o = all.kinds[kinds[k]].items[i];
                        struct view v;
                        struct term t = { .out = BUF_INIT(TERM_OUT_MAX) };
                        view_init(&v, s);
                        struct diagnosis d = { .v = &v, .a = v.a };
                        bool found = kinds[k] == VIEW_PODS
                                             ? pod_diagnose(&d, str_or(o->meta.ns, "x"), o->meta.name)
                                     : kinds[k] == VIEW_NODES
                                             ? node_diagnose(&d, o->meta.name)
                                             : domain_diagnose(&d, str_or(o->meta.ns, "x"), o->meta.name);
                        if (found) {
                                diagnosis_print(&d, &t);
                                check_text(&t.out);
                                buf_clear(&t.out);
                                diagnosis_json(&d, &t.out);
                                check_text(&t.out);
                        }
                        buf_done(&t.out);
                        view_done(&v);
                }
        view_done(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct source *s;
        struct err e;
        if (bundle_read_tar((struct str){ (const char *)data, n }, NULL, &s, &e) < 0)
                return 0;
        s->now = 1800000000;
        run_quietly(s, &command_status);
        run_quietly(s, &command_version);
        if (!freopen("/dev/null", "w", stderr))
                abort();
        run_quietly(s, &command_racks);
        run_quietly(s, &command_doctor);
        doctor_options.pre = true;
        run_quietly(s, &command_doctor);
        doctor_options = (struct doctor_options){ .from_go = true };
        run_quietly(s, &command_doctor);
        doctor_options.from_go = false;
        draw_page(s);
        explain_all(s);
        s->free(s);
        return 0;
}
