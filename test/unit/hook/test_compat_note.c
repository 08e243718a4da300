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
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": [/570]}", 570), -1);
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": [:570]}", 570), -1);
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": [0, 570]}", 570), 1);
        assert_int_equal(note_has(SECTION, OWNER, "{\"Driver\": [9, 570]}", 570), 1);
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

static int library_has(const struct note_library *l) {
        return has(l, sizeof *l, 570);
}

/* What an earlier library has left in memory must not count. */
static void remember_a_good_library(struct note_library *ret) {
        note_library_make(ret, SECTION, OWNER, TEXT);
        assert_int_equal(library_has(ret), 1);
}

static void the_name_of_the_section_is_inside_the_names(void **state) {
        struct note_library l;
        remember_a_good_library(&l);
        l.sections[1].sh_size = 1 + sizeof SECTION;
        assert_int_equal(library_has(&l), 1);
        l.sections[1].sh_size--;
        assert_int_equal(library_has(&l), -1);
        l.sections[1].sh_size = 0;
        assert_int_equal(library_has(&l), -1);
}

static void the_note_is_inside_its_section(void **state) {
        struct note_library l;
        remember_a_good_library(&l);
        l.sections[2].sh_size--;
        assert_int_equal(library_has(&l), -1);
        l.sections[2].sh_size = sizeof l.note + sizeof l.owner - 1;
        assert_int_equal(library_has(&l), -1);
        remember_a_good_library(&l);
        l.note.n_namesz = strlen(OWNER); /* without its NUL byte */
        assert_int_equal(library_has(&l), 1);
        l.note.n_namesz--;
        assert_int_equal(library_has(&l), -1);
}

static void a_note_may_be_aligned_to_eight_bytes(void **state) {
        static const char text[] = "    {\"Driver\": [570";
        struct note_library l;
        note_library_make(&l, SECTION, OWNER, text);
        l.note.n_descsz = sizeof text - 1 - 4;
        l.sections[2].sh_addralign = 8;
        assert_int_equal(library_has(&l), 1);
        l.sections[2].sh_addralign = 4;
        assert_int_equal(library_has(&l), -1);
}

/* The first 4096 bytes of a longer note count. */
static void a_note_may_end_with_its_file(void **state) {
        struct {
                struct note_library l;
                char more[8192];
        } x;
        size_t start = offsetof(struct note_library, note);
        memset(&x, 0, sizeof x);
        note_library_make(&x.l, SECTION, OWNER, TEXT);
        for (size_t n = 4095; n <= 4097; n++) {
                x.l.sections[2].sh_size = n;
                assert_int_equal(has(&x, start + n, 570), 1);
        }
}

/* A library whose table has this number of sections, and the names and the note at these places. */
static int table_has(size_t n, size_t names, size_t note, size_t index) {
        struct {
                struct note_library l;
                Elf64_Shdr sections[300];
        } x;
        memset(&x, 0, sizeof x);
        note_library_make(&x.l, SECTION, OWNER, TEXT);
        x.sections[names] = x.l.sections[1];
        x.sections[note] = x.l.sections[2];
        x.l.head.e_shoff = sizeof x.l;
        x.l.head.e_shnum = (Elf64_Half)n;
        x.l.head.e_shstrndx = (Elf64_Half)index;
        return has(&x, sizeof x, 570);
}

static void the_table_has_at_most_256_sections(void **state) {
        assert_int_equal(table_has(4, 3, 2, 3), 1);
        assert_int_equal(table_has(3, 3, 2, 3), -1);
        assert_int_equal(table_has(4, 2, 3, 2), 1);
        assert_int_equal(table_has(3, 2, 3, 2), -1);
        assert_int_equal(table_has(256, 254, 255, 254), 1);
        assert_int_equal(table_has(256, 254, 256, 254), -1);
        assert_int_equal(table_has(257, 254, 255, 254), -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_drivers_of_the_list_are_supported),
                cmocka_unit_test(a_note_without_a_list_is_ignored),
                cmocka_unit_test(a_truncated_or_foreign_file_is_ignored),
                cmocka_unit_test(the_name_of_the_section_is_inside_the_names),
                cmocka_unit_test(the_note_is_inside_its_section),
                cmocka_unit_test(a_note_may_be_aligned_to_eight_bytes),
                cmocka_unit_test(a_note_may_end_with_its_file),
                cmocka_unit_test(the_table_has_at_most_256_sections),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
