/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "imex/imex_files.h"

#define KUBELET                                                                                              \
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n\n10.1.0.5\tcomputedomain-daemon-x-abcde\n"
#define BEGIN "# begin of the IMEX domain's names (compute-domain-daemon-*)\n"
#define END "# end of the IMEX domain's names\n"

static void test_config(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(65536);
        static const char *const lines[] = {
                "LOG_LEVEL=4\n",
                "LOG_FILE_NAME=\n",
                "STATS_FILE_NAME=/var/log/nvidia-imex-stats.log\n",
                "LOG_APPEND_TO_LOG=0\n",
                "LOG_FILE_MAX_SIZE=1024\n",
                "LOG_MAX_ROTATE_COUNT=10\n",
                "LOG_USE_SYSLOG=0\n",
                "DAEMONIZE=0\n",
                "BIND_INTERFACE_IP=\n",
                "SERVER_PORT=50000\n",
                "IMEX_NODE_CONFIG_FILE=/imexd/nodes.cfg\n",
                "NETWORK_INTERFACE=\n",
                "IMEX_WAIT_FOR_QUORUM=RECOVERY\n",
                "IMEX_ENABLE_AUTH_ENCRYPTION=0\n",
                "IMEX_AUTH_ENCRYPTION_MODE=SSL_TLS\n",
                "IMEX_AUTH_SOURCE=\n",
                "IMEX_SERVER_KEY=\n",
                "IMEX_SERVER_CERT=\n",
                "IMEX_SERVER_CERT_AUTH=\n",
                "IMEX_CLIENT_KEY=\n",
                "IMEX_CLIENT_CERT=\n",
                "IMEX_CLIENT_CERT_AUTH=\n",
                "IMEX_SECURITY_TARGET_OVERRIDE=\n",
                "IMEX_GSS_SERVICE_NAME=host\n",
                "IMEX_GSS_TIMEOUT_SEC=30\n",
                "IMEX_GSS_RETRY_INTERVAL_SEC=5\n",
                "IMEX_GSS_SEC_CONTEXT_LIFETIME_SEC=-1\n",
                "IMEX_GSS_SHUTDOWN_ON_FAILURE=0\n",
                "IMEX_CMD_ENABLED=1\n",
                "IMEX_CMD_BIND_INTERFACE_IP=10.1.0.5\n",
                "IMEX_CMD_PORT=50005\n",
                "IMEX_CMD_UNIX_DOMAIN_PATH=\n",
                "IMEX_NODE_DISCONNECTED_GRACE_TIME=-1\n",
        };
        size_t n = 0;

        imex_config_render(
                &(struct imex_config){ "10.1.0.5", "/imexd/nodes.cfg", { .port = IMEX_SERVER_PORT }, NULL },
                &b);
        for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
                assert_non_null(strstr(buf_str(&b), lines[i]));
                n += strlen(lines[i]);
        }
        assert_int_equal(n, b.n);
}

static void test_settings_replace_defaults(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        _cleanup_(buf_done) struct buf plain = BUF_INIT(65536), b = BUF_INIT(65536);
        struct imex_settings settings;
        const struct imex_config c = { "10.1.0.5", "/nodes", { .port = 28000 }, &settings };
        struct err e;

        imex_config_render(&(struct imex_config){ "10.1.0.5", "/nodes", { .port = 28000 }, NULL }, &plain);
        assert_int_equal(imex_settings_parse("", a, &settings, &e), 0);
        imex_config_render(&c, &b);
        assert_string_equal(buf_str(&b), buf_str(&plain));
        buf_clear(&b);

        assert_int_equal(imex_settings_parse("{\"IMEX_NODE_DISCONNECTED_GRACE_TIME\": \"60\", "
                                             "\"IMEX_OF_TOMORROW\": \"a b=c\"}",
                                             a, &settings, &e),
                         0);
        imex_config_render(&c, &b);
        assert_non_null(
                strstr(buf_str(&b), "\nIMEX_NODE_DISCONNECTED_GRACE_TIME=60\nIMEX_OF_TOMORROW=a b=c\n"));
        assert_null(strstr(buf_str(&b), "GRACE_TIME=-1"));
        /* A known key is not written again behind the defaults. */
        assert_string_equal(strstr(buf_str(&b), "\nIMEX_NODE_DISCONNECTED_GRACE_TIME="),
                            "\nIMEX_NODE_DISCONNECTED_GRACE_TIME=60\nIMEX_OF_TOMORROW=a b=c\n");
        assert_non_null(strstr(buf_str(&b), "SERVER_PORT=28000\nIMEX_NODE_CONFIG_FILE=/nodes\n"));
}

static void test_settings_refused(void **state) {
        static const struct {
                const char *text, *why;
        } cases[] = {
                { "{\"IMEX_CMD_BIND_INTERFACE_IP\": \"1.2.3.4\"}",
                  "IMEX_CMD_BIND_INTERFACE_IP belongs to the driver" },
                { "{\"IMEX_NODE_CONFIG_FILE\": \"/tmp/x\"}", "IMEX_NODE_CONFIG_FILE belongs to the driver" },
                { "{\"SERVER_PORT\": \"1\"}", "SERVER_PORT belongs to the driver" },
                { "{\"LOG_LEVEL\": \"0\"}", "LOG_LEVEL belongs to the driver" },
                { "{\"DAEMONIZE\": \"1\"}", "DAEMONIZE belongs to the driver" },
                { "{\"IMEX_GSS_TIMEOUT_SEC\": \"1\\nDAEMONIZE=1\"}",
                  "IMEX_GSS_TIMEOUT_SEC has a line break" },
                { "{\"IMEX_GSS_SERVICE_NAME\": \"$(POD_IP)\"}", "contains \"$(\"" },
                { "{\"A=B\": \"1\"}", "\"A=B\" is not a key" },
                { "{\"a\": \"1\"}", "\"a\" is not a key" },
                { "{\"\": \"1\"}", "\"\" is not a key" },
                { "{\"IMEX_WAIT_FOR_QUORUM\": \"FULL\"}", "use RECOVERY or NONE" },
                { "{\"A\": \"1\", \"A\": \"2\"}", "A is set twice" },
                { "{\"A\": 1}", "A" },
                { "[]", "config" },
                { "{", "not JSON" },
                { "{}, \"x\": {}", "x" },
        };
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct imex_settings settings;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_int_equal(imex_settings_parse(cases[i].text, a, &settings, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
                if (!strstr(e.msg, cases[i].why))
                        fail_msg("%s: %s", cases[i].text, e.msg);
                assert_int_equal(settings.n_pairs, 0);
        }
}

static void the_lengths_and_characters_of_settings_are_limited(void **state) {
        char *key = xstrndup("", 0), *value = xstrndup("", 0);
        static const struct {
                const char *key, *value;
                size_t key_n, value_n; /* 0: as they are */
                bool good;
        } cases[] = { { "A", "x", 64, 512, true },    { "A", "x", 65, 0, false },
                      { "A", "x", 0, 513, false },    { "0A", "x", 0, 0, false },
                      { "9A", "x", 0, 0, false },     { "A09_", "x", 0, 0, true },
                      { "A", " ~", 0, 0, true },      { "A", "\\u001f", 0, 0, false },
                      { "A", "\\u007f", 0, 0, false } };
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct imex_settings settings;
                struct err e;
                free(key);
                free(value);
                key = xstrndup(cases[i].key, strlen(cases[i].key));
                value = xstrndup(cases[i].value, strlen(cases[i].value));
                if (cases[i].key_n) {
                        free(key);
                        key = xcalloc(1, cases[i].key_n + 1);
                        memset(key, 'A', cases[i].key_n);
                }
                if (cases[i].value_n) {
                        free(value);
                        value = xcalloc(1, cases[i].value_n + 1);
                        memset(value, 'x', cases[i].value_n);
                }
                const char *text = arena_printf(a, "{\"%s\":\"%s\"}", key, value);
                if (!imex_settings_parse(text, a, &settings, &e) != cases[i].good)
                        fail_msg("case %zu", i);
        }
        free(key);
        free(value);
}

static void test_names(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(65536);
        char infix[11];

        imex_slot_name("8585d4965d", 7, &b);
        assert_string_equal(buf_str(&b), "compute-domain-daemon-8585d4965d-0007");
        buf_clear(&b);
        imex_slot_name("", 17, &b);
        assert_string_equal(buf_str(&b), "compute-domain-daemon-0017");
        buf_clear(&b);
        imex_slot_name(NULL, 12345, &b);
        assert_string_equal(buf_str(&b), "compute-domain-daemon-12345");
        buf_clear(&b);
        imex_nodes_render("ab", 3, &b);
        assert_string_equal(buf_str(&b), "compute-domain-daemon-ab-0000\ncompute-domain-daemon-ab-"
                                         "0001\ncompute-domain-daemon-ab-0002\n");

        /* sha256("abc") begins with ba7816bf8f */
        imex_infix("abc", infix);
        assert_string_equal(infix, "ba7816bf8f");
        assert_true(imex_infix_valid("ba7816bf8f"));
        assert_true(imex_infix_valid(""));
        assert_false(imex_infix_valid("a b"));
        assert_false(imex_infix_valid("a\nb"));
        assert_false(imex_infix_valid("A"));
        assert_true(imex_infix_valid("01234567890123456789012345678901"));
        assert_false(imex_infix_valid("012345678901234567890123456789012"));
}

/* A reused address must not lead a daemon to a daemon of another domain, so no name may belong to both. */
/* failure: an address is reused by another IMEX domain -> no name leads to both */
static void test_two_domains_share_no_name(void **state) {
        static const char *const uids[] = { "aaaaaaaa-0000-4000-8000-000000000001",
                                            "aaaaaaaa-0000-4000-8000-000000000002" };
        _cleanup_(buf_done) struct buf first = BUF_INIT(4096), second = BUF_INIT(4096);
        struct str rest, name;
        char infix[11];

        imex_infix(uids[0], infix);
        imex_nodes_render(infix, 18, &first);
        imex_infix(uids[1], infix);
        imex_nodes_render(infix, 18, &second);
        rest = (struct str){ first.p, first.n };
        while (str_next_line(&rest, &name)) {
                _cleanup_(freep) char *text = xstrndup(name.p, name.n);
                assert_null(strstr(buf_str(&second), text));
        }
}

/* failure: slots have no node -> every slot has an address, so DNS is not queried */
static void test_hosts_golden(void **state) {
        const struct imex_peer peers[] = { { .index = 2, .ip = "10.1.0.7" },
                                           { .index = 1, .ip = "10.1.0.5" },
                                           { .index = 3, .ip = "" } };
        _cleanup_(buf_done) struct buf b = BUF_INIT(65536);
        struct err e;

        assert_int_equal(imex_hosts_render(STR(KUBELET),
                                           &(struct imex_members){ 1, "ab", peers, ARRAY_LEN(peers) }, 5, &b,
                                           &e),
                         0);
        assert_string_equal(buf_str(&b), KUBELET BEGIN "10.1.0.5\tcompute-domain-daemon-ab-0001\n"
                                                       "10.1.0.7\tcompute-domain-daemon-ab-0002\n"
                                                       "127.0.0.2\tcompute-domain-daemon-ab-0000\n"
                                                       "127.0.0.2\tcompute-domain-daemon-ab-0003\n"
                                                       "127.0.0.2\tcompute-domain-daemon-ab-0004\n" END);
}

static void the_node_in_the_last_slot_is_listed(void **state) {
        const struct imex_peer peers[] = { { .index = 0, .ip = "10.1.0.5" },
                                           { .index = 1, .ip = "10.1.0.7" } };
        _cleanup_(buf_done) struct buf b = BUF_INIT(65536);
        struct err e;

        assert_int_equal(imex_hosts_render(STR(""), &(struct imex_members){ 0, "", peers, 2 }, 2, &b, &e), 0);
        assert_string_equal(buf_str(&b), BEGIN "10.1.0.5\tcompute-domain-daemon-0000\n"
                                               "10.1.0.7\tcompute-domain-daemon-0001\n" END);
}

static void test_hosts_does_not_grow(void **state) {
        const struct imex_peer peers[] = { { .index = 0, .ip = "10.1.0.5" },
                                           { .index = 1, .ip = "10.1.0.7" } };
        _cleanup_(buf_done) struct buf a = BUF_INIT(65536), b = BUF_INIT(65536);
        struct err e;

        assert_int_equal(
                imex_hosts_render(STR(KUBELET), &(struct imex_members){ 0, "ab", peers, 2 }, 4, &a, &e), 0);
        for (int i = 0; i < 5; i++) {
                struct buf t = a;

                buf_clear(&b);
                assert_int_equal(imex_hosts_render((struct str){ a.p, a.n },
                                                   &(struct imex_members){ 0, "ab", peers, 2 }, 4, &b, &e),
                                 0);
                assert_string_equal(buf_str(&a), buf_str(&b));
                a = b;
                b = t;
        }
}

static void test_hosts_drops_all_earlier_lines_of_ours(void **state) {
        const struct imex_peer old[] = { { .index = 0, .ip = "10.1.0.5" }, { .index = 1, .ip = "10.1.0.7" } };
        const struct imex_peer now[] = { { .index = 3, .ip = "10.1.0.6" } };
        _cleanup_(buf_done) struct buf a = BUF_INIT(65536), b = BUF_INIT(65536), c = BUF_INIT(65536);
        struct err e;

        /* An older infix, the Go driver's lines, an incomplete block, a line without its end. */
        assert_int_equal(imex_hosts_render(STR(KUBELET "10.9.9.9\tcompute-domain-daemon-0003\n" BEGIN),
                                           &(struct imex_members){ 0, "old", old, 2 }, 4, &a, &e),
                         0);
        buf_adds(&a, "10.8.8.8\tcompute-domain-daemon-0001");
        assert_int_equal(imex_hosts_render((struct str){ a.p, a.n },
                                           &(struct imex_members){ 3, "new", now, 1 }, 4, &b, &e),
                         0);
        assert_int_equal(
                imex_hosts_render(STR(KUBELET), &(struct imex_members){ 3, "new", now, 1 }, 4, &c, &e), 0);
        assert_string_equal(buf_str(&b), buf_str(&c));
        assert_null(strstr(buf_str(&b), "old"));

        /* Not ours: a comment that mentions us, an entry without a line end. */
        buf_clear(&b);
        assert_int_equal(
                imex_hosts_render(STR("# about compute-domain-daemon-0001\n1.2.3.4 else"),
                                  &(struct imex_members){
                                          0, "new", &(struct imex_peer){ .index = 0, .ip = "10.0.0.1" }, 1 },
                                  1, &b, &e),
                0);
        assert_string_equal(buf_str(&b), "# about compute-domain-daemon-0001\n1.2.3.4 else\n" BEGIN
                                         "10.0.0.1\tcompute-domain-daemon-new-0000\n" END);
}

static int render_error(int64_t own, const struct imex_peer *peers, size_t n, struct err *e) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(65536);

        return imex_hosts_render(STR(""), &(struct imex_members){ own, "ab", peers, n }, 18, &b, e);
}

static void test_hosts_rejects_invalid_members(void **state) {
        struct imex_peer p[3] = { { .index = 0, .ip = "10.1.0.5", .node = "n0" },
                                  { .index = 1, .ip = "10.1.0.6", .node = "n1" } };
        struct err e;

        assert_int_equal(render_error(0, p, 2, &e), 0);
        assert_int_equal(render_error(2, p, 2, &e), -1); /* our own entry is missing */
        assert_int_equal(render_error(-1, p, 2, &e), -1);

        p[1].index = 18;
        assert_int_equal(render_error(0, p, 2, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_string_equal(e.msg, "node 'n1' has index 18, but an IMEX domain has only 18 slots");
        p[1].index = -1;
        assert_int_equal(render_error(0, p, 2, &e), -1);
        p[1].index = 0;
        assert_int_equal(render_error(0, p, 2, &e), -1);
        assert_string_equal(e.msg, "node 'n1' has index 0, which another node also has");
        p[1].index = 1;
        p[1].ip = "10.0.0.1 evil\n10.0.0.2";
        assert_int_equal(render_error(0, p, 2, &e), -1);
        p[1].ip = "fd00::7";
        assert_int_equal(render_error(0, p, 2, &e), 0);
}

/* The file is never empty, and never contains text that is in neither version, for all lengths. */
static void test_hosts_write_in_place(void **state) {
        char path[] = "/tmp/test_hosts.XXXXXX";
        int fd = mkstemp(path);
        static const char *const texts[] = { "127.0.0.1 a\n127.0.0.1 b\n", "127.0.0.1 a\n", "x\n",
                                             "127.0.0.1 much longer than before\n", "" };
        struct err e;

        assert_true(fd >= 0);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                _cleanup_(freep) char *now = NULL;
                size_t n;

                assert_int_equal(imex_hosts_write(path, str_from(texts[i]), &e), 0);
                /* In place: the descriptor from before the writes reads the new text. */
                assert_int_equal(file_read_fd(fd, path, 4096, &now, &n, &e), 0);
                assert_string_equal(now, texts[i]);
        }
        close(fd);
        unlink(path);
        assert_int_equal(imex_hosts_write(path, STR("x"), &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

/* A disk that fills up writes a part of the text. */
/* failure: the disk is full -> a hosts file that was written in part is an error, not a success */
static void a_text_that_was_written_in_part_is_an_error(void **state) {
        char path[] = "/tmp/test_hosts.XXXXXX";
        struct rlimit old, few;
        struct err e;

        close(mkstemp(path));
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        few = old;
        few.rlim_cur = 9;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
        int whole = imex_hosts_write(path, STR("9 bytes.\n"), &e),
            r = imex_hosts_write(path, STR("ten bytes\n"), &e);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(whole, 0);
        assert_int_equal(r, -1);
        assert_non_null(strstr(e.msg, "only 9 of 10 bytes were written"));
        unlink(path);
}

/* errno keeps the value of an earlier call. */
static void an_empty_text_is_written_once(void **state) {
        char path[] = "/tmp/test_hosts.XXXXXX";
        struct err e;

        close(mkstemp(path));
        errno = EINTR;
        assert_int_equal(imex_hosts_write(path, (struct str){ 0 }, &e), 0);
        unlink(path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_config),
                cmocka_unit_test(test_settings_replace_defaults),
                cmocka_unit_test(test_settings_refused),
                cmocka_unit_test(the_lengths_and_characters_of_settings_are_limited),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_two_domains_share_no_name),
                cmocka_unit_test(test_hosts_golden),
                cmocka_unit_test(the_node_in_the_last_slot_is_listed),
                cmocka_unit_test(test_hosts_does_not_grow),
                cmocka_unit_test(test_hosts_drops_all_earlier_lines_of_ours),
                cmocka_unit_test(test_hosts_rejects_invalid_members),
                cmocka_unit_test(test_hosts_write_in_place),
                cmocka_unit_test(a_text_that_was_written_in_part_is_an_error),
                cmocka_unit_test(an_empty_text_is_written_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
