/* SPDX-License-Identifier: Apache-2.0 */
/* Lists through kubectl proxy, with a program in kubectl's place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cluster.h"
#include "cli/proxy.h"
#include "cli/view.h"
#include "tree.h"

static char *tmp;
static const struct kubectl fake = { FAKE_KUBECTL, NULL, 0 }, missing = { "/nonexistent/kubectl", NULL, 0 };

static int set_up(void **state) {
        (void)state;
        tmp = tree_new();
        setenv("TMPDIR", tmp, 1);
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        tree_remove(tmp);
        return 0;
}

/* Whether the folder of the socket exists. */
static bool has_folder(void) {
        bool found = false;
        DIR *d = opendir(tmp);
        for (const struct dirent *x; d && (x = readdir(d));)
                found = found || str_starts(x->d_name, "compute-domains-");
        closedir(d);
        return found;
}

static void each_list_has_the_state_of_its_answer(void **state) {
        (void)state;
        struct source *s;
        struct view v;
        struct err e;
        assert_int_equal(cluster_open(&fake, NULL, &s, &e), 0);
        assert_string_equal(s->ns, "team-b");
        assert_string_equal(s->server_version(s), "v1.36.3");
        view_init(&v, s);
        view_read(&v, VIEW_NODES, NULL);
        assert_int_equal(view_state(&v, VIEW_NODES, NULL), VIEW_COMPLETE);
        assert_int_equal(v.kinds[VIEW_NODES].n, 3);
        view_read(&v, VIEW_DAEMON_SETS, NULL);
        assert_int_equal(view_state(&v, VIEW_DAEMON_SETS, NULL), VIEW_UNREADABLE);
        view_read(&v, VIEW_DEPLOYMENTS, NULL);
        assert_int_equal(view_state(&v, VIEW_DEPLOYMENTS, NULL), VIEW_PARTIAL);
        /* A load balancer's pages show neither that a kind is not served nor that rights are missing. */
        view_read(&v, VIEW_PODS, NULL);
        assert_int_equal(view_state(&v, VIEW_PODS, NULL), VIEW_PARTIAL);
        assert_false(view_not_served(&v, VIEW_PODS));
        view_read(&v, VIEW_QUOTAS, NULL);
        assert_int_equal(view_state(&v, VIEW_QUOTAS, NULL), VIEW_PARTIAL);
        /* The server serves only v1beta2 of this group. */
        view_read(&v, VIEW_SLICES, NULL);
        assert_int_equal(view_state(&v, VIEW_SLICES, NULL), VIEW_COMPLETE);
        assert_int_equal(view_state(&v, VIEW_CLAIMS, NULL), VIEW_UNREADABLE); /* it was not read */
        view_done(&v);
        s->free(s);
        assert_false(has_folder());
}

static void an_api_server_that_does_not_answer_is_an_error(void **state) {
        (void)state;
        static const char *const down[] = { "--context", "down" }, *const unwilling[] = { "--context",
                                                                                          "unwilling" };
        struct source *s;
        struct err e;
        assert_int_equal(cluster_open(&(struct kubectl){ FAKE_KUBECTL, down, 2 }, NULL, &s, &e), -1);
        assert_string_equal(e.msg, "HTTP error: dial tcp: connection refused");
        assert_false(has_folder());
        /* Only the version is secret. */
        assert_int_equal(cluster_open(&(struct kubectl){ FAKE_KUBECTL, unwilling, 2 }, NULL, &s, &e), 0);
        assert_null(s->server_version(s));
        s->free(s);
}

/* A tenant may fill a page with large objects. */
static void a_page_that_is_too_large_is_read_in_parts(void **state) {
        (void)state;
        struct source *s;
        struct view v;
        struct err e;
        assert_int_equal(cluster_open(&fake, NULL, &s, &e), 0);
        view_init(&v, s);
        view_read(&v, VIEW_POLICIES, NULL);
        assert_int_equal(view_state(&v, VIEW_POLICIES, NULL), VIEW_COMPLETE);
        assert_int_equal(v.kinds[VIEW_POLICIES].n, 12);
        view_done(&v);
        s->free(s);
}

static void kubectl_gets_the_options_of_the_user_and_refuses_writes(void **state) {
        (void)state;
        static const char *const args[] = { "--context", "prod" };
        const struct kubectl k = { FAKE_KUBECTL, args, ARRAY_LEN(args) };
        _cleanup_(freep) char *log = xasprintf("%s/log", tmp), *text = NULL;
        struct proxy p;
        struct err e;
        setenv("FAKE_LOG", log, 1);
        assert_int_equal(proxy_start(&p, &k, &e), 0);
        struct stat st;
        assert_int_equal(stat(p.folder, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        proxy_stop(&p);
        unsetenv("FAKE_LOG");
        assert_int_equal(file_read(log, 4096, &text, NULL, &e), 0);
        assert_true(str_starts(text, "--context prod proxy --unix-socket="));
        assert_non_null(strstr(text, "--reject-methods=^([^G].*|"));
        assert_non_null(strstr(text, "(exec|attach|portforward|proxy)"));
}

static void an_error_of_kubectl_is_reported(void **state) {
        (void)state;
        static const char *const args[] = { "--context", "broken" };
        const struct kubectl k = { FAKE_KUBECTL, args, ARRAY_LEN(args) };
        struct proxy p;
        struct err e;
        assert_int_equal(proxy_start(&p, &k, &e), -1);
        assert_string_equal(e.msg, "kubectl proxy: error: context \"broken\" does not exist");
        assert_int_equal(proxy_start(&p, &missing, &e), -1);
        assert_non_null(strstr(e.msg, "cannot run /nonexistent/kubectl"));
        assert_false(has_folder());
}

static void assert_pod_namespace(const char *expected) {
        _cleanup_(freep) char *ns = cluster_pod_namespace(tmp);
        if (expected)
                assert_string_equal(ns, expected);
        else
                assert_null(ns);
}

static void in_a_pod_its_namespace_is_used(void **state) {
        (void)state;
        unsetenv("POD_NAMESPACE");
        tree_put(tmp, "token", "x");
        tree_put(tmp, "namespace", " team-c\n");
        unsetenv("KUBERNETES_SERVICE_HOST");
        setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        assert_pod_namespace(NULL);
        setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
        assert_pod_namespace("team-c");
        setenv("POD_NAMESPACE", "team-d", 1);
        assert_pod_namespace("team-d");
        setenv("POD_NAMESPACE", "../x", 1);
        assert_pod_namespace("team-c");
        tree_put(tmp, "namespace", "a/b");
        assert_pod_namespace(NULL);
        unsetenv("POD_NAMESPACE");
        unsetenv("KUBERNETES_SERVICE_HOST");
        unsetenv("KUBERNETES_SERVICE_PORT");
}

static void without_a_service_account_no_namespace_is_used(void **state) {
        (void)state;
        setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
        setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        tree_put(tmp, "namespace", "team-c");
        assert_pod_namespace(NULL);
        tree_put(tmp, "token", "x");
        assert_pod_namespace("team-c");
        unsetenv("KUBERNETES_SERVICE_HOST");
        unsetenv("KUBERNETES_SERVICE_PORT");
}

/* The guard ends kubectl, and removes the folder. */
static void nothing_remains_after_the_tool_was_killed(void **state) {
        (void)state;
        int ready[2];
        char c;
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
                struct proxy p;
                struct err e;
                close(ready[0]);
                if (proxy_start(&p, &fake, &e) < 0 || write(ready[1], "x", 1) != 1)
                        _exit(1);
                pause();
                _exit(1);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &c, 1), 1);
        assert_true(has_folder());
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        /* kubectl and the guard have the pipe until they end. */
        struct pollfd f = { .fd = ready[0], .events = POLLIN };
        assert_int_equal(poll(&f, 1, 30000), 1);
        assert_int_equal(read(ready[0], &c, 1), 0);
        close(ready[0]);
        assert_false(has_folder());
}

/* ---- calls ---- */

static const struct kubectl shell = { "/bin/sh", (const char *const[]){ "-c" }, 1 };

/* Runs a script in kubectl's place. */
static int call(const char *script, struct kubectl_call c, struct kubectl_result *ret, struct err *e) {
        c.args = &script;
        c.n_args = 1;
        return kubectl_call(&shell, &c, ret, e);
}

static void a_call_returns_status_and_outputs(void **state) {
        (void)state;
        struct kubectl_call none = { 0 };
        struct kubectl_result x;
        struct err e;
        assert_int_equal(call("cat; echo out; echo errors >&2; exit 127", none, &x, &e), 0);
        assert_int_equal(x.status, 127);
        assert_string_equal(buf_str(&x.out), "out\n");
        assert_string_equal(buf_str(&x.errors), "errors\n");
        kubectl_result_done(&x);
        assert_int_equal(call("kill -9 $$", none, &x, &e), -1);
        assert_int_equal(e.kind, ERR_INTERNAL);
        kubectl_result_done(&x);
        static const char *const args[] = { "get" };
        assert_int_equal(kubectl_call(&missing, &(struct kubectl_call){ .args = args, .n_args = 1 }, &x, &e),
                         -1);
        assert_true(str_starts(e.msg, "cannot run /nonexistent/kubectl"));
        kubectl_result_done(&x);
}

/* The pipes are full in both directions. */
static void a_call_reads_while_it_writes(void **state) {
        (void)state;
        enum { N = 300000 };
        _cleanup_(freep) char *input = xcalloc(1, N);
        struct kubectl_result x;
        struct err e;
        memset(input, 'x', N);
        const struct kubectl_call c = { .input = { input, N }, .timeout_ms = 60000 };
        assert_int_equal(call("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; cat", c, &x, &e), 0);
        assert_int_equal(x.out.n, 2 * N);
        assert_int_equal(x.errors.n, N);
        kubectl_result_done(&x);
        /* It may exit without reading its input. */
        assert_int_equal(call("exit 3", c, &x, &e), 0);
        assert_int_equal(x.status, 3);
        kubectl_result_done(&x);
}

static void a_call_has_limits(void **state) {
        (void)state;
        struct kubectl_result x;
        struct err e;
        assert_int_equal(call("exec sleep 600", (struct kubectl_call){ .timeout_ms = 200 }, &x, &e), -1);
        assert_int_equal(e.kind, ERR_RETRY);
        kubectl_result_done(&x);
        assert_int_equal(call("exec cat /dev/zero", (struct kubectl_call){ .limit = 1000 }, &x, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        kubectl_result_done(&x);
}

static void the_error_is_the_last_line(void **state) {
        static const struct {
                const char *script, *words;
                enum err_kind kind;
        } cases[] = {
                { "echo out; echo one >&2; echo two >&2; echo >&2; exit 1", ": two", ERR_INTERNAL },
                { "echo out; exit 1", ": out", ERR_INTERNAL },
                { "exit 1", " failed", ERR_INTERNAL },
                { "echo 'Error from server (Forbidden): no' >&2; exit 1", ": Error from server", ERR_DENIED },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct kubectl_call c = { .args = &cases[i].script, .n_args = 1 };
                struct err e;
                assert_int_equal(kubectl_run(&shell, &c, NULL, &e), -1);
                assert_int_equal(e.kind, cases[i].kind);
                assert_non_null(strstr(e.msg, cases[i].words));
        }
        static const char *const fine[] = { "echo ' text '" };
        char *text;
        struct err e;
        assert_int_equal(kubectl_run(&shell, &(struct kubectl_call){ .args = fine, .n_args = 1 }, &text, &e),
                         0);
        assert_string_equal(text, "text");
        free(text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(each_list_has_the_state_of_its_answer),
                T(an_api_server_that_does_not_answer_is_an_error),
                T(a_page_that_is_too_large_is_read_in_parts),
                T(kubectl_gets_the_options_of_the_user_and_refuses_writes),
                T(in_a_pod_its_namespace_is_used),
                T(without_a_service_account_no_namespace_is_used),
                T(an_error_of_kubectl_is_reported),
                T(nothing_remains_after_the_tool_was_killed),
                T(a_call_returns_status_and_outputs),
                T(a_call_reads_while_it_writes),
                T(a_call_has_limits),
                T(the_error_is_the_last_line),
        };
        signal(SIGPIPE, SIG_IGN); /* as the tool does */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
