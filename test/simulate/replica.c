/* SPDX-License-Identifier: Apache-2.0 */
#include "replica.h"

#include <stdio.h>

#include "api/names.h"
#include "base/stderr.h"
#include "base/mem.h"
#include "controller/checks.h"
#include "controller/config.h"
#include "controller/controller.h"
#include "faults.h"
#include "kube/leader.h"
#include "channels.h"
#include "clocks.h"
#include "crashing.h"
#include "daemon.h"
#include "racks.h"
#include "sim.h"
#include "workloads.h"
#include "world.h"

enum { EVENTS_FLUSH_MS = 1500, LEASE_EXCUSE_MS = 20000, UPGRADE_MS = 200000 };

static const char *const arguments[] = { "controller",
                                         "--pod-name=controller",
                                         "--namespace=" DRIVER_NS,
                                         "--leader-election-enabled",
                                         "--leader-election-lease-lock-namespace=" DRIVER_NS,
                                         "--image-name=image",
                                         "--log-verbosity-cd-daemon=2",
                                         "--apply-crds=false",
                                         "--max-nodes-per-imex-domain=18",
                                         "--imex-isolation=domain",
                                         "--feature-gates=",
                                         "--kubelet-plugin-selector=",
                                         "--rack-domains=false",
                                         "--auto-domains=false",
                                         "--fresh-pod-per-domain=false" };

struct life {
        unsigned i;
        bool over;
        struct config config;
        struct kube_client *client;
        struct event_recorder *events;
        struct metrics *metrics;
        struct leader *leader;
        struct controller controller;
        char *identity, *earlier;
        char *arguments[ARRAY_LEN(arguments) + 1]; /* the configuration has pointers into them */
};

static struct {
        struct life *now; /* NULL: the replica does not run */
        unsigned lives, pods;
        uv_loop_t *loop;
} replicas[REPLICAS];
static bool ending, fresh_pods;
static bool scaled_down; /* the Deployment has no replicas */

void replicas_use_fresh_pods(void) {
        fresh_pods = true;
}

bool replicas_fresh_pods(void) {
        return fresh_pods;
}

/* ---- the end ---- */

static void begin_again(void *u) {
        unsigned i = (unsigned)(uintptr_t)u;
        if (!ending && !scaled_down && !replicas[i].now)
                replica_start(i, replicas[i].loop);
}

/* The closing handles are in it. */
static void on_closed(void *u) {
        struct life *l = u;
        metrics_free(l->metrics);
        config_done(&l->config);
        for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
                free(l->arguments[i]);
        free(l->identity);
        free(l->earlier);
        free(l);
}

static void bury(struct life *l) {
        event_recorder_free(TAKE(l->events));
        leader_free(TAKE(l->leader));
        kube_client_free(TAKE(l->client));
        replicas[l->i].now = NULL;
        sim_at(sim_now_ms() + 1, on_closed, l);
        if (!ending)
                sim_at(sim_now_ms() + sim_between(500, 15000), begin_again, (void *)(uintptr_t)l->i);
}

static void on_flushed(void *u) {
        bury(u);
}

static void on_released(void *u) {
        struct life *l = u;
        event_recorder_flush(l->events, EVENTS_FLUSH_MS, on_flushed, l);
}

static void end(struct life *l) {
        if (l->over)
                return;
        l->over = true;
        controller_stop(&l->controller);
        if (l->leader)
                leader_release(l->leader, on_released, l);
        else
                on_released(l);
}

void replica_stop(unsigned i) {
        if (!replicas[i].now)
                return;
        sim_log("controller-%u gets SIGTERM", i);
        end(replicas[i].now);
}

void replicas_scale(bool up) {
        scaled_down = !up;
        sim_log("the Deployment of the controllers has %d replicas", up ? REPLICAS : 0);
        for (unsigned i = 0; i < REPLICAS; i++) {
                if (up)
                        sim_at(sim_now_ms() + sim_between(0, 5000), begin_again, (void *)(uintptr_t)i);
                else
                        replica_stop(i);
        }
}

void replica_kill(unsigned i) {
        struct life *l = replicas[i].now;
        if (!l || l->over)
                return;
        sim_log("controller-%u is killed", i);
        l->over = true;
        controller_stop(&l->controller);
        bury(l);
}

void replicas_end(void) {
        ending = true;
        for (unsigned i = 0; i < REPLICAS; i++)
                replica_kill(i);
}

void replicas_dump(void) {
        for (unsigned i = 0; i < REPLICAS; i++)
                if (replicas[i].now && !replicas[i].now->over)
                        controller_dump(&replicas[i].now->controller);
}

/* ---- leading ---- */

bool replica_leads(unsigned i) {
        const struct life *l = replicas[i].now;
        return l && !l->over && l->controller.leading;
}

const char *replicas_misses(void) {
        if (scaled_down)
                return "the Deployment of the controllers has 0 replicas";
        for (unsigned i = 0; i < REPLICAS; i++)
                if (replica_leads(i))
                        return NULL;
        return "no controller leads";
}

/* The Lease of running controllers is an earlier one. Another controller may take it before the leader fails
 * to renew its own. All writes of both have preconditions. */
static bool lease_was_restored(void) {
        return faults_careless() && faults_served_ms() >= 0 &&
               sim_now_ms() - faults_served_ms() < LEASE_EXCUSE_MS;
}

/* failure: any faults meet in the simulation -> two controllers never lead at once, except after restores
 * while they run [simulation] */
static void on_started(void *u) {
        struct life *l = u;
        sim_log("controller-%u leads", l->i);
        controller_lead(&l->controller);
        for (unsigned i = 0; i < REPLICAS; i++)
                if (i != l->i && replica_leads(i) && !lease_was_restored())
                        sim_broken("both controllers lead");
}

/* failure: no fault prevents the renewal of a Lease -> no leader loses it [simulation] */
static void on_lost(void *u) {
        struct life *l = u;
        sim_log("controller-%u has lost its Lease", l->i);
        if (!faults_touched_lease(l->i, sim_now_ms() - LEASE_EXCUSE_MS))
                sim_broken("controller-%u lost its Lease although no fault prevented the renewal", l->i);
        end(l);
}

static void elect(void *u) {
        struct life *l = u;
        l->leader = leader_new(&(struct leader_options){
                .client = l->client,
                .ns = l->config.lease_ns,
                .name = l->config.lease_name,
                .identity = l->identity,
                .earlier = l->earlier,
                .duration_ms = (unsigned)l->config.lease_duration_ms,
                .renew_deadline_ms = (unsigned)l->config.renew_deadline_ms,
                .retry_ms = (unsigned)l->config.retry_period_ms,
                .started = on_started,
                .lost = on_lost,
                .u = l,
        });
}

/* In place of the controller's, because a failed check ends a test. */
void checks_failed(struct controller *c, enum checks_rule rule, const struct event_about *about,
                   const char *why) {
        sim_broken("a decision (%s) about %s %s is wrong: %s", checks_rule_name(rule), about->kind,
                   about->name, why);
}

/* ---- the start ---- */

static void set_flag(struct life *l, const char *flag, const char *value) {
        for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
                if (str_starts(l->arguments[i], flag)) {
                        free(l->arguments[i]);
                        l->arguments[i] = xasprintf("%s=%s", flag, value);
                }
}

static unsigned versions(void) {
        static unsigned n;
        static int64_t next_ms;
        if (sim_now_ms() >= next_ms && !world_is_calm()) {
                n++;
                next_ms = sim_now_ms() + UPGRADE_MS;
        }
        return n;
}

static void start(unsigned i, uv_loop_t *loop) {
        struct life *l = xnew(struct life);
        struct err e;
        char server[32], slots[16], image[32];
        snprintf(server, sizeof server, "http://controller-%u", i);
        struct kube_config kc = { .server = server };
        replicas[i].now = l;
        replicas[i].loop = loop;
        l->i = i;
        replicas[i].pods += sim_chance(50); /* a new Pod, or a restarted container */
        l->earlier = xasprintf("controller-%u.%u-", i, replicas[i].pods);
        l->identity = xasprintf("%s%u", l->earlier, replicas[i].lives++);
        l->metrics = metrics_new();
        for (size_t k = 0; k < ARRAY_LEN(arguments); k++)
                l->arguments[k] = xstrdup(arguments[k]);
        if (racks_used())
                set_flag(l, "--rack-domains", "true");
        if (workloads_used())
                set_flag(l, "--auto-domains", "true");
        if (fresh_pods)
                set_flag(l, "--fresh-pod-per-domain", "true");
        if (!channels_of_host()) {
                /* As few as necessary, so that an index is soon reused. With racks, nodes move to another
                 * partition. */
                snprintf(slots, sizeof slots, "%u",
                         world_nodes() < NODES_OF_CLIQUE || racks_used() ? world_nodes() : NODES_OF_CLIQUE);
                set_flag(l, "--max-nodes-per-imex-domain", slots);
                /* The chart is upgraded now and then. Each replica keeps the version with which it
                 * started. */
                if (crashing_used())
                        snprintf(image, sizeof image, "%s", crashing_image());
                else
                        snprintf(image, sizeof image, "image:%u", versions());
                set_flag(l, "--image-name", image);
        }
        if (channels_used())
                set_flag(l, "--imex-isolation", "channel");
        if (channels_of_host())
                set_flag(l, "--feature-gates", "HostManagedIMEX=true");
        set_flag(l, "--kubelet-plugin-selector", "app=" CHANNELS_LABEL);
        BUG_ON(config_load(&l->config, ARRAY_LEN(arguments), l->arguments, &e) < 0);
        BUG_ON(kube_client_new(loop,
                               &(struct kube_client_options){ .config = &kc,
                                                              .user_agent = "controller",
                                                              .qps = (double)l->config.qps,
                                                              .burst = (unsigned)l->config.burst,
                                                              .metrics = l->metrics,
                                                              .metrics_prefix = CD_METRICS_PREFIX },
                               &l->client, &e) < 0);
        l->events = event_recorder_new(l->client, "compute-domain-controller", NULL);
        sim_log("controller-%u starts", i);
        controller_start(&l->controller, &(struct controller_options){ &l->config, l->client, l->events,
                                                                       l->metrics, elect, l });
}

void replica_start(unsigned i, uv_loop_t *loop) {
        int64_t before = sim_clock_set(clocks_ahead_s(i));
        start(i, loop);
        sim_clock_set(before);
}
