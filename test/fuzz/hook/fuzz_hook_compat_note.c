/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/stderr.h"
#include "hook/compat_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        int fd = memfd_create("library", MFD_CLOEXEC);
        BUG_ON(fd < 0 || write(fd, data, n) != (ssize_t)n);
        int r = compat_note_has(fd, 570);
        if (r >= 0)
                BUG_ON(!memmem(data, n, "\"Driver\"", 8));
        if (r > 0)
                BUG_ON(!memmem(data, n, "570", 3));
        close(fd);
        return 0;
}
