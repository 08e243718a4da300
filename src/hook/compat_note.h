/* SPDX-License-Identifier: Apache-2.0 */
/* compat_note: finds the drivers that a CUDA compatibility library supports, by its ELF note: the section
 * .note.cuda.fwd_compatibility with the owner "NVIDIA Corporation". Its content is a JSON object with the
 * list "Driver" of the major versions of drivers: {"Driver": [535, 550, 570]}. NVIDIA's container toolkit
 * reads this list since 1.20 (cmd/nvidia-cdi-hook/cudacompat). The library comes from an image, so it is
 * untrusted. Fuzzed. */
#pragma once

/* Searches the list for a major version of the driver. `fd` is a 64-bit library, open for reading. Returns 1
 * if the list contains that version, 0 if it does not, and -1 if there is no such list or the file is not
 * such a library. */
int compat_note_has(int fd, unsigned long driver);
