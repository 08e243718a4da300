/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/compat_note.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTIONS_MAX = 256, NOTE_MAX = 4096 };

static const char section_name[] = ".note.cuda.fwd_compatibility", owner[] = "NVIDIA Corporation";

static bool compat_note_read_at(int fd, uint64_t at, void *to, size_t n) {
        return at <= INT64_MAX - n && pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

/* ---- the section ---- */

static bool is_named(int fd, const Elf64_Shdr *names, uint32_t at) {
        char name[sizeof section_name];
        return at <= names->sh_size && sizeof name <= names->sh_size - at &&
               names->sh_offset <= UINT64_MAX - at &&
               compat_note_read_at(fd, names->sh_offset + at, name, sizeof name) &&
               memcmp(name, section_name, sizeof name) == 0;
}

static bool find_section(int fd, Elf64_Shdr *ret) {
        static Elf64_Shdr sections[SECTIONS_MAX];
        Elf64_Ehdr h;
        if (!compat_note_read_at(fd, 0, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
            h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
            h.e_shentsize != sizeof *sections || h.e_shnum > SECTIONS_MAX || h.e_shstrndx >= h.e_shnum ||
            !compat_note_read_at(fd, h.e_shoff, sections, h.e_shnum * sizeof *sections))
                return false;
        for (size_t i = 0; i < h.e_shnum; i++) {
                *ret = sections[i];
                if (ret->sh_type == SHT_NOTE && is_named(fd, &sections[h.e_shstrndx], ret->sh_name))
                        return true;
        }
        return false;
}

/* Reads the text of the note and terminates it. */
static bool read_note(int fd, const Elf64_Shdr *section, char ret[static NOTE_MAX + 1]) {
        static char data[NOTE_MAX];
        Elf64_Nhdr h;
        size_t size = section->sh_size < NOTE_MAX ? (size_t)section->sh_size : NOTE_MAX;
        size_t align = section->sh_addralign == 8 ? 8 : 4;
        if (size < sizeof h || !compat_note_read_at(fd, section->sh_offset, data, size))
                return false;
        memcpy(&h, data, sizeof h);
        size_t at = sizeof h + ((h.n_namesz + align - 1) & ~(align - 1));
        if (h.n_namesz < strlen(owner) || at > size || h.n_descsz > size - at ||
            memcmp(data + sizeof h, owner, strlen(owner)) != 0)
                return false;
        memcpy(ret, data + at, h.n_descsz);
        ret[h.n_descsz] = '\0';
        return true;
}

/* ---- the list ---- */

static const char *compat_note_skip_blanks(const char *p) {
        return p + strspn(p, " \t\r\n");
}

/* Returns the text behind the "[" of the list; NULL: there is no list. */
static const char *find_list(const char *text) {
        static const char member[] = "\"Driver\"";
        const char *p = strstr(text, member);
        p = p ? compat_note_skip_blanks(p + strlen(member)) : NULL;
        p = p && *p == ':' ? compat_note_skip_blanks(p + 1) : NULL;
        return p && *p == '[' ? p + 1 : NULL;
}

static int list_has(const char *p, unsigned long driver) {
        bool any = false;
        for (;;) {
                char *end;
                p = compat_note_skip_blanks(p);
                if (*p < '0' || *p > '9')
                        return any ? 0 : -1; /* an empty list counts as none */
                if (strtoul(p, &end, 10) == driver)
                        return 1;
                any = true;
                p = compat_note_skip_blanks(end);
                if (*p++ != ',')
                        return 0;
        }
}

int compat_note_has(int fd, unsigned long driver) {
        static char text[NOTE_MAX + 1];
        Elf64_Shdr section;
        if (!find_section(fd, &section) || !read_note(fd, &section, text))
                return -1;
        const char *list = find_list(text);
        return list ? list_has(list, driver) : -1;
}
