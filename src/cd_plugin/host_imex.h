/* SPDX-License-Identifier: Apache-2.0 */
/* host_imex: queries the state of the nvidia-imex that the host itself runs, with the host's own
 * nvidia-imex-ctl. It never starts, stops or signals nvidia-imex.
 *
 * The module searches for nvidia-imex-ctl under the driver root. The operator of the hosts configures the
 * path of the command socket. A query for the state of the domain also needs config.cfg, which is in the same
 * folder. The module searches for the socket and config.cfg first in the driver root, where an nvidia-imex in
 * a driver container has them. It then tries the same path in this container, where the host's folder is
 * mounted. Queries are rare, and frequent only while a Prepare waits. In modes in which the host should not
 * run IMEX, the module queries only while the socket exists (inotify). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "cd_plugin/cd_metrics.h"
#include "cd_plugin/host_status.h"
#include "cd_plugin/own_pod.h"
#include "kube/event_recorder.h"
#include "model/mode.h"
#include "nvidia/driver_root.h"

struct host_imex;

struct host_imex_options { /* the strings are borrowed until host_imex_free() */
        struct driver_root root;
        const char *socket_path, *node;
        unsigned interval_ms;  /* time between two queries while no Prepare waits */
        bool domain;           /* also query the state of the IMEX domain */
        bool only_with_socket; /* query only while the socket exists under the driver root */
        /* Called when nvidia-imex-ctl has answered, possibly the same as before; never from inside a function
         * of this module. */
        void (*answered)(void *u);
        void *u;
};

struct host_imex *host_imex_new(uv_loop_t *loop, const struct host_imex_options *o);
void host_imex_free(struct host_imex *h);

const struct host_imex_status *host_imex_get(const struct host_imex *h);
/* Returns true if IMEX has answered exactly READY to a query that began after since_ns (uv_hrtime()). If
 * false, sets `reason` to a text that begins with the node's name. */
bool host_imex_ready(const struct host_imex *h, uint64_t since_ns, char *reason, size_t n);
/* Returns the state of nvidia-imex itself, regardless of its domain's state. The state is NOT_KNOWN until
 * nvidia-imex has failed to answer twice, and NOT_ASKED also if there is nothing to query. */
enum host_imex_own { HOST_IMEX_NOT_ASKED, HOST_IMEX_NOT_KNOWN, HOST_IMEX_READY, HOST_IMEX_NOT_READY };
enum host_imex_own host_imex_own(const struct host_imex *h);
/* Sets whether it matters that the present state lasts. While `on`, the module queries at short intervals. */
void host_imex_settle(struct host_imex *h, bool on);

/* Queries now, and then at growing intervals of up to one second. Call it when another Prepare waits for
 * READY. */
void host_imex_poll_fast(struct host_imex *h);
/* Returns to the normal interval. Call it when no Prepare waits any more. */
void host_imex_poll_slow(struct host_imex *h);

/* Reports the state of the host's nvidia-imex. It updates the metrics after each answer. After a
 * change, it also writes a log line and an Event of the Node, and, in the host-managed mode, annotations of
 * the plugin's own Pod, from which the controller makes a condition. */
struct host_report;

struct host_report_options { /* the strings are borrowed until host_report_free() */
        struct event_recorder *events;
        struct cd_metrics *metrics;
        const struct imex_mode *mode;
        const char *node;
        struct own_pod *own_pod; /* borrowed until host_report_free(); NULL: nothing is annotated */
};

struct host_report *host_report_new(const struct host_report_options *o);
void host_report_free(struct host_report *r);
void host_report_update(struct host_report *r, const struct host_imex_status *s);
