/* SPDX-License-Identifier: Apache-2.0 */
/* note_library: a 64-bit library that contains only a note about CUDA compatibility. */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct note_library {
        Elf64_Ehdr head;
        Elf64_Shdr sections[3];
        char names[64];
        Elf64_Nhdr note;
        char owner[20], text[256];
};

static inline void note_library_make(struct note_library *l, const char *section, const char *owner,
                                     const char *text) {
        *l = (struct note_library){
                .head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
                          .e_shoff = offsetof(struct note_library, sections),
                          .e_shentsize = sizeof(Elf64_Shdr),
                          .e_shnum = 3,
                          .e_shstrndx = 1 },
                .sections = { [1] = { .sh_type = SHT_STRTAB,
                                      .sh_offset = offsetof(struct note_library, names),
                                      .sh_size = sizeof l->names },
                              [2] = { .sh_type = SHT_NOTE,
                                      .sh_name = 1,
                                      .sh_addralign = 4,
                                      .sh_offset = offsetof(struct note_library, note),
                                      .sh_size = sizeof l->note + sizeof l->owner + strlen(text) } },
                .note = { .n_namesz = (Elf64_Word)strlen(owner) + 1, .n_descsz = (Elf64_Word)strlen(text) },
        };
        snprintf(l->names + 1, sizeof l->names - 1, "%s", section);
        snprintf(l->owner, sizeof l->owner, "%s", owner);
        snprintf(l->text, sizeof l->text, "%s", text);
}
