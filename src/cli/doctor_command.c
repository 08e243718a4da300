/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/command_table.h"
#include "cli/doctor.h"

/* The chart's documentation installs into this namespace. */
#define DEFAULT_NAMESPACE "nvidia-compute-domains"

struct doctor_options doctor_options;

static const struct option doctor_own_options[] = {
        { "pre", 0, OPTION_BOOL, &doctor_options.pre, NULL,
          "check a cluster before `helm install`; --namespace is the driver's namespace, by "
          "default " DEFAULT_NAMESPACE,
          false },
        { "from-go", 0, OPTION_BOOL, &doctor_options.from_go, NULL,
          "check a cluster with the Go driver before the migration", false },
        { "node", 0, OPTION_TEXT, &doctor_options.node, "NODE",
          "run `check-node` in the plugin's pod of this node, with `kubectl exec`", false },
        { 0 },
};

static int doctor_run(struct cli *c) {
        const struct doctor_options *o = &doctor_options;
        struct doctor d = { .v = &c->v, .a = c->v.a, .ns = options.ns ? options.ns : DEFAULT_NAMESPACE };
        if (c->n_args)
                return command_usage(c, "doctor has no arguments");
        if (o->pre + o->from_go + (o->node != NULL) > 1)
                return command_usage(c, "--pre, --from-go and --node exclude each other");
        if (o->node && !str_is_dns_subdomain(o->node))
                return command_usage(c, "'%s' is not the name of a node", o->node);
        if (o->node && options.from)
                return command_usage(c, "--node runs a program in the cluster, and cannot read a bundle");
        c->v.named_ns = options.ns;
        d.mode = o->pre ? DOCTOR_PRE : o->from_go ? DOCTOR_GO : o->node ? DOCTOR_NODE : DOCTOR_RUNNING;
        doctor_run_checks(&d);
        if (o->node)
                doctor_check_node(&d, o->node, &c->kubectl);
        if (streq(options.output, "json"))
                doctor_json(&d, &c->t.out);
        else
                doctor_print(&d, &c->t);
        return doctor_exit(&d);
}

static void page_modes(struct buf *out, unsigned modes) {
        static const struct {
                unsigned mode;
                const char *text;
        } names[] = { { DOCTOR_RUNNING, "`doctor`" },
                      { DOCTOR_PRE, "`--pre`" },
                      { DOCTOR_GO, "`--from-go`" },
                      { DOCTOR_NODE, "`--node`" } };
        bool first = true;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                if (!(modes & names[i].mode))
                        continue;
                buf_addf(out, "%s%s", first ? "" : ", ", names[i].text);
                first = false;
        }
}

/* Appends the faults to the page of the documentation. */
static void doctor_page(struct buf *out) {
        buf_adds(out, "\nWith `-o json`, the output is one object: `namespace`, the numbers `problems` and "
                      "`skipped`, and the list\n`checks`. A check has `check`, `state` (`ok`, `problem` or "
                      "`skipped`) and `text`. A problem also has `fault`\nand `fix`, and `reason` if "
                      "`explain` describes it. A check can appear several times. With `--node`, the name\nof "
                      "a check begins with that of the container: `compute-domains/kernel`.\n");
        buf_adds(out, "\nIt finds these faults. The check is the first word of a line of the output, and the "
                      "fault is in the JSON.\n\n"
                      "| Fault | Area | Check | With | Meaning |\n|---|---|---|---|---|\n");
        for (size_t i = 0; i < DOCTOR_FAULTS; i++) {
                const struct doctor_fault_text *f = &doctor_faults[i];
                buf_addf(out, "| `%s` | %s | `%s` | ", f->name, f->area, f->check);
                page_modes(out, f->modes);
                buf_addf(out, " | %s |\n", f->text);
        }
}

const struct command command_doctor = {
        .name = "doctor",
        .args = "",
        .summary = "check the cluster and the driver, before or after the installation",
        .text = "Checks Kubernetes, the nodes, the driver's objects and the ComputeDomains, and prints a "
                "line for each check: fine, FAIL with a remedy, or skipped with the permission that is "
                "missing. A skipped check is no finding. `explain` describes the word in brackets behind a "
                "finding.\n\n"
                "With `--pre`, checks a cluster before the driver is installed. With `--from-go`, runs the "
                "checks of docs/how-to/migrate.md before a migration from the Go driver.\n\n"
                "With `--node`, runs `check-node` in the plugins' containers of the node. This changes "
                "nothing on the node, and needs permission to get pods and to create `pods/exec`. If a "
                "container does not "
                "run, prints why.\n\n"
                "A tenant can create objects that look like the driver's. So `doctor` takes the driver's "
                "namespace from the admission policies of the chart. If you may not list "
                "ValidatingAdmissionPolicies, or none exists, the output states that the namespace is not "
                "verified. Then `--node` runs nothing unless you name the driver's namespace with "
                "`--namespace`.\n\n"
                " kubectl compute-domains doctor --pre\n kubectl compute-domains doctor --node gb200-a15",
        .options = doctor_own_options,
        .reads = true,
        .page = doctor_page,
        .run = doctor_run,
};
