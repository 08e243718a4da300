/* SPDX-License-Identifier: Apache-2.0 */
/* play: causes one event of a daemon's Pod or its node in the simulated world, without our controllers. It
 * prints a line for each following change of the Pod, its claim, the Node and its ResourceSlice that a
 * program can see. recorded.py compares the lines with those of a real cluster.
 *
 *   play EVENT SEED
 *
 * Exit status 77: with this seed the event does not apply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "base/stderr.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "faults.h"
#include "looks.h"
#include "plugin.h"
#include "promises.h"
#include "replica.h"
#include "server.h"
#include "sim.h"
#include "stage.h"
#include "transport.h"
#include "world.h"
#include "world_state.h"

/* When the node gets a daemon, when the event happens, and for how long the world runs after it. */
enum { WANTED_MS = 20000, EVENT_MS = 60000, WATCH_MS = 500000, SKIPPED = 77, MOST_PODS = 16 };

struct event {
        const char *name;
        bool (*happen)(void); /* false: it does not apply; NULL: the node is about to get its daemon */
};

static struct {
        uv_loop_t loop;
        const struct event *event;
        bool prints;
        char pods[MOST_PODS][48]; /* names, in the order in which they appeared */
        unsigned n_pods;
} run;

/* ---- visible changes ---- */

static char letter_of(const char *pod) {
        for (unsigned i = 0; i < run.n_pods; i++)
                if (streq(run.pods[i], pod))
                        return (char)('A' + i);
        BUG_ON(run.n_pods == MOST_PODS);
        snprintf(run.pods[run.n_pods], sizeof run.pods[0], "%s", pod);
        return (char)('A' + run.n_pods++);
}

static void print(const char *what, char letter, const char *fact) {
        if (!run.prints)
                return;
        if (letter)
                printf("%s %c: %s\n", what, letter, fact);
        else
                printf("%s: %s\n", what, fact);
}

/* A text of `now` that `was` does not have; NULL: none, or the text is the same. */
static const char *new_text(const struct change *c, const char *pointer) {
        const char *was = c->was ? version_str(c->was, pointer) : NULL, *now = version_str(c->now, pointer);
        return now && !streq(was, now) ? now : NULL;
}

static const char *ready_of(const struct version *v) {
        size_t i, n;
        yyjson_val *x;
        yyjson_arr_foreach (yyjson_ptr_get(v->root, "/status/conditions"), i, n, x)
                if (yyjson_equals_str(yyjson_obj_get(x, "type"), "Ready"))
                        return yyjson_get_str(yyjson_obj_get(x, "status"));
        return NULL;
}

/* An object that was never ready is not printed as not ready. */
static void print_ready(const char *what, char letter, const struct change *c) {
        const char *was = c->was ? ready_of(c->was) : NULL, *now = ready_of(c->now);
        bool is = streq(now, "True");
        if (!streq(was, now) && (is || streq(was, "True")))
                print(what, letter, is ? "ready" : "not ready");
}

static void see_pod(const struct change *c) {
        static const char address[] = "/status/podIPs/0/ip",
                          started[] = "/status/containerStatuses/0/state/running/startedAt",
                          reason[] = "/status/containerStatuses/0/state/waiting/reason";
        if (!c->now->target)
                return; /* the Pod of a plugin */
        char l = letter_of(c->now->name);
        if (c->gone) {
                print("pod", l, "gone");
                return;
        }
        if (!c->was)
                print("pod", l, "created");
        if (c->now->node && (!c->was || !c->was->node))
                print("pod", l, "bound");
        if (new_text(c, address))
                print("pod", l, "an address");
        if (new_text(c, started))
                print("pod", l, "container started");
        if (new_text(c, reason))
                print("pod", l, "container waits");
        print_ready("pod", l, c);
        if (version_deleted(c->now) && !(c->was && version_deleted(c->was)))
                print("pod", l, "deleted");
}

static void see_claim(const struct change *c) {
        if (!streq(c->now->ns, DRIVER_NS))
                return;
        char l = letter_of(c->now->name); /* a claim has the name of its Pod */
        if (c->gone) {
                print("claim", l, "gone");
                return;
        }
        if (!c->was)
                print("claim", l, "created");
        if (c->now->pool && !(c->was && c->was->pool))
                print("claim", l, "allocated");
        if (version_deleted(c->now) && !(c->was && version_deleted(c->was)))
                print("claim", l, "deleted");
}

static void see_node(const struct change *c) {
        if (c->gone)
                print("node", 0, "gone");
        else if (!c->was)
                print("node", 0, "created");
        else if (new_text(c, "/status/nodeInfo/bootID"))
                print("node", 0, "another boot");
        if (!c->gone)
                print_ready("node", 0, c);
}

static void see(enum kind k, const struct change *c) {
        transport_changed(k);
        if (k == K_POD)
                see_pod(c);
        else if (k == K_CLAIM)
                see_claim(c);
        else if (k == K_NODE)
                see_node(c);
        else if (k == K_SLICE && (c->gone || !c->was))
                print("slice", 0, c->gone ? "gone" : "created");
}

/* ---- events ---- */

static struct version *node(void) {
        return store_get(K_NODE, "", "node-0");
}

static const struct version *daemon_pod(void) {
        for (size_t i = 0; i < store_count(K_POD); i++)
                if (store_nth(K_POD, i)->target)
                        return store_nth(K_POD, i);
        return NULL;
}

static void make_template(void *u) {
        world_create(K_TEMPLATE, DRIVER_NS, "{'metadata':{'name':'" CD_DAEMON_OBJECT "'}}");
}

static void wanted(void *u) {
        run.prints = !run.event->happen;
        make_template(NULL);
        world_create(K_SET, DRIVER_NS,
                     "{'metadata':{'name':'" CD_DAEMON_OBJECT
                     "'},'spec':{'template':{'metadata':{'annotations':{'" CD_ANNOTATION_TEMPLATE
                     "':'h'}}}}}");
        world_patch(K_NODE, node(), false, "{'metadata':{'labels':{'" CD_LABEL_DAEMON "':'true'}}}");
}

static bool deleted(void) {
        world_delete(K_POD, daemon_pod(), false);
        return true;
}

static bool force_deleted(void) {
        world_delete(K_POD, daemon_pod(), true);
        return true;
}

static bool killed(void) {
        world_fault("daemon_killed");
        return true;
}

static int64_t off_ms(void) {
        world_fault("power");
        return w.nodes[0].power_ms - sim_now_ms();
}

static bool rebooted(void) {
        return off_ms() < NODE_GRACE_MS * 7 / 8;
}

static bool powered_off(void) {
        return off_ms() > NODE_GRACE_MS * 3 / 2;
}

static bool cut_off(void) {
        world_fault("cut_off");
        return w.nodes[0].connected_ms - sim_now_ms() > NODE_GRACE_MS * 3 / 2;
}

static bool node_deleted(void) {
        world_fault("node_deleted");
        return w.nodes[0].power;
}

static bool node_deleted_off(void) {
        world_fault("node_deleted");
        return !w.nodes[0].power;
}

static bool label_removed(void) {
        world_patch(K_NODE, node(), false, "{'metadata':{'labels':{'" CD_LABEL_DAEMON "':null}}}");
        return true;
}

static bool set_deleted(void) {
        world_delete(K_SET, store_get(K_SET, DRIVER_NS, CD_DAEMON_OBJECT), false);
        return true;
}

static bool template_missing(void) {
        world_delete(K_TEMPLATE, store_get(K_TEMPLATE, DRIVER_NS, CD_DAEMON_OBJECT), false);
        world_delete(K_POD, daemon_pod(), false);
        sim_at(sim_now_ms() + 60000, make_template, NULL);
        return true;
}

static const struct event events[] = {
        { "daemon-wanted", NULL },
        { "daemon-deleted", deleted },
        { "daemon-force-deleted", force_deleted },
        { "daemon-killed", killed },
        { "node-rebooted", rebooted },
        { "node-powered-off", powered_off },
        { "node-cut-off", cut_off },
        { "node-deleted", node_deleted },
        { "node-deleted-while-off", node_deleted_off },
        { "label-removed", label_removed },
        { "set-deleted", set_deleted },
        { "template-missing", template_missing },
};

static void happen(void *u) {
        BUG_ON(!run.event->happen || !daemon_pod());
        run.prints = true;
        if (!run.event->happen())
                stage_end(SKIPPED);
}

/* ---- the program ---- */

static const struct event *event_named(const char *name) {
        for (size_t i = 0; i < ARRAY_LEN(events); i++)
                if (streq(events[i].name, name))
                        return &events[i];
        return NULL;
}

int main(int argc, char **argv) {
        const struct event *e = run.event = argc == 3 ? event_named(argv[1]) : NULL;
        if (!e) {
                fprintf(stderr, "play EVENT SEED\n");
                for (size_t i = 0; i < ARRAY_LEN(events); i++)
                        fprintf(stderr, "  %s\n", events[i].name);
                return EXIT_FAILURE;
        }
        clearenv(); /* the programs read the environment */
        sim_seed(strtoull(argv[2], NULL, 10));
        sim_log_show(false);
        stage_begin(&run.loop, see, 1, 0);
        sim_at(WANTED_MS, wanted, NULL);
        if (e->happen)
                sim_at(EVENT_MS, happen, NULL);
        bool good = stage_run(&run.loop, EVENT_MS + WATCH_MS);
        if (!good)
                fprintf(stderr, "broken: %s\n", sim_first_broken());
        stage_end(good ? EXIT_SUCCESS : EXIT_FAILURE);
}
