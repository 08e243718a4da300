/* SPDX-License-Identifier: Apache-2.0 */
/* uninstall: `compute-domain-controller uninstall`, which the chart runs before "helm uninstall" removes
 * controller and plugin.
 *
 * A daemon's Pod cannot end without the plugin of its node: the kubelet has to unprepare its claim. So the
 * daemons go first. The controller would create their DaemonSet again, so it is scaled to 0 before, and its
 * Pods have to be gone. Then the DaemonSet is deleted, and with it the Pods. A daemon whose node uses its
 * IMEX ends when no claim of the ComputeDomain is prepared there, which may take days. It reports what keeps
 * it: it is logged, and not waited for. All others are. */
#pragma once

#include "kube/kube_client.h"

struct uninstall;

struct uninstall_options {
        struct kube_client *client;
        const char *ns;         /* of the driver */
        const char *deployment; /* of the controller */
        const char *selector;   /* label selector of its Pods */
        unsigned timeout_ms;    /* for all of it */
        /* Once, never from inside uninstall_start(). e NULL: the DaemonSet is deleted, and only daemons in
         * use are left, or time is over; the log names those that are left. Otherwise why that failed. May
         * free it. */
        void (*done)(void *u, const struct err *e);
        void *u;
};

/* Strings are borrowed. */
struct uninstall *uninstall_start(const struct uninstall_options *o);
void uninstall_free(struct uninstall *x); /* NULL is allowed; before kube_client_free() */

/* The program: its exit status. argv[0] is "uninstall". */
int uninstall_main(int argc, char **argv);
