/* SPDX-License-Identifier: Apache-2.0 */
/* The kubectl plugin and the controller describe the members of a ComputeDomain equally, from the same
 * objects: the plugin from lists, and the controller from its caches, which keep only a part of each object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cli/member_view.h"
#include "controller/allocations.h"
#include "kube/object_cache.h"
#include "rules/member_gather.h"
#include "world/cluster.h"

/* ---- the caches of the controller ---- */

struct caches {
        struct object_cache *nodes, *slices, *daemons, *fabrics, *claims;
};

static void drop_change(void *u, const struct kube_object *old, const struct kube_object *now) {
        (void)u;
        kube_object_unref(old);
        kube_object_unref(now);
}

static void take_object(void *u, yyjson_val *object) {
        bool reported;
        struct err e;
        assert_int_equal(object_cache_take(u, object, CACHE_LIST, &reported, &e), 0);
}

/* Only daemons are in the cache, because the informer selects them by a label. */
static void take_daemon(void *u, yyjson_val *object) {
        yyjson_val *labels = yyjson_obj_get(yyjson_obj_get(object, "metadata"), "labels");
        if (yyjson_obj_get(labels, CD_LABEL_COMPONENT))
                take_object(u, object);
}

static struct object_cache *fill(struct cluster *c, const struct kube_informer_options *o,
                                 source_object_fn *take) {
        struct source *s = cluster_source(c);
        struct object_cache *cache = object_cache_new(o, drop_change, NULL);
        struct err e;
        object_cache_begin_list(cache);
        assert_int_equal(s->list(s, &(struct source_query){ .res = o->res }, take, cache, &e), 0);
        object_cache_end_list(cache, "1");
        return cache;
}

/* With the options of controller/watch. */
static struct caches caches_of(struct cluster *c) {
        return (struct caches){
                .nodes = fill(c,
                              &(struct kube_informer_options){ .res = &kube_nodes,
                                                               .fields = node_fields,
                                                               .size = sizeof(struct node),
                                                               .trim = node_trim },
                              take_object),
                .slices = fill(c,
                               &(struct kube_informer_options){ .res = &kube_resource_slices,
                                                                .fields = slice_fields,
                                                                .size = sizeof(struct slice),
                                                                .trim = slice_trim,
                                                                .kept = slice_kept_fields },
                               take_object),
                .daemons = fill(c,
                                &(struct kube_informer_options){ .res = &kube_pods,
                                                                 .fields = daemon_pod_fields,
                                                                 .size = sizeof(struct daemon_pod),
                                                                 .trim = pod_trim },
                                take_daemon),
                .fabrics =
                        fill(c,
                             &(struct kube_informer_options){ .res = &kube_fabrics,
                                                              .fields = compute_domain_fabric_fields,
                                                              .size = sizeof(struct compute_domain_fabric) },
                             take_object),
                .claims = fill(c,
                               &(struct kube_informer_options){ .res = &kube_resource_claims,
                                                                .fields = claim_fields,
                                                                .size = sizeof(struct claim_record),
                                                                .decoded_size = sizeof(struct claim),
                                                                .trim = claim_record_of,
                                                                .kept = claim_record_fields },
                               take_object),
        };
}

static void caches_free(struct caches *c) {
        object_cache_free(c->nodes);
        object_cache_free(c->slices);
        object_cache_free(c->daemons);
        object_cache_free(c->fabrics);
        object_cache_free(c->claims);
}

static const struct node *cached_node(void *u, const char *name) {
        return (const struct node *)object_cache_get(((struct caches *)u)->nodes, NULL, name);
}

struct cached_search {
        const char *node, *clique;
        const struct slice *slice;
        const struct daemon_pod *daemon;
};

static bool search_slice(void *u, const struct kube_object *o) {
        struct cached_search *x = u;
        const struct slice *s = (const struct slice *)o;
        if (streq(s->node, x->node))
                x->slice = slice_choose(x->slice, s, true, &x->clique);
        return true;
}

static const char *cached_clique(void *u, const char *node) {
        struct cached_search x = { .node = node };
        object_cache_each(((struct caches *)u)->slices, search_slice, &x);
        return x.clique;
}

static bool search_daemon(void *u, const struct kube_object *o) {
        struct cached_search *x = u;
        const struct daemon_pod *p = (const struct daemon_pod *)o;
        if (streq(p->pod.node, x->node))
                x->daemon = daemon_pod_choose(x->daemon, p);
        return true;
}

static const struct daemon_pod *cached_daemon(void *u, const char *node) {
        struct cached_search x = { .node = node };
        object_cache_each(((struct caches *)u)->daemons, search_daemon, &x);
        return x.daemon;
}

static const struct compute_domain_fabric *cached_fabric(void *u, const char *clique) {
        return (const struct compute_domain_fabric *)object_cache_get(((struct caches *)u)->fabrics, NULL,
                                                                      clique ? clique : "");
}

struct cached_visit {
        member_fabric_fn *on_fabric;
        member_allocation_fn *on_allocation;
        const char *uid;
        void *v;
};

static bool visit_fabric(void *u, const struct kube_object *o) {
        const struct cached_visit *x = u;
        x->on_fabric(x->v, (const struct compute_domain_fabric *)o);
        return true;
}

static void cached_fabrics(void *u, member_fabric_fn *fn, void *v) {
        object_cache_each(((struct caches *)u)->fabrics, visit_fabric,
                          &(struct cached_visit){ .on_fabric = fn, .v = v });
}

static bool visit_claim(void *u, const struct kube_object *o) {
        const struct cached_visit *x = u;
        const struct claim_record *c = (const struct claim_record *)o;
        if (streq(c->domain_uid, x->uid))
                x->on_allocation(x->v, &(struct allocation){ .claim_uid = c->o.meta.uid,
                                                             .ns = c->o.meta.ns,
                                                             .domain_uid = c->domain_uid,
                                                             .node = c->node });
        return true;
}

static void cached_allocations(void *u, const char *uid, member_allocation_fn *fn, void *v) {
        object_cache_each(((struct caches *)u)->claims, visit_claim,
                          &(struct cached_visit){ .on_allocation = fn, .uid = uid, .v = v });
}

/* ---- the comparison ---- */

/* `expected` is "NODE: MESSAGE" of one member. */
static void compare_members(struct cluster *c, size_t n_expected, const char *expected) {
        bool found = false;
        struct caches caches = caches_of(c);
        struct arena *a = arena_new(1024);
        struct membership ours, theirs;
        const struct member_facts *list;
        const struct member_source s = { cached_node,    cached_clique,      cached_daemon, cached_fabric,
                                         cached_fabrics, cached_allocations, &caches };
        struct view v;
        view_init(&v, cluster_source(c));
        view_read(&v, VIEW_DOMAINS, NULL);
        const struct compute_domain *cd = view_find(&v, VIEW_DOMAINS, "team-b", "bench");
        assert_true(member_view_make(&v, cd, &ours));
        size_t n = member_gather(&s, cd->o.meta.uid, cd->o.meta.ns, a, &list);
        membership_make(list, n, a, &theirs);
        assert_int_equal(ours.n_members, n_expected);
        assert_int_equal(ours.n_members, theirs.n_members);
        assert_int_equal(ours.n_cliques, theirs.n_cliques);
        for (size_t i = 0; i < n; i++) {
                const struct member *x = &ours.members[i], *y = &theirs.members[i];
                assert_string_equal(x->entry.node, y->entry.node);
                assert_string_equal(str_or(x->entry.clique_id, ""), str_or(y->entry.clique_id, ""));
                assert_string_equal(str_or(x->entry.ip, ""), str_or(y->entry.ip, ""));
                assert_int_equal(x->entry.index, y->entry.index);
                assert_int_equal(x->why, y->why);
                assert_int_equal(x->wanted, y->wanted);
                assert_int_equal(x->listed, y->listed);
                assert_int_equal(x->peers_connected, y->peers_connected);
                assert_string_equal(x->message, y->message);
                found = found || streq(arena_printf(a, "%s: %s", x->entry.node, x->message), expected);
        }
        assert_true(found);
        view_done(&v);
        arena_free(a);
        caches_free(&caches);
}

#define BOOT_ID "11111111-1111-4111-8111-111111111111"
#define FABRIC_UID "f0000000-0000-4000-8000-00000000000a"
#define REPORT(node, index, boot)                                                                            \
        "'imex.resource.nvidia.com/"                                                                         \
        "report':'{\\u0022claimUID\\u0022:\\u0022d0000000-0000-4000-8000-00000000000" index                  \
        "\\u0022,\\u0022bootID\\u0022:\\u0022" boot "\\u0022,\\u0022fabricUID\\u0022:\\u0022" FABRIC_UID     \
        "\\u0022,\\u0022assignment\\u0022:\\u0022" CLUSTER_A "/" CLUSTER_BENCH "/" index                     \
        "/1\\u0022,\\u0022seen\\u0022:1}'"
#define ASSIGNMENT(node, index, state) "{'node':'" node "','index':" index ",'epoch':1" state "}"

static void put_assignments(struct cluster *c, const char *assignments, int slots) {
        cluster_put(c, &kube_fabrics,
                    "{'metadata':{'name':'" CLUSTER_A "','uid':'" CLUSTER_A
                    "'},'rack':'rack-a','tableOf':'" CLUSTER_A
                    "','domains':[{'owner':{'kind':'ComputeDomain','namespace':'team-b','name':'bench','uid':"
                    "'" CLUSTER_BENCH
                    "'},'infix':'x','slots':%d,'port':28000,'assignments':[%s]}],'channels':[]}",
                    slots, assignments);
}

static void claim_nodes(struct cluster *c, const char *nodes) {
        for (const char *p = nodes; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 }, name[32];
                snprintf(name, sizeof name, "job-%s.channel", node);
                cluster_claim(c, "team-b", name, CLUSTER_BENCH, node);
        }
}

/* Ready, BACKOFF, an earlier boot, leaving, and without an assignment; and a claim of another namespace. */
static void lists_and_caches_give_the_same_members(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        claim_nodes(c, "a0a1a2b0");
        cluster_claim(c, "team-z", "other.channel", CLUSTER_BENCH, "b1");
        put_assignments(c,
                        ASSIGNMENT("a0", "0", "") "," ASSIGNMENT("a1", "1", "") "," ASSIGNMENT(
                                "a2", "2", "") "," ASSIGNMENT("a3", "3", ",'state':'Leaving'"),
                        18);
        cluster_daemon(c, "a0",
                       "'imex.resource.nvidia.com/state':'READY','imex.resource.nvidia.com/"
                       "ready':'true','imex.resource.nvidia.com/peers':'2/3'," REPORT("a0", "0", BOOT_ID),
                       NULL);
        cluster_daemon(
                c, "a1",
                "'imex.resource.nvidia.com/state':'BACKOFF','imex.resource.nvidia.com/"
                "ready':'false','imex.resource.nvidia.com/reason':'it broke'," REPORT("a1", "1", BOOT_ID),
                NULL);
        cluster_daemon(c, "a2", REPORT("a2", "2", "22222222-2222-4222-8222-222222222222"), NULL);
        compare_members(c, 5, "a1: IMEX daemon is BACKOFF: it broke");
        cluster_free(c);
}

static void a_full_domain_and_missing_objects_give_the_same_members(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        claim_nodes(c, "a0a1a2a3");
        put_assignments(c, ASSIGNMENT("a0", "0", ""), 1);
        cluster_remove(c, &kube_nodes, NULL, "a1");
        cluster_remove(c, &kube_resource_slices, NULL, "a2-compute-domain");
        cluster_daemon(c, "a3", "",
                       "'phase':'Running','containerStatuses':[{'name':'x','state':{'waiting':{'reason':'"
                       "CrashLoopBackOff'}}}]");
        compare_members(c, 4, "a2: its ResourceSlice does not state a clique ID yet");
        cluster_free(c);
}

static void without_a_complete_list_the_conditions_are_the_only_source(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        struct membership m;
        struct view v;
        claim_nodes(c, "a0");
        cluster_fail(c, &kube_resource_slices, ERR_RETRY, "timed out");
        view_init(&v, cluster_source(c));
        view_read(&v, VIEW_DOMAINS, NULL);
        assert_false(member_view_make(&v, view_find(&v, VIEW_DOMAINS, "team-b", "bench"), &m));
        view_done(&v);
        cluster_free(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_and_caches_give_the_same_members),
                cmocka_unit_test(a_full_domain_and_missing_objects_give_the_same_members),
                cmocka_unit_test(without_a_complete_list_the_conditions_are_the_only_source),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
