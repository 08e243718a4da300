/* SPDX-License-Identifier: Apache-2.0 */
/* agree/draw: each form of the lists is drawn, and the simulated server understands it. No real server is
 * necessary. So an outdated list or body is found before `make agree`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../simulate/server.h"
#include "base/file.h"
#include "base/mem.h"
#include "draw.h"
#include "model/daemon_report.h"
#include "pairs.h"

/* The next page of a list is drawn only if it exists. */
enum { REQUESTS = 60000 };
#define REPORT "/metadata/annotations/imex.resource.nvidia.com~1report"

static const char *folder; /* the folder of the lists */

static void load(void) {
        static const char *const lists[] = { "forms", "others" };
        _cleanup_(freep) char *left_out = NULL, *file = xasprintf("%s/left-out", folder);
        struct err e;
        if (file_read(file, 1 << 16, &left_out, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s", folder, lists[i]);
                if (draw_load(path, left_out, &e) < 0)
                        fail_msg("%s", e.msg);
        }
}

static int setup(void **state) {
        static const char *const spaces[] = DRAW_SPACES;
        draw_seed(1);
        load();
        server_compact();
        for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
                _cleanup_(freep) char *body = xasprintf("{\"metadata\":{\"name\":\"%s\"}}", spaces[i]);
                store_create("agree", K_NAMESPACE, "", body);
        }
        return 0;
}

static int teardown(void **state) {
        draw_done();
        pairs_done();
        server_done();
        store_done();
        return 0;
}

/* The text as a client of the simulated server sends it. */
static void remove_marks(char *text) {
        char *to = text;
        for (const char *p = text; *p; p++)
                if (!strchr(MARK_UID MARK_VERSION MARK_TOKEN MARK_END, *p))
                        *to++ = *p;
        *to = '\0';
}

static int answer(const struct request *r, struct buf *out) {
        struct asked q;
        asked_init(&q, r->method, r->path, r->content_type, r->accept);
        int status = 200;
        if (!r->watch)
                status = server_answer(&q, "agree", str_or(r->body, ""), out);
        else if (server_refuses_watch(&q))
                fail_msg("%s is not a watch", r->path);
        asked_done(&q);
        return status;
}

static void send_one(bool *ret_done) {
        struct request r;
        struct buf out = BUF_INIT(64 << 20), uncovered = BUF_INIT(1 << 16);
        char form[FORM_MAX] = "";
        draw_next(&r);
        remove_marks(r.path);
        if (r.body)
                remove_marks(r.body);
        if (form_of(r.method, r.path, r.content_type, r.accept, str_from(r.body), form))
                draw_covered(form);
        int status = answer(&r, &out);
        yyjson_doc *doc = yyjson_read(buf_str(&out), out.n, 0);
        if (status == 200 && streq(r.method, "GET") && !r.watch)
                draw_note_answer(&r, r.path, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
        draw_uncovered(&uncovered);
        *ret_done = !uncovered.n;
        buf_done(&uncovered);
        buf_done(&out);
        request_done(&r);
}

static void each_form_of_the_lists_is_drawn(void **state) {
        bool done = false;
        for (int i = 0; i < REQUESTS && !done; i++)
                send_one(&done);
        if (done)
                return;
        struct buf b = BUF_INIT(1 << 16);
        draw_uncovered(&b);
        fail_msg("not drawn:\n%s", buf_str(&b));
}

/* The number of objects of the kind that have a string at the path. */
static size_t count(enum kind k, const char *path) {
        size_t n = 0;
        for (size_t i = 0; i < store_count(k); i++)
                n += version_str(store_nth(k, i), path) != NULL;
        return n;
}

static void members_that_programs_write_are_stored(void **state) {
        static const struct {
                enum kind k;
                const char *path;
        } wanted[] = { { K_FABRIC, "/domains/0/assignments/0/node" },
                       { K_FABRIC, "/domains/0/assignments/0/state" },
                       { K_FABRIC, "/domains/0/assignments/0/claimUID" },
                       { K_FABRIC, "/removals/0/podUID" },
                       { K_FABRIC, "/tableOf" },
                       { K_POD, REPORT },
                       { K_POD, "/metadata/annotations/imex.resource.nvidia.com~1unprepared-daemon-claim" } };
        bool seen[ARRAY_LEN(wanted)] = { false }, done;
        for (int i = 0; i < REQUESTS / 10; i++) {
                send_one(&done);
                for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
                        seen[k] = seen[k] || count(wanted[k].k, wanted[k].path);
        }
        for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
                if (!seen[k])
                        fail_msg("no object has %s", wanted[k].path);
}

static const char *some_report(void) {
        const char *text = NULL;
        for (size_t i = 0; i < store_count(K_POD) && !text; i++)
                text = version_str(store_nth(K_POD, i), REPORT);
        return text;
}

/* The controller reads it with the same function. */
static void a_daemons_report_is_stored_as_the_daemon_renders_it(void **state) {
        struct daemon_report r;
        struct err e;
        bool done;
        for (int i = 0; i < REQUESTS && !some_report(); i++)
                send_one(&done);
        const char *text = some_report();
        assert_non_null(text);
        struct arena *a = arena_new(1024);
        if (daemon_report_decode(str_from(text), a, &r, &e) < 0)
                fail_msg("%s: %s", text, e.msg);
        arena_free(a);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_form_of_the_lists_is_drawn),
                cmocka_unit_test(members_that_programs_write_are_stored),
                cmocka_unit_test(a_daemons_report_is_stored_as_the_daemon_renders_it),
        };
        if (argc != 2)
                return EXIT_FAILURE;
        folder = argv[1];
        return cmocka_run_group_tests(tests, setup, teardown);
}
