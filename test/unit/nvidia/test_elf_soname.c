/* SPDX-License-Identifier: Apache-2.0 */
/* Names of libraries in files that each differ from a valid one in one place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "nvidia/elf_soname.h"

enum { SEGMENTS = 64, ENTRIES = 4097, STRINGS_SIZE = 256, BASE = 0x10000 /* the address of `strings` */ };

/* A library with a segment that is loaded, which contains the strings, and a dynamic section. The segments
 * are at the end of the file. */
static struct library {
        Elf64_Ehdr h;
        char strings[STRINGS_SIZE];
        Elf64_Dyn dynamic[ENTRIES];
        Elf64_Phdr segments[SEGMENTS + 1];
} lib;
static Elf64_Phdr *const load = &lib.segments[0], *const dynamic = &lib.segments[1];
static size_t size;
static char name[ELF_SONAME_SIZE];
static struct err e;

/* The call of pread() that fails, from 1; 0: none. */
static struct {
        unsigned at, n;
        int with;
} fails;

ssize_t __real_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at) {
        if (++fails.n != fails.at)
                return __real_pread64(fd, to, n, at);
        errno = fails.with;
        return -1;
}

static void set_segments(size_t n) {
        lib.h.e_phnum = (Elf64_Half)n;
        size = offsetof(struct library, segments) + n * sizeof *lib.segments;
}

static int setup(void **state) {
        lib = (struct library){
                .h = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_phoff = offsetof(struct library, segments) },
                .strings = "?libx.so.1",
                .dynamic = { { DT_STRTAB, { BASE } }, { DT_SONAME, { 1 } } },
                .segments = { { .p_type = PT_LOAD,
                                .p_vaddr = BASE,
                                .p_offset = offsetof(struct library, strings),
                                .p_filesz = STRINGS_SIZE },
                              { .p_type = PT_DYNAMIC,
                                .p_offset = offsetof(struct library, dynamic),
                                .p_filesz = 3 * sizeof(Elf64_Dyn) } },
        };
        set_segments(2);
        memset(&e, 'x', sizeof e); /* as in memory that nobody has set */
        memset(&fails, 0, sizeof fails);
        return 0;
}

/* The name; "invalid" with e: the file is refused; "unreadable" with e: it cannot be read. */
static const char *soname(void) {
        _cleanup_(closep) int fd = memfd_create("lib", MFD_CLOEXEC);
        assert_int_equal(write(fd, &lib, size), size);
        fails.n = 0;
        errno = EINTR; /* of an earlier call */
        return elf_soname(fd, name, &e) == 0 ? name : e.kind == ERR_INVALID ? "invalid" : "unreadable";
}

#define assert_name(text) assert_string_equal(soname(), text)
#define assert_invalid(why)                                                                                  \
        do {                                                                                                 \
                assert_string_equal(soname(), "invalid");                                                    \
                assert_string_equal(e.msg, why);                                                             \
        } while (0)

static void a_file_that_ends_inside_its_segments_is_refused(void **state) {
        assert_name("libx.so.1");
        size--;
        assert_invalid("it ends too early");
}

/* failure: a read of a library fails or is interrupted -> the error is reported, or the read is repeated */
static void a_failed_read_is_an_error(void **state) {
        assert_name("libx.so.1");
        unsigned n = fails.n; /* the last read is the name */
        assert_int_equal(n, 6);
        for (fails.at = 1; fails.at <= n; fails.at++) {
                fails.with = EIO;
                assert_string_equal(soname(), "unreadable");
                assert_int_equal(e.code, EIO);
                if (fails.at == n)
                        break;
                fails.with = EINTR;
                assert_string_equal(soname(), "libx.so.1");
        }
}

static void a_library_has_at_most_64_segments(void **state) {
        set_segments(SEGMENTS);
        assert_name("libx.so.1");
        lib.segments[SEGMENTS - 1] = *dynamic; /* the last one is read, too */
        dynamic->p_type = PT_NULL;
        assert_name("libx.so.1");
        lib.segments[SEGMENTS - 1].p_type = PT_LOAD;
        assert_name("");
        set_segments(SEGMENTS + 1);
        assert_invalid("it is not a 64-bit library");
}

static void the_header_must_be_that_of_a_64_bit_library(void **state) {
        const Elf64_Ehdr good = lib.h;
        lib.h.e_ident[EI_CLASS] = ELFCLASS32;
        assert_invalid("it is not a 64-bit library");
        lib.h = good;
        lib.h.e_ident[EI_DATA] = ELFDATA2MSB;
        assert_invalid("it is not a 64-bit library");
        lib.h = good;
        lib.h.e_phentsize--;
        assert_invalid("it is not a 64-bit library");
        for (size_t i = 0; i < SELFMAG; i++) {
                lib.h = good;
                lib.h.e_ident[i]++;
                assert_invalid("it is not a 64-bit library");
                lib.h.e_ident[i] = (unsigned char)(lib.h.e_ident[i] - 2);
                assert_invalid("it is not a 64-bit library");
        }
}

/* failure: a library's tables have offsets beyond any file -> the library is refused */
static void an_offset_beyond_any_file_is_refused(void **state) {
        static const uint64_t offsets[] = { INT64_MAX - 2 * sizeof(Elf64_Phdr) + 1, INT64_MAX,
                                            UINT64_C(1) << 63, UINT64_MAX };
        lib.h.e_phoff = offsets[0] - 1;
        assert_invalid("it ends too early");
        for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
                setup(state);
                lib.h.e_phoff = offsets[i];
                assert_invalid("an offset is out of range");
                setup(state);
                dynamic->p_offset = offsets[i];
                if (offsets[i] > INT64_MAX - sizeof(Elf64_Dyn))
                        assert_invalid("its dynamic section: an offset is out of range");
        }
}

static void the_name_is_in_a_loaded_segment(void **state) {
        load->p_vaddr = BASE + 1; /* begins with the name */
        load->p_offset++;
        assert_name("libx.so.1");
        load->p_vaddr = BASE + 2;
        assert_invalid("its name is not in the file");
        load->p_vaddr = BASE;
        load->p_offset--;
        load->p_filesz = 2; /* ends with the first character of the name */
        assert_name("libx.so.1");
        load->p_filesz = 1;
        assert_invalid("its name is not in the file");
        load->p_filesz = STRINGS_SIZE;
        set_segments(3);
        lib.segments[2] = *load;
        load->p_type = PT_NOTE;
        assert_name("libx.so.1"); /* in the last segment */
        lib.segments[2].p_type = PT_NOTE;
        assert_invalid("its name is not in the file");
}

static void the_dynamic_section_ends_with_its_segment_or_a_null_entry(void **state) {
        dynamic->p_filesz = 2 * sizeof(Elf64_Dyn);
        assert_name("libx.so.1");
        dynamic->p_filesz = sizeof(Elf64_Dyn);
        assert_name("");
        dynamic->p_filesz = 4 * sizeof(Elf64_Dyn);
        lib.dynamic[3] = lib.dynamic[1];
        lib.dynamic[1] = (Elf64_Dyn){ DT_NULL, { 0 } };
        assert_name("");
        lib.dynamic[1].d_tag = DT_NEEDED;
        lib.dynamic[2].d_tag = DT_RPATH;
        assert_name("libx.so.1");
}

static void at_most_4096_entries_are_read(void **state) {
        dynamic->p_filesz = sizeof lib.dynamic;
        for (size_t i = 2; i < ENTRIES; i++)
                lib.dynamic[i].d_tag = DT_NEEDED;
        lib.dynamic[ENTRIES - 2] = lib.dynamic[1];
        lib.dynamic[1].d_tag = DT_NEEDED;
        assert_name("libx.so.1");
        lib.dynamic[ENTRIES - 1] = lib.dynamic[ENTRIES - 2];
        lib.dynamic[ENTRIES - 2].d_tag = DT_NEEDED;
        assert_name("");
}

static void the_largest_addresses_are_read(void **state) {
        lib.dynamic[0].d_un.d_ptr = INT64_MAX;
        load->p_vaddr = INT64_MAX;
        assert_name("libx.so.1");
        lib.dynamic[0].d_un.d_ptr++;
        load->p_vaddr++;
        assert_invalid("its name is not in the file");
        lib.dynamic[0].d_un.d_ptr = BASE;
        lib.dynamic[1].d_un.d_val = UINT32_MAX;
        load->p_vaddr = BASE + (uint64_t)UINT32_MAX - 1;
        assert_name("libx.so.1");
        lib.dynamic[1].d_un.d_val++;
        load->p_vaddr++;
        assert_invalid("its name is not in the file");
}

/* failure: a library's name is not a valid file name -> the library is refused */
static void a_name_is_the_name_of_a_file(void **state) {
        static const char *const good[] = { "!", "~", "a.b", "a0" }, *const bad[] = { "",      ".",   ".a",
                                                                                      "a/b",   "a b", "a\x7f",
                                                                                      "a\x1f", "\x80" };
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                strcpy(lib.strings + 1, good[i]);
                assert_name(good[i]);
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                strcpy(lib.strings + 1, bad[i]);
                assert_invalid("its name is not a valid file name");
        }
}

static void a_name_has_at_most_255_bytes(void **state) {
        load->p_offset = offsetof(struct library, dynamic) + 64;
        lib.dynamic[0].d_un.d_ptr = BASE - 1;
        char *text = (char *)lib.dynamic + 64;
        memset(text, 'a', ELF_SONAME_SIZE - 1);
        assert_int_equal(strlen(soname()), ELF_SONAME_SIZE - 1);
        text[ELF_SONAME_SIZE - 1] = 'a';
        assert_invalid("its name has no end within 256 bytes");
        load->p_offset = size; /* the file ends before it */
        assert_invalid("its name has no end within 256 bytes");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_file_that_ends_inside_its_segments_is_refused, setup),
                cmocka_unit_test_setup(a_failed_read_is_an_error, setup),
                cmocka_unit_test_setup(a_library_has_at_most_64_segments, setup),
                cmocka_unit_test_setup(the_header_must_be_that_of_a_64_bit_library, setup),
                cmocka_unit_test_setup(an_offset_beyond_any_file_is_refused, setup),
                cmocka_unit_test_setup(the_name_is_in_a_loaded_segment, setup),
                cmocka_unit_test_setup(the_dynamic_section_ends_with_its_segment_or_a_null_entry, setup),
                cmocka_unit_test_setup(at_most_4096_entries_are_read, setup),
                cmocka_unit_test_setup(the_largest_addresses_are_read, setup),
                cmocka_unit_test_setup(a_name_is_the_name_of_a_file, setup),
                cmocka_unit_test_setup(a_name_has_at_most_255_bytes, setup),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
