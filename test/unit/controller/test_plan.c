#include "domain/resources.h"
#include "world.h"

#define SPEC "{'channel':{'resourceClaimTemplate':{'name':'tpl'}}}"
#define DAEMON_NAME "computedomain-daemon-" UID_A

static int setup(void **state) {
        struct world *w = xnew(struct world);
        world_init(w);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        world_done(*state);
        free(*state);
        return 0;
}

/* ---- a domain's life ---- */

static void a_new_domain_gets_all_in_one_pass(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        struct plan *p = world_plan(w, a);
        assert_non_null(strstr(world_action(p, KUBE_MERGE_PATCH, &kube_compute_domains)->body.p,
                               "\"finalizers\":[\"" CD_FINALIZER "\"]"));
        assert_string_equal(world_action(p, KUBE_APPLY, &kube_daemonsets)->name, DAEMON_NAME);
        assert_string_equal(world_action(p, KUBE_APPLY, &kube_resource_claim_templates)->name, DAEMON_NAME);
        assert_string_equal(world_action(p, KUBE_CREATE, &kube_resource_claim_templates)->name, "tpl");
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready"); /* as in the Go driver: nobody uses it */
        assert_string_equal(world_condition(w, a, "Ready")->reason, "NoNodes");
        assert_int_equal(w->conflicts, 0);
        arena_free(a);
}

static void a_domain_forms_and_goes(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        for (size_t i = 0; i < 4; i++)
                w->nodes[i].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        const struct compute_domain *cd = world_cd(w, a);
        assert_string_equal(cd->status, "Ready");
        assert_int_equal(cd->n_nodes, 4);
        assert_int_equal(cd->nodes_ready, 4);
        assert_int_equal(cd->cliques, 1);
        w->nodes[1].wanted = false;
        assert_true(world_settle(w, false) >= 0);
        cd = world_cd(w, a);
        assert_int_equal(cd->n_nodes, 3);
        assert_string_equal(cd->status, "Ready");
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        assert_true(world_settle(w, false) >= 0); /* with workloads still running */
        assert_int_equal(world_count(w), 0);
        assert_int_equal(w->conflicts, 0);
        arena_free(a);
}

/* A first pass that meets a whole burst writes the clique once, with all of them. */
static void a_burst_is_one_clique_write(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        for (size_t i = 0; i < 4; i++)
                w->nodes[i].wanted = true;
        struct plan *p = world_plan(w, a);
        const struct plan_action *x = world_action(p, KUBE_CREATE, &kube_cliques);
        assert_int_equal(x->when, PLAN_SOON);
        for (size_t i = 0; i < 4; i++)
                assert_non_null(strstr(x->body.p, world_names[i]));
        arena_free(a);
}

static void deletion_waits_for_daemons_but_not_for_ever(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        world_settle(w, false);
        w->nodes[0].pod_stuck = true;
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        w->now += PLAN_PATIENCE_S;
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "DeletionWaiting");
        assert_non_null(strstr(world_condition(w, a, "Ready")->message, "pod-node-a on node-a"));
        assert_non_null(world_find(w, &kube_daemonsets, WORLD_NS, DAEMON_NAME));
        w->now += PLAN_DAEMONS_END_S;
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

static void deletion_works_when_objects_are_missing(void **state) {
        struct world *w = *state;
        for (unsigned mask = 0; mask < 16; mask++) {
                static const struct kube_resource *const kinds[] = { &kube_daemonsets,
                                                                     &kube_resource_claim_templates,
                                                                     &kube_resource_claim_templates,
                                                                     &kube_cliques };
                world_create_cd(w, SPEC);
                w->nodes[0].wanted = true;
                assert_true(world_settle(w, false) >= 0);
                for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                        if (mask & 1U << i)
                                world_vanish(
                                        world_find(w, kinds[i], i == 2 ? WORLD_USER_NS : WORLD_NS, NULL));
                world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
                if (world_settle(w, false) < 0)
                        fail_msg("mask %u does not settle", mask);
                assert_int_equal(world_count(w), 0);
        }
}

static void objects_of_a_domain_that_is_no_more_are_swept(void **state) {
        struct world *w = *state;
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        world_settle(w, false);
        world_vanish(world_find(w, &kube_compute_domains, WORLD_USER_NS,
                                "cd")); /* somebody took the finalizer off by hand */
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
}

static void a_domain_without_spec_says_so_and_can_be_deleted(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_put(w, &kube_compute_domains, WORLD_USER_NS, "cd",
                  "{'metadata':{'name':'cd','namespace':'" WORLD_USER_NS "','uid':'" UID_A
                  "','finalizers':['" CD_FINALIZER "']}}");
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "InvalidSpec");
        assert_int_equal(world_count(w), 1);
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        assert_non_null(
                strstr(world_action(world_plan(w, a), KUBE_MERGE_PATCH, &kube_compute_domains)->body.p,
                       "\"spec\":{\"channel\""));
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

/* ---- names, drift, settings ---- */

static void a_taken_template_name_is_reported_and_not_taken_over(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        const char *theirs = "{'metadata':{'name':'tpl','namespace':'" WORLD_USER_NS
                             "'},'spec':{'spec':{'devices':{'requests':[{'name':'gpu'}]}}}}";
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl", theirs);
        world_create_cd(w, SPEC);
        assert_int_equal(world_settle(w, false),
                         -1); /* it keeps trying: only the server knows when the name is free */
        assert_string_equal(world_condition(w, a, "Ready")->reason, "TemplateNameTaken");
        assert_string_equal(world_cd(w, a)->status, "NotReady");
        assert_null(
                strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json, CD_LABEL));
        world_delete(w, world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl"));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

static void our_template_without_its_label_is_taken_back(void **state) {
        struct world *w = *state;
        world_create_cd(w, SPEC);
        world_settle(w, false);
        struct world_object *o = world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl");
        char *label = strstr(o->json, CD_LABEL "\"");
        label[0] = 'x';
        assert_true(world_settle(w, false) >= 0);
        assert_non_null(strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json,
                               "\"" CD_LABEL "\":\"" UID_A "\""));
}

static void drift_is_repaired(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        assert_int_equal(world_plan(w, a)->n_actions, 0);
        w->applied_generation--; /* somebody edited the DaemonSet */
        assert_non_null(world_action(world_plan(w, a), KUBE_APPLY, &kube_daemonsets));
        w->applied_generation++;
        w->settings.image = "image:2"; /* we were upgraded */
        assert_non_null(world_action(world_plan(w, a), KUBE_APPLY, &kube_daemonsets));
        world_settle(w, false);
        world_delete(w, world_find(w, &kube_daemonsets, WORLD_NS, DAEMON_NAME)); /* deleted by hand */
        world_delete(w, world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl"));
        assert_true(world_settle(w, false) >= 0);
        assert_null(
                strstr(world_find(w, &kube_daemonsets, WORLD_NS, DAEMON_NAME)->json, "deletionTimestamp"));
        assert_null(strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json,
                           "deletionTimestamp"));
        arena_free(a);
}

static void what_all_daemons_must_share_does_not_change_under_them(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        world_settle(w, false);
        w->settings.max_nodes = 9;
        w->settings.gates = "IMEXDaemonsWithDNSNames=false,";
        w->settings.image = "image:2";
        world_settle(w, false);
        const struct daemonset *d =
                fake_set_json(a, "%s", world_find(w, &kube_daemonsets, WORLD_NS, DAEMON_NAME)->json);
        assert_string_equal(daemonset_env(d, "MAX_NODES_PER_IMEX_DOMAIN"), "4");
        assert_string_equal(daemonset_env(d, "FEATURE_GATES"), "IMEXDaemonsWithDNSNames=true,");
        assert_non_null(strstr(world_find(w, &kube_daemonsets, WORLD_NS, DAEMON_NAME)->json, "image:2"));
        assert_true(w->nodes[0].has_pod && w->pods_made == 1); /* and nothing has been restarted */
        w->nodes[0].wanted = false;
        world_settle(w, false);
        d = fake_set_json(a, "%s", world_find(w, &kube_daemonsets, WORLD_NS, DAEMON_NAME)->json);
        assert_string_equal(daemonset_env(d, "MAX_NODES_PER_IMEX_DOMAIN"), "9");
        arena_free(a);
}

static void a_daemonset_in_another_namespace_is_used_as_it_is(void **state) {
        struct world *w = *state;
        world_put(w, &kube_daemonsets, "old-driver", DAEMON_NAME,
                  "{'metadata':{'name':'" DAEMON_NAME "','namespace':'old-driver','labels':{'" CD_LABEL
                  "':'" UID_A "'},'finalizers':['" CD_FINALIZER "']}}");
        world_create_cd(w, SPEC);
        assert_true(world_settle(w, false) >= 0);
        assert_null(world_find(w, &kube_daemonsets, WORLD_NS, DAEMON_NAME));
        assert_non_null(world_find(w, &kube_resource_claim_templates, "old-driver", DAEMON_NAME));
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
}

static void without_dns_names_num_nodes_must_be_given(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        w->settings.gates = "IMEXDaemonsWithDNSNames=false,ComputeDomainCliques=false,";
        world_create_cd(w, SPEC);
        world_settle(w, false);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "NumNodesRequired");
        arena_free(a);
}

/* ---- anything may happen, at any moment ---- */

static void check_identities(struct world *w) {
        struct arena *a = arena_new(4096);
        for (size_t i = 0; i < WORLD_OBJECTS; i++) {
                if (!w->objects[i].json || w->objects[i].res != &kube_cliques)
                        continue;
                const struct clique *c = fake_clique_json(a, "%s", w->objects[i].json);
                for (size_t k = 0; k < c->n_daemons; k++)
                        for (size_t m = 0; m < WORLD_NODES; m++) {
                                const struct world_node *n = &w->nodes[m];
                                /* nobody is given the id under which a daemon of another node still runs */
                                if (n->exists && n->has_pod && streq(n->clique, c->clique_id) &&
                                    !streq(world_names[m], c->daemons[k].node))
                                        assert_int_not_equal(n->runs_with, c->daemons[k].index);
                        }
        }
        arena_free(a);
}

static void something_happens(struct world *w) {
        struct world_node *n = &w->nodes[fake_random(WORLD_NODES)];
        static const struct kube_resource *const kinds[] = { &kube_daemonsets,
                                                             &kube_resource_claim_templates };
        struct world_object *o;
        switch (fake_random(8)) {
        case 0:
        case 1:
        case 2:
                n->wanted = !n->wanted && n->exists;
                break;
        case 3:
                n->ready = !n->ready;
                break;
        case 4: /* a node is taken away, or comes (back) */
                n->exists = !n->exists;
                n->wanted = n->wanted && n->exists;
                n->has_pod = false;
                break;
        case 5:
                n->pod_ending = n->has_pod;
                break;
        case 6:
                o = world_find(w, kinds[fake_random(2)], fake_random(2) ? WORLD_NS : WORLD_USER_NS, NULL);
                if (o)
                        world_delete(w, o);
                break;
        default:
                w->applied_generation = 0; /* the controller was restarted */
        }
}

/* Through random events, with writes lost at random, the ids stay apart; when the events end, everything
 * becomes as it should be, and after the deletion of the domain nothing is left. */
static void it_always_settles(void **state) {
        for (int life = 0; life < 250; life++) {
                struct world w;
                world_init(&w);
                world_create_cd(&w, SPEC);
                for (int event = 0; event < 30; event++) {
                        something_happens(&w);
                        struct arena *a = arena_new(8192);
                        struct plan *p = world_plan(&w, a);
                        for (size_t i = 0; i < p->n_actions; i++)
                                if (fake_random(3))
                                        world_perform(&w, &p->actions[i]);
                        arena_free(a);
                        world_turn(&w);
                        check_identities(&w);
                }
                size_t wanted = 0;
                for (size_t i = 0; i < WORLD_NODES; i++) {
                        w.nodes[i].ready = true;
                        wanted += w.nodes[i].exists && w.nodes[i].wanted;
                }
                if (world_settle(&w, true) < 0)
                        fail_msg("life %d does not settle", life);
                check_identities(&w);
                struct arena *a = arena_new(4096);
                const struct compute_domain *cd = world_cd(&w, a);
                assert_string_equal(cd->status, "Ready");
                assert_int_equal(cd->n_nodes, wanted);
                world_delete(&w, world_find(&w, &kube_compute_domains, WORLD_USER_NS, "cd"));
                if (world_settle(&w, true) < 0)
                        fail_msg("life %d does not end", life);
                assert_int_equal(world_count(&w), 0);
                arena_free(a);
                world_done(&w);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_new_domain_gets_all_in_one_pass),
                T(a_domain_forms_and_goes),
                T(a_burst_is_one_clique_write),
                T(deletion_waits_for_daemons_but_not_for_ever),
                T(deletion_works_when_objects_are_missing),
                T(objects_of_a_domain_that_is_no_more_are_swept),
                T(a_domain_without_spec_says_so_and_can_be_deleted),
                T(a_taken_template_name_is_reported_and_not_taken_over),
                T(our_template_without_its_label_is_taken_back),
                T(drift_is_repaired),
                T(what_all_daemons_must_share_does_not_change_under_them),
                T(a_daemonset_in_another_namespace_is_used_as_it_is),
                T(without_dns_names_num_nodes_must_be_given),
                T(it_always_settles),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
