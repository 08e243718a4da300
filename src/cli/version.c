/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/command_table.h"

/* The version in the label that the chart writes, and the image of the controller; NULL: not known. */
static const char *driver_version(struct cli *c, const char **ret_image) {
        view_find_driver(&c->v);
        VIEW_EACH(&c->v, VIEW_DEPLOYMENTS, struct workload_object, d)
        if (view_is_driver(&c->v, d, "compute-domain-controller")) {
                *ret_image =
                        container_find(d->containers, d->n_containers, "compute-domain-controller")->image;
                return jd_pair_get(d->labels, d->n_labels, "app.kubernetes.io/version");
        }
        *ret_image = NULL;
        return NULL;
}

static int version_run(struct cli *c) {
        const char *image, *driver = driver_version(c, &image),
                           *server = c->source->server_version(c->source);
        enum view_state state = view_state(&c->v, VIEW_DEPLOYMENTS, NULL);
        const char *unknown = c->v.driver == VIEW_DRIVER_UNCLEAR ? "not known"
                              : state == VIEW_UNREADABLE         ? "may not be read"
                              : state == VIEW_PARTIAL            ? "could not be read"
                                                                 : "not found";
        if (streq(options.output, "json")) {
                struct jw w = JW(&c->t.out);
                jw_obj(&w, NULL);
                jw_str(&w, "client", PROGRAM_VERSION);
                term_json(&w, "driver", driver, c->a);
                term_json(&w, "image", image, c->a);
                term_json(&w, "kubernetes", server, c->a);
                if (c->v.driver_doubt)
                        term_json(&w, "driverDoubt", c->v.driver_doubt, c->a);
                jw_end_obj(&w);
                term_newline(&c->t);
        } else {
                term_line(&c->t, "client      %s", PROGRAM_VERSION);
                term_line(&c->t, "driver      %s", driver ? driver : unknown);
                if (image)
                        term_line(&c->t, "image       %s", image);
                term_line(&c->t, "kubernetes  %s", server ? server : "unknown");
                if (c->v.driver_doubt)
                        term_paragraph(&c->t, "", c->v.driver_doubt);
        }
        return !driver && state == VIEW_PARTIAL ? COMMAND_FAILED : COMMAND_FINE;
}

const struct command command_version = {
        .name = "version",
        .args = "",
        .summary = "versions of the tool, the driver and Kubernetes",
        .text = "Prints the versions of this tool, of the driver in the cluster, and of Kubernetes.",
        .reads = true,
        .run = version_run,
};
