/* SPDX-License-Identifier: Apache-2.0 */
/* uninstall: deletes the daemons. This is the command `compute-domain-controller uninstall`, which the chart
 * runs before "helm uninstall" removes the controller and the plugin.
 *
 * A daemon's Pod cannot end without the plugin of its node, because the kubelet has to unprepare its claim.
 * So the daemons are deleted first. The controller would recreate their DaemonSet, so the program scales the
 * controller to 0 and waits until its Pods have ended. Then it deletes the ResourceSlice of shared claims,
 * which no plugin owns, removes the Node label that this slice selects, and deletes the DaemonSet, and with
 * it the Pods. In host-managed mode there is no DaemonSet.
 *
 * A daemon that is in use ends when no claim of the ComputeDomain is prepared on its node, which may take
 * days. The program logs such a daemon, with the cause that the daemon reports, and does not wait for it. It
 * waits for all other daemons. */
#pragma once

#include "kube/kube_client.h"

struct uninstall;

struct uninstall_options {
        struct kube_client *client;
        const char *ns;         /* namespace of the driver */
        const char *deployment; /* name of the controller's Deployment */
        const char *selector;   /* label selector of the controller's Pods */
        unsigned timeout_ms;    /* limit for all steps together */
        /* Called once, never from inside uninstall_start(). May call uninstall_free(). `e` NULL: the
         * DaemonSet is deleted, and either only daemons in use are left or the time-out has passed; the log
         * names the daemons that are left. Otherwise `e` is the error. */
        void (*done)(void *u, const struct err *e);
        void *u;
};

/* Starts the steps. The strings in the options are borrowed. */
struct uninstall *uninstall_start(const struct uninstall_options *o);
void uninstall_free(struct uninstall *x); /* NULL is allowed; before kube_client_free() */

/* Runs the program and returns its exit status. argv[0] is "uninstall". */
int uninstall_main(int argc, char **argv);
