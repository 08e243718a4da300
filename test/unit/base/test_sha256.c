/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

/* Lengths around the ends of one and two blocks, where the padding differs. */
static void every_length_has_the_sum_of_openssl(void **state) {
        (void)state;
        unsigned char text[300], ours[SHA256_SIZE], theirs[SHA256_DIGEST_LENGTH];
        for (size_t i = 0; i < sizeof text; i++)
                text[i] = (unsigned char)(i * 131 + 7);
        for (size_t n = 0; n <= sizeof text; n++) {
                sha256(text, n, ours);
                SHA256(text, n, theirs);
                assert_memory_equal(ours, theirs, sizeof ours);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_length_has_the_sum_of_openssl) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
