/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command_table.h"
#include "cli/pod_case.h"
#include "cli/test_pods.h"

enum { LIMIT_S = 180, SIGNAL_CHECK_MS = 500, LINE_MAX_BYTES = 4096, MANIFEST_MAX = 16 << 20 };

static const char *test_rack, *test_image, *test_timeout;
static bool test_dry_run;
static volatile sig_atomic_t test_interrupted;

static void test_interrupt(int signal) {
        test_interrupted = signal;
}

/* A second Ctrl-C while objects are deleted must not leave them. */
static void test_catch_signals(void) {
        static const int list[] = { SIGINT, SIGTERM, SIGHUP };
        for (size_t i = 0; i < ARRAY_LEN(list); i++)
                sigaction(list[i], &(struct sigaction){ .sa_handler = test_interrupt }, NULL);
}

/* ---- the plan ---- */

/* The image of this driver's controller: it contains the program of the plugin, and is already on the nodes
 * with a plugin. NULL: it is not known. */
static const char *driver_image(const struct view *v) {
        VIEW_EACH(v, VIEW_DEPLOYMENTS, struct workload_object, d) {
                const struct container *c =
                        container_find(d->containers, d->n_containers, "compute-domain-controller");
                if (view_is_driver(v, d, "compute-domain-controller") && c->image)
                        return c->image;
        }
        return NULL;
}

/* Reports why the image of the driver is not known. Returns the exit code. */
static int test_without_image(const struct cli *c) {
        bool unclear = c->v.driver == VIEW_DRIVER_UNCLEAR;
        enum view_state state = view_state(&c->v, unclear ? VIEW_ADMISSION : VIEW_DEPLOYMENTS, NULL);
        command_usage(c, "%s Or name an image with a shell, for example --image busybox:1.36",
                      unclear                    ? c->v.driver_doubt
                      : state == VIEW_COMPLETE   ? "No Deployment of the driver exists. Install the driver."
                      : state == VIEW_UNREADABLE ? "The Deployment of the driver may not be read. Ask for "
                                                   "permission to list deployments."
                                                 : "The Deployments could not be read. Try again.");
        return state == VIEW_UNREADABLE ? COMMAND_DENIED : COMMAND_FAILED;
}

/* Names the run by the time, so that no other run has the same name. */
static const char *test_run_name(struct arena *a) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return arena_printf(a, "compute-domains-test-%08llx",
                            (unsigned long long)(uint32_t)((uint64_t)now.tv_sec * 1000 +
                                                           (uint64_t)now.tv_nsec / 1000000));
}

/* Returns 0, or an exit code after the error was reported. */
static int test_make_plan(struct cli *c, struct inventory *inv, struct test_plan *p) {
        static const enum view_kind kinds[] = { VIEW_NODES, VIEW_SLICES };
        struct err e;
        inventory_make(&c->v, c->source->ns, inv);
        int r = command_needs(c, "test", kinds, ARRAY_LEN(kinds));
        if (r)
                return r;
        if (view_lacks_definition(&c->v))
                return command_usage(c, "the " DEFINITION " is missing. " DEFINITION_FIX);
        if (view_not_served(&c->v, VIEW_DOMAINS))
                return command_usage(c, "the cluster has no ComputeDomains: %s", view_no_driver(&c->v));
        *p = (struct test_plan){ .run = test_run_name(c->v.a),
                                 .ns = c->source->ns,
                                 .image = test_image ? test_image : driver_image(&c->v),
                                 .own_image = !test_image };
        if (!p->image)
                return test_without_image(c);
        if (!options_is_image(p->image))
                return command_usage(c, "'%s' is not the name of an image", p->image);
        if (!str_is_dns_label(p->ns))
                return command_usage(c, "'%s' is not the name of a namespace", p->ns);
        if (test_pods_plan(p, inv, test_rack, c->v.a, &e) < 0)
                return command_usage(c, "%s", e.msg);
        if (!p->n_pods)
                return command_usage(c, "no node of %s is Ready and not cordoned",
                                     test_rack ? "the rack" : "an NVLink partition");
        return 0;
}

static void test_announce(struct cli *c, const struct test_plan *p) {
        struct term *t = &c->t;
        if (p->own_image && c->v.driver_doubt)
                term_paragraph(t, "", c->v.driver_doubt);
        term_line(t,
                  "Creates in namespace %s, and deletes at the end: ComputeDomain %s, and %zu pod%s with the "
                  "image %s.",
                  p->ns, p->run, p->n_pods, p->n_pods == 1 ? "" : "s", p->image);
        for (size_t i = 0; i < p->n_racks; i++) {
                size_t n = 0;
                for (size_t k = 0; k < p->n_pods; k++)
                        n += p->pods[k].rack == i;
                term_line(t, "  %zu on %s", n, p->racks[i]->name);
        }
        command_flush(c);
}

/* ---- the pods ---- */

static int64_t test_clock_ms(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes the complete lines. */
static void test_take_lines(struct test_plan *p, char *text, size_t *n) {
        for (char *end; (end = memchr(text, '\n', *n));) {
                test_pods_take(p, (struct str){ text, (size_t)(end - text) });
                *n -= (size_t)(end + 1 - text);
                memmove(text, end + 1, *n);
        }
        if (*n == LINE_MAX_BYTES)
                *n = 0;
}

/* Follows one watch, until all pods are settled, the time limit is reached, or the watch ends. Returns false
 * if the watch ended without a line. */
static bool test_follow(struct test_plan *p, int output, int64_t end_ms) {
        char text[LINE_MAX_BYTES];
        size_t n = 0;
        bool any = false;
        while (!test_pods_settled(p) && !test_interrupted) {
                struct pollfd f = { .fd = output, .events = POLLIN };
                int64_t left = end_ms - test_clock_ms();
                if (left <= 0)
                        return true;
                /* A signal that arrives just before poll() does not interrupt it. */
                int r = poll(&f, 1, left < SIGNAL_CHECK_MS ? (int)left : SIGNAL_CHECK_MS);
                if (r == 0 || (r < 0 && errno == EINTR))
                        continue;
                if (r < 0)
                        return true;
                ssize_t k = read(output, text + n, sizeof text - n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        return any;
                any = true;
                n += (size_t)k;
                test_take_lines(p, text, &n);
        }
        return true;
}

/* Waits until all pods are settled. API servers end a watch after some minutes, so it is started again. */
static int test_await(struct cli *c, struct test_plan *p, int64_t end_ms, struct err *e) {
        const char *label = arena_printf(c->v.a, TEST_PODS_LABEL "=%s", p->run);
        const char *args[] = { "get", "pods", "-n", p->ns, "-l", label, "--watch", "-o", TEST_PODS_COLUMNS };
        while (!test_pods_settled(p) && !test_interrupted && test_clock_ms() < end_ms) {
                int output;
                pid_t pid = kubectl_start(&c->kubectl, args, ARRAY_LEN(args), &output, e);
                if (pid < 0)
                        return -1;
                bool goes_on = test_follow(p, output, end_ms);
                kubectl_stop(pid, output);
                if (!goes_on)
                        return err_set(e, ERR_INTERNAL, 0, "kubectl get --watch has ended");
        }
        return 0;
}

/* ---- results ---- */

/* The cause that `why` names for the pod. */
static void test_explain(struct cli *c, struct view *v, const struct test_plan *p,
                         const struct test_pod *pod) {
        struct diagnosis d = { .v = v, .a = v->a };
        bool found = pod_diagnose(&d, p->ns, pod->name);
        term_line(&c->t, "       %s: %s", pod->name,
                  found && d.state ? d.state : "the pod does not exist, or may not be read");
        if (d.n_causes) {
                const struct diagnosis_cause *x = &d.causes[0];
                term_paragraph(&c->t, x->possible ? "MAYBE" : "CAUSE",
                               arena_printf(v->a, "%s  [%s]", x->text, diagnosis_entry_name(x->reason)));
                term_paragraph(&c->t, "FIX", diagnosis_fix(x));
        } else if (found) {
                term_paragraph(&c->t, "CAUSE", "unknown. Look at the Events and the log of the pod.");
        }
}

static bool test_report_rack(struct cli *c, struct view *v, const struct test_plan *p, size_t rack) {
        struct term *t = &c->t;
        size_t n = 0, ready = 0;
        for (size_t i = 0; i < p->n_pods; i++) {
                n += p->pods[i].rack == rack;
                ready += p->pods[i].rack == rack && p->pods[i].state == TEST_POD_READY;
        }
        bool ok = n && ready == n;
        term_line(t, "%-4s %s: %s", ok ? "ok" : "FAIL", p->racks[rack]->name,
                  n ? arena_printf(v->a, "%zu of %zu pods have a channel", ready, n)
                    : "no node is Ready and not cordoned");
        for (size_t i = 0; i < p->n_pods; i++)
                if (p->pods[i].rack == rack && p->pods[i].state != TEST_POD_READY)
                        test_explain(c, v, p, &p->pods[i]);
        return ok;
}

/* Reads the objects again, for `why`. */
static bool test_report(struct cli *c, const struct test_plan *p) {
        struct view v;
        bool ok = true;
        c->source->now = (int64_t)time(NULL);
        view_init(&v, c->source);
        for (size_t i = 0; i < p->n_racks; i++)
                ok = test_report_rack(c, &v, p, i) && ok;
        view_done(&v);
        return ok;
}

/* Waits until the objects have ended, so that the nodes have left when the command ends. kubectl does not
 * wait if it may not get the objects (pkg/cmd/wait/delete.go). */
static int test_delete_kind(struct cli *c, const struct test_plan *p, const char *kind) {
        const char *label = arena_printf(c->v.a, TEST_PODS_LABEL "=%s", p->run);
        const char *args[] = { "delete",        kind, "-n", p->ns, "-l", label, "--ignore-not-found",
                               "--timeout=120s" };
        const struct kubectl_call call = { .args = args, .n_args = ARRAY_LEN(args), .ignores_ctrl_c = true };
        struct err e;
        if (kubectl_run(&c->kubectl, &call, NULL, &e) == 0)
                return 0;
        command_usage(c, "cannot delete the objects of the test: %s. Run: kubectl delete -n %s -l %s %s",
                      e.msg, p->ns, label, kind);
        return COMMAND_FAILED;
}

/* kubectl deletes nothing if the server does not serve one of the kinds, so each kind has its own call. */
static int test_delete(struct cli *c, const struct test_plan *p) {
        int pods = test_delete_kind(c, p, "pods"),
            domains = test_delete_kind(c, p, "computedomains.resource.nvidia.com");
        return pods ? pods : domains;
}

static int test_run_plan(struct cli *c, struct test_plan *p, int64_t limit_s) {
        _cleanup_(buf_done) struct buf manifest = BUF_INIT(MANIFEST_MAX);
        const char *args[] = { "create", "-n", p->ns, "-f", "-" };
        struct kubectl_call call = { .args = args, .n_args = ARRAY_LEN(args) };
        int r = COMMAND_FAILED;
        struct err e;
        test_pods_manifest(p, &manifest);
        call.input = (struct str){ buf_str(&manifest), manifest.n };
        test_catch_signals();
        /* After an error, some objects may exist. */
        if (kubectl_run(&c->kubectl, &call, NULL, &e) < 0 ||
            test_await(c, p, test_clock_ms() + limit_s * 1000, &e) < 0) {
                command_usage(c, "%s", e.msg);
                r = e.kind == ERR_DENIED ? COMMAND_DENIED : COMMAND_FAILED;
        } else if (!test_interrupted) {
                r = test_report(c, p) ? COMMAND_FINE : COMMAND_PROBLEM;
        }
        if (test_interrupted)
                command_usage(c, "interrupted: deletes what it created");
        command_flush(c);
        int deleted = test_delete(c, p);
        return test_interrupted || deleted ? COMMAND_FAILED : r;
}

static int test_run(struct cli *c) {
        struct inventory inv;
        struct test_plan p;
        int64_t limit_s = LIMIT_S;
        if (c->n_args)
                return command_usage(
                        c, "usage: test [--rack RACK] [--image IMAGE] [--timeout SECONDS] [--dry-run]");
        if (test_timeout && (!str_to_i64(str_from(test_timeout), &limit_s) || limit_s < 1 || limit_s > 86400))
                return command_usage(c, "--timeout is '%s', but must be a number of seconds", test_timeout);
        if (streq(options.output, "json"))
                return command_usage(c, "test has no --output json");
        if (options.from && !test_dry_run)
                return command_usage(c,
                                     "test needs a cluster. With a bundle, it can only print the manifests: "
                                     "--dry-run");
        int r = test_make_plan(c, &inv, &p);
        if (r)
                return r;
        if (test_dry_run) {
                test_pods_manifest(&p, &c->t.out);
                return COMMAND_FINE;
        }
        test_announce(c, &p);
        return test_run_plan(c, &p, limit_s);
}

static const struct option test_options[] = {
        { .name = "rack",
          .type = OPTION_TEXT,
          .dest = &test_rack,
          .value = "RACK",
          .help = "test only the rack with this name or clique ID" },
        { .name = "image",
          .type = OPTION_TEXT,
          .dest = &test_image,
          .value = "IMAGE",
          .help = "an image with a shell; default: the image of the driver, which the nodes already have" },
        { .name = "timeout",
          .type = OPTION_TEXT,
          .dest = &test_timeout,
          .value = "SECONDS",
          .help = "how long to wait for the pods; default: 180" },
        { .name = "dry-run", .type = OPTION_BOOL, .dest = &test_dry_run, .help = "only print the manifests" },
        { 0 },
};

const struct command command_test = {
        .name = "test",
        .args = "",
        .summary = "create pods with a channel on each rack, and check them",
        .text = "Creates a ComputeDomain and up to two pods on each rack, in the namespace that you choose, "
                "with `kubectl create`. Waits until the pods run and have the device of a channel, and "
                "reports for each rack \"ok\" or \"FAIL\" with the cause that `why` names. Then it deletes "
                "what it created, also after Ctrl-C or an error. A rack whose channels are all in use "
                "fails.\n\n"
                "Needs permission to list Nodes and ResourceSlices, and to create, list, watch and delete "
                "pods and "
                "ComputeDomains in the namespace. With permission to get them, it waits until they no longer "
                "exist. The nodes must have the label `nvidia.com/gpu.clique`. "
                "Without permission to read the driver's Deployment, or if its namespace is not known, name "
                "an image with a shell.\n\n"
                "If a run is killed, its objects remain. They have the label `compute-domains-test`.\n\n"
                " kubectl compute-domains test --rack gb200-rack-11 -n team-b\n"
                " kubectl compute-domains test --image busybox:1.36 --dry-run\n"
                " kubectl delete pods,computedomains.resource.nvidia.com -l compute-domains-test -n team-b",
        .options = test_options,
        .reads = true,
        .run = test_run,
};
