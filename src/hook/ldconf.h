/* SPDX-License-Identifier: Apache-2.0 */
/* ldconf: reads the loader's configuration of a container: ld.so.conf and the files that it includes. These
 * files come from an image or were written in a container, so they are untrusted. Fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LDCONF_FILES_MAX = 64, LDCONF_FILE_BYTES = 65536 };

/* The folders to search for in the configuration, and the result. */
struct ldconf {
        const char *const *folders;
        size_t n_folders;
        bool *known;         /* for each folder: the configuration lists it */
        bool includes_files; /* the configuration includes the files in /etc/ld.so.conf.d */
        unsigned n_files;    /* number of files read so far */
};

/* Parses the text of one file. Calls `include` with each include pattern, as an absolute path. Pure. */
typedef void(ldconf_include_fn)(void *u, const char *pattern);
void ldconf_parse(struct ldconf *c, const char *text, size_t n, ldconf_include_fn *include, void *u);

/* Reads /etc/ld.so.conf below a root and its includes. A file that cannot be read counts as missing. */
void ldconf_read(struct ldconf *c, int root);
