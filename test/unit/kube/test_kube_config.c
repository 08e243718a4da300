/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/kube_config.h"

static char dir[] = "/tmp/kube-config-XXXXXX";

static int make_dir(void **state) {
        return mkdtemp(dir) ? 0 : -1;
}

static void put(const char *name, const char *text) {
        _cleanup_(freep) char *path = file_join(dir, name);
        struct err e;
        assert_int_equal(file_replace_volatile(path, text, strlen(text), 0600, &e), 0);
}

static int remove_dir(void **state) {
        static const char *const names[] = {
                "config", "ca.crt", "token", "namespace", "cert.pem", "key.pem"
        };
        struct err e;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(freep) char *path = file_join(dir, names[i]);
                file_remove(path, &e);
        }
        return rmdir(dir);
}

#define HEAD                                                                                                 \
        "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- name: other\n  context: "         \
        "{cluster: x, user: y}\n- name: here\n"                                                              \
        "  context:\n    cluster: c\n    user: u\n    namespace: apps\n"
#define CLUSTER "clusters:\n- name: c\n  cluster:\n    server: https://10.0.0.1:6443\n"
#define USER "users:\n- name: u\n  user:\n"

static int parse(const char *text, struct kube_config *c, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, "config");
        return kube_config__parse(text, strlen(text), path, c, e);
}

static void test_inline_data(void **state) {
        struct kube_config c;
        struct err e;
        assert_int_equal(
                parse(HEAD CLUSTER
                      "    certificate-authority-data: Q0E=\n    tls-server-name: api.example\n" USER
                      "    client-certificate-data: Q0VSVA==\n    client-key-data: \"S0\n      VZ\"\n",
                      &c, &e),
                0);
        assert_string_equal(c.server, "https://10.0.0.1:6443");
        assert_string_equal(c.ca_pem, "CA");
        assert_string_equal(c.cert_pem, "CERT");
        assert_string_equal(c.key_pem, "KEY");
        assert_null(c.ca_file);
        assert_null(c.cert_file);
        assert_null(c.key_file);
        assert_string_equal(c.tls_server_name, "api.example");
        assert_string_equal(c.ns, "apps");
        assert_null(c.token);
        assert_null(c.token_file);
        kube_config_done(&c);
}

static void test_files_are_relative_to_the_kubeconfig(void **state) {
        _cleanup_(freep) char *path = file_join(dir, "config"), *token = file_join(dir, "token");
        struct kube_config c;
        struct err e = { 0 };
        put("ca.crt", "CA");
        put("cert.pem", "CERT");
        put("key.pem", "KEY");
        put("config", HEAD CLUSTER
            "    certificate-authority: ca.crt\n" USER
            "    client-certificate: cert.pem\n    client-key: ./key.pem\n    tokenFile: token\n");
        assert_int_equal(kube_config_load(path, &c, &e), 0);
        assert_string_equal(e.msg, "");
        assert_string_equal(c.ca_pem, "CA");
        assert_string_equal(c.cert_pem, "CERT");
        assert_string_equal(c.key_pem, "KEY");
        assert_string_equal(c.token_file, token);
        kube_config_done(&c);
}

static void test_data_precedes_file(void **state) {
        struct kube_config c;
        struct err e;
        assert_int_equal(
                parse(HEAD CLUSTER
                      "    certificate-authority: /nowhere\n    certificate-authority-data: Q0E=\n" USER
                      "    token: abc\n",
                      &c, &e),
                0);
        assert_string_equal(c.ca_pem, "CA");
        assert_string_equal(c.token, "abc");
        kube_config_done(&c);
}

static void test_json_is_yaml(void **state) {
        struct kube_config c;
        struct err e;
        assert_int_equal(parse("{\"current-context\":\"a\",\"contexts\":[{\"name\":\"a\",\"context\":{"
                               "\"cluster\":\"c\",\"user\":\"\"}}],"
                               "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://"
                               "h\",\"insecure-skip-tls-verify\":false}}],\"users\":null}",
                               &c, &e),
                         0);
        assert_string_equal(c.ns, "default");
        assert_null(c.cert_pem);
        kube_config_done(&c);
}

static void test_errors_name_the_reason(void **state) {
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { "", "not a YAML mapping" },
                { "- a", "not a YAML mapping" },
                { "a: [", "line 2: " },
                { "a: b", "current-context is not set" },
                { "current-context: null\n", "current-context is not set" },
                { "current-context: x\ncontexts: 7\n", "there is no context 'x'" },
                { "current-context: x\ncontexts: [{name: x, context: 1}]\n", "there is no context 'x'" },
                { "current-context: x\ncontexts: [{name: x, context: {}}]\n",
                  "context 'x' names no cluster" },
                { HEAD, "there is no cluster 'c'" },
                { HEAD CLUSTER, "there is no user 'u'" },
                { HEAD "clusters:\n- name: c\n  cluster: {server: ssh://x}\n",
                  "cluster 'c': server 'ssh://x' is not an http or https URL" },
                { HEAD "clusters:\n- name: c\n  cluster: {}\n", "cluster 'c': server '' is no" },
                { HEAD CLUSTER "    insecure-skip-tls-verify: true\n",
                  "cluster 'c': insecure-skip-tls-verify is not supported" },
                { HEAD CLUSTER "    insecure-skip-tls-verify: yes\n", "insecure-skip-tls-verify" },
                { HEAD CLUSTER "    insecure-skip-tls-verify: on\n", "insecure-skip-tls-verify" },
                { HEAD CLUSTER "    insecure-skip-tls-verify: Y\n", "insecure-skip-tls-verify" },
                { HEAD CLUSTER "    proxy-url: http://p\n", "proxy-url is not supported" },
                { HEAD CLUSTER "    certificate-authority-data: '***'\n",
                  "certificate-authority-data is not base64 text" },
                { HEAD CLUSTER "    certificate-authority-data: Q0E\n", "not base64" },
                { HEAD CLUSTER "    certificate-authority-data: Q0==E\n", "not base64" },
                { HEAD CLUSTER "    certificate-authority: /nowhere/ca\n",
                  "certificate-authority: open '/nowhere/ca'" },
                { HEAD CLUSTER USER "    exec: {command: aws}\n", "user 'u': 'exec' is not supported" },
                { HEAD CLUSTER USER "    auth-provider: {name: oidc}\n", "'auth-provider' is not supported" },
                { HEAD CLUSTER USER "    username: me\n", "'username' is not supported" },
                { HEAD CLUSTER USER "    as: root\n", "'as' is not supported" },
                { HEAD CLUSTER USER "    as-user-extra: {scopes: [view]}\n",
                  "'as-user-extra' is not supported" },
                { HEAD CLUSTER USER "    token: \"a b\"\n", "white space" },
                { HEAD CLUSTER USER "    token: \"a\\x7fb\"\n", "white space or control characters" },
                { HEAD CLUSTER USER "    client-certificate: /nowhere/c\n",
                  "client-certificate: open '/nowhere/c'" },
                { HEAD CLUSTER USER "    client-key: /nowhere/k\n", "client-key: open '/nowhere/k'" },
                { HEAD CLUSTER USER "    client-key-data: S0VZ\n", "must both be given" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct kube_config c = { 0 };
                struct err e;
                assert_int_equal(parse(cases[i].text, &c, &e), -1);
                assert_int_not_equal(e.kind, ERR_NONE);
                if (!strstr(e.msg, cases[i].expected))
                        fail_msg("case %zu: '%s' without '%s'", i, e.msg, cases[i].expected);
                assert_null(c.server);
        }
}

/* libyaml allocates lists of 16, so the sanitizer sees a read behind the last member. */
static void a_list_or_mapping_with_sixteen_members_is_read_to_its_end(void **state) {
        static const char *const texts[] = {
                "{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 1, m: 1, n: 1, o: 1, "
                "p: 1}",
                "{current-context: x, contexts: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}",
        };
        static const char *const expected[] = { "current-context is not set", "there is no context 'x'" };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct kube_config c;
                struct err e;
                assert_int_equal(parse(texts[i], &c, &e), -1);
                assert_string_equal(e.msg, expected[i]);
        }
}

static void the_error_of_a_kubeconfig_names_its_file(void **state) {
        _cleanup_(freep) char *path = file_join(dir, "config"),
                              *expected = xasprintf("kubeconfig '%s': not a YAML mapping", path);
        struct kube_config c;
        struct err e;
        put("config", "- a");
        assert_int_equal(kube_config_load(path, &c, &e), -1);
        assert_string_equal(e.msg, expected);
}

static void test_missing_file(void **state) {
        struct kube_config c;
        struct err e;
        assert_int_equal(kube_config_load("/nowhere/config", &c, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static void test_in_cluster(void **state) {
        _cleanup_(freep) char *token = file_join(dir, "token");
        struct kube_config c;
        struct err e;
        put("ca.crt", "CA");
        put("token", "T\n");
        put("namespace", "system\n");
        assert_int_equal(kube_config__in_cluster("10.96.0.1", "443", dir, &c, &e), 0);
        assert_string_equal(c.server, "https://10.96.0.1:443");
        assert_string_equal(c.ca_pem, "CA");
        assert_string_equal(c.token_file, token);
        assert_string_equal(c.ns, "system");
        kube_config_done(&c);
        assert_int_equal(kube_config__in_cluster("fd00::1", "443", dir, &c, &e), 0);
        assert_string_equal(c.server, "https://[fd00::1]:443");
        kube_config_done(&c);

        assert_int_equal(kube_config__in_cluster(NULL, "443", dir, &c, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_int_equal(kube_config__in_cluster("h", "1", "/nowhere", &c, &e), -1);
        assert_true(strstr(e.msg, "service account: ") == e.msg);
}

static void a_service_account_without_a_file_is_an_error(void **state) {
        static const char *const names[] = { "token", "ca.crt" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(freep) char *path = file_join(dir, names[i]),
                                      *expected = xasprintf("service account: open '%s'", path);
                struct kube_config c;
                struct err e;
                put("ca.crt", "CA");
                put("token", "T");
                assert_int_equal(file_remove(path, &e), 0);
                assert_int_equal(kube_config__in_cluster("h", "1", dir, &c, &e), -1);
                assert_ptr_equal(strstr(e.msg, expected), e.msg);
        }
}

/* Returns the token after the file has been written with this text; NULL: after it was removed. */
static const char *after(struct kube_token *t, const char *text, uint64_t now_ms) {
        struct err e;
        if (text)
                put("token", text);
        else
                assert_int_equal(file_remove(t->file, &e), 0);
        return kube_token_get(t, now_ms);
}

static void a_token_file_is_read_again_after_a_minute(void **state) {
        _cleanup_(freep) char *path = file_join(dir, "token");
        struct kube_token t;
        kube_token_init(&t, NULL, path);
        assert_string_equal(after(&t, "first!~\n", 1000), "first!~");
        assert_string_equal(after(&t, "second", 60999), "first!~");
        assert_string_equal(kube_token_get(&t, 61000), "second");
        t.stale = true;
        assert_string_equal(after(&t, "third", 61001), "third");
        kube_token_done(&t);
}

/* failure: the file with the token is removed or damaged for a moment -> the last token stays in use */
static void a_token_file_without_a_token_keeps_the_last_one(void **state) {
        static const char *const texts[] = { NULL, "", "two words", "\x7f", "\x01" };
        _cleanup_(freep) char *path = file_join(dir, "token");
        struct kube_token t;
        uint64_t now_ms = 0;
        kube_token_init(&t, NULL, path);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                assert_string_equal(after(&t, "good", now_ms += 60000), "good");
                assert_string_equal(after(&t, texts[i], now_ms += 60000), "good");
        }
        kube_token_done(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_inline_data),
                cmocka_unit_test(test_files_are_relative_to_the_kubeconfig),
                cmocka_unit_test(test_data_precedes_file),
                cmocka_unit_test(test_json_is_yaml),
                cmocka_unit_test(test_errors_name_the_reason),
                cmocka_unit_test(a_list_or_mapping_with_sixteen_members_is_read_to_its_end),
                cmocka_unit_test(the_error_of_a_kubeconfig_names_its_file),
                cmocka_unit_test(test_missing_file),
                cmocka_unit_test(test_in_cluster),
                cmocka_unit_test(a_service_account_without_a_file_is_an_error),
                cmocka_unit_test(a_token_file_is_read_again_after_a_minute),
                cmocka_unit_test(a_token_file_without_a_token_keeps_the_last_one),
        };
        return cmocka_run_group_tests_name("kube_config", tests, make_dir, remove_dir);
}
