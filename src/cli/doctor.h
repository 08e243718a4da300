/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: the result of `doctor`, and the checks that produce it.
 *
 * A check adds lines to the output: one if it is fine, one for each fault that it finds, or one if it is
 * skipped, because a list cannot be read or does not show the answer. doctor.def lists the faults. A check
 * concludes nothing from the absence of an object unless the list is complete (cli/view.h). */
#pragma once

#include "api/reasons.h"
#include "cli/command.h"
#include "cli/doctor_kinds.h"
#include "cli/rack_list.h"

/* When a check runs: before the installation (--pre), in a running installation, before a migration
 * (--from-go), and for one node (--node). */
enum { DOCTOR_PRE = 1, DOCTOR_RUNNING = 2, DOCTOR_GO = 4, DOCTOR_NODE = 8 };

enum doctor_fault {
#define FAULT(constant, ...) constant,
#include "cli/doctor.def"
#undef FAULT
        DOCTOR_FAULTS
};
struct doctor_fault_text {
        const char *name, *check, *area;
        unsigned modes;
        const char *text; /* Markdown */
};
extern const struct doctor_fault_text doctor_faults[DOCTOR_FAULTS];
/* The fault with this name; DOCTOR_FAULTS: none. */
enum doctor_fault doctor_fault_find(const char *name);

enum doctor_state { DOCTOR_OK, DOCTOR_PROBLEM, DOCTOR_SKIPPED };

struct doctor_result {
        const char *check;
        enum doctor_state state;
        const char *text;            /* what was found, or why the check was skipped */
        enum doctor_fault fault;     /* only of a problem */
        const struct reason *reason; /* NULL: the catalogue has no entry */
        const char *fix;             /* a command or a sentence; only of a problem */
        bool denied, failed;         /* skipped, because a list may not be read, or could not be read */
};

struct node_cause;
struct doctor {
        struct view *v;
        struct arena *a;
        unsigned mode;
        const char *ns;    /* the namespace of the driver, or where it is to be installed */
        const char *check; /* the name of the check that runs now */
        struct doctor_result *results;
        size_t n, cap;
        struct inventory inv;                     /* only in a running installation */
        const struct workload_object *controller; /* this driver's; NULL: none */
        const struct workload_object *plugin;
        const char *gpus_only; /* what is installed instead of ComputeDomains (view_gpus_only()), or NULL */
        const struct workload_object *go;        /* the DaemonSet of the Go driver; NULL: none */
        const char *go_all;                      /* all of them, as text */
        bool go_unclear;                         /* several, of which the user has not chosen one */
        struct node_cause *causes;               /* of all nodes, cli/doctor_nodes.c */
        size_t n_causes, cap_causes;
        bool has_causes;
};

/* Add a line for the running check. Problems get the remedy of the catalogue if `fix` is NULL. */
void doctor_ok(struct doctor *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doctor_skip(struct doctor *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doctor_fail(struct doctor *d, enum doctor_fault fault, const char *fix, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* The same with an entry of the catalogue, which the user can look up with `explain`. */
void doctor_fail_reason(struct doctor *d, enum doctor_fault fault, const struct reason *r, const char *fix,
                        const char *text);
/* Whether the namespace of the driver is not known, or, with `verified`, only assumed. If so, adds a line for
 * the skipped check. */
bool doctor_doubts_driver(struct doctor *d, bool verified);
/* Whether the objects of a namespace (NULL: of all), or the one of this name, which has no namespace, were
 * read completely. If not, adds a line for the skipped check. */
bool doctor_needs(struct doctor *d, enum view_kind k, const char *ns);
bool doctor_needs_one(struct doctor *d, enum view_kind k, const char *name);

/* Runs the checks of the mode. */
void doctor_run_checks(struct doctor *d);
/* The exit code of the results. */
int doctor_exit(const struct doctor *d);
void doctor_print(const struct doctor *d, struct term *t);
void doctor_json(const struct doctor *d, struct buf *out);

/* A version of a program, such as "v1.36.3" or "6.8.0-45-generic". False: it is no version. */
struct doctor_version {
        int64_t major, minor;
};
bool doctor_version_read(const char *text, struct doctor_version *ret);
bool doctor_version_is_older(const struct doctor_version *x, int64_t major, int64_t minor);
/* Why the node seems to have NVIDIA GPUs although it has no label of a GPU node; NULL: it does not. */
const char *doctor_gpu_sign(struct arena *a, const struct node_object *n);
/* Whether a GPU node, by label or by sign. */
bool doctor_is_gpu_node(struct arena *a, const struct node_object *n);

/* A check: its name, when it runs, and its function, which adds at least one line. */
struct doctor_check {
        const char *name;
        unsigned modes;
        void (*run)(struct doctor *d);
};
/* The checks, by file. Each list ends with a name of NULL. */
extern const struct doctor_check doctor_cluster_checks[], doctor_install_checks[], doctor_chart_checks[],
        doctor_node_checks[], doctor_go_checks[];

struct doctor_options {
        bool pre, from_go;
        const char *node;
};
extern struct doctor_options doctor_options;

/* Adds what `check-node` of both plugins finds on a node. */
void doctor_check_node(struct doctor *d, const char *node, const struct kubectl *kubectl);
