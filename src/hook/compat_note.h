/* SPDX-License-Identifier: Apache-2.0 */
/* compat_note: which drivers a CUDA compatibility library is for, by its ELF note: the section
 * .note.cuda.fwd_compatibility, whose owner is "NVIDIA Corporation", and whose content is a JSON object with
 * the list "Driver" of the first numbers of drivers' versions: {"Driver": [535, 550, 570]}. (As NVIDIA's
 * container toolkit reads it since 1.20; see cmd/nvidia-cdi-hook/cudacompat there.) The library is a file of
 * an image. Fuzzed. */
#pragma once

/* Of a library of 64 bits that is open for reading. 1: the list has that number; 0: it does not; -1:
 * there is no such list, or the file is no such library. */
int compat_note_has(int fd, unsigned long driver);
