/* SPDX-License-Identifier: Apache-2.0 */
/* state: defines the state that the functions of this driver share. It is the `u` of node/driver.h. Loop
 * thread only. */
#pragma once

#include <sys/queue.h>

#include "base/loop.h"
#include "cd_plugin/cd_health.h"
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
        /* Set with isolation by channel; otherwise NULL. If our daemons run IMEX with isolation by domain,
         * the driver creates its own watch, and follows the fabric object while our daemon runs here. */
        struct fabric_watch *fabric;
        struct holdings *holdings;
        struct own_pod *own_pod; /* the Pod on which the plugin reports */
        const struct imex_mode *mode;
        struct host_imex *host; /* NULL: not queried */
        bool wait_for_host;     /* Prepare waits until the host's IMEX is READY; needs `host` */
        const char *node, *ns;  /* `node` is this node, and `ns` the driver's namespace, where daemons run */
        const char *more_ns; /* comma-separated list of other namespaces, with daemons of an earlier
                                installation */
        const char *plugin_dir;
        const char *boot_id;
        struct driver_root root;
        const char *dev_root;      /* holds dev/ while `root` has none */
        const char *proc_driver;   /* "/proc/driver/nvidia" or its substitute */
        const char *channel_nodes; /* where the host's /dev/nvidia-caps-imex-channels is mounted; "": it is
                                      not mounted, and the plugin creates no device nodes there */
        /* Called when the result of standing_get() may have changed; NULL: not called. */
        void (*standing_changed)(void *u);
        /* Called when the result of cd_health_list() may have changed; NULL: not called. */
        void (*health_changed)(void *u);
        void *u;
};

/* The state of the module daemon_claim. */
struct daemon_claim {
        struct loop_timer retry;
        char compared[37];  /* UID of the claim that was last compared with the node's facts */
        char preparing[37]; /* UID of the claim whose edits are being made; "" none */
        bool shown;         /* the files for the daemon may exist */
};

/* A domain whose daemon was ready and no longer is. */
struct cd_unready {
        LIST_ENTRY(cd_unready) link;
        char domain[37];
};

struct cd {
        struct cd_options o;
        struct claims *claims;
        struct readiness *readiness;
        struct grants *grants;
        struct lookup_watches *watches;
        struct loop_timer grace; /* delays the reports on `lost` */
        struct daemon_claim daemon;
        struct cd_health health;
        bool followed;           /* the table of the prepared claims has been read */
        bool standing_was_ready; /* IMEX has been READY with the present assignment of this node
                                    (cd_plugin/standing) */
        LIST_HEAD(, cd_unready) lost;
};

/* Reasons for which an operation of this driver may wait (op.waits_for). */
enum { WAITS_FOR_FACTS = WAITS_FOR_DRIVER, WAITS_FOR_HOST, WAITS_FOR_FABRIC };
