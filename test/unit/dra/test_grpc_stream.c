/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that send several messages. */
#include "grpc_bed.h"

static struct h2_call *stream_opened(struct bed *b) {
        struct h2_call *call = call_with(b, "/test.Test/Keep", "x", 1, NULL);
        shuttle(b);
        assert_int_equal(b->n_kept, 1);
        return call;
}

static void assert_received(const struct h2_call *call, const char *p, size_t n) {
        assert_int_equal(call->reply.n, n);
        assert_memory_equal(call->reply.p, p, n);
}
#define ASSERT_RECEIVED(call, text) assert_received(call, text, sizeof text - 1)

static void a_stream_gets_each_message(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call = stream_opened(b);
        unsigned wakes = b->wakes;
        grpc_call_send(b->kept[0], "one", 3);
        assert_true(b->wakes > wakes);
        shuttle(b);
        ASSERT_RECEIVED(call, "\0\0\0\0\3one");
        assert_false(call->closed);
        wakes = b->wakes;
        grpc_call_send(b->kept[0], "second", 6);
        assert_true(b->wakes > wakes);
        shuttle(b);
        ASSERT_RECEIVED(call, "\0\0\0\0\3one\0\0\0\0\6second");
        assert_false(call->closed);
        assert_int_equal(b->cancelled, 0);
        bed_free(b);
}

static void a_stream_that_is_not_read_keeps_the_newest_message(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call = stream_opened(b);
        grpc_call_send(b->kept[0], "1", 1);
        grpc_call_send(b->kept[0], "2", 1);
        grpc_call_send(b->kept[0], "3", 1);
        shuttle(b);
        ASSERT_RECEIVED(call, "\0\0\0\0\0011\0\0\0\0\0013");
        bed_free(b);
}

static void a_stream_carries_messages_above_the_window(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call = stream_opened(b);
        enum { SIZE = 300000 };
        _cleanup_(freep) char *p = xcalloc(1, SIZE);
        grpc_call_send(b->kept[0], p, SIZE);
        shuttle(b);
        grpc_call_send(b->kept[0], p, SIZE);
        shuttle(b);
        assert_int_equal(call->reply.n, 2 * (SIZE + 5));
        bed_free(b);
}

static void a_stream_ends_with_a_status_after_its_messages(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call = stream_opened(b);
        grpc_call_send(b->kept[0], "one", 3);
        grpc_call_send(b->kept[0], "two", 3);
        grpc_call_fail(b->kept[0], GRPC_UNAVAILABLE, "100%");
        shuttle(b);
        ASSERT_RECEIVED(call, "\0\0\0\0\3one\0\0\0\0\3two");
        assert_true(call->closed);
        assert_int_equal(call->grpc_status, GRPC_UNAVAILABLE);
        assert_string_equal(call->grpc_message, "100%25");
        assert_int_equal(b->cancelled, 0);
        bed_free(b);
}

/* failure: the kubelet closes a stream of health reports, or its connection breaks -> the plugin forgets it
 */
static void a_stream_is_cancelled_once(void **state) {
        for (int how = 0; how < 3; how++) {
                struct bed *b = bed_new();
                struct h2_call *call = stream_opened(b);
                grpc_call_send(b->kept[0], "one", 3);
                shuttle(b);
                if (how == 0) {
                        h2_reset(call);
                        shuttle(b);
                } else if (how == 1) {
                        grpc_conn_break(b->conn);
                } else {
                        grpc_conn_shutdown(b->conn);
                        shuttle(b);
                        assert_int_equal(call->grpc_status, GRPC_UNAVAILABLE);
                        assert_true(grpc_conn_finished(b->conn));
                }
                assert_int_equal(b->cancelled, 1);
                assert_int_equal(b->n_kept, 0);
                bed_free(b);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_gets_each_message),
                cmocka_unit_test(a_stream_that_is_not_read_keeps_the_newest_message),
                cmocka_unit_test(a_stream_carries_messages_above_the_window),
                cmocka_unit_test(a_stream_ends_with_a_status_after_its_messages),
                cmocka_unit_test(a_stream_is_cancelled_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
