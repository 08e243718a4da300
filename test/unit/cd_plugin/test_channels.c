/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cd_plugin/channel_nodes.h"
#include "tree.h"

static void channels_are_character_devices_in_the_order_of_their_numbers(void **state) {
        char *root = tree_new();
        static const char *const names[] = { "channel10", "channel2", "channel", "channelx" };
        struct buf out = BUF_INIT(4096);
        struct err e;
        /* Only root can make device nodes. */
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s", root, names[i]);
                assert_int_equal(symlink("/dev/null", path), 0);
        }
        tree_put(root, "channel7", "a file");
        if (channel_nodes_list(root, &out, &e) < 0)
                fail_msg("%s", e.msg);
        _cleanup_(freep) char *want = xasprintf("%s/channel2: character device 1:3\n"
                                                "%s/channel10: character device 1:3\n",
                                                root, root);
        assert_string_equal(buf_str(&out), want);
        buf_done(&out);
        tree_remove(root);
}

static void without_a_channel_the_error_names_the_likely_cause(void **state) {
        char *root = tree_new();
        _cleanup_(freep) char *missing = xasprintf("%s/missing", root);
        struct buf out = BUF_INIT(4096);
        struct err e;
        assert_int_equal(channel_nodes_list(root, &out, &e), -1);
        assert_non_null(strstr(e.msg, "does this container have a claim"));
        assert_int_equal(channel_nodes_list(missing, &out, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(out.n, 0);
        buf_done(&out);
        tree_remove(root);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(channels_are_character_devices_in_the_order_of_their_numbers),
                cmocka_unit_test(without_a_channel_the_error_names_the_likely_cause),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
