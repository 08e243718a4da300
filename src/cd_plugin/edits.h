/* SPDX-License-Identifier: Apache-2.0 */
/* edits: makes the CDI edits by which a prepared device changes a container. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "cdi/cdi.h"
#include "nvidia/driver_root.h"

enum { EDITS_CHANNELS_DEFAULT = 2048 };

/* Makes the edits for channels first to first + count - 1. All memory is in the arena. */
void edits_channels(struct arena *a, unsigned major, unsigned first, unsigned count, struct cdi_edits *ret);

/* Returns ImexChannelCount of the NVIDIA driver's parameters, or 2,048 if it is not set. `proc_driver` is
 * "/proc/driver/nvidia", or the folder where that is mounted. */
unsigned edits_channel_count(const char *proc_driver);

struct edits_daemon {
        const char *domain_dir; /* folder on the host; mounted at /imexd */
        const char *cdi_root;   /* folder on the host; mounted read-only at /var/run/cdi, where the daemon
                                   sees which claims are prepared; NULL: not mounted */
        const char *clique_id;  /* "": the node is in no partition, so the daemon idles and needs nothing from
                                   the NVIDIA driver */
        const char *claim_uid;
        /* The ComputeDomain of a daemon of the Go driver. domain_uid NULL: the edits are for our daemon,
         * which does not get its domain and clique ID from the edits. */
        const char *domain_uid, *domain_name, *domain_ns;
        struct driver_root root;
        const char *driver_version;
        const char *dev_root;    /* the folder that holds dev/ while the driver root has none */
        const char *proc_driver; /* holds capabilities/fabric-imex-mgmt */
        unsigned caps_major;     /* the device major of nvidia-caps */
};
/* Makes the edits for a daemon's container. ERR_NOT_FOUND: a part of the NVIDIA driver is missing, but may
 * still appear. ERR_INVALID: a part is unreadable, for example a capability file with invalid content. */
int edits_for_daemon(struct arena *a, const struct edits_daemon *d, struct cdi_edits *ret, struct err *e);
