/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/mem.h"
#include "hook/in_root.h"
#include "hook/oci_state.h"
#include "tree.h"

static char *root;

static int setup(void **state) {
        (void)state;
        root = tree_new();
        return 0;
}

static int teardown(void **state) {
        (void)state;
        tree_remove(root);
        return 0;
}

/* The sanitizer finds a byte that is read behind the text. */
static void finds(const char *json, const char *a, const char *b, int want, const char *value) {
        size_t n = strlen(json);
        char got[64] = "", *exact = malloc(n);
        memcpy(exact, json, n);
        if (oci_json_find(exact, n, a, b, got, sizeof got) != want || (want > 0 && strcmp(got, value) != 0))
                fail_msg("%s: %s", json, got);
        free(exact);
}

/* `text` is the content of a JSON string. NULL: the string is refused. */
static void reads(const char *text, const char *value) {
        _cleanup_(freep) char *json = xasprintf("{\"bundle\":\"%s\"}", text);
        finds(json, "bundle", NULL, value ? 1 : -1, value);
}

static void a_member_is_found_among_others(void **state) {
        (void)state;
        finds("{\"bundle\":\"/b\"}", "bundle", NULL, 1, "/b");
        finds(" { \"a\" : [1,{\"bundle\":\"no\"},\"]\"] , \"bundle\" : \"/b\" } ", "bundle", NULL, 1, "/b");
        finds("{\"annotations\":{\"root\":\"no\"},\"root\":{\"readonly\":true,\"path\":\"rootfs\"}}", "root",
              "path", 1, "rootfs");
        finds("{\"root\":\"/r\"}", "root", "path", 0, NULL);
        finds("{\"root\":{\"path\":7}}", "root", "path", 0, NULL);
        finds("{}", "root", NULL, 0, NULL);
        finds("{}", "root", "path", 0, NULL);
        finds("{\"a\":1,\"b\":true ,\"root\":\"/r\"}", "root", NULL, 1, "/r");
        finds("{\"bun\\u0064le\":\"/\\u00e4\\ud83d\\ude00\\n\"}", "bundle", NULL, 1,
              "/\xc3\xa4\xf0\x9f\x98\x80\n");
}

static void escapes_are_decoded(void **state) {
        reads("\\u0031\\u0039\\u0061\\u0066\\u0041\\u004A\\u004F", "19afAJO");
        reads("\\u00e1\\u00eF\\u00Fa", "\xc3\xa1\xc3\xaf\xc3\xba");
        static const char beside[] = "/:`g@G";
        for (size_t i = 0; beside[i]; i++) {
                char text[] = "\\u00?1";
                text[4] = beside[i];
                reads(text, NULL);
        }
        reads("\\u007f\\u0080", "\x7f\xc2\x80");
        reads("\\u07ff\\u0800", "\xdf\xbf\xe0\xa0\x80");
        reads("\\uffff\\ud800\\udc00", "\xef\xbf\xbf\xf0\x90\x80\x80");
        reads("\\ud7ff\\udbff\\udfff\\ue000", "\xed\x9f\xbf\xf4\x8f\xbf\xbf\xee\x80\x80");
        reads("\\ud800\\udbff", NULL);
        reads("\\ud800\\ue000", NULL);
        reads("\\ud800 \\udc00", NULL);
        reads("\\udc00", NULL);
        reads("\\udc00\\udc00", NULL);
        reads("\\udfff", NULL);
        reads("a b\x1f", NULL);
        reads("a b", "a b");
}

static void a_string_must_fit_with_its_end(void **state) {
        char text[65] = "";
        memset(text, 'x', 63);
        reads(text, text);
        text[63] = 'x';
        reads(text, NULL);
}

/* Each text ends where the parser expects another byte. */
static void a_text_that_ends_inside_a_value_is_refused(void **state) {
        static const char *const texts[] = { "{\"bundle\"",
                                             "{\"bundle\":",
                                             "{\"bundle\": ",
                                             "{\"bundle\":\"/b",
                                             "{\"bundle\":\"\\",
                                             "{\"bundle\":\"\\u",
                                             "{\"bundle\":\"\\u004",
                                             "{\"bundle\":\"\\u0041",
                                             "{\"bundle\":\"\\ud800",
                                             "{\"bundle\":\"\\ud800\\",
                                             "{\"bundle\":\"\\ud800\\u",
                                             "{\"bundle\":\"\\ud800\\udc0",
                                             "{\"a\":1",
                                             "{\"a\":[",
                                             "{\"a\":[1",
                                             "{\"a\":{\"b\"",
                                             "{\"a\":1, " };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                finds(texts[i], "bundle", NULL, -1, NULL);
        finds("{\"root\":{\"path\": ", "root", "path", -1, NULL);
}

static void lists_have_at_most_64_levels(void **state) {
        for (size_t n = 64; n <= 65; n++) {
                char json[256] = "{\"a\":", *p = json + strlen(json);
                memset(p, '[', n);
                memset(p + n, ']', n);
                strcpy(p + 2 * n, ",\"bundle\":\"/b\"}");
                finds(json, "bundle", NULL, n == 64 ? 1 : -1, "/b");
        }
}

/* failure: the container runtime's state is not valid JSON -> the hook refuses it */
static void state_that_is_not_json_is_refused(void **state) {
        (void)state;
        static const char *const bad[] = { "",
                                           "[]",
                                           "{",
                                           "{\"a\"",
                                           "{\"a\":}",
                                           "{\"a\":1,}",
                                           "{\"bundle\":\"/b",
                                           "{\"bundle\":\"\\u12\"}",
                                           "{\"bundle\":\"\\ud800\"}",
                                           "{\"bundle\":\"\\x\"}",
                                           "{\"bundle\":\"\n\"}",
                                           "{\"bundle\":\"/a\\u0000/b\"}" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                finds(bad[i], "bundle", NULL, -1, NULL);
        /* longer than the buffer */
        finds("{\"bundle\":\"/0123456789012345678901234567890123456789012345678901234567890123456789\"}",
              "bundle", NULL, -1, NULL);
        char deep[300] = "{\"a\":";
        memset(deep + 5, '[', 200);
        finds(deep, "bundle", NULL, -1, NULL);
}

static int state_of(const char *text, char *path) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], text, strlen(text)), strlen(text));
        close(fds[1]);
        int r = oci_state_root(fds[0], path);
        close(fds[0]);
        return r;
}

static void the_root_is_read_from_the_bundle(void **state) {
        (void)state;
        char path[OCI_PATH_MAX];
        _cleanup_(freep) char *text = xasprintf("{\"ociVersion\":\"1.2\",\"bundle\":\"%s\"}", root);
        _cleanup_(freep) char *rootfs = xasprintf("%s/rootfs", root);
        assert_int_equal(state_of(text, path), -1); /* no config.json */
        tree_put(root, "config.json", "{\"root\":{\"path\":\"rootfs\"}}");
        assert_int_equal(state_of(text, path), 0);
        assert_string_equal(path, rootfs);
        tree_put(root, "config.json", "{\"root\":{\"path\":\"/run/elsewhere\"}}");
        assert_int_equal(state_of(text, path), 0);
        assert_string_equal(path, "/run/elsewhere");
        tree_put(root, "config.json", "{\"root\":{}}");
        assert_int_equal(state_of(text, path), -1);
        assert_int_equal(state_of("{\"root\":\"/of/crun\",\"bundle\":\"/b\"}", path), 0);
        assert_string_equal(path, "/of/crun");
        assert_int_equal(state_of("{\"bundle\":\"relative\"}", path), -1);
        assert_int_equal(state_of("{}", path), -1);
        assert_int_equal(state_of("", path), -1);
}

static void a_path_of_4095_characters_is_accepted(void **state) {
        char path[OCI_PATH_MAX], want[OCI_PATH_MAX + 1];
        _cleanup_(freep) char *text = xasprintf("{\"bundle\":\"%s\"}", root);
        for (int relative = 0; relative < 2; relative++) {
                for (size_t n = OCI_PATH_MAX - 1; n <= OCI_PATH_MAX; n++) {
                        size_t at = relative ? strlen(root) + 1 : 0;
                        memset(want, 'x', n);
                        want[n] = '\0';
                        if (relative)
                                memcpy(want, root, at - 1);
                        want[at ? at - 1 : 0] = '/';
                        _cleanup_(freep) char *config = xasprintf("{\"root\":{\"path\":\"%s\"}}", want + at);
                        tree_put(root, "config.json", config);
                        assert_int_equal(state_of(text, path), n < OCI_PATH_MAX ? 0 : -1);
                        if (n < OCI_PATH_MAX)
                                assert_string_equal(path, want);
                }
        }
        tree_put(root, "config.json", "{\"root\":{\"path\":\"/\"}}");
        assert_int_equal(state_of(text, path), 0);
        assert_string_equal(path, "/");
        tree_put(root, "config.json", "{\"root\":{\"path\":\"\"}}");
        assert_int_equal(state_of(text, path), -1);
        /* The path of config.json has a character too many. */
        memset(want, '/', OCI_PATH_MAX);
        memcpy(want, root, strlen(root));
        want[OCI_PATH_MAX - strlen("/config.json")] = '\0';
        tree_put(root, "config.jso", "{\"root\":{\"path\":\"/r\"}}");
        _cleanup_(freep) char *other = xasprintf("{\"bundle\":\"%s\"}", want);
        assert_int_equal(state_of(other, path), -1);
}

/* failure: the container runtime's state is too large or cannot be read -> the hook refuses it */
static void a_state_of_up_to_one_MiB_is_read(void **state) {
        char path[OCI_PATH_MAX];
        static char text[OCI_STATE_MAX + 1];
        memset(text, ' ', sizeof text);
        memcpy(text, "{\"root\":\"/r\",\"bundle\":\"/b\"}", strlen("{\"root\":\"/r\",\"bundle\":\"/b\"}"));
        for (size_t n = OCI_STATE_MAX; n <= OCI_STATE_MAX + 1; n++) {
                int fd = memfd_create("state", MFD_CLOEXEC);
                assert_int_equal(write(fd, text, n), n);
                assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
                assert_int_equal(oci_state_root(fd, path), n == OCI_STATE_MAX ? 0 : -1);
                close(fd);
        }
        int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(oci_state_root(folder, path), -1);
        close(folder);
}

static int ends[2];

static void send_state(int signal) {
        static const char text[] = "{\"root\":\"/r\",\"bundle\":\"/b\"}";
        (void)!write(ends[1], text, sizeof text - 1);
        close(ends[1]);
}

static void a_signal_does_not_end_the_read(void **state) {
        char path[OCI_PATH_MAX];
        const struct sigaction send = { .sa_handler = send_state };
        const struct itimerval soon = { .it_value.tv_usec = 50000 };
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(sigaction(SIGALRM, &send, NULL), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
        assert_int_equal(oci_state_root(ends[0], path), 0);
        assert_string_equal(path, "/r");
        close(ends[0]);
        /* An earlier signal does not matter. */
        errno = EINTR;
        assert_int_equal(state_of("{\"root\":\"/r\"}", path), 0);
}

/* failure: the state names the host's root as the container's -> the hook refuses it */
static void the_hosts_root_is_refused_as_a_container_root(void **state) {
        (void)state;
        assert_int_equal(in_root_open("/"), -1);
        assert_int_equal(in_root_open("/proc/self/root"), -1);
        assert_int_equal(in_root_open("relative"), -1);
        assert_int_equal(in_root_open("/nowhere/at/all"), -1);
        int fd = in_root_open(root);
        assert_true(fd >= 0);
        close(fd);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_member_is_found_among_others),
                T(escapes_are_decoded),
                T(a_string_must_fit_with_its_end),
                T(a_text_that_ends_inside_a_value_is_refused),
                T(lists_have_at_most_64_levels),
                T(state_that_is_not_json_is_refused),
                T(the_root_is_read_from_the_bundle),
                T(a_path_of_4095_characters_is_accepted),
                T(a_state_of_up_to_one_MiB_is_read),
                T(a_signal_does_not_end_the_read),
                T(the_hosts_root_is_refused_as_a_container_root),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
