/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher of this node's ResourceSlice against a server on which another client writes as well, as the
 * plugin of another version does during an update. In virtual time (world/clock.c): pauses are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "base/mem.h"
#include "node/slice_publisher.h"

enum { WRITES = 5, MINUTE_MS = 60000 };

/* One device each, with different clique IDs. */
#define CONTENT(clique)                                                                                      \
        {                                                                                                    \
                .driver = "compute-domain.nvidia.com",                                                       \
                .devices =                                                                                   \
                        &(const struct offered_device){                                                      \
                                "channel-0", &(const struct offered_attribute){ "cliqueID", clique, 0 }, 1   \
                        },                                                                                   \
                .n_devices = 1                                                                               \
        }
static const struct slice_content ours = CONTENT("c.1"), other = CONTENT("c.2"), third = CONTENT("");
/* A GPU that reports errors, as sent, and as a server has it that drops taints or refuses those with effect
 * None. */
static const struct offered_taint taints[] = { { "gpu.nvidia.com/unmonitored", "", "None" },
                                               { "gpu.nvidia.com/xid", "79", "NoSchedule" } };
static const struct slice_content tainted = {
        .driver = "gpu.nvidia.com",
        .devices = (const struct offered_device[]){ { .name = "gpu-0", .taints = taints, .n_taints = 2 } },
        .n_devices = 1
};
static const struct slice_content untainted = {
        .driver = "gpu.nvidia.com",
        .devices = (const struct offered_device[]){ { .name = "gpu-0" } },
        .n_devices = 1
};
static const struct slice_content with_effect = {
        .driver = "gpu.nvidia.com",
        .devices =
                (const struct offered_device[]){ { .name = "gpu-0", .taints = taints + 1, .n_taints = 1 } },
        .n_devices = 1
};
static const struct slice_content two_left = {
        .driver = "gpu.nvidia.com",
        .devices = (const struct offered_device[]){ { .name = "gpu-0" }, { .name = "gpu-2" } },
        .n_devices = 2
};

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct fake_conn *watch;
        struct kube_client *client;
        struct slice_publisher *publisher;
        unsigned to_undo;                  /* this many writes are overwritten as soon as they are stored */
        unsigned to_lose;                  /* this many writes are stored and get no answer */
        bool stored;                       /* lists have a slice with our content */
        const char *refuses;               /* a device with this name */
        bool refuses_none;                 /* taints without an effect */
        const struct slice_content *takes; /* the content that is stored; NULL: as sent */
        unsigned n_untainted;
        enum slice_taints accepted_taints;
        char refused[64];
        unsigned n_words;
        unsigned n_writes, rv;
        uint64_t wrote_ms[WRITES];
};

/* The answer of the server, or an event of the watch. */
static void add_slice(struct world *w, const struct slice_content *content, struct buf *out) {
        struct buf b = BUF_INIT(8192);
        static const char meta[] = "\"metadata\":{", name[] = "\"generateName\"";
        slice_render("v1", "n0", "node-uid", NULL, content, &b);
        const char *at = strstr(strstr(buf_str(&b), meta), name);
        buf_add(out, b.p, (size_t)(at - b.p));
        buf_addf(out, "\"name\":\"s-1\",\"uid\":\"s\",\"resourceVersion\":\"%u\",%s", 100 + w->rv++, at);
        buf_done(&b);
}

static void on_write(struct world *w, struct fake_conn *c) {
        struct buf b = BUF_INIT(16384);
        const struct slice_content *taken = w->takes ? w->takes : w->refuses ? &two_left : &ours;
        if (w->n_writes < WRITES)
                w->wrote_ms[w->n_writes] = uv_now(&w->loop);
        w->n_writes++;
        if (w->to_lose) {
                w->to_lose--;
                w->stored = true;
                fake_close(c);
                buf_done(&b);
                return;
        }
        add_slice(w, taken, &b);
        fake_reply(c, 200, NULL, buf_str(&b));
        if (w->to_undo) {
                w->to_undo--;
                buf_clear(&b);
                buf_adds(&b, "{\"type\":\"MODIFIED\",\"object\":");
                add_slice(w, &other, &b);
                buf_adds(&b, "}\n");
                fake_chunk(w->watch, buf_str(&b));
        }
        buf_done(&b);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (fake_has(r->path, "/nodes/n0")) {
                fake_reply(c, 200, NULL,
                           "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n0\",\"uid\":\"node-uid\"}}");
        } else if (!streq(r->method, "GET") && w->refuses && fake_has(r->body, w->refuses)) {
                fake_reply(c, 422, NULL,
                           "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":422,"
                           "\"reason\":\"Invalid\",\"message\":\"ResourceSlice.resource.k8s.io is invalid: "
                           "spec.devices[1].attributes[x].string: Too long\"}");
        } else if (!streq(r->method, "GET") && w->refuses_none && fake_has(r->body, "\"None\"")) {
                fake_reply(c, 422, NULL,
                           "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":422,"
                           "\"reason\":\"Invalid\",\"message\":\"ResourceSlice.resource.k8s.io is invalid: "
                           "spec.devices[0].taints[0].effect: Unsupported value: \\\"None\\\": supported "
                           "values: \\\"NoExecute\\\", \\\"NoSchedule\\\"\"}");
        } else if (!streq(r->method, "GET")) {
                on_write(w, c);
        } else if (fake_query(r, "watch")) {
                w->watch = c;
                fake_stream(c);
        } else {
                struct buf b = BUF_INIT(16384);
                buf_adds(&b, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
                if (w->stored)
                        add_slice(w, &ours, &b);
                buf_adds(&b, "]}");
                fake_list(c, r, "ResourceSlice", buf_str(&b));
                buf_done(&b);
        }
}

static void new_publisher(struct world *w) {
        slice_publisher_free(w->publisher);
        w->watch = NULL;
        w->publisher = slice_publisher_new(w->client, "compute-domain.nvidia.com", "n0");
        while (!w->watch)
                run_for(&w->loop, 10);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        new_publisher(w);
        slice_start(w->publisher);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        slice_publisher_free(w->publisher);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        free(w);
        return 0;
}

static void until_written(struct world *w, unsigned writes) {
        for (unsigned ms = 0; w->n_writes < writes && ms < MINUTE_MS; ms += 100)
                run_for(&w->loop, 100);
        assert_int_equal(w->n_writes, writes);
}

/* The time from the answer to the previous write until write `n`. */
static uint64_t pause_before(const struct world *w, unsigned n) {
        return w->wrote_ms[n] - w->wrote_ms[n - 1];
}

/* failure: two plugins publish different devices -> each restores its slice with growing delays */
static void a_slice_that_is_overwritten_repeatedly_is_restored_with_growing_delays(void **state) {
        struct world *w = *state;
        w->to_undo = WRITES - 1;
        slice_set(w->publisher, &ours);
        until_written(w, WRITES);
        assert_in_range(pause_before(w, 1), 0,
                        SLICE_FLOOR_MIN_MS / 2); /* a change by a person is undone at once */
        for (unsigned n = 2, ms = SLICE_FLOOR_MIN_MS; n < WRITES; n++, ms *= 2)
                assert_in_range(pause_before(w, n), ms * 3 / 4, ms * 3 / 2);
        run_for(&w->loop, MINUTE_MS);
        assert_int_equal(w->n_writes, WRITES);
        assert_true(slice_published(w->publisher));
}

/* The server chooses the name of a slice, so a repeated create would create a second one. */
/* failure: the answer to the creation of a ResourceSlice is lost -> no second slice is created */
static void a_creation_without_an_answer_is_not_repeated_before_a_list(void **state) {
        struct world *w = *state;
        w->to_lose = 1;
        slice_set(w->publisher, &ours);
        until_written(w, 1);
        run_for(&w->loop, MINUTE_MS);
        assert_int_equal(w->n_writes, 1);
        assert_true(slice_published(w->publisher));
}

/* The writes that were undone had other content. */
/* failure: the content of a slice changes during such a delay -> it is written at once */
static void new_content_is_written_without_delay(void **state) {
        struct world *w = *state;
        w->to_undo = 3;
        slice_set(w->publisher, &ours);
        until_written(w, 3);
        run_for(&w->loop, 100);
        assert_false(slice_published(w->publisher));
        assert_int_equal(w->n_writes, 3);
        slice_set(w->publisher, &third);
        slice_set(w->publisher, &ours);
        run_for(&w->loop, 100);
        assert_int_equal(w->n_writes, 4);
}

static void on_refused(void *u, const char *device, const struct err *e) {
        struct world *w = u;
        snprintf(w->refused, sizeof w->refused, "%s", device);
        assert_non_null(strstr(e->msg, "Too long"));
}

/* failure: the API server refuses one device -> the others are published, and the refused one is named */
static void a_device_that_the_server_refuses_hides_no_other(void **state) {
        struct world *w = *state;
        static const char *const names[] = { "gpu-0", "gpu-1", "gpu-2" };
        for (unsigned again = 0; again < 2; again++) {
                struct arena *a = arena_new(512);
                struct offered_device *d = arena_alloc(a, 3 * sizeof *d);
                for (size_t i = 0; i < 3; i++)
                        d[i] = (struct offered_device){ .name = names[i] };
                w->refuses = "gpu-1";
                slice_on_refused(w->publisher, on_refused, w);
                slice_set(w->publisher,
                          &(struct slice_content){
                                  .arena = a, .driver = "gpu.nvidia.com", .devices = d, .n_devices = 3 });
                until_written(w, 1);
                run_for(&w->loop, 500);
                assert_int_equal(w->n_writes, 1);
                assert_string_equal(w->refused, "gpu-1");
                assert_true(slice_published(w->publisher));
        }
}

static void on_untainted(void *u, enum slice_taints taken) {
        struct world *w = u;
        w->n_untainted++;
        w->accepted_taints = taken;
}

/* failure: the API server drops device taints -> the devices are published, and that is reported */
static void a_server_that_drops_taints_gets_the_devices_and_is_reported(void **state) {
        struct world *w = *state;
        w->takes = &untainted;
        slice_on_untainted(w->publisher, on_untainted, w);
        slice_set(w->publisher, &tainted);
        until_written(w, 1);
        run_for(&w->loop, MINUTE_MS);
        assert_int_equal(w->n_writes, 1);
        assert_true(slice_published(w->publisher));
        assert_int_equal(w->n_untainted, 1);
        assert_int_equal(w->accepted_taints, SLICE_TAINTS_NONE);
        /* The feature gate may have been enabled since: other content is tried with taints. */
        w->takes = &with_effect;
        slice_set(w->publisher, &with_effect);
        until_written(w, 2);
        run_for(&w->loop, 500);
        assert_int_equal(w->n_untainted, 1);
        assert_true(slice_published(w->publisher));
}

/* The device is not left out because of such a refusal. */
/* failure: the API server knows no taint without effect -> the other taints are published */
static void a_server_without_taints_of_effect_none_gets_the_others(void **state) {
        struct world *w = *state;
        w->refuses_none = true;
        w->takes = &with_effect;
        slice_on_refused(w->publisher, on_refused, w);
        slice_on_untainted(w->publisher, on_untainted, w);
        slice_set(w->publisher, &tainted);
        until_written(w, 1);
        run_for(&w->loop, 500);
        assert_int_equal(w->n_writes, 1);
        assert_string_equal(w->refused, "");
        assert_int_equal(w->n_untainted, 1);
        assert_int_equal(w->accepted_taints, SLICE_TAINTS_EFFECTIVE);
        assert_true(slice_published(w->publisher));
}

#define WORD "example.org/word"

static void on_word(void *u) {
        struct world *w = u;
        w->n_words++;
}

/* It is reported once, although the slice is seen with it again, and it is removed. */
/* failure: an administrator annotates a slice to clear XIDs -> that counts once, and the annotation is
 * removed */
static void an_annotation_of_a_slice_is_handled_once_and_removed(void **state) {
        struct world *w = *state;
        struct buf b = BUF_INIT(16384);
        struct slice_content worded = ours;
        worded.annotation = (struct jd_pair){ WORD, "yes" };
        slice_on_annotation(w->publisher, WORD, on_word, w);
        slice_set(w->publisher, &ours);
        until_written(w, 1);
        run_for(&w->loop, 500);
        assert_int_equal(w->n_words, 0);
        for (int i = 0; i < 2; i++) {
                buf_adds(&b, "{\"type\":\"MODIFIED\",\"object\":");
                add_slice(w, &worded, &b);
                buf_adds(&b, "}\n");
        }
        fake_chunk(w->watch, buf_str(&b));
        buf_done(&b);
        until_written(w, 2);
        run_for(&w->loop, 500);
        assert_int_equal(w->n_words, 1);
        assert_true(slice_published(w->publisher));
}

/* The kubelet refuses a pod that the scheduler places earlier, and retries a minute later. */
/* failure: a node boots -> devices are published only after the kubelet has registered the plugin */
static void nothing_is_published_before_the_kubelet_has_registered_the_plugin(void **state) {
        struct world *w = *state;
        new_publisher(w);
        slice_set(w->publisher, &ours);
        run_for(&w->loop, 500);
        assert_int_equal(w->n_writes, 0);
        assert_false(slice_published(w->publisher));
        slice_start(w->publisher);
        until_written(w, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        nothing_is_published_before_the_kubelet_has_registered_the_plugin, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        a_slice_that_is_overwritten_repeatedly_is_restored_with_growing_delays, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(a_creation_without_an_answer_is_not_repeated_before_a_list,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(new_content_is_written_without_delay, setup, teardown),
                cmocka_unit_test_setup_teardown(a_device_that_the_server_refuses_hides_no_other, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_server_that_drops_taints_gets_the_devices_and_is_reported,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_server_without_taints_of_effect_none_gets_the_others, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_annotation_of_a_slice_is_handled_once_and_removed, setup,
                                                teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
