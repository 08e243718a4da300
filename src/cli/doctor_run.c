/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the installation, and runs the checks of `doctor`. */
#include "cli/doctor.h"

static void find_drivers(struct doctor *d) {
        struct view *v = d->v;
        view_read_all(v, VIEW_DEPLOYMENTS, d->ns);
        view_read_all(v, VIEW_DAEMON_SETS, d->ns);
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, w)
        if (workload_object_is_ours(w, "compute-domain-controller"))
                d->controller = w;
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, w) {
                if (workload_object_is_go(w))
                        d->go = w;
                else if (workload_object_runs(w, "compute-domain-kubelet-plugin"))
                        d->plugin = w;
        }
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, w)
        if (!d->controller && !d->plugin && workload_object_runs(w, "gpu-kubelet-plugin"))
                d->gpus_only = w;
        view_find_driver(v);
        if (!v->driver_ns && d->gpus_only)
                v->driver_ns = d->gpus_only->o.meta.ns;
}

/* The namespace of which the checks speak. */
static const char *checked_namespace(const struct doctor *d) {
        if (d->v->driver_ns && d->mode & (DOCTOR_RUNNING | DOCTOR_NODE))
                return d->v->driver_ns;
        return d->go && d->mode == DOCTOR_GO ? d->go->o.meta.ns : d->ns;
}

static void run_list(struct doctor *d, const struct doctor_check *list) {
        for (; list->name; list++) {
                if (!(list->modes & d->mode))
                        continue;
                d->check = list->name;
                list->run(d);
        }
}

void doctor_run_checks(struct doctor *d) {
        find_drivers(d);
        d->ns = checked_namespace(d);
        if (d->mode == DOCTOR_RUNNING)
                inventory_make(d->v, d->ns, &d->inv);
        run_list(d, doctor_cluster_checks);
        run_list(d, doctor_install_checks);
        if (d->controller || d->plugin) {
                run_list(d, doctor_chart_checks);
                run_list(d, doctor_node_checks);
        }
        run_list(d, doctor_go_checks);
}
