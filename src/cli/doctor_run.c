/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the installation, and runs the checks of `doctor`. */
#include "cli/doctor.h"
#include "rules/message.h"

/* No object that only cluster admins write names the namespace of the Go driver. If its DaemonSets are in
 * several namespaces, the user has to choose. */
static void find_go_driver(struct doctor *d) {
        struct message_list list = { 0 };
        size_t n = 0;
        VIEW_EACH(d->v, VIEW_DAEMON_SETS, struct workload_object, w) {
                if (!workload_object_is_go(w))
                        continue;
                message_add(&list, "DaemonSet %s in %s", w->o.meta.name, w->o.meta.ns);
                n++;
                if (!d->go || streq(w->o.meta.ns, d->v->named_ns))
                        d->go = w;
        }
        d->go_all = message_end(&list, d->a);
        d->go_unclear = n > 1 && !streq(d->go->o.meta.ns, d->v->named_ns);
}

static void find_drivers(struct doctor *d) {
        struct view *v = d->v;
        view_read_all(v, VIEW_DEPLOYMENTS, d->ns);
        view_read_all(v, VIEW_DAEMON_SETS, d->ns);
        view_find_driver(v);
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, w)
        if (view_is_driver(v, w, "compute-domain-controller"))
                d->controller = w;
        VIEW_EACH(v, VIEW_DAEMON_SETS, struct workload_object, w)
        if (view_is_driver(v, w, "compute-domain-kubelet-plugin"))
                d->plugin = w;
        d->gpus_only = view_gpus_only(v);
        find_go_driver(d);
}

/* The namespace of which the checks speak. */
static const char *checked_namespace(const struct doctor *d) {
        if (d->v->driver_ns && d->mode & (DOCTOR_RUNNING | DOCTOR_NODE))
                return d->v->driver_ns;
        return d->go && !d->go_unclear && d->mode == DOCTOR_GO ? d->go->o.meta.ns : d->ns;
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
