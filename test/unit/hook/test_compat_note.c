/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hook/compat_note.h"
#include "note_library.h"

#define SECTION ".note.cuda.fwd_compatibility"
#define OWNER "NVIDIA Corporation"
/* The note of cuda-compat 13.1. */
#define TEXT                                                                                                 \
        "{\"Format\": 1, \"CUDA Version\": \"13.1\", \"Driver\": [535, 550, 570, 575, 580, 590], "           \
        "\"Device\": [1, 2, 7, 565]}"

static int has(const void *data, size_t n, unsigned long driver) {
        int fd = memfd_create("library", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, n), n);
        int r = compat_note_has(fd, driver);
        close(fd);
        return r;
}

static int note_has(const char *section, const char *owner, const char *text, unsigned long driver) {
        struct note_library l;
        note_library_make(&l, section, owner, text);
        return has(&l, sizeof l, driver);
}

/* failure: a CUDA compatibility library does not support the driver -> it is not used */
static void only_the_drivers_of_the_list_are_supported(void **state) {
        (void)state;
        assert_int_equal(note_has(SECTION, OWNER, TEXT, 570), 1);
        assert_int_equal(note_has(SECTION, OWNER, TEXT, 535), 1);
        assert_int_equal(note_has(SECTION, OWNER, TEXT, 590), 1);
        assert_int_equal(note_has(SECTION, OWNER, TEXT, 565), 0); /* a device, not a driver */
        assert_int_equal(note_has(SECTION, OWNER, TEXT, 57), 0);
}

/* failure: a compatibility library does not list drivers -> its note is ignored */
static void a_note_without_a_list_is_ignored(void **state) {
        (void)state;
        assert_int_equal(note_has(SECTION, OWNER, "{\"Format\": 1}", 570), -1);
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": []}", 570), -1);
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": \"570\"}", 570), -1);
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": [", 570), -1);
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": [535, ", 570), 0);
        assert_int_equal(note_has(SECTION, "NVIDIA Corporal", TEXT, 570), -1);
        assert_int_equal(note_has(".note.other", OWNER, TEXT, 570), -1);
}

/* failure: a CUDA compatibility library is truncated or foreign -> it is ignored */
static void a_truncated_or_foreign_file_is_ignored(void **state) {
        (void)state;
        struct note_library l;
        note_library_make(&l, SECTION, OWNER, TEXT);
        for (size_t n = 0; n < offsetof(struct note_library, text); n++)
                assert_int_equal(has(&l, n, 570), -1);
        l.note.n_descsz = UINT32_MAX;
        assert_int_equal(has(&l, sizeof l, 570), -1);
        note_library_make(&l, SECTION, OWNER, TEXT);
        l.note.n_namesz = UINT32_MAX;
        assert_int_equal(has(&l, sizeof l, 570), -1);
        note_library_make(&l, SECTION, OWNER, TEXT);
        l.sections[1].sh_offset = UINT64_MAX;
        assert_int_equal(has(&l, sizeof l, 570), -1);
        note_library_make(&l, SECTION, OWNER, TEXT);
        l.head.e_shstrndx = 3;
        assert_int_equal(has(&l, sizeof l, 570), -1);
        note_library_make(&l, SECTION, OWNER, TEXT);
        l.head.e_ident[EI_CLASS] = ELFCLASS32;
        assert_int_equal(has(&l, sizeof l, 570), -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_drivers_of_the_list_are_supported),
                cmocka_unit_test(a_note_without_a_list_is_ignored),
                cmocka_unit_test(a_truncated_or_foreign_file_is_ignored),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
