/* SPDX-License-Identifier: Apache-2.0 */
/* The list of ComputeDomains that a Prepare requests, against a scripted server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "base/mem.h"
#include "cd_plugin/lookup.h"

enum { TOO_LARGE = (32 << 20) + 1 };

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        unsigned largest; /* lists of more objects, or of all, are larger than the limit; 0: one object is */
        struct buf asked; /* "all " or the limit of each list */
        bool done, failed;
        struct lookup_list *list;
        struct err err;
};

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        const char *limit = fake_query(r, "limit");
        unsigned n = limit ? (unsigned)atoi(limit) : UINT32_MAX;
        buf_addf(&w->asked, "%s ", limit ? limit : "all");
        if (n > w->largest) {
                _cleanup_(freep) char *large = xcalloc(1, TOO_LARGE + 1);
                memset(large, ' ', TOO_LARGE);
                fake_reply(c, 200, NULL, large);
        } else if (!fake_query(r, "continue")) {
                fake_list(c, r, "ComputeDomain",
                          "{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"next\"},\"items\":[{"
                          "\"metadata\":{\"name\":\"a\",\"namespace\":\"u\",\"uid\":\"1\","
                          "\"resourceVersion\":\"1\"}}]}");
        } else {
                fake_list(c, r, "ComputeDomain",
                          "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"metadata\":{\"name\":"
                          "\"b\",\"namespace\":\"u\",\"uid\":\"2\",\"resourceVersion\":\"2\"}}]}");
        }
}

static void on_retry(void *u, const struct err *e) {
        struct world *w = u;
        w->failed = true;
}

static void on_done(void *u, struct lookup_list *l, const struct err *e) {
        struct world *w = u;
        w->done = true;
        w->list = l;
        if (e)
                w->err = *e;
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->asked = BUF_INIT(1024);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        lookup_list_free(w->list);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        buf_done(&w->asked);
        free(w);
        return 0;
}

static void look_up(struct world *w) {
        lookup_start(w->client, "u", false, on_done, on_retry, w);
        RUN_UNTIL(&w->loop, w->done);
        assert_false(w->failed);
}

/* failure: a list of ComputeDomains is too large -> the plugin requests it in pages */
static void a_list_that_is_too_large_is_requested_in_pages(void **state) {
        struct world *w = *state;
        w->largest = 500;
        look_up(w);
        assert_string_equal(buf_str(&w->asked), "all 500 500 ");
        assert_non_null(lookup_find(w->list, "1"));
        assert_non_null(lookup_find(w->list, "2"));
}

/* failure: a page of ComputeDomains is too large -> the plugin halves the page size */
static void a_page_that_is_too_large_is_requested_in_halves(void **state) {
        struct world *w = *state;
        w->largest = 300;
        look_up(w);
        assert_string_equal(buf_str(&w->asked), "all 500 250 250 ");
        assert_non_null(lookup_find(w->list, "2"));
}

/* failure: one ComputeDomain is too large to read -> the error names its position */
static void one_object_that_is_too_large_is_reported(void **state) {
        struct world *w = *state;
        look_up(w);
        assert_string_equal(buf_str(&w->asked), "all 500 250 125 62 31 15 7 3 1 ");
        assert_null(w->list);
        assert_non_null(strstr(w->err.msg, "one of the computedomains, after 0 that can be listed"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(a_list_that_is_too_large_is_requested_in_pages),
                T(a_page_that_is_too_large_is_requested_in_halves),
                T(one_object_that_is_too_large_is_reported),
        };
        return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}
