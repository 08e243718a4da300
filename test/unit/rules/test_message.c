/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for conditions and Events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "rules/message.h"

static void a_text_within_the_limit_is_unchanged(void **state) {
        struct arena *a = arena_new(1024);
        char text[MESSAGE_MAX + 1];
        memset(text, 'x', MESSAGE_MAX);
        text[MESSAGE_MAX] = '\0';
        assert_string_equal(message_of(a, "%s", text), text);
        assert_string_equal(message_of(a, "%s of %d", "one", 2), "one of 2");
        arena_free(a);
}

/* failure: a Pod reports a text longer than a message may be -> the message is cut, not empty [tenants] */
static void a_longer_text_is_cut_between_characters(void **state) {
        struct arena *a = arena_new(1024);
        char text[2 * MESSAGE_MAX + 1] = "";
        /* Characters of two bytes, from an even offset and from an odd one. */
        for (size_t i = 0; i < MESSAGE_MAX; i++)
                memcpy(text + 2 * i, "\xc3\xa4", 2);
        for (size_t odd = 0; odd < 2; odd++) {
                const char *m = message_of(a, "%s%s", odd ? "x" : "", text);
                size_t n = strlen(m), kept = n - 3;
                assert_int_equal(n, odd ? MESSAGE_MAX : MESSAGE_MAX - 1);
                assert_string_equal(m + kept, "...");
                assert_memory_equal(m + odd, text, kept - odd);
                assert_int_equal((kept - odd) % 2, 0);
        }
        arena_free(a);
}

/* failure: a tenant's text is cut inside a character -> the message is written once [tenants] */
static void invalid_bytes_are_replaced(void **state) {
        struct arena *a = arena_new(1024);
        assert_string_equal(message_of(a, "%.2s, %s", "a\xc3\xa4", "\xc3\xa4"), "a?, \xc3\xa4");
        assert_string_equal(message_of(a, "%.4s.", "\xf0\x9f\x9a\x80"), "\xf0\x9f\x9a\x80.");
        assert_string_equal(message_of(a, "%.3s.", "\xf0\x9f\x9a\x80"), "???.");
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_text_within_the_limit_is_unchanged),
                cmocka_unit_test(a_longer_text_is_cut_between_characters),
                cmocka_unit_test(invalid_bytes_are_replaced),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
