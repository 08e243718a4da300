/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "imex/imex_members.h"

static const struct imex_peer peers[] = { { .index = 1, .ip = "10.0.0.1", .node = "n1" },
                                          { .index = 0, .ip = "", .node = "n0" } };
static const struct imex_members some = { .own_index = 1, .infix = "ab", .peers = peers, .n_peers = 2 };

static void test_saved_members_are_loaded(void **state) {
        char dir[] = "/tmp/test_imex_members.XXXXXX";
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        _cleanup_(freep) char *path = NULL, *text = NULL;
        size_t n;
        struct imex_members *m = NULL;
        struct err e;

        assert_non_null(mkdtemp(dir));
        path = file_join(dir, IMEX_MEMBERS_FILE);
        assert_int_equal(imex_members_load(dir, "me", a, &m, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);

        assert_int_equal(imex_members_save(dir, "me", &some, &e), 0);
        assert_int_equal(file_read(path, 4096, &text, &n, &e), 0);
        assert_string_equal(
                text, "{\"identity\":\"me\",\"index\":1,\"infix\":\"ab\",\"peers\":[{\"index\":1,\"ip\":"
                      "\"10.0.0.1\",\"node\":\"n1\"},{\"index\":0,\"ip\":\"\",\"node\":\"n0\"}"
                      "]}\n");
        assert_int_equal(imex_members_load(dir, "me", a, &m, &e), 0);
        assert_true(imex_members_equal(m, &some));

        /* Another boot, claim or domain: the members must not be used. */
        m = NULL;
        assert_int_equal(imex_members_load(dir, "not me", a, &m, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_null(m);

        assert_int_equal(file_replace_volatile(path, "{\"identity\":", 12, 0644, &e), 0);
        assert_int_equal(imex_members_load(dir, "me", a, &m, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        unlink(path);
        rmdir(dir);
}

static void test_parse_refuses(void **state) {
        static const char *const bad[] = {
                "",
                "{}",
                "{\"identity\":\"me\"}",
                "{\"identity\":\"me\",\"index\":0,\"infix\":\"a\\nb\",\"peers\":[]}",
                "{\"identity\":\"me\",\"index\":0,\"infix\":\"\",\"peers\":[{\"ip\":\"\"}]}",
        };
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct imex_members *m = NULL;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_int_equal(imex_members_parse(str_from(bad[i]), "me", a, &m, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
        }
        assert_int_equal(
                imex_members_parse(STR("{\"identity\":\"me\",\"index\":0,\"infix\":\"\"}"), "me", a, &m, &e),
                0);
        assert_int_equal(m->n_peers, 0);
        for (int n = IMEX_SLOTS_MAX; n <= IMEX_SLOTS_MAX + 1; n++) {
                struct buf b = BUF_INIT(1 << 20);
                buf_adds(&b, "{\"identity\":\"me\",\"index\":0,\"infix\":\"\",\"peers\":[");
                for (int i = 0; i < n; i++)
                        buf_addf(&b, "%s{\"index\":%d,\"ip\":\"\",\"node\":\"\"}", i ? "," : "", i);
                buf_adds(&b, "]}");
                assert_int_equal(imex_members_parse(str_from(buf_str(&b)), "me", a, &m, &e),
                                 n > IMEX_SLOTS_MAX ? -1 : 0);
                buf_done(&b);
        }
}

static void test_copy_and_equal(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct imex_members *c = imex_members_copy(a, &some), d = some;
        struct imex_peer other[2];

        assert_true(imex_members_equal(c, &some));
        assert_ptr_not_equal(c->peers[0].ip, some.peers[0].ip);

        memcpy(other, peers, sizeof other);
        d.peers = other;
        assert_true(imex_members_equal(&d, &some));
        other[1].ip = "10.0.0.2";
        assert_false(imex_members_equal(&d, &some));
        other[1] = peers[1];
        d.infix = NULL;
        assert_false(imex_members_equal(&d, &some));
        d.infix = "ab";
        d.own_index = 0;
        assert_false(imex_members_equal(&d, &some));
        d.own_index = 1;
        d.n_peers = 1;
        assert_false(imex_members_equal(&d, &some));

        d = (struct imex_members){ .own_index = -1 };
        c = imex_members_copy(a, &d);
        assert_true(imex_members_equal(c, &d));
        d.infix = "";
        assert_true(imex_members_equal(c, &d));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_saved_members_are_loaded),
                                            cmocka_unit_test(test_parse_refuses),
                                            cmocka_unit_test(test_copy_and_equal) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
