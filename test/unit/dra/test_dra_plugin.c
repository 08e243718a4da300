/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin on its sockets, with the requests and responses of the kubelet as bytes. test_dra_messages and
 * the interop test check the bytes. These tests check operations: answered at once, later or in part,
 * cancelled, and freed. */
#include "dra/dra_plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "dra/grpc_server.h"
#include "peer.h"

#define PREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define UNPREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"
#define PREPARE_V1BETA1 "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources"

enum { MAX_OPS = 16 };

struct bed {
        uv_loop_t loop;
        struct dra_plugin *plugin;
        char *dir, *plugin_dir, *dra_path, *registration_path;
        struct dra_op *op[MAX_OPS]; /* by the number in the claim's name: w3; NULL: done */
        unsigned started, cancelled;
        uint64_t timeout_ms;
        bool was_cancelled, free_in_prepare;
        bool registered;
        char *registration_error;
};

/* "d": with a device, "n": without, "f": fails, "w<i>": waits. */
static void prepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        struct bed *b = u;
        const struct dra_device device = { .requests = (const char *[]){ "req/sub", NULL },
                                           .pool = "p",
                                           .device = "d",
                                           .cdi_ids = (const char *[]){ "c", NULL } };
        b->started++;
        b->timeout_ms = dra_op_timeout_ms(op);
        switch (claim->name[0]) {
        case 'd':
                dra_op_prepared(op, &device, 1);
                break;
        case 'f':
                dra_op_fail(op, "oops");
                break;
        case 'e':
                dra_op_fail(op, "");
                break;
        case 'w':
                b->op[atoi(claim->name + 1)] = op;
                dra_op_set_data(op, &b->op[atoi(claim->name + 1)]);
                break;
        default:
                dra_op_prepared(op, NULL, 0);
        }
        if (b->free_in_prepare)
                dra_plugin_free(TAKE(b->plugin));
}

static void unprepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        struct bed *b = u;
        b->started++;
        if (claim->name[0] == 'f')
                dra_op_fail(op, "oops");
        else if (claim->name[0] == 'w')
                b->op[atoi(claim->name + 1)] = op;
        else
                dra_op_unprepared(op);
}

static void cancelled(void *u, struct dra_op *op, void *op_data) {
        struct bed *b = u;
        struct dra_op **slot = op_data;
        assert_ptr_equal(*slot, op);
        *slot = NULL;
        b->cancelled++;
        b->was_cancelled = true;
}

static void registered(void *u, bool ok, const char *error) {
        struct bed *b = u;
        b->registered = ok;
        free(b->registration_error);
        b->registration_error = xstrdup(error);
}

static const struct dra_plugin_ops ops = { prepare, unprepare, cancelled, registered };

static struct bed *bed_new(void) {
        struct bed *b = xnew(struct bed);
        char dir[] = "/tmp/dra.XXXXXX";
        struct err e;
        assert_non_null(mkdtemp(dir));
        b->dir = xstrdup(dir);
        b->plugin_dir = file_join(dir, "plugin");
        b->dra_path = file_join(b->plugin_dir, "dra.sock");
        b->registration_path = file_join(dir, "x.example.com-reg.sock");
        uv_loop_init(&b->loop);
        const struct dra_plugin_options o = { .driver_name = "x.example.com",
                                              .plugin_dir = b->plugin_dir,
                                              .registrar_dir = dir,
                                              .ops = &ops,
                                              .u = b };
        if (dra_plugin_new(&b->loop, &o, &b->plugin, &e) < 0)
                fail_msg("%s", e.msg);
        return b;
}

static void bed_free(struct bed *b) {
        dra_plugin_free(b->plugin);
        uv_run(&b->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&b->loop), 0);
        assert_int_equal(rmdir(b->plugin_dir), 0); /* empty */
        assert_int_equal(rmdir(b->dir), 0);
        free(b->dir);
        free(b->plugin_dir);
        free(b->dra_path);
        free(b->registration_path);
        free(b->registration_error);
        free(b);
}

/* A request with these claims. The UID is "u-<name>". */
static struct h2_call *call_claims(struct peer *p, const char *path, const char *const *names,
                                   const struct h2_options *o) {
        struct buf b = BUF_INIT(4096);
        for (; *names; names++) {
                size_t n = strlen(*names);
                buf_addf(&b, "\x0a%c\x0a\x02ns\x12%cu-%s\x1a%c%s", (int)(10 + 2 * n), (int)(n + 2), *names,
                         (int)n, *names);
        }
        struct h2_call *call = peer_call(p, path, buf_str(&b), b.n, o);
        buf_done(&b);
        return call;
}

#define CLAIMS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void assert_reply(const struct h2_call *call, const char *want, size_t n) {
        struct str s = h2_reply(call);
        assert_int_equal(s.n, n);
        assert_memory_equal(s.p, want, n);
}
#define ASSERT_REPLY(call, lit) assert_reply(call, lit, sizeof(lit) - 1)

static void wait_ops(struct bed *b, unsigned n) {
        while (b->started < n)
                uv_run(&b->loop, UV_RUN_ONCE);
}

static void test_prepare_answers_at_once(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call =
                call_claims(p, PREPARE, CLAIMS("d", "f", "n", "e"), &(struct h2_options){ .timeout = "45S" });
        peer_wait(p, call);
        ASSERT_REPLY(call, "\x0a\x17"
                           "\x0a\x03u-d"
                           "\x12\x10"
                           "\x0a\x0e"
                           "\x0a\x03req"
                           "\x12\x01p"
                           "\x1a\x01"
                           "d"
                           "\x22\x01"
                           "c"
                           "\x0a\x0d"
                           "\x0a\x03u-f"
                           "\x12\x06"
                           "\x12\x04oops"
                           "\x0a\x07"
                           "\x0a\x03u-n"
                           "\x12\x00"
                           "\x0a\x16"
                           "\x0a\x03u-e"
                           "\x12\x0f"
                           "\x12\x0dunknown error");
        assert_int_equal(b->timeout_ms, 45000);
        struct h2_call *beta = call_claims(p, PREPARE_V1BETA1, CLAIMS("n"), NULL);
        peer_wait(p, beta);
        ASSERT_REPLY(beta, "\x0a\x07"
                           "\x0a\x03u-n"
                           "\x12\x00");
        assert_int_equal(b->timeout_ms, 0);
        peer_free(p, &b->loop);
        bed_free(b);
}

static void test_unprepare(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call = call_claims(p, UNPREPARE, CLAIMS("f", "x", "w1"), NULL);
        wait_ops(b, 3);
        dra_op_unprepared(b->op[1]);
        peer_wait(p, call);
        ASSERT_REPLY(call, "\x0a\x0d"
                           "\x0a\x03u-f"
                           "\x12\x06"
                           "\x0a\x04oops"
                           "\x0a\x07"
                           "\x0a\x03u-x"
                           "\x12\x00"
                           "\x0a\x08"
                           "\x0a\x04u-w1"
                           "\x12\x00");
        peer_free(p, &b->loop);
        bed_free(b);
}

/* All operations of a call start at once, and the call is answered with the last one. Another call is
 * answered before it. */
static void test_waiting_claim_blocks_nobody(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call = call_claims(p, PREPARE, CLAIMS("w1", "n", "w2"), NULL);
        wait_ops(b, 3);
        struct h2_call *other = call_claims(p, PREPARE, CLAIMS("n"), NULL);
        peer_wait(p, other);
        assert_int_equal(other->grpc_status, 0);
        dra_op_fail(b->op[2], "oops");
        loop_turns(&b->loop, 5);
        assert_false(call->closed);
        dra_op_prepared(b->op[1], NULL, 0);
        peer_wait(p, call);
        ASSERT_REPLY(call, "\x0a\x08"
                           "\x0a\x04u-w1"
                           "\x12\x00"
                           "\x0a\x07"
                           "\x0a\x03u-n"
                           "\x12\x00"
                           "\x0a\x0e"
                           "\x0a\x04u-w2"
                           "\x12\x06"
                           "\x12\x04oops");
        assert_int_equal(b->cancelled, 0);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* Only open operations are cancelled, and other calls continue. */
static void test_kubelet_closes_the_call(void **state) {
        enum how { RESET, CLOSE, DEADLINE };
        for (enum how how = RESET; how <= DEADLINE; how++) {
                struct bed *b = bed_new();
                struct peer *p = peer_unix(&b->loop, b->dra_path), *other = peer_unix(&b->loop, b->dra_path);
                struct h2_call *stays = call_claims(other, PREPARE, CLAIMS("w9"), NULL);
                struct h2_call *call =
                        call_claims(p, PREPARE, CLAIMS("w1", "n", "w2", "w3"),
                                    &(struct h2_options){ .timeout = how == DEADLINE ? "100m" : "45S" });
                wait_ops(b, 5);
                dra_op_prepared(TAKE(b->op[2]), NULL, 0);
                if (how == RESET) {
                        h2_reset(call);
                        peer_flush(p);
                } else if (how == CLOSE) {
                        peer_close(p);
                }
                loop_until(&b->loop, &b->was_cancelled);
                assert_int_equal(b->cancelled, 2);
                assert_null(b->op[1]);
                assert_null(b->op[3]);
                dra_op_prepared(b->op[9], NULL, 0);
                peer_wait(other, stays);
                assert_int_equal(stays->grpc_status, 0);
                peer_free(p, &b->loop);
                peer_free(other, &b->loop);
                bed_free(b);
        }
}

/* failure: the plugin stops during a Prepare -> the operation is cancelled, and no freed memory is used */
static void test_freed_with_open_operations(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call = call_claims(p, PREPARE, CLAIMS("w1", "n", "w2"), NULL);
        wait_ops(b, 3);
        dra_plugin_free(TAKE(b->plugin));
        assert_int_equal(b->cancelled, 2); /* before it returns */
        assert_int_equal(access(b->dra_path, F_OK), -1);
        assert_int_equal(access(b->registration_path, F_OK), -1);
        loop_until(&b->loop, &p->closed);
        assert_int_equal(call->grpc_status, GRPC_UNAVAILABLE);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* If the start of a claim frees the plugin, the following claims are not started. */
static void test_freed_in_prepare(void **state) {
        const char *const *const cases[] = { CLAIMS("n", "n2"), CLAIMS("w1", "n"), CLAIMS("n") };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct bed *b = bed_new();
                struct peer *p = peer_unix(&b->loop, b->dra_path);
                b->free_in_prepare = true;
                struct h2_call *call = call_claims(p, PREPARE, cases[i], NULL);
                loop_until(&b->loop, &p->closed);
                assert_int_equal(b->started, 1);
                assert_int_equal(b->cancelled, i == 1);
                assert_int_equal(call->grpc_status, GRPC_UNAVAILABLE);
                peer_free(p, &b->loop);
                bed_free(b);
        }
}

/* failure: the kubelet sends duplicate or invalid claims -> nothing is started */
static void test_bad_requests_start_nothing(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *twice = call_claims(p, PREPARE, CLAIMS("a", "b", "a"), NULL);
        struct h2_call *empty = peer_call(p, UNPREPARE, NULL, 0, NULL);
        struct h2_call *garbage = peer_call(p, PREPARE, "\xff\xff\xff", 3, NULL);
        struct h2_call *no_uid = peer_call(p, UNPREPARE, "\x0a\x07\x0a\x02ns\x1a\x01n", 9, NULL);
        struct h2_call *const calls[] = { twice, empty, garbage, no_uid };
        static const char *const messages[] = { "claim 'ns/a': the uid 'u-a' is in the request twice",
                                                "the request has no claims",
                                                "the request is not a valid protobuf message of at most 1024 claims",
                                                "claim 1 ('ns/n') has no uid" };
        for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
                peer_wait(p, calls[i]);
                assert_int_equal(calls[i]->grpc_status, GRPC_INVALID_ARGUMENT);
                assert_string_equal(calls[i]->grpc_message, messages[i]);
        }
        assert_int_equal(b->started, 0);
        peer_free(p, &b->loop);
        bed_free(b);
}

static void test_registration(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->registration_path);
        struct h2_call *info = peer_call(p, "/pluginregistration.Registration/GetInfo", NULL, 0, NULL);
        peer_wait(p, info);
        struct buf want = BUF_INIT(1024);
        buf_addf(&want,
                 "\x0a\x09"
                 "DRAPlugin"
                 "\x12\x0dx.example.com"
                 "\x1a%c%s"
                 "\x22\x0cv1.DRAPlugin"
                 "\x22\x11v1beta1.DRAPlugin",
                 (int)strlen(b->dra_path), b->dra_path);
        assert_reply(info, buf_str(&want), want.n);
        buf_done(&want);

        struct h2_call *good = peer_call(p, "/pluginregistration.Registration/NotifyRegistrationStatus",
                                         "\x08\x01", 2, NULL);
        peer_wait(p, good);
        ASSERT_REPLY(good, "");
        assert_true(b->registered);
        struct h2_call *bad = peer_call(p, "/pluginregistration.Registration/NotifyRegistrationStatus",
                                        "\x12\x02no", 4, NULL);
        peer_wait(p, bad);
        assert_int_equal(bad->grpc_status, GRPC_UNKNOWN);
        assert_string_equal(bad->grpc_message, "the registration failed: no");
        assert_false(b->registered);
        assert_string_equal(b->registration_error, "no");
        struct h2_call *garbage = peer_call(p, "/pluginregistration.Registration/NotifyRegistrationStatus",
                                            "\x12\x09", 2, NULL);
        peer_wait(p, garbage);
        assert_int_equal(garbage->grpc_status, GRPC_INVALID_ARGUMENT);
        struct h2_call *elsewhere =
                call_claims(p, PREPARE, CLAIMS("n"), NULL); /* each socket has its own services only */
        peer_wait(p, elsewhere);
        assert_int_equal(elsewhere->grpc_status, GRPC_UNIMPLEMENTED);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* failure: a socket file of the plugin is removed -> the plugin reports it to its probes */
static void test_a_missing_socket_is_named(void **state) {
        struct bed *b = bed_new();
        assert_null(dra_plugin_fault(b->plugin));
        assert_int_equal(unlink(b->registration_path), 0);
        assert_string_equal(dra_plugin_fault(b->plugin), "the registration socket does not exist");
        assert_int_equal(mkdir(b->registration_path, 0700), 0); /* another kind of file does not count */
        assert_string_equal(dra_plugin_fault(b->plugin), "the registration socket does not exist");
        assert_int_equal(rmdir(b->registration_path), 0);
        assert_int_equal(unlink(b->dra_path), 0);
        assert_string_equal(dra_plugin_fault(b->plugin), "the DRA socket does not exist");
        bed_free(b);
}

static void test_cannot_start(void **state) {
        struct bed *b = bed_new();
        struct dra_plugin *second;
        struct err e;
        _cleanup_(freep) char *nowhere = file_join(b->dir, "nowhere"),
                              *elsewhere = file_join(b->dir, "second"),
                              *socket_path = file_join(elsewhere, "dra.sock");
        const struct dra_plugin_options o = { .driver_name = "x.example.com",
                                              .plugin_dir = elsewhere,
                                              .registrar_dir = nowhere,
                                              .ops = &ops,
                                              .u = b };
        assert_int_equal(dra_plugin_new(&b->loop, &o, &second, &e), -1);
        assert_non_null(strstr(e.msg, "nowhere/x.example.com-reg.sock"));
        assert_int_equal(access(socket_path, F_OK), -1);
        assert_int_equal(rmdir(elsewhere), 0);
        dra_plugin_free(NULL);
        bed_free(b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_prepare_answers_at_once),
                cmocka_unit_test(test_unprepare),
                cmocka_unit_test(test_waiting_claim_blocks_nobody),
                cmocka_unit_test(test_kubelet_closes_the_call),
                cmocka_unit_test(test_freed_with_open_operations),
                cmocka_unit_test(test_freed_in_prepare),
                cmocka_unit_test(test_bad_requests_start_nothing),
                cmocka_unit_test(test_registration),
                cmocka_unit_test(test_a_missing_socket_is_named),
                cmocka_unit_test(test_cannot_start),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
