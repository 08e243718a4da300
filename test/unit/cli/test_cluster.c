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
        assert_int_equal(cluster_open(FAKE_KUBECTL, NULL, 0, NULL, &s, &e), 0);
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

static void kubectl_gets_the_options_of_the_user_and_refuses_writes(void **state) {
        (void)state;
        static const char *const args[] = { "--context", "prod" };
        _cleanup_(freep) char *log = xasprintf("%s/log", tmp), *text = NULL;
        struct proxy p;
        struct err e;
        setenv("FAKE_LOG", log, 1);
        assert_int_equal(proxy_start(&p, FAKE_KUBECTL, args, ARRAY_LEN(args), &e), 0);
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
        struct proxy p;
        struct err e;
        assert_int_equal(proxy_start(&p, FAKE_KUBECTL, args, ARRAY_LEN(args), &e), -1);
        assert_string_equal(e.msg, "kubectl proxy: error: context \"broken\" does not exist");
        assert_int_equal(proxy_start(&p, "/nonexistent/kubectl", NULL, 0, &e), -1);
        assert_non_null(strstr(e.msg, "cannot run /nonexistent/kubectl"));
        assert_false(has_folder());
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
                if (proxy_start(&p, FAKE_KUBECTL, NULL, 0, &e) < 0 || write(ready[1], "x", 1) != 1)
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

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(each_list_has_the_state_of_its_answer),
                T(kubectl_gets_the_options_of_the_user_and_refuses_writes),
                T(an_error_of_kubectl_is_reported),
                T(nothing_remains_after_the_tool_was_killed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
