/* SPDX-License-Identifier: Apache-2.0 */
/* causes: asks the kubectl plugin why pods wait, in simulated clusters with exactly one fault. It must never
 * name another cause, and with admin rights it must nearly always name the cause.
 *
 *   causes [--seeds FIRST-LAST] [--jobs N] [--fault NAME] [--log] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "answers.h"
#include "api/names.h"
#include "ask.h"
#include "channels.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "faults.h"
#include "imex.h"
#include "looks.h"
#include "plugin.h"
#include "promises.h"
#include "replica.h"
#include "server.h"
#include "sim.h"
#include "stage.h"
#include "transport.h"
#include "world/cached_members.h"
#include "world.h"
#include "world_state.h"

/* Users begin at BEGIN_MS. A pod counts if it has waited for WAITED_MS, so that the programs had the time to
 * report. The questions are asked every EVERY_MS until END_MS. */
enum {
        BEGIN_MS = 20000,
        WAITED_MS = 75000,
        EVERY_MS = 35000,
        END_MS = 260000,
        COMPARE_MS = 3000,
        LOOK_MS = 100,
        NODES = 6,
        DOMAINS = 4
};
enum { MOST_UNKNOWN_PERCENT = 5 };

struct counts {
        unsigned asked, right, wrong, unknown;
};
struct results {
        struct counts admin, user;
        unsigned compared; /* ComputeDomains with members */
};

/* ---- the faults ---- */

static struct {
        const struct fault_sort *fault;
        int node; /* the node with the fault; -1: none, or all */
        bool struck, log;
        struct answers options;
        struct results *results;
        uv_loop_t loop;
} run;

static void every_plugin_withholds(void) {
        for (unsigned i = 0; i < w.n_nodes; i++)
                plugin_withhold(i);
}

static void every_node_is_cordoned(void) {
        for (unsigned i = 0; i < w.n_nodes; i++) {
                w.nodes[i].cordoned = true;
                world_patch(K_NODE, store_get(K_NODE, "", w.nodes[i].name), false,
                            "{'spec':{'unschedulable':true}}");
        }
}

static void nothing(void) {
}

static void controllers_end(void) {
        replicas_end();
        run.options.no_controller = true;
}

static void templates_are_refused(void) {
        faults_refuse(K_TEMPLATE);
}

static void fabrics_are_refused(void) {
        faults_refuse(K_FABRIC);
}

static void daemons_are_refused(void) {
        w.refuses_daemons = true;
}

static void daemons_crash(void) {
        w.daemons_crash = true;
}

static void nodes_are_refused(void) {
        faults_refuse(K_NODE);
}

static void fabrics_are_forbidden(void) {
        for (unsigned i = 0; i < w.n_nodes; i++)
                faults_forbid(K_FABRIC, REPLICAS + i);
}

static void claims_are_forbidden(void) {
        for (unsigned i = 0; i < w.n_nodes; i++)
                faults_forbid(K_CLAIM, REPLICAS + i);
}

static void claims_are_refused(void) {
        w.refuses_claims = true;
}

static void imex_hangs(void) {
        run.node = (int)sim_draw(w.n_nodes);
        imex_hang((unsigned)run.node);
}

static void misspell(void) {
        replicas_end();
        run.options.misspelt = true;
}

static void images_fail(void) {
        run.options.image_fails = true;
}

static void imex_breaks(void) {
        run.node = (int)sim_draw(w.n_nodes);
        imex_break((unsigned)run.node);
}

/* The node of the first pod that starts; -1: none starts yet. */
static int starting_node(void) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++)
                        if (w.domains[d].pods[i].state == POD_ALLOCATED)
                                return (int)number_of(w.domains[d].pods[i].node);
        return -1;
}

static void plugin_dies(void) {
        plugin_kill((unsigned)run.node, false);
}

static void power_fails(void) {
        lose_power(&w.nodes[run.node], INT32_MAX);
}

static void node_is_cut_off(void) {
        w.nodes[run.node].connected = false;
        w.nodes[run.node].connected_ms = 0;
}

static void domain_is_deleted(void) {
        for (unsigned d = 0; d < w.n_domains; d++) {
                const struct version *v = object_of(&w.domains[d]);
                for (unsigned i = 0; v && i < w.domains[d].n_pods; i++)
                        if (w.domains[d].pods[i].state == POD_CLAIMED) {
                                world_delete(K_DOMAIN, v, false);
                                run.node = (int)d; /* a ComputeDomain here */
                                return;
                        }
        }
}

/* The users' pods may run only on the first nodes. */
static void exclude_nodes_from(unsigned first, enum answers_rule rule) {
        run.options.rule = rule;
        for (unsigned i = 0; i < w.n_nodes; i++) {
                const struct version *v = store_get(K_NODE, "", w.nodes[i].name);
                w.nodes[i].excluded = i >= first;
                if (!w.nodes[i].excluded)
                        world_patch(K_NODE, v, false,
                                    "{'metadata':{'labels':{'" ANSWERS_LABEL "':'" ANSWERS_LABEL_VALUE
                                    "'}}}");
                else if (rule == ANSWERS_TAINT)
                        world_patch(K_NODE, v, false,
                                    "{'spec':{'taints':[{'key':'" ANSWERS_TAINT_KEY
                                    "','value':'x','effect':'NoSchedule'}]}}");
        }
}

static void selector_matches_no_node(void) {
        exclude_nodes_from(0, ANSWERS_NODE_SELECTOR);
}

static void every_node_is_tainted(void) {
        exclude_nodes_from(0, ANSWERS_TAINT);
}

static void affinity_matches_no_pod(void) {
        exclude_nodes_from(0, ANSWERS_POD_AFFINITY);
}

static void anti_affinity_excludes_every_node(void) {
        exclude_nodes_from(0, ANSWERS_POD_ANTI_AFFINITY);
}

static void node_affinity_matches_one_node(void) {
        exclude_nodes_from(1, ANSWERS_NODE_AFFINITY);
}

static void all_nodes_but_one_are_tainted(void) {
        exclude_nodes_from(1, ANSWERS_TAINT);
}

static void the_selected_node_withholds(void) {
        plugin_withhold(0);
        exclude_nodes_from(1, ANSWERS_NODE_SELECTOR);
}

static struct user_pod *pod_in_state(enum state state, unsigned *ret_domain) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++)
                        if (w.domains[d].pods[i].state == state) {
                                *ret_domain = d;
                                return &w.domains[d].pods[i];
                        }
        return NULL;
}

/* A pod that waits gets the channel device, and so the index, of one that runs, as after the restore of an
 * etcd in which that one does not have it yet. */
static void an_earlier_holder_stays(void) {
        unsigned d, other;
        struct user_pod *next = pod_in_state(POD_CLAIMED, &d), *old = pod_in_state(POD_RUNS, &other);
        run.node = (int)w.n_nodes; /* none */
        if (!next || !old)
                return;
        const struct version *claim = store_get(K_CLAIM, USER_NS, old->claim);
        _cleanup_(freep) char *device = xstrdup(claim->device);
        allocate(next->claim, USER_NS, old->node->name, device, "ComputeDomainChannelConfig",
                 w.domains[d].uid, next->own, next->claim);
        next->node = old->node;
        next->state = POD_ALLOCATED;
        next->since_ms = sim_now_ms();
        run.node = (int)number_of(next->node);
}

/* When a fault strikes: before anything runs, before the users begin, or at the first pod that starts, or
 * when all have begun. */
enum when { AT_BEGIN, AT_ONCE, AT_START, LATER };
static const struct fault_sort {
        const char *name;
        void (*strike)(void);
        enum when when;
        enum answers_state state; /* the pods that it keeps waiting */
        const char *truth[5];     /* the causes that `why` may name */
        bool hidden; /* without the rights of an admin, `why` sees only what the plugin waits for */
} faults[] = {
        { "channels_in_use", nothing, AT_ONCE, ANSWERS_NO_NODE, { "NoFreeChannel" } },
        { "channels_withheld", every_plugin_withholds, AT_ONCE, ANSWERS_NO_NODE, { "FabricError" } },
        { "nodes_cordoned",
          every_node_is_cordoned,
          AT_ONCE,
          ANSWERS_NO_NODE,
          { "NoFreeChannel", "SchedulingFailed" } },
        { "selector_matches_none",
          selector_matches_no_node,
          AT_ONCE,
          ANSWERS_NO_NODE,
          { "SchedulingFailed" } },
        { "taint_on_all", every_node_is_tainted, AT_ONCE, ANSWERS_NO_NODE, { "SchedulingFailed" } },
        { "affinity_to_none", affinity_matches_no_pod, AT_ONCE, ANSWERS_NO_NODE, { "SchedulingFailed" } },
        { "anti_affinity_to_all",
          anti_affinity_excludes_every_node,
          AT_ONCE,
          ANSWERS_NO_NODE,
          { "SchedulingFailed" } },
        { "affinity_to_one_node",
          node_affinity_matches_one_node,
          AT_ONCE,
          ANSWERS_NO_NODE,
          { "NoFreeChannel" } },
        { "taint_on_others", all_nodes_but_one_are_tainted, AT_ONCE, ANSWERS_NO_NODE, { "NoFreeChannel" } },
        { "selected_withholds", the_selected_node_withholds, AT_ONCE, ANSWERS_NO_NODE, { "FabricError" } },
        { "holder_stays",
          an_earlier_holder_stays,
          LATER,
          ANSWERS_STARTS,
          { "device-held", "device-held-channels", "NodeOccupied" } },
        { "no_controller", controllers_end, AT_ONCE, ANSWERS_NO_CLAIM, { "NoController" } },
        { "templates_refused", templates_are_refused, AT_ONCE, ANSWERS_NO_CLAIM, { "WriteFailed" } },
        { "template_misspelt", misspell, AT_ONCE, ANSWERS_NO_CLAIM, { "ClaimTemplateNotFound" } },
        { "domain_deleted",
          domain_is_deleted,
          LATER,
          ANSWERS_NO_NODE,
          { "domain-deleting", "no-computedomain" } },
        { "fabrics_refused", fabrics_are_refused, AT_ONCE, ANSWERS_STARTS, { "WriteFailed", "Waiting" } },
        { "daemons_refused", daemons_are_refused, AT_BEGIN, ANSWERS_STARTS, { "DaemonNotCreated" }, true },
        { "daemons_crash", daemons_crash, AT_BEGIN, ANSWERS_STARTS, { "DaemonNotRunning" }, true },
        { "nodes_refused",
          nodes_are_refused,
          AT_BEGIN,
          ANSWERS_STARTS,
          { "WriteFailed", "DaemonNotCreated" },
          true },
        { "fabrics_forbidden", fabrics_are_forbidden, AT_BEGIN, ANSWERS_STARTS, { "fabric-unreadable" } },
        { "claims_forbidden", claims_are_forbidden, AT_BEGIN, ANSWERS_STARTS, { "claim-unreadable" } },
        { "claims_refused", claims_are_refused, AT_BEGIN, ANSWERS_NO_CLAIM, { "ClaimNotCreated" } },
        { "imex_hangs", imex_hangs, AT_ONCE, ANSWERS_STARTS, { "daemon-not-ready" } },
        { "imex_breaks", imex_breaks, AT_ONCE, ANSWERS_STARTS, { "no-address" } },
        { "plugin_dies", plugin_dies, AT_START, ANSWERS_STARTS, { "NoPlugin" } },
        { "power_fails", power_fails, AT_START, ANSWERS_STARTS, { "NodeDown", "NodeLost" } },
        { "node_cut_off", node_is_cut_off, AT_START, ANSWERS_STARTS, { "NodeDown", "NodeLost" } },
        { "image_fails", images_fail, AT_ONCE, ANSWERS_RUNS, { "ContainerFailed" } },
};

/* Whether the fault is the only reason why this pod waits. */
static bool is_concerned(const struct answers_pod *p) {
        if (p->state != run.fault->state || p->since_ms < WAITED_MS || !run.struck)
                return false;
        if (run.fault->strike == domain_is_deleted)
                return run.node == (int)p->domain;
        return run.node < 0 || p->node == run.node;
}

/* ---- the questions ---- */

static bool is_true(const char *cause, bool admin) {
        if (!admin && run.fault->hidden && (streq(cause, "no-daemon-yet") || streq(cause, "no-assignment")))
                return true;
        for (size_t i = 0; i < ARRAY_LEN(run.fault->truth) && run.fault->truth[i]; i++)
                if (streq(run.fault->truth[i], cause))
                        return true;
        return false;
}

static void judge(const struct ask_answer *a, const char *pod, const char *who, const char *text,
                  struct counts *c) {
        const char *wrong = NULL;
        unsigned named = 0;
        for (size_t i = 0; i < a->n; i++) {
                bool unknown = streq(a->causes[i], "UnknownCause");
                if (!unknown && !is_true(a->causes[i], streq(who, "admin")))
                        wrong = a->causes[i];
                named += !unknown;
        }
        c->asked++;
        if (wrong)
                c->wrong++;
        else if (named)
                c->right++;
        else
                c->unknown++;
        if (wrong || run.log || (!named && streq(who, "admin")))
                printf("%s: at %.1f s, pod %s, rights of %s: %s %s\n%s", run.fault->name,
                       (double)sim_now_ms() / 1000, pod, who,
                       wrong   ? "WRONG"
                       : named ? "right"
                               : "unknown",
                       str_or(wrong, ""), text);
}

static void ask(const struct answers_pod *p, bool admin, struct counts *c) {
        struct answers s;
        struct ask_answer answer;
        struct buf text = BUF_INIT(1 << 16);
        answers_init(&s);
        s.admin = admin;
        s.image_fails = run.options.image_fails;
        s.misspelt = run.options.misspelt;
        s.rule = run.options.rule;
        s.no_controller = run.options.no_controller;
        ask_why(&s.source, USER_NS, p->name, &answer, &text);
        judge(&answer, p->name, admin ? "admin" : "view", buf_str(&text), c);
        buf_done(&text);
}

/* failure: the kubectl plugin reads the lists of a recorded cluster -> it sees the members of the controller
 * [simulation] */
static void compare_members(void) {
        struct answers s;
        for (unsigned d = 0; d < w.n_domains; d++) {
                _cleanup_(freep) char *difference = NULL;
                size_t n;
                answers_init(&s);
                s.admin = true;
                enum cached_members result =
                        cached_members_compare(&s.source, USER_NS, w.domains[d].name, &n, NULL, &difference);
                if (result == CACHED_MEMBERS_DIFFER)
                        sim_broken("the members of ComputeDomain %s: %s", w.domains[d].name, difference);
                run.results->compared += result == CACHED_MEMBERS_EQUAL && n;
        }
}

static void on_compare(void *u) {
        compare_members();
        sim_at(sim_now_ms() + COMPARE_MS, on_compare, NULL);
}

/* failure: one fault keeps pods waiting in the simulation -> `why` names no other cause [simulation] */
static void on_ask(void *u) {
        struct answers_pod p;
        for (unsigned i = 0; answers_pod(i, &p); i++)
                if (is_concerned(&p)) {
                        ask(&p, true, &run.results->admin);
                        ask(&p, false, &run.results->user);
                }
        sim_at(sim_now_ms() + EVERY_MS, on_ask, NULL);
}

static void look(void *u) {
        answers_note();
        if (!run.struck && run.fault->when == AT_START && starting_node() >= 0) {
                run.node = starting_node();
                run.struck = true;
                run.fault->strike();
        }
        sim_at(sim_now_ms() + LOOK_MS, look, NULL);
}

static void strike(void *u) {
        run.struck = true;
        run.fault->strike();
}

static void users_begin(void *u) {
        for (unsigned i = 0; i < w.n_domains; i++)
                w.domains[i].next_ms = 0;
}

/* ---- the program ---- */

static void on_changed(enum kind k, const struct change *c) {
        promises_look(k, c);
        transport_changed(k);
}

/* Runs in its own process. */
static void simulate_one(const struct fault_sort *f, uint64_t seed, struct results *r, bool log) {
        run.fault = f;
        run.node = -1;
        run.results = r;
        run.log = log;
        clearenv(); /* the programs read the environment */
        sim_seed(seed);
        sim_log_show(log);
        /* Isolation "domain"; "channel" with daemons; host-managed with "channel". */
        if (seed % 3 != 1)
                channels_use(DOMAINS, seed % 3 == 2);
        stage_begin(&run.loop, on_changed, NODES, DOMAINS);
        stage_start_replicas(&run.loop);
        world_calm();
        for (unsigned i = 0; i < w.n_domains; i++)
                w.domains[i].next_ms = INT64_MAX;
        sim_at(BEGIN_MS, users_begin, NULL);
        if (f->when == AT_BEGIN)
                strike(NULL);
        if (f->when == AT_ONCE)
                sim_at(BEGIN_MS - 5000, strike, NULL);
        if (f->when == LATER)
                sim_at(BEGIN_MS + 60000, strike, NULL);
        sim_at(BEGIN_MS + WAITED_MS, on_ask, NULL);
        sim_at(BEGIN_MS, on_compare, NULL);
        look(NULL);
        bool good = stage_run(&run.loop, END_MS);
        if (!good)
                printf("%s, seed %llu: BROKEN %s\n", f->name, (unsigned long long)seed, sim_first_broken());
        stage_end(good ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void add(struct counts *sum, const struct counts *c) {
        sum->asked += c->asked;
        sum->right += c->right;
        sum->wrong += c->wrong;
        sum->unknown += c->unknown;
}

static void print(const char *what, const struct results *r) {
        printf("%-20s admin: %4u states, %4u right, %2u wrong, %3u unknown; view: %4u right, %2u wrong, %3u "
               "unknown\n",
               what, r->admin.asked, r->admin.right, r->admin.wrong, r->admin.unknown, r->user.right,
               r->user.wrong, r->user.unknown);
}

static int simulate_all(uint64_t first, uint64_t last, unsigned jobs, const char *only, bool log) {
        struct results all = { 0 };
        struct stage_processes p = { .jobs = jobs };
        unsigned missing = 0;
        for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
                if (only && !streq(only, faults[i].name))
                        continue;
                struct results *own = mmap(NULL, sizeof *own * (size_t)(last - first + 1),
                                           PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                BUG_ON(own == MAP_FAILED);
                for (uint64_t seed = first; seed <= last; seed++)
                        if (stage_fork(&p))
                                simulate_one(&faults[i], seed, &own[seed - first], log);
                stage_wait(&p);
                struct results sum = { 0 };
                for (uint64_t seed = first; seed <= last; seed++) {
                        add(&sum.admin, &own[seed - first].admin);
                        add(&sum.user, &own[seed - first].user);
                        all.compared += own[seed - first].compared;
                }
                print(faults[i].name, &sum);
                missing += !sum.admin.asked;
                add(&all.admin, &sum.admin);
                add(&all.user, &sum.user);
        }
        print("all", &all);
        printf("the members of %u ComputeDomains are equal from lists and from caches\n", all.compared);
        if (missing)
                printf("%u faults kept no pod waiting\n", missing);
        return !p.failed && !missing && !all.admin.wrong && !all.user.wrong &&
                               all.admin.unknown * 100 < all.admin.asked * MOST_UNKNOWN_PERCENT
                       ? EXIT_SUCCESS
                       : EXIT_FAILURE;
}

int main(int argc, char **argv) {
        unsigned long long first = 1, last = 2;
        unsigned jobs = 2;
        const char *only = NULL;
        bool log = false;
        for (int i = 1; i < argc; i++) {
                const char *value = i + 1 < argc ? argv[i + 1] : "";
                if (streq(argv[i], "--log"))
                        log = true;
                else if (streq(argv[i], "--seeds") && sscanf(value, "%llu-%llu", &first, &last) == 2)
                        i++;
                else if (streq(argv[i], "--jobs") && sscanf(value, "%u", &jobs) == 1 && jobs)
                        i++;
                else if (streq(argv[i], "--fault") && *value)
                        only = argv[++i];
                else
                        return fprintf(stderr,
                                       "causes [--seeds FIRST-LAST] [--jobs N] [--fault NAME] [--log]\n"),
                               2;
        }
        return simulate_all(first, last, jobs, only, log);
}
