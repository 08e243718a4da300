/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/stderr.h"
#include "nvidia/elf_soname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A file of the driver's root, from which the name of a link is made. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        char name[ELF_SONAME_SIZE];
        struct err e;
        int fd = memfd_create("library", MFD_CLOEXEC);
        BUG_ON(fd < 0 || write(fd, data, n) != (ssize_t)n);
        if (elf_soname(fd, name, &e) == 0)
                BUG_ON(strlen(name) >= sizeof name || strchr(name, '/') || name[0] == '.');
        close(fd);
        return 0;
}
