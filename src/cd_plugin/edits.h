/* SPDX-License-Identifier: Apache-2.0 */
/* edits: the CDI edits by which a prepared device changes a container. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "cdi/cdi.h"
#include "nvidia/driver_root.h"

enum { EDITS_CHANNELS_DEFAULT = 2048 };

/* Channels first to first + count - 1. All memory in the arena. */
void edits_channels(struct arena *a, unsigned major, unsigned first, unsigned count, struct cdi_edits *ret);

/* ImexChannelCount of the driver's parameters, or 2,048. `proc_driver`: "/proc/driver/nvidia" or where it is
 * mounted. */
unsigned edits_channel_count(const char *proc_driver);

struct edits_daemon {
        const char *domain_dir; /* on the host; mounted at /imexd */
        const char *cdi_root;   /* on the host; mounted read-only at /var/run/cdi, where the daemon sees which
                                   claims are prepared; NULL: not mounted */
        const char *clique_id;  /* "": a node without a partition, where the daemon idles and needs nothing
                                   from  the driver */
        const char *claim_uid;
        /* The ComputeDomain of a daemon of the Go driver. domain_uid NULL: our daemon, which gets its domain
         * and clique ID in another way. */
        const char *domain_uid, *domain_name, *domain_ns;
        struct driver_root root;
        const char *driver_version;
        const char *dev_root;    /* the folder that holds dev/ */
        const char *proc_driver; /* holds capabilities/fabric-imex-mgmt */
        unsigned caps_major;     /* of nvidia-caps */
};
/* ERR_NOT_FOUND: something of the driver is missing (it may still appear); ERR_INVALID: something is
 * unreadable, e.g. a capability file with garbage. */
int edits_for_daemon(struct arena *a, const struct edits_daemon *d, struct cdi_edits *ret, struct err *e);
