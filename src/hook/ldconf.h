/* SPDX-License-Identifier: Apache-2.0 */
/* ldconf: reads the loader's configuration of a container: ld.so.conf and the files that it includes. An
 * image or another container wrote it, so it is untrusted. Fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LDCONF_FILES_MAX = 64, LDCONF_FILE_BYTES = 65536 };

/* The folders to find, and the result. */
struct ldconf {
        const char *const *folders;
        size_t n_folders;
        bool *known;         /* for each folder: the configuration has it */
        bool includes_files; /* it includes the files in /etc/ld.so.conf.d */
        unsigned n_files;    /* files read */
};

/* Pure. Parses the text of one file. Calls `include` with each pattern, as an absolute path. */
typedef void(ldconf_include_fn)(void *u, const char *pattern);
void ldconf_parse(struct ldconf *c, const char *text, size_t n, ldconf_include_fn *include, void *u);

/* Reads /etc/ld.so.conf below a root and its includes. A file that cannot be read counts as missing. */
void ldconf_read(struct ldconf *c, int root);
