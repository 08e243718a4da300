/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "api/names.h"
#include "cli/bundle.h"
#include "cli/command_table.h"

/* Kinds of which only some objects are of interest, because there may be many others. `why` needs the
 * Namespace of a pod. */
static bool bundle_read_own(struct view *v, enum view_kind k, const char *ns) {
        static const char *const crds[] = { "computedomains." CD_GROUP, "computedomainfabrics." CD_GROUP,
                                            "computedomaincliques." CD_GROUP };
        for (size_t i = 0; k == VIEW_CRDS && i < ARRAY_LEN(crds); i++)
                view_read_one(v, k, NULL, crds[i]);
        if (k == VIEW_NAMESPACES && options.all_namespaces)
                view_read(v, k, NULL);
        if (k == VIEW_NAMESPACES && v->driver_ns)
                view_read_one(v, k, NULL, v->driver_ns);
        if (k == VIEW_NAMESPACES)
                view_read_one(v, k, NULL, ns);
        if (k == VIEW_LEASES && v->driver_ns)
                view_read(v, k, v->driver_ns);
        return k == VIEW_CRDS || k == VIEW_NAMESPACES || k == VIEW_LEASES;
}

void bundle_read_all(struct view *v, const char *ns) {
        view_find_driver(v);
        for (size_t k = 0; k < VIEW_KINDS; k++) {
                if (bundle_read_own(v, (enum view_kind)k, ns))
                        continue;
                if (k != VIEW_PODS && k != VIEW_EVENTS && k != VIEW_QUOTAS && k != VIEW_POLICIES) {
                        view_read_all(v, (enum view_kind)k, ns);
                } else if (options.all_namespaces) {
                        view_read_all(v, (enum view_kind)k, ns);
                } else {
                        view_read(v, (enum view_kind)k, ns);
                        if (v->driver_ns)
                                view_read(v, (enum view_kind)k, v->driver_ns);
                        if (k == VIEW_EVENTS)
                                view_read(v, VIEW_EVENTS, "default");
                }
        }
}

static int bundle_run(struct cli *c) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
        const char *path =
                c->n_args ? c->args[0]
                          : arena_printf(c->a, "compute-domains-bundle-%" PRId64 ".tar", c->source->now);
        struct bundle_writer *w = bundle_writer_new(c->source);
        struct view v;
        struct err e;
        if (c->n_args > 1) {
                bundle_writer_free(w);
                return command_usage(c, "usage: bundle [FILE]");
        }
        view_init(&v, bundle_writer_source(w));
        bundle_read_all(&v, c->source->ns);
        size_t missing = 0;
        for (size_t k = 0; k < VIEW_KINDS; k++)
                for (size_t i = 0; i < v.kinds[k].n_lists; i++)
                        missing += v.kinds[k].lists[i].state != VIEW_COMPLETE;
        bundle_writer_render(w, &tar);
        const char *doubt = v.driver_doubt ? arena_strdup(c->a, v.driver_doubt) : NULL;
        view_done(&v);
        bundle_writer_free(w);
        if (tar.failed)
                return command_usage(c, "the bundle is too large");
        if (command_write(path, false, (struct str){ buf_str(&tar), tar.n }, &e) < 0)
                return command_usage(c, "%s", e.msg);
        term_line(&c->t, "%s: %zu bytes%s", path, tar.n,
                  missing ? arena_printf(c->a, ", without %zu list%s that could not be read", missing,
                                         missing == 1 ? "" : "s")
                          : "");
        if (doubt)
                term_paragraph(&c->t, "", doubt);
        term_line(&c->t,
                  "It contains names, labels, annotations and messages of objects. Secrets, arguments of "
                  "containers and values of environment variables are left out.");
        term_line(&c->t, "kubectl compute-domains status --from %s", term_shell_word(c->a, path));
        return COMMAND_FINE;
}

/* Appends the content of a bundle to the page of the documentation. */
static void bundle_page(struct buf *out) {
        static const struct {
                const char *kinds, *which;
        } rows[] = {
                { "Pods, Events, ResourceQuotas, NetworkPolicies",
                  "of the namespace and of the driver's namespace, or of all with `--all-namespaces`; Events "
                  "of Nodes" },
                { "Deployments, DaemonSets",
                  "of this driver and of the Go driver. A workload with a program of the same name counts" },
                { "ComputeDomains, ResourceClaims, ResourceClaimTemplates, ComputeDomainCliques",
                  "of all namespaces, or of the namespace if you may not list all" },
                { "Nodes, ResourceSlices, DeviceClasses, ComputeDomainFabrics, ValidatingAdmissionPolicies "
                  "and their bindings",
                  "all" },
                { "Namespaces", "the namespace and the driver's namespace, or all with `--all-namespaces`" },
                { "Leases", "of the driver's namespace" },
                { "CustomResourceDefinitions", "those of ComputeDomains" },
        };
        buf_adds(out, "\n| Objects | Which |\n|---|---|\n");
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                buf_addf(out, "| %s | %s |\n", rows[i].kinds, rows[i].which);
        buf_adds(out, "\n`bundle.json` states which lists are complete. `managedFields` and the "
                      "annotation of `kubectl apply` are left\nout.\n");
}

const struct command command_bundle = {
        .name = "bundle",
        .args = "[FILE]",
        .summary = "write the objects that the other commands read into a file",
        .text = "Writes a tar file with the objects that the other commands read, for a bug report or for "
                "`--from`. It contains the pods and Events of the namespace and of the driver's namespace; "
                "with `--all-namespaces` those of all namespaces. Deployments and DaemonSets of other "
                "applications are left out.\n\n"
                "It contains no Secrets, and no arguments, probes, hooks and values of environment variables "
                "of other programs, except `NCCL_MNNVL_ENABLE`. The driver's containers keep the values of "
                "the variables that the chart "
                "sets. Names, labels, annotations and messages remain: read the file before you publish it.",
        .reads = true,
        .page = bundle_page,
        .run = bundle_run,
};
