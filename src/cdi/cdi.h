/* SPDX-License-Identifier: Apache-2.0 */
/* cdi: Container Device Interface files (CDI spec 0.5.0), written by rename so that the runtime never reads
 * half a file. */
#ifndef CDI_CDI_H
#define CDI_CDI_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct cdi_node {
        const char *path;      /* in the container; also the hostPath field */
        unsigned major, minor; /* character device; the node need not exist on the host */
        unsigned mode;         /* permission bits, e.g. 0666 */
};

struct cdi_mount {
        const char *host_path, *container_path;
        const char *const *options; /* NULL-terminated */
};

struct cdi_edits {
        const char *const *env; /* "K=V", NULL-terminated or NULL */
        const struct cdi_node *nodes;
        size_t n_nodes;
        const struct cdi_mount *mounts;
        size_t n_mounts;
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

/* Renders as JSON, a form of YAML that every runtime reads, behind the comment. */
void cdi_render(const struct cdi_spec *s, struct buf *out);

/* "<root>/<vendor>-<class>_<id>.yaml", caller frees: the name that the reference driver uses, so that an
 * upgrade finds its files. */
char *cdi_path(const char *root, const char *kind, const char *id);
/* "<vendor>-<class>_", with which the names of all files of the kind begin; caller frees. */
char *cdi_prefix(const char *kind);

/* Makes root (0750) if missing, then writes mode 0600 with fsync and rename. */
int cdi_write(const char *root, const char *id, const struct cdi_spec *s, struct err *e);
/* A missing file is success. */
int cdi_remove(const char *root, const char *kind, const char *id, struct err *e);
/* Calls fn with the id of each file of that kind in root. */
int cdi_list(const char *root, const char *kind, void (*fn)(void *u, const char *id), void *u, struct err *e);

/* Checks the names in a spec: kind, device names, environment, absolute paths. cdi_write does it too. */
int cdi_validate(const struct cdi_spec *s, struct err *e);

#endif
