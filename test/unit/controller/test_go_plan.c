/* SPDX-License-Identifier: Apache-2.0 */
/* A ComputeDomain that the Go driver formed: its daemons serve it on their nodes, no other node joins it, and
 * it becomes a ComputeDomain of this driver when no claim of it is left. "it" in the names of tests is this
 * ComputeDomain. */
#include "api/resources.h"
#include "world/domain.h"

#define SPEC "{'channel':{'resourceClaimTemplate':{'name':'tpl'}}}"
#define OBJECT "computedomain-daemon-" UID_A
#define META(ns, name, labels)                                                                               \
        "{'metadata':{'name':'" name "','namespace':'" ns "','labels':{'" CD_LABEL "':'" UID_A "'" labels    \
        "},'finalizers':['" CD_FINALIZER "']}"
#define CONFIG(request, class, kind)                                                                         \
        ",'spec':{'spec':{'devices':{'requests':[{'name':'" request                                          \
        "','exactly':{'deviceClassName':'" class "'}}],'config':[{'requests':['" request                     \
                                                 "'],'opaque':{'driver':'" CD_DRIVER                         \
                                                 "','parameters':{'apiVersion':'" CD_API_VERSION             \
                                                 "','kind':'" kind "','domainID':'" UID_A "'}}}]}}}}"
#define ENTRY(node, status)                                                                                  \
        "{'nodeName':'" node "','ipAddress':'10.0.0.7','cliqueID':'" CLIQUE_1                                \
        "','index':0,'status':'" status "'}"

/* The objects of the Go driver for a ComputeDomain with node-a. */
static int setup(void **state) {
        world_setup(state);
        struct world *w = *state;
        world_put(w, &kube_compute_domains, WORLD_USER_NS, "cd",
                  "{'metadata':{'name':'cd','namespace':'" WORLD_USER_NS "','uid':'" UID_A
                  "','finalizers':['" CD_FINALIZER "']},'spec':" SPEC "}");
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl",
                  META(WORLD_USER_NS, "tpl", ",'" CD_LABEL_TARGET "':'Workload'")
                          CONFIG("channel", CD_CLASS_CHANNEL, "ComputeDomainChannelConfig"));
        world_put(w, &kube_resource_claim_templates, WORLD_NS, OBJECT,
                  META(WORLD_NS, OBJECT, ",'" CD_LABEL_TARGET "':'Daemon'")
                          CONFIG("daemon", CD_CLASS_DAEMON, "ComputeDomainDaemonConfig"));
        world_put(w, &kube_daemonsets, WORLD_NS, OBJECT, META(WORLD_NS, OBJECT, "") "}");
        world_put(w, &kube_cliques, WORLD_NS, UID_A "." CLIQUE_1,
                  "{'metadata':{'name':'" UID_A "." CLIQUE_1 "','namespace':'" WORLD_NS
                  "','labels':{'" CD_LABEL "':'" UID_A "'}},'daemons':[" ENTRY("node-a", "Ready") "]}");
        w->nodes[0].wanted = w->nodes[0].labelled = w->nodes[0].has_pod = true;
        return 0;
}

static bool has_go_objects(struct world *w) {
        return world_find(w, &kube_daemonsets, WORLD_NS, NULL) ||
               world_find(w, &kube_cliques, WORLD_NS, NULL) ||
               world_find(w, &kube_resource_claim_templates, WORLD_NS, NULL);
}

static bool deletes_any(const struct plan *p) {
        for (size_t i = 0; i < p->n_actions; i++)
                if (p->actions[i].verb == KUBE_DELETE)
                        return true;
        return false;
}

static void its_nodes_continue_and_no_other_node_joins(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        size_t n = world_count(w);
        w->nodes[1].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), n);
        assert_true(w->nodes[0].labelled && w->nodes[0].has_pod && !w->nodes[0].pod_ending);
        assert_false(w->nodes[1].labelled || w->nodes[1].has_pod || w->nodes[1].assigned);
        const struct compute_domain *cd = world_cd(w, a);
        assert_string_equal(cd->mode, MODE_DRIVER_MANAGED);
        assert_string_equal(cd->status, "Ready");
        assert_int_equal(cd->n_nodes, 1);
        assert_string_equal(cd->nodes[0].node, "node-a");
        assert_string_equal(cd->nodes[0].ip, "10.0.0.7");
        assert_int_equal(cd->cliques, 1);
        const struct cd_condition *c = world_condition(w, a, "Ready");
        assert_string_equal(c->reason, "FormedByGoDriver");
        assert_string_equal(c->message,
                            "The only node is ready. Formed by the Go driver, whose daemons run on: node-a. "
                            "Other nodes join after the last pod of this ComputeDomain has ended");
        assert_null(world_condition(w, a, "PeersConnected"));
        arena_free(a);
}

static void its_readiness_comes_from_its_cliques(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_settle(w, false);
        object_vanish(world_find(w, &kube_cliques, WORLD_NS, NULL));
        world_put(w, &kube_cliques, WORLD_NS, UID_A "." CLIQUE_1,
                  "{'metadata':{'name':'" UID_A "." CLIQUE_1 "','namespace':'" WORLD_NS
                  "','labels':{'" CD_LABEL "':'" UID_A
                  "'}},'daemons':[" ENTRY("node-b", "NotReady") "," ENTRY("node-a", "Ready") "]}");
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "NotReady");
        assert_int_equal(world_cd(w, a)->n_nodes, 2);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "FormedByGoDriver");
        assert_non_null(
                strstr(world_condition(w, a, "Ready")->message,
                       "1 of 2 nodes are ready. node-b: the daemon of the Go driver on it is not ready"));
        arena_free(a);
}

/* The Go driver's gate ComputeDomainCliques was off, so its daemons write status.nodes themselves. */
static void status_nodes_that_its_daemons_write_are_kept(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        object_vanish(world_find(w, &kube_cliques, WORLD_NS, NULL));
        object_vanish(world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        world_put(w, &kube_compute_domains, WORLD_USER_NS, "cd",
                  "{'metadata':{'name':'cd','namespace':'" WORLD_USER_NS "','uid':'" UID_A
                  "','finalizers':['" CD_FINALIZER "']},'spec':" SPEC
                  ",'status':{'status':'Ready','nodes':[{'name':'node-a','ipAddress':'10.0.0.7','cliqueID':"
                  "'" CLIQUE_1 "','index':0,'status':'Ready'}]}}");
        struct plan *p = world_plan(w, a);
        const struct plan_action *x = NULL;
        for (size_t i = 0; i < p->n_actions; i++)
                if (streq(p->actions[i].subresource, "status"))
                        x = &p->actions[i];
        assert_non_null(x);
        assert_null(strstr(x->body.p, "\"nodes"));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->nodes[0].ip, "10.0.0.7");
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

static void without_claims_it_becomes_a_domain_of_this_driver(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        assert_true(world_settle(w, false) >= 0);
        w->nodes[0].wanted = false;
        assert_true(world_settle(w, false) >= 0);
        assert_false(w->nodes[0].labelled || w->nodes[0].has_pod || has_go_objects(w));
        assert_int_equal(world_count(w), 2); /* the ComputeDomain and its claim template */
        assert_string_equal(world_condition(w, a, "Ready")->reason, "NoNodes");
        w->nodes[0].wanted = w->nodes[1].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        assert_true(w->nodes[0].joined && w->nodes[1].joined);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "AllNodesReady");
        assert_int_equal(world_cd(w, a)->n_nodes, 2);
        arena_free(a);
}

static void its_objects_stay_while_a_node_has_its_label_or_a_cache_is_stale(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        assert_true(world_settle(w, false) >= 0);
        w->nodes[0].wanted = w->nodes[0].has_pod = false;
        assert_false(deletes_any(world_plan(w, a)));
        w->nodes[0].labelled = false;
        w->stale = true;
        struct plan *p = world_plan(w, a);
        assert_false(deletes_any(p));
        assert_true(p->held);
        w->stale = false;
        assert_true(deletes_any(world_plan(w, a)));
        arena_free(a);
}

static void a_claim_that_waits_on_another_node_does_not_keep_its_objects(void **state) {
        struct world *w = *state;
        w->nodes[1].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        assert_true(has_go_objects(w));
        assert_false(w->nodes[1].joined);
        w->nodes[0].wanted = false;
        assert_true(world_settle(w, false) >= 0);
        assert_false(has_go_objects(w));
        assert_true(w->nodes[1].joined);
}

static void its_daemonset_is_deleted_after_its_pods(void **state) {
        struct world *w = *state;
        assert_true(world_settle(w, false) >= 0);
        w->nodes[0].wanted = false;
        w->nodes[0].stuck = true;
        assert_true(world_settle(w, false) >= 0);
        assert_true(w->nodes[0].pod_ending && has_go_objects(w));
        w->nodes[0].stuck = false;
        assert_true(world_settle(w, false) >= 0);
        assert_false(w->nodes[0].has_pod || has_go_objects(w));
}

/* Otherwise the claim would wait for daemons of the Go driver that never start. */
static void a_new_claim_does_not_stop_the_deletion_of_its_objects(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        assert_true(world_settle(w, false) >= 0);
        w->nodes[0].wanted = w->nodes[0].labelled = w->nodes[0].has_pod = false;
        world_delete(w, world_find(w, &kube_daemonsets, WORLD_NS, OBJECT));
        w->nodes[1].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        assert_false(has_go_objects(w));
        assert_true(w->nodes[1].joined);
        arena_free(a);
}

/* A user has deleted its DaemonSet while pods use it, and the finalizer keeps it. */
static void a_daemonset_that_is_being_deleted_keeps_its_daemons_while_claims_exist(void **state) {
        struct world *w = *state;
        assert_true(world_settle(w, false) >= 0);
        world_delete(w, world_find(w, &kube_daemonsets, WORLD_NS, OBJECT));
        assert_true(world_settle(w, false) >= 0);
        assert_non_null(world_find(w, &kube_daemonsets, WORLD_NS, OBJECT));
        assert_true(w->nodes[0].has_pod && !w->nodes[0].pod_ending);
}

/* kubectl delete --cascade=orphan leaves such Pods. */
static void pods_without_their_daemonset_stay_while_claims_exist(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        assert_true(world_settle(w, false) >= 0);
        object_vanish(world_find(w, &kube_daemonsets, WORLD_NS, OBJECT));
        assert_false(deletes_any(world_plan(w, a)));
        w->nodes[0].wanted = w->nodes[0].labelled = false;
        const struct plan_action *x = world_action(world_plan(w, a), KUBE_DELETE, &kube_pods);
        assert_non_null(x);
        assert_string_equal(x->name, "pod-node-a");
        arena_free(a);
}

/* Without these objects and without a mode, it would look as if it was formed in host-managed mode. */
static void its_objects_stay_until_its_mode_is_recorded(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        w->nodes[0].wanted = w->nodes[0].labelled = w->nodes[0].has_pod = false;
        struct plan *p = world_plan(w, a);
        assert_false(deletes_any(p));
        assert_non_null(strstr(world_action(p, KUBE_MERGE_PATCH, &kube_compute_domains)->body.p,
                               "\"" CD_ANNOTATION_MODE "\":\"" MODE_DRIVER_MANAGED "\""));
        assert_true(world_settle(w, false) >= 0);
        assert_false(has_go_objects(w));
        assert_string_equal(world_condition(w, a, "Ready")->reason, "NoNodes");
        arena_free(a);
}

static void its_deletion_ends_its_daemons_first_and_leaves_nothing(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        assert_true(world_settle(w, false) >= 0);
        w->nodes[0].stuck = true;
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        w->now += PLAN_REPORT_AFTER_S;
        assert_true(world_settle(w, false) >= 0); /* with a workload still running */
        assert_true(has_go_objects(w));
        assert_string_equal(world_condition(w, a, "Ready")->reason, "DeletionWaiting");
        assert_non_null(strstr(world_condition(w, a, "Ready")->message, "pod-node-a on node-a"));
        w->now += PLAN_DAEMONS_END_S; /* it does not wait for a dead node */
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

static void its_deletion_works_whichever_objects_are_missing(void **state) {
        static const struct kube_resource *const kinds[] = { &kube_daemonsets, &kube_resource_claim_templates,
                                                             &kube_resource_claim_templates, &kube_cliques };
        (void)state;
        for (unsigned mask = 0; mask < 16; mask++) {
                void *s;
                setup(&s);
                struct world *w = s;
                assert_true(world_settle(w, false) >= 0);
                for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                        if (mask & 1U << i)
                                object_vanish(
                                        world_find(w, kinds[i], i == 2 ? WORLD_USER_NS : WORLD_NS, NULL));
                world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
                if (world_settle(w, false) < 0)
                        fail_msg("mask %u does not settle", mask);
                assert_int_equal(world_count(w), 0);
                world_teardown(&s);
        }
}

/* failure: a ComputeDomainClique exists without a daemon of the Go driver -> nodes join, and it is deleted
 * [go] */
static void a_clique_alone_does_not_keep_nodes_out_and_is_deleted(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        assert_true(world_settle(w, false) >= 0); /* its mode is recorded */
        object_vanish(world_find(w, &kube_daemonsets, WORLD_NS, NULL));
        object_vanish(world_find(w, &kube_resource_claim_templates, WORLD_NS, NULL));
        w->nodes[0].labelled = w->nodes[0].has_pod = false;
        w->stale = true;
        struct plan *p = world_plan(w, a);
        assert_false(deletes_any(p));
        for (size_t i = 0; i < p->n_actions; i++)
                world_perform(w, &p->actions[i]);
        assert_string_not_equal(world_condition(w, a, "Ready")->reason, "FormedByGoDriver");
        w->stale = false;
        assert_true(world_settle(w, false) >= 0);
        assert_null(world_find(w, &kube_cliques, WORLD_NS, NULL));
        assert_true(w->nodes[0].joined);
        assert_string_not_equal(world_condition(w, a, "Ready")->reason, "FormedByGoDriver");
        arena_free(a);
}

/* failure: a ComputeDomainClique with a foreign finalizer names a ComputeDomain of this driver -> its
 * deletion does not wait [tenants] */
static void a_clique_that_cannot_be_deleted_does_not_keep_a_domain_of_this_driver(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        assert_true(world_settle(w, false) >= 0);
        w->nodes[0].wanted = false;
        assert_true(world_settle(w, false) >= 0); /* this driver forms it from now on */
        assert_false(has_go_objects(w));
        world_put(w, &kube_cliques, WORLD_NS, "odd",
                  "{'metadata':{'name':'odd','namespace':'" WORLD_NS "','labels':{'" CD_LABEL "':'" UID_A
                  "'},'finalizers':['example.com/hold']},'daemons':[]}");
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        struct plan *p = world_plan(w, a);
        assert_true(deletes_any(p));
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 1); /* the clique, which is being deleted */
        p = world_plan(w, a);
        assert_false(deletes_any(p) || p->nothing_left);
        object_vanish(world_find(w, &kube_cliques, WORLD_NS, NULL));
        assert_true(world_plan(w, a)->nothing_left);
        arena_free(a);
}

static void its_objects_are_deleted_after_the_domain_is_deleted(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        object_vanish(world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        struct plan *p = world_plan(w, a);
        assert_false(deletes_any(p));
        assert_true(p->ask_domain);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

static void a_daemonset_in_an_earlier_namespace_of_the_driver_counts(void **state) {
        struct world *w = *state;
        object_vanish(world_find(w, &kube_daemonsets, WORLD_NS, NULL));
        object_vanish(world_find(w, &kube_cliques, WORLD_NS, NULL));
        object_vanish(world_find(w, &kube_resource_claim_templates, WORLD_NS, NULL));
        world_put(w, &kube_daemonsets, "old-driver", OBJECT, META("old-driver", OBJECT, "") "}");
        assert_true(world_settle(w, false) >= 0);
        assert_false(w->nodes[0].assigned);
        w->nodes[0].wanted = false;
        assert_true(world_settle(w, false) >= 0);
        assert_null(world_find(w, &kube_daemonsets, "old-driver", NULL));
}

/* With random claims, lost writes, and caches that miss claims or are stale: a node with a claim keeps the Go
 * driver's daemon, and in the end this driver serves all nodes. */
static void after_any_events_it_becomes_a_domain_of_this_driver(void **state) {
        (void)state;
        for (int life = 0; life < 250; life++) {
                void *s;
                setup(&s);
                struct world *w = s;
                for (int event = 0; event < 20; event++) {
                        struct world_node *n = &w->nodes[fake_random(WORLD_NODES)];
                        bool kept[WORLD_NODES];
                        if (fake_random(2))
                                n->wanted = !n->wanted;
                        n->unseen = fake_random(4) == 0;
                        w->stale = fake_random(3) == 0;
                        for (size_t i = 0; i < WORLD_NODES; i++)
                                kept[i] =
                                        w->nodes[i].has_pod && w->nodes[i].wanted && !w->nodes[i].pod_ending;
                        struct arena *a = arena_new(8192);
                        struct plan *p = world_plan(w, a);
                        for (size_t i = 0; i < p->n_actions; i++)
                                if (fake_random(3))
                                        world_perform(w, &p->actions[i]);
                        arena_free(a);
                        world_turn(w);
                        for (size_t i = 0; i < WORLD_NODES; i++)
                                if (kept[i] && (!w->nodes[i].has_pod || w->nodes[i].pod_ending))
                                        fail_msg("life %d, event %d: %s lost what it uses", life, event,
                                                 world_names[i]);
                }
                w->stale = false;
                for (size_t i = 0; i < WORLD_NODES; i++)
                        w->nodes[i].wanted = w->nodes[i].unseen = false;
                if (world_settle(w, true) < 0)
                        fail_msg("life %d does not settle", life);
                assert_false(has_go_objects(w));
                for (size_t i = 0; i < WORLD_NODES; i++)
                        w->nodes[i].wanted = true;
                assert_true(world_settle(w, true) >= 0);
                for (size_t i = 0; i < WORLD_NODES; i++)
                        assert_true(w->nodes[i].joined && !w->nodes[i].has_pod);
                world_teardown(&s);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(its_nodes_continue_and_no_other_node_joins),
                T(its_readiness_comes_from_its_cliques),
                T(status_nodes_that_its_daemons_write_are_kept),
                T(without_claims_it_becomes_a_domain_of_this_driver),
                T(its_objects_stay_while_a_node_has_its_label_or_a_cache_is_stale),
                T(a_claim_that_waits_on_another_node_does_not_keep_its_objects),
                T(its_daemonset_is_deleted_after_its_pods),
                T(a_new_claim_does_not_stop_the_deletion_of_its_objects),
                T(a_daemonset_that_is_being_deleted_keeps_its_daemons_while_claims_exist),
                T(pods_without_their_daemonset_stay_while_claims_exist),
                T(its_objects_stay_until_its_mode_is_recorded),
                T(its_deletion_ends_its_daemons_first_and_leaves_nothing),
                cmocka_unit_test(its_deletion_works_whichever_objects_are_missing),
                T(a_clique_alone_does_not_keep_nodes_out_and_is_deleted),
                T(a_clique_that_cannot_be_deleted_does_not_keep_a_domain_of_this_driver),
                T(its_objects_are_deleted_after_the_domain_is_deleted),
                T(a_daemonset_in_an_earlier_namespace_of_the_driver_counts),
                cmocka_unit_test(after_any_events_it_becomes_a_domain_of_this_driver),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
