/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/elf_soname.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { SEGMENTS_MAX = 64, ENTRIES_MAX = 4096 };

/* Reads the file in pieces and never maps it: truncating a mapped file kills the process that reads it. */
static int elf_soname_read_at(int fd, uint64_t at, void *to, size_t n, struct err *e) {
        size_t got = 0;
        while (got < n) {
                if (at > INT64_MAX - n)
                        return err_set(e, ERR_INVALID, 0, "an offset is out of range");
                ssize_t r = pread(fd, (char *)to + got, n - got, (off_t)(at + got));
                if (r < 0 && errno == EINTR)
                        continue;
                if (r < 0)
                        return err_errno(e, errno, "read");
                if (r == 0)
                        return err_set(e, ERR_INVALID, 0, "it ends too early");
                got += (size_t)r;
        }
        return 0;
}

struct image {
        int fd;
        Elf64_Phdr segments[SEGMENTS_MAX];
        size_t n;
};

static int read_segments(struct image *m, struct err *e) {
        Elf64_Ehdr h;
        if (elf_soname_read_at(m->fd, 0, &h, sizeof h, e) < 0)
                return -1;
        if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
            h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_phentsize != sizeof(Elf64_Phdr) ||
            h.e_phnum > SEGMENTS_MAX)
                return err_set(e, ERR_INVALID, 0, "it is not a 64-bit library");
        m->n = h.e_phnum;
        return elf_soname_read_at(m->fd, h.e_phoff, m->segments, m->n * sizeof *m->segments, e);
}

/* Converts an address of the loaded library to an offset in the file. */
static bool offset_of(const struct image *m, uint64_t address, uint64_t *ret) {
        for (size_t i = 0; i < m->n; i++) {
                const Elf64_Phdr *s = &m->segments[i];
                if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz &&
                    s->p_offset <= INT64_MAX - s->p_filesz) {
                        *ret = s->p_offset + (address - s->p_vaddr);
                        return true;
                }
        }
        return false;
}

static const Elf64_Phdr *dynamic(const struct image *m) {
        for (size_t i = 0; i < m->n; i++) {
                if (m->segments[i].p_type == PT_DYNAMIC)
                        return &m->segments[i];
        }
        return NULL;
}

/* The name becomes the name of a link in the library's folder. */
static bool is_file_name(const char *s) {
        bool ok = *s && *s != '.';
        for (; *s; s++)
                ok = ok && *s > ' ' && *s < 0x7f && *s != '/';
        return ok;
}

static int read_name(const struct image *m, uint64_t at, char ret[static ELF_SONAME_SIZE], struct err *e) {
        ssize_t n = pread(m->fd, ret, ELF_SONAME_SIZE, (off_t)at);
        if (n < 0)
                return err_errno(e, errno, "read");
        if (!memchr(ret, '\0', (size_t)n))
                return err_set(e, ERR_INVALID, 0, "its name has no end within %d bytes", ELF_SONAME_SIZE);
        return is_file_name(ret) ? 0 : err_set(e, ERR_INVALID, 0, "its name is not a valid file name");
}

static int find_name(const struct image *m, char ret[static ELF_SONAME_SIZE], struct err *e) {
        const Elf64_Phdr *d = dynamic(m);
        uint64_t strings = 0, name = 0, at;
        bool named = false;
        for (size_t i = 0; d && i < ENTRIES_MAX && i < d->p_filesz / sizeof(Elf64_Dyn); i++) {
                Elf64_Dyn entry;
                if (elf_soname_read_at(m->fd, d->p_offset + i * sizeof entry, &entry, sizeof entry, e) < 0)
                        return err_wrap(e, "its dynamic section");
                if (entry.d_tag == DT_NULL)
                        break;
                if (entry.d_tag == DT_STRTAB)
                        strings = entry.d_un.d_ptr;
                if (entry.d_tag == DT_SONAME) {
                        name = entry.d_un.d_val;
                        named = true;
                }
        }
        if (!named)
                return 0;
        if (name > UINT32_MAX || strings > INT64_MAX || !offset_of(m, strings + name, &at))
                return err_set(e, ERR_INVALID, 0, "its name is not in the file");
        return read_name(m, at, ret, e);
}

int elf_soname(int fd, char ret[static ELF_SONAME_SIZE], struct err *e) {
        struct image m = { .fd = fd };
        char name[ELF_SONAME_SIZE] = "";
        if (read_segments(&m, e) < 0 || find_name(&m, name, e) < 0)
                return -1;
        memcpy(ret, name, sizeof name);
        return 0;
}
