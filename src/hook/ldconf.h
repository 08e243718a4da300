/* SPDX-License-Identifier: Apache-2.0 */
/* ldconf: the loader's configuration of a container (ld.so.conf and what it includes): what an image or
 * another container has written. Fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LDCONF_FILES_MAX = 64, LDCONF_FILE_BYTES = 65536 };

/* What is being looked for, and what is found. */
struct ldconf {
        const char *const *folders;
        size_t n_folders;
        bool *known;         /* for each folder: the configuration has it */
        bool includes_files; /* it includes the files in /etc/ld.so.conf.d */
        unsigned n_files;    /* that were read */
};

/* Pure. The text of one file; `include` is called with each pattern, made absolute. */
typedef void(ldconf_include_fn)(void *u, const char *pattern);
void ldconf_parse(struct ldconf *c, const char *text, size_t n, ldconf_include_fn *include, void *u);

/* /etc/ld.so.conf below a root, with what it includes. What cannot be read is not there. */
void ldconf_read(struct ldconf *c, int root);
