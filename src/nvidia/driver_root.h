/* SPDX-License-Identifier: Apache-2.0 */
/* driver_root: finds the NVIDIA driver's files below a root folder.
 *
 * A root has two names: the host's path, and the path in our container. The search uses the container's path,
 * and results contain both. Symbolic links are resolved inside the root: an absolute link is relative to the
 * root, and no link leads out of it. Only regular files are found. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct driver_root {
        const char *host; /* "/run/nvidia/driver" */
        const char *here; /* "/driver-root" */
};

struct driver_file {
        const char *here;   /* the path in our container */
        const char *host;   /* the path on the host, for CDI mounts */
        const char *inside; /* the requested path below the root, e.g. "/usr/bin/nvidia-imex": where a
                               container expects it */
};

/* Returns true if the root contains dev/, as that of a driver container does. It may appear or vanish with
 * the driver container. */
bool driver_root_has_dev(const struct driver_root *r);

/* Find a library or a program by its name. All memory is allocated in the arena. ERR_NOT_FOUND: the message
 * names the file and the folders that were searched. After any other error (a folder that may not be entered,
 * no descriptor left) it is unknown whether the file exists. */
int driver_root_find_library(const struct driver_root *r, const char *name, struct arena *a,
                             struct driver_file *ret, struct err *e);
int driver_root_find_binary(const struct driver_root *r, const char *name, struct arena *a,
                            struct driver_file *ret, struct err *e);

/* Reads a regular file at a path below the root, at most `limit` bytes. The caller frees the text. */
int driver_root_read(const struct driver_root *r, const char *path, size_t limit, char **ret, size_t *ret_n,
                     struct err *e);

/* A list of libraries, sorted by `inside`: libnvidia-ml.so.1 and, from its folder, each library
 * *.so.<version> and each link to such a library under the name that programs load (libcuda.so.1). Each can
 * be mounted from `host` at `inside`. The `host` of a link is its target. */
struct driver_files {
        struct driver_file *items;
        size_t n;
};
int driver_root_list_libraries(const struct driver_root *r, const char *version, struct arena *a,
                               struct driver_files *ret, struct err *e);
