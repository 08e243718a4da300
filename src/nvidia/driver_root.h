/* SPDX-License-Identifier: Apache-2.0 */
/* driver_root: finding the NVIDIA driver's files below a root folder (reference section 7.2).
 *
 * A root has two names: on the host, and as seen from our container. Searches go to the container's name and
 * results carry both. Links are resolved inside the root (an absolute link is relative to the root and cannot
 * leave it); only regular files count. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct driver_root {
        const char *host; /* "/run/nvidia/driver" */
        const char *here; /* "/driver-root" */
};

struct driver_file {
        const char *here;   /* readable by us */
        const char *host;   /* for CDI mounts */
        const char *inside; /* the path below the root that was asked for, e.g. "/usr/bin/nvidia-imex": where
                               a container expects it */
};

/* All memory in the arena. ERR_NOT_FOUND names the file and the folders searched; other errors (a folder that
 * may not be entered, no descriptor left) mean that nobody knows. */
int driver_root_find_library(const struct driver_root *r, const char *name, struct arena *a,
                             struct driver_file *ret, struct err *e);
int driver_root_find_binary(const struct driver_root *r, const char *name, struct arena *a,
                            struct driver_file *ret, struct err *e);

/* The text of a regular file at a path below the root, at most `limit` bytes; the caller frees it. */
int driver_root_read(const struct driver_root *r, const char *path, size_t limit, char **ret, size_t *ret_n,
                     struct err *e);

/* The files beside libnvidia-ml.so.1 that are the library *.so.<version> or a link to one under the name that
 * programs ask for (libcuda.so.1), and libnvidia-ml.so.1 itself, sorted by `inside`. Each can be mounted from
 * `host` at `inside`; a link's `host` is what it leads to. */
struct driver_files {
        struct driver_file *items;
        size_t n;
};
int driver_root_list_libraries(const struct driver_root *r, const char *version, struct arena *a,
                               struct driver_files *ret, struct err *e);
