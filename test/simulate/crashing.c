/* SPDX-License-Identifier: Apache-2.0 */
#include "crashing.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "lying.h"
#include "replica.h"
#include "sim.h"
#include "world_state.h"

#define BAD "crashing:"
/* The longest time by which a cache is behind the store. */
enum { DECIDED_MS = 30000 };

static bool used, calm;
static char image[32], good[32]; /* the present image, and the last good one */
static unsigned serial;

void crashing_use(void) {
        used = true;
}

bool crashing_used(void) {
        return used;
}

const char *crashing_image(void) {
        return image;
}

bool crashing_is_bad(const char *name) {
        return name && str_starts(name, BAD);
}

/* ---- upgrades ---- */

static void on_stop(void *u) {
        if (!calm)
                replica_stop((unsigned)(uintptr_t)u);
}

/* The controllers get the image one after the other. */
static void release(const char *name) {
        unsigned first = (unsigned)sim_draw(REPLICAS);
        snprintf(image, sizeof image, "%s", name);
        if (!crashing_is_bad(name) && name != good)
                snprintf(good, sizeof good, "%s", name);
        sim_log("the image is %s", image);
        for (unsigned i = 0; i < REPLICAS; i++)
                sim_at(sim_now_ms() + (i ? sim_between(0, 20000) : 0), on_stop,
                       (void *)(uintptr_t)((first + i) % REPLICAS));
}

static void on_upgrade(void *u) {
        char name[32];
        if (calm)
                return;
        snprintf(name, sizeof name, "%s%u", sim_chance(60) ? BAD : "image:", ++serial);
        release(crashing_is_bad(image) && sim_chance(50) ? good : name);
        sim_at(sim_now_ms() + sim_between(5000, 150000), on_upgrade, NULL);
}

void crashing_begin(void) {
        if (!used)
                return;
        snprintf(good, sizeof good, "image:0");
        snprintf(image, sizeof image, "%s", good);
        sim_at(sim_between(1000, 100000), on_upgrade, NULL);
}

void crashing_calm(void) {
        if (!used)
                return;
        calm = true;
        snprintf(image, sizeof image, "%s", good);
        for (unsigned i = 0; i < REPLICAS; i++)
                replica_stop(i);
}

/* ---- the promise ---- */

/* Since the template got its image: on which nodes it has replaced a good daemon, and which daemons were
 * marked before. A mark is never withdrawn. */
static struct {
        char image[32];
        bool deleted[MAX_NODES], replaced[MAX_NODES];
        char **marked;
        size_t n_marked;
} period;

static void forget_marks(void) {
        for (size_t i = 0; i < period.n_marked; i++)
                free(period.marked[i]);
        free(period.marked);
        period.marked = NULL;
        period.n_marked = 0;
}

static void note_marks(void) {
        size_t i, max;
        yyjson_val *x;
        for (size_t f = 0; f < store_count(K_FABRIC); f++)
                yyjson_arr_foreach (yyjson_obj_get(store_nth(K_FABRIC, f)->root, "removals"), i, max, x) {
                        period.marked =
                                xrealloc(period.marked, (period.n_marked + 1) * sizeof *period.marked);
                        period.marked[period.n_marked++] =
                                xstrdup(str_or(yyjson_get_str(yyjson_obj_get(x, "podUID")), ""));
                }
}

static void look_at_set(const struct change *c) {
        const char *now = c->gone ? NULL : version_str(c->now, "/spec/template/spec/containers/0/image");
        if (!now || streq(now, period.image))
                return;
        snprintf(period.image, sizeof period.image, "%s", now);
        memset(period.deleted, 0, sizeof period.deleted);
        memset(period.replaced, 0, sizeof period.replaced);
        forget_marks();
        note_marks();
        sim_log("the image of the template is %s", now);
}

static bool was_marked(const char *uid) {
        for (size_t i = 0; i < period.n_marked; i++)
                if (streq(period.marked[i], uid))
                        return true;
        return false;
}

/* The plugin has unprepared the daemon claim, so the daemon cannot restart: it is replaced in any case. */
static bool is_spent(const struct version *pod) {
        const struct version *claim = store_get(K_CLAIM, DRIVER_NS, pod->name);
        for (size_t i = 0; claim && i < store_count(K_POD); i++)
                if (streq(version_annotation(store_nth(K_POD, i), IMEX_ANNOTATION_UNPREPARED), claim->uid))
                        return true;
        return false;
}

static bool is_down(const struct version *pod) {
        return version_str(pod, "/status/containerStatuses/0/state/waiting/reason");
}

/* The container waits for its restart, or did when the controller decided. Such a daemon runs no IMEX, and is
 * replaced at once. */
static bool was_down(const struct version *pod) {
        const struct change *list;
        size_t n = store_history(K_POD, &list);
        for (size_t i = n; i-- > 0 && sim_now_ms() - list[i].ms < DECIDED_MS;)
                if (streq(list[i].now->uid, pod->uid) && is_down(list[i].now))
                        return true;
        return is_down(pod);
}

/* The rollout does not wait for a daemon on a node that is not ready, and a node without the label gets no
 * daemon. */
static void look_at_node(const struct change *c) {
        unsigned i = number_of(node_named(c->now->name));
        bool ready = !c->gone && streq(version_str(c->now, "/status/conditions/0/status"), "True");
        if (!ready)
                period.replaced[i] = false;
        if (!ready || !version_label(c->now, CD_LABEL_DAEMON))
                period.deleted[i] = false;
}

static unsigned count_replaced(void) {
        unsigned n = 0;
        for (unsigned i = 0; i < w.n_nodes; i++)
                n += period.replaced[i];
        return n;
}

static void look_at_new_pod(const struct version *pod) {
        unsigned most = w.n_nodes / 10 ? w.n_nodes / 10 : 1, i = number_of(node_named(pod->target));
        if (!period.deleted[i] || !crashing_is_bad(version_str(pod, "/spec/image")))
                return;
        period.deleted[i] = false;
        period.replaced[i] = true;
        sim_log("a template whose daemons crash replaces the daemon on %s", pod->target);
        if (count_replaced() > most)
                sim_broken("a template whose daemons crash replaces the daemons of %u nodes, the last on %s",
                           count_replaced(), pod->target);
}

static bool serves(const struct version *pod) {
        const char *report = version_annotation(pod, IMEX_ANNOTATION_REPORT);
        return report && strstr(report, "\"ready\":true");
}

static void look_at_pod(const struct change *c) {
        bool ends = c->was && !version_deleted(c->was) && (c->gone || version_deleted(c->now));
        if (!c->now->target || lying_excuses(number_of(node_named(c->now->target))))
                return;
        /* It was no longer idle when it was deleted: the rollout does not wait for its end. */
        if (c->was && version_deleted(c->now) && serves(c->now))
                period.deleted[number_of(node_named(c->now->target))] = false;
        if (!c->was)
                look_at_new_pod(c->now);
        else if (ends && str_starts(store_writer(), "controller-") && crashing_is_bad(period.image) &&
                 !crashing_is_bad(version_str(c->was, "/spec/image")) && !was_marked(c->was->uid) &&
                 !was_down(c->was) && !is_spent(c->was) && !serves(c->now))
                period.deleted[number_of(node_named(c->was->target))] = true;
}

void crashing_look(enum kind k, const struct change *c) {
        if (!used)
                return;
        if (k == K_SET)
                look_at_set(c);
        else if (k == K_NODE)
                look_at_node(c);
        else if (k == K_POD)
                look_at_pod(c);
}

void crashing_done(void) {
        forget_marks();
}
