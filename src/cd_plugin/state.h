/* SPDX-License-Identifier: Apache-2.0 */
/* state: what the functions of this driver share: `u` of node/driver.h. Loop thread only. */
#pragma once

#include <sys/queue.h>

#include "base/loop.h"
#include "cd_plugin/fabric_watch.h"
#include "cd_plugin/facts.h"
#include "cd_plugin/grants.h"
#include "cd_plugin/holdings.h"
#include "cd_plugin/host_imex.h"
#include "cd_plugin/lookup.h"
#include "cd_plugin/own_pod.h"
#include "cd_plugin/readiness.h"
#include "model/mode.h"
#include "node/ops.h"

struct cd_options {
        uv_loop_t *loop;
        struct kube_client *kube;
        struct event_recorder *events;
        struct facts_sampler *facts;
        /* Where ComputeDomains have channels of their own; else NULL. Where ComputeDomains have IMEX domains
         * of their own the driver makes the former itself, and follows the fabric while our daemon runs here.
         */
        struct fabric_watch *fabric;
        struct holdings *holdings;
        struct own_pod *own_pod; /* where the plugin reports */
        const struct imex_mode *mode;
        struct host_imex *host; /* NULL: not asked */
        bool wait_for_host;     /* Prepare waits until the host's IMEX is READY; needs `host` */
        const char *node, *ns;  /* this node; the driver's namespace, where daemons run */
        const char *more_ns;    /* comma separated: where daemons of an earlier installation may run, too */
        const char *plugin_dir;
        const char *boot_id;
        struct driver_root root;
        const char *dev_root;      /* holds dev/ */
        const char *proc_driver;   /* "/proc/driver/nvidia" or its substitute */
        const char *channel_nodes; /* where the host's /dev/nvidia-caps-imex-channels is seen; "": nowhere,
                                      and none is made there */
        /* What standing_get() says may have changed. NULL: nobody asks. */
        void (*standing_changed)(void *u);
        void *u;
};

/* What cd_plugin/daemon_claim knows. */
struct daemon_claim {
        struct loop_timer retry;
        char looked[37];    /* UID of the claim that was last compared with what the node has */
        char preparing[37]; /* that of the claim whose edits are being made; "" none */
        bool shown;         /* its files may be there */
};

/* A domain whose daemon was ready and is not any more. */
struct cd_lost {
        LIST_ENTRY(cd_lost) link;
        char domain[37];
};

struct cd {
        struct cd_options o;
        struct claims *claims;
        struct readiness *readiness;
        struct grants *grants;
        struct lookup_watches *watches;
        struct loop_timer grace; /* of `lost` */
        struct daemon_claim daemon;
        bool followed;           /* the table of the prepared claims has been read */
        bool standing_was_ready; /* IMEX, with the assignment of this node (cd_plugin/standing) */
        LIST_HEAD(, cd_lost) lost;
};

/* What an operation may wait for here. */
enum { WAITS_FOR_FACTS = WAITS_FOR_DRIVER, WAITS_FOR_HOST, WAITS_FOR_FABRIC };
