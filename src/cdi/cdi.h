/* SPDX-License-Identifier: Apache-2.0 */
/* cdi: writes Container Device Interface files (CDI spec 0.5.0, or 0.7.0 if the content needs it). The module
 * puts each file in place with a rename, so that the runtime never reads an incomplete file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct cdi_node {
        const char *path;        /* in the container */
        unsigned major, minor;   /* character device; the node need not exist on the host */
        unsigned mode;           /* permission bits, e.g. 0666 */
        const char *host_path;   /* NULL: the same as path; ignored if type and numbers are given */
        const char *permissions; /* in the container's device cgroup, "rwm"; NULL: the runtime's default */
        unsigned gid;            /* owner in the container; 0: the runtime's default */
};

struct cdi_mount {
        const char *host_path, *container_path;
        const char *const *options; /* NULL-terminated */
};

/* A program of the host that the runtime runs in the container's namespaces before it starts the container's
 * own program. */
struct cdi_hook {
        const char *name;        /* states when the hook runs: "createContainer" */
        const char *path;        /* on the host */
        const char *const *args; /* NULL-terminated, with the program's own name as the first */
        const char *const *env;  /* "K=V", NULL-terminated; NULL or empty: the runtime decides */
};

struct cdi_edits {
        const char *const *env; /* "K=V", NULL-terminated, or NULL */
        const struct cdi_node *nodes;
        size_t n_nodes;
        const struct cdi_mount *mounts;
        size_t n_mounts;
        const struct cdi_hook *hooks; /* they run in this order */
        size_t n_hooks;
        const unsigned *gids; /* additional groups of the container's process; these need CDI 0.7.0 */
        size_t n_gids;
};

struct cdi_device {
        const char *name; /* checked against the CDI device name grammar */
        struct cdi_edits edits;
};

struct cdi_spec {
        const char *kind; /* "vendor/class" */
        const struct cdi_device *devices;
        size_t n_devices;
        struct cdi_edits common; /* containerEdits at the root */
        const char *comment; /* one line for people and for the writer itself, "# ..." at the top of the file,
                                or NULL */
};

/* Returns whether the edits change nothing in a container. */
bool cdi_edits_empty(const struct cdi_edits *ed);

/* Returns the same edits in the order of the Go driver: device nodes and mounts by the depth of their path in
 * the container and then by the path, without duplicates, and without the edits that `common` also contains
 * (NULL: none), unless nothing would be left. New lists are allocated in the arena; the strings are
 * borrowed. */
struct cdi_edits cdi_normalize(const struct cdi_edits *ed, const struct cdi_edits *common, struct arena *a);

/* Returns a deep copy in the arena. */
struct cdi_edits cdi_copy(const struct cdi_edits *ed, struct arena *a);

/* Renders the comment, and then the spec as JSON, which is also YAML that every runtime reads. */
void cdi_render(const struct cdi_spec *s, struct buf *out);

/* Returns "<root>/<vendor>-<class>_<id>.yaml". The Go driver uses the same name, so that an upgrade finds its
 * files. The caller frees the result. */
char *cdi_path(const char *root, const char *kind, const char *id);
/* Returns "<vendor>-<class>_", the prefix of the names of all files of the kind. The caller frees it. */
char *cdi_prefix(const char *kind);

/* Writes a file with fsync and rename. Creates the folder `root` (mode 0750) if it does not exist. The file
 * has mode 0600, because its comment may name a tenant's objects. */
int cdi_write(const char *root, const char *id, const struct cdi_spec *s, struct err *e);
/* Removes a file. A missing file is success. */
int cdi_remove(const char *root, const char *kind, const char *id, struct err *e);
/* Calls fn with the ID of each file of that kind in the folder `root`. */
int cdi_list(const char *root, const char *kind, void (*fn)(void *u, const char *id), void *u, struct err *e);

/* Checks the names in a spec: kind, device names, environment, absolute paths, names of hooks. cdi_write()
 * does this, too. */
int cdi_validate(const struct cdi_spec *s, struct err *e);
