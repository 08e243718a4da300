/* SPDX-License-Identifier: Apache-2.0 */
#include "api/resources.h"
#include "world/domain.h"

#define SPEC "{'channel':{'resourceClaimTemplate':{'name':'tpl'}}}"
#define SPEC_OF(num_nodes, mode)                                                                             \
        "{'numNodes':" num_nodes                                                                             \
        ",'channel':{'resourceClaimTemplate':{'name':'tpl'},'allocationMode':'" mode "'}}"
#define GATE "HostManagedIMEX=true"

static int setup(void **state) {
        world_setup(state);
        world_set_mode(*state, GATE, NULL);
        return 0;
}

static struct object *the_template(struct world *w) {
        return world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl");
}

static void delete_cd(struct world *w) {
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
}

static void put_host(struct world *w, size_t i, const char *state, const char *reason) {
        w->nodes[i].wanted = true;
        w->nodes[i].host_state = state;
        w->nodes[i].host_reason = reason;
}

/* ---- creation and deletion ---- */

static void controller_add_path_creates_only_the_workload_rct_and_sets_status_ready(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        struct plan *p = world_plan(w, a);
        /* Finalizer and mode are one patch. The status waits for the template that it describes. */
        assert_int_equal(p->n_actions, 2);
        const char *adopt = world_action(p, KUBE_MERGE_PATCH, &kube_compute_domains)->body.p;
        assert_non_null(strstr(adopt, "\"finalizers\":[\"resource.nvidia.com/computeDomain\"]"));
        assert_non_null(strstr(adopt, "\"" CD_ANNOTATION_MODE "\":\"hostManaged\""));
        assert_string_equal(world_action(p, KUBE_CREATE, &kube_resource_claim_templates)->name, "tpl");
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 2);
        assert_int_equal(w->n_writes, 3);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        assert_string_equal(world_condition(w, a, "Ready")->status, "True");
        assert_int_equal(world_cd(w, a)->n_nodes, 0);
        assert_null(strstr(world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd")->json, "nodes"));
        arena_free(a);
}

static void controller_delete_path_deletes_only_the_workload_rct_then_rct_and_cd_finalizers(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        struct plan *p;
        world_create_cd(w, SPEC);
        put_host(w, 0, "UP", NULL); /* with a workload still running */
        world_settle(w, false);
        delete_cd(w);
        p = world_plan(w, a);
        assert_int_equal(p->n_actions, 1);
        assert_string_equal(world_action(p, KUBE_DELETE, &kube_resource_claim_templates)->name, "tpl");
        world_perform(w, &p->actions[0]);
        p = world_plan(w, a);
        assert_int_equal(p->n_actions, 1);
        assert_non_null(strstr(world_action(p, KUBE_MERGE_PATCH, &kube_resource_claim_templates)->body.p,
                               "\"finalizers\":[]"));
        world_perform(w, &p->actions[0]);
        assert_null(the_template(w)); /* it no longer exists when the finalizer is removed */
        p = world_plan(w, a);
        assert_int_equal(p->n_actions, 1);
        assert_non_null(strstr(world_action(p, KUBE_MERGE_PATCH, &kube_compute_domains)->body.p,
                               "\"finalizers\":[]"));
        world_perform(w, &p->actions[0]);
        assert_int_equal(world_count(w), 0);
        assert_true(world_plan(w, a)->nothing_left);
        arena_free(a);
}

static void the_domain_keeps_its_finalizer_while_a_foreign_finalizer_keeps_the_template(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        char *ours = strstr(the_template(w)->json, CD_FINALIZER "\"]");
        ours[0] = 'x'; /* a foreign finalizer, which stays */
        delete_cd(w);
        assert_true(world_settle(w, false) >= 0);
        assert_non_null(the_template(w));
        assert_int_equal(world_cd(w, a)->n_finalizers, 1);
        arena_free(a);
}

static void nonzero_num_nodes_is_silently_ignored_never_rejected(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC_OF("7", "Single"));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        assert_string_equal(world_condition(w, a, "Ready")->reason, "Admitted");
        arena_free(a);
}

/* Prepare refuses the mode All with a message that the user sees. */
static void the_template_has_the_allocation_mode_of_the_ComputeDomain(void **state) {
        struct world *w = *state;
        world_create_cd(w, SPEC_OF("0", "All"));
        assert_true(world_settle(w, false) >= 0);
        assert_non_null(strstr(the_template(w)->json, "\"allocationMode\":\"All\""));
}

/* The Go driver writes Single, whatever the ComputeDomain requests. */
static void a_template_of_the_Go_driver_stays_as_it_is(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC_OF("0", "All"));
        _cleanup_(freep) char *theirs = xasprintf(
                "{'metadata':{'name':'tpl','namespace':'" WORLD_USER_NS "','finalizers':['" CD_FINALIZER "'],"
                "'labels':{'" CD_LABEL "':'%s','" CD_LABEL_TARGET "':'Workload'}},'spec':{'spec':{'devices':{"
                "'requests':[{'name':'channel','exactly':{'deviceClassName':'" CD_CLASS_CHANNEL "'}}],"
                "'config':[{'requests':['channel'],'opaque':{'driver':'" CD_DRIVER "','parameters':{"
                "'apiVersion':'resource.nvidia.com/v1beta1','kind':'ComputeDomainChannelConfig',"
                "'domainID':'%s','allocationMode':'Single'}}}]}}}}",
                world_cd(w, a)->o.meta.uid, world_cd(w, a)->o.meta.uid);
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl", theirs);
        assert_true(world_settle(w, false) >= 0);
        assert_non_null(strstr(the_template(w)->json, "\"allocationMode\":\"Single\""));
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

static void ready_means_that_the_template_exists(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl",
                  "{'metadata':{'name':'tpl','namespace':'" WORLD_USER_NS
                  "'},'spec':{'spec':{'devices':{'requests':[{'name':'gpu'}]}}}}");
        world_create_cd(w, SPEC);
        assert_int_equal(world_settle(w, false), -1); /* only the server knows when the name is free */
        assert_string_equal(world_cd(w, a)->status, "NotReady");
        w->write_error = "create ResourceClaimTemplate w/tpl: exists"; /* the other reason comes first */
        world_settle(w, false);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "TemplateNameTaken");
        w->write_error = NULL;
        object_vanish(the_template(w));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        object_vanish(the_template(w)); /* without its finalizer */
        struct plan *p = world_plan(w, a);
        assert_non_null(world_action(p, KUBE_CREATE, &kube_resource_claim_templates));
        assert_non_null(
                strstr(world_action(p, KUBE_MERGE_PATCH, &kube_compute_domains)->body.p, "TemplateMissing"));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

/* Also if the ComputeDomain has no status yet, which waits for the template. */
/* failure: a foreign finalizer keeps the claim template -> the ComputeDomain reports it */
static void a_template_kept_by_a_foreign_finalizer_is_reported(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        _cleanup_(freep) char *held = xasprintf("{'metadata':{'name':'tpl','namespace':'" WORLD_USER_NS
                                                "','deletionTimestamp':'2026-01-01T00:00:00Z',"
                                                "'finalizers':['example.com/keep'],'labels':{'" CD_LABEL
                                                "':'%s','" CD_LABEL_TARGET "':'Daemon'}},"
                                                "'spec':{'spec':{'devices':{'requests':[{'name':'gpu'}]}}}}",
                                                world_cd(w, a)->o.meta.uid);
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl", held);
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "NotReady");
        assert_string_equal(world_condition(w, a, "Ready")->reason, "TemplateTerminating");
        assert_non_null(strstr(world_condition(w, a, "Ready")->message, "example.com/keep"));
        object_vanish(the_template(w));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

/* ---- health of the hosts ---- */

/* Also before the first status, because the refused write may be the template that the status waits for. */
/* failure: the claim template cannot be written, with host-managed IMEX -> the status reports it until it
 * succeeds [host-managed] */
static void a_failing_write_is_reported_until_it_succeeds(void **state) {
        static const char refused[] = "create ResourceClaimTemplate w/tpl: a webhook refuses it";
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        struct plan_input in;
        struct plan p;
        world_create_cd(w, SPEC);
        w->write_error = refused;
        world_view(w, a, &in);
        plan_make(&in, a, &p);
        const struct plan_action *status = NULL;
        for (size_t i = 0; i < p.n_actions; i++)
                if (streq(p.actions[i].subresource, "status"))
                        status = &p.actions[i];
        assert_non_null(status);
        assert_non_null(strstr(status->body.p, "\"WriteFailed\""));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "NotReady");
        assert_string_equal(world_condition(w, a, "Ready")->status, "False");
        assert_string_equal(world_condition(w, a, "Ready")->reason, "WriteFailed");
        assert_string_equal(world_condition(w, a, "Ready")->message, refused);
        w->write_error = NULL;
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        assert_string_equal(world_condition(w, a, "Ready")->reason, "Admitted");
        arena_free(a);
}

static void a_joining_node_costs_no_write(void **state) {
        struct world *w = *state;
        world_create_cd(w, SPEC);
        put_host(w, 0, "UP", NULL);
        world_settle(w, false);
        size_t writes = w->n_writes;
        for (size_t i = 1; i < WORLD_NODES; i++) {
                put_host(w, i, "UP", NULL);
                world_settle(w, false);
        }
        put_host(w, 2, "DOWN", "nvidia-imex does not answer");
        world_settle(w, false);
        assert_int_equal(w->n_writes, writes + 1);
        w->nodes[4].wanted = false;
        world_settle(w, false);
        put_host(w, 4, "UP", NULL); /* nor does a node that joins while IMEX of another node is down */
        world_settle(w, false);
        assert_int_equal(w->n_writes, writes + 1);
}

static void host_imex_health_is_reported_and_changes_nothing_else(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        assert_string_equal(world_condition(w, a, "HostIMEXHealthy")->status, "Unknown");
        assert_string_equal(world_condition(w, a, "HostIMEXHealthy")->reason, "NoNodes");
        put_host(w, 0, "UP", NULL);
        put_host(w, 1, NULL, NULL);
        world_settle(w, false);
        assert_string_equal(world_condition(w, a, "HostIMEXHealthy")->reason, "NotProbed");
        put_host(w, 1, "UP", NULL);
        world_settle(w, false);
        assert_string_equal(world_condition(w, a, "HostIMEXHealthy")->status, "True");
        put_host(w, 1, "DEGRADED", "node-c is not connected");
        struct plan *p = world_plan(w, a);
        assert_int_equal(p->n_actions, 1);
        assert_int_equal(p->n_events, 1);
        assert_true(p->events[0].warning);
        assert_string_equal(p->events[0].reason, "HostIMEXDegraded");
        world_settle(w, false);
        put_host(w, 0, "DOWN", "nvidia-imex does not answer");
        world_settle(w, false);
        const struct cd_condition *c = world_condition(w, a, "HostIMEXHealthy");
        assert_string_equal(c->status, "False");
        assert_string_equal(c->reason, "HostIMEXDown");
        assert_string_equal(
                c->message,
                "node-a is DOWN: nvidia-imex does not answer; node-b is DEGRADED: node-c is not connected");
        assert_string_equal(world_cd(w, a)->status, "Ready");
        assert_string_equal(world_condition(w, a, "Ready")->status, "True");
        put_host(w, 0, "UP", NULL);
        put_host(w, 1, "UP", NULL);
        p = world_plan(w, a);
        assert_string_equal(p->events[0].reason, "HostIMEXUp");
        assert_false(p->events[0].warning);
        arena_free(a);
}

static void host_imex_recovery_is_reported_even_after_an_unknown_state(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        put_host(w, 0, "UP", NULL);
        assert_int_equal(world_plan(w, a)->n_events, 0); /* IMEX was healthy from the start */
        world_settle(w, false);
        put_host(w, 0, "DOWN", "nvidia-imex does not answer");
        world_settle(w, false);
        put_host(w, 0, NULL, NULL); /* the plugin starts again */
        assert_int_equal(world_plan(w, a)->n_events, 0);
        world_settle(w, false);
        put_host(w, 0, "UP", NULL);
        const struct plan *p = world_plan(w, a);
        assert_int_equal(p->n_events, 1);
        assert_string_equal(p->events[0].reason, "HostIMEXUp");
        arena_free(a);
}

/* ---- mode changes with existing ComputeDomains ---- */

static void settled_with_two_nodes(struct world *w) {
        world_create_cd(w, SPEC);
        put_host(w, 0, "UP", NULL);
        put_host(w, 1, "UP", NULL);
        assert_true(world_settle(w, false) >= 0);
}

static void expect_other_mode(struct world *w, const char *was, const char *now) {
        struct arena *a = arena_new(4096);
        struct plan *p = world_plan(w, a);
        bool recorded = world_cd(w, a)->mode;
        assert_int_equal(p->n_actions, recorded ? 1 : 2); /* only the status, and the mode if it is missing */
        if (!recorded) {
                assert_non_null(strstr(p->actions[0].body.p, "\"" CD_ANNOTATION_MODE "\":\""));
                assert_null(p->actions[0].subresource);
        }
        assert_string_equal(p->actions[p->n_actions - 1].subresource, "status");
        assert_int_equal(p->n_events, 1);
        assert_string_equal(p->events[0].reason, "OtherMode");
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_plan(w, a)->n_actions, 0); /* reported once */
        assert_string_equal(world_cd(w, a)->mode, strrchr(was, ' ') + 1);
        const struct cd_condition *c = world_condition(w, a, "Ready");
        assert_string_equal(world_cd(w, a)->status, "NotReady");
        assert_string_equal(c->reason, "OtherMode");
        assert_non_null(strstr(c->message, was));
        assert_non_null(strstr(c->message, now));
        assert_non_null(strstr(c->message, "create it again"));
        arena_free(a);
}

static void a_change_to_host_managed_keeps_existing_domains(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        settled_with_two_nodes(w);
        assert_string_equal(world_cd(w, a)->mode, "driverManaged");
        world_set_mode(w, GATE, NULL);
        expect_other_mode(w, "Formed in IMEX mode driverManaged",
                          "hostManaged now (imex.mode=hostManaged, or feature gate HostManagedIMEX=true)");
        assert_true(w->nodes[0].labelled && w->nodes[0].joined); /* running nodes continue */
        assert_int_equal(world_cd(w, a)->n_nodes, 2);
        put_host(w, 2, "UP", NULL);
        world_settle(w, false);
        assert_false(w->nodes[2].labelled || w->nodes[2].assigned); /* no new node joins */
        w->nodes[1].wanted = false;
        world_settle(w, false);
        assert_false(w->nodes[1].labelled || w->nodes[1].assigned);
        delete_cd(w);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        for (size_t i = 0; i < WORLD_NODES; i++)
                assert_false(w->nodes[i].labelled || w->nodes[i].assigned);
        arena_free(a);
}

static void a_change_to_driver_managed_keeps_existing_domains(void **state) {
        struct world *w = *state;
        settled_with_two_nodes(w);
        world_set_mode(w, "", NULL);
        expect_other_mode(w, "Formed in IMEX mode hostManaged", "driverManaged now");
        assert_int_equal(world_count(w), 2);
        assert_false(w->nodes[0].labelled);
        delete_cd(w);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        for (size_t i = 0; i < WORLD_NODES; i++)
                assert_false(w->nodes[i].assigned);
}

static void a_domain_continues_when_its_mode_returns(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        settled_with_two_nodes(w);
        world_set_mode(w, GATE, NULL);
        world_settle(w, false);
        world_set_mode(w, "", NULL);
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        assert_int_equal(world_cd(w, a)->nodes_ready, 2);
        arena_free(a);
}

/* The Go driver records no mode. */
static void drop_recorded_mode(struct world *w) {
        memcpy(strstr(world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd")->json, CD_ANNOTATION_MODE),
               "example.com/", 12);
}

static void vanish_templates(struct world *w) {
        for (struct object *o = w->store.items; o < w->store.items + STORE_MAX; o++)
                if (o->json && o->res == &kube_resource_claim_templates)
                        object_vanish(o);
}

/* A recorded mode does not change when the objects that showed it are deleted, and neither does the status.
 */
static void expect_still_other_mode_without_templates(struct world *w) {
        struct arena *a = arena_new(4096);
        vanish_templates(w);
        assert_int_equal(world_plan(w, a)->n_actions, 0);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "OtherMode");
        arena_free(a);
}

static void a_driver_managed_domain_without_a_mode_gets_it_recorded(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        settled_with_two_nodes(w);
        drop_recorded_mode(w);
        struct plan *p = world_plan(w, a);
        assert_int_equal(p->n_actions, 1); /* in its own mode it is adopted with one patch */
        assert_non_null(strstr(p->actions[0].body.p, "\"" CD_ANNOTATION_MODE "\":\"driverManaged\""));
        world_set_mode(w, GATE, NULL);
        expect_other_mode(w, "Formed in IMEX mode driverManaged", "hostManaged now");
        expect_still_other_mode_without_templates(w);
        delete_cd(w);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

static void a_host_managed_domain_without_a_mode_gets_it_recorded(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        settled_with_two_nodes(w);
        drop_recorded_mode(w);
        struct plan *p = world_plan(w, a);
        assert_int_equal(p->n_actions, 1);
        assert_non_null(strstr(p->actions[0].body.p, "\"" CD_ANNOTATION_MODE "\":\"hostManaged\""));
        world_set_mode(w, "", NULL);
        expect_other_mode(w, "Formed in IMEX mode hostManaged", "driverManaged now");
        expect_still_other_mode_without_templates(w);
        for (size_t i = 0; i < WORLD_NODES; i++)
                assert_false(w->nodes[i].assigned);
        world_set_mode(w, GATE, NULL);
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        delete_cd(w);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

/* kubectl get -o yaml | kubectl apply -f -, in both modes. It keeps annotations and finalizers, but not
 * status and UID. */
/* failure: a ComputeDomain is restored from an export of another mode -> it is formed new [host-managed] */
static void a_domain_from_an_exported_manifest_is_new(void **state) {
        static const struct {
                const char *gates, *was, *is, *head;
        } rows[] = {
                { "", "hostManaged", "driverManaged", "'finalizers':['" CD_FINALIZER "']," },
                { "", "hostManaged", "driverManaged", "" },
                { GATE, "driverManaged", "hostManaged", "'finalizers':['" CD_FINALIZER "']," },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(4096);
                struct buf b = BUF_INIT(4096);
                struct world w;
                world_init(&w);
                world_set_mode(&w, rows[i].gates, NULL);
                buf_addf(&b,
                         "{'metadata':{'name':'cd','namespace':'" WORLD_USER_NS "','uid':'" UID_A
                         "',%s'annotations':{'" CD_ANNOTATION_MODE "':'%s'}},'spec':" SPEC "}",
                         rows[i].head, rows[i].was);
                world_put(&w, &kube_compute_domains, WORLD_USER_NS, "cd", buf_str(&b));
                buf_done(&b);
                const struct plan *p = world_plan(&w, a);
                assert_int_equal(p->n_actions, 1); /* a template would confirm the wrong mode */
                assert_true(world_settle(&w, false) >= 0);
                assert_string_equal(world_cd(&w, a)->mode, rows[i].is);
                assert_int_equal(world_cd(&w, a)->n_finalizers, 1);
                assert_string_not_equal(world_condition(&w, a, "Ready")->reason, "OtherMode");
                assert_non_null(the_template(&w));
                arena_free(a);
                world_done(&w);
        }
}

static void remains_of_a_driver_managed_domain_are_deleted(void **state) {
        struct world *w = *state;
        settled_with_two_nodes(w);
        object_vanish(world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        world_set_mode(w, GATE, NULL);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
}

/* With random events, mode changes and lost writes, a ComputeDomain can be deleted and nothing is left. */
static void nothing_is_left_after_changes_between_all_modes(void **state) {
        static const struct {
                const char *gates, *mode;
        } modes[] = { { "", NULL }, { GATE, NULL }, { "HostManagedIMEXDaemon=true", "hostManaged" } };
        static const char *const states[] = { NULL, "UP", "DEGRADED", "DOWN" };
        for (int life = 0; life < 250; life++) {
                struct world w;
                world_init(&w);
                size_t m = fake_random(ARRAY_LEN(modes));
                world_set_mode(&w, modes[m].gates, modes[m].mode);
                world_create_cd(&w, SPEC);
                for (int event = 0; event < 30; event++) {
                        struct arena *a = arena_new(8192);
                        struct world_node *n = &w.nodes[fake_random(WORLD_NODES)];
                        if (fake_random(2))
                                n->wanted = !n->wanted;
                        n->host_state = states[fake_random(ARRAY_LEN(states))];
                        if (!fake_random(8)) {
                                m = fake_random(ARRAY_LEN(modes));
                                world_set_mode(&w, modes[m].gates, modes[m].mode);
                        }
                        struct plan *p = world_plan(&w, a);
                        for (size_t i = 0; i < p->n_actions; i++)
                                if (fake_random(3))
                                        world_perform(&w, &p->actions[i]);
                        arena_free(a);
                        world_turn(&w);
                }
                if (world_settle(&w, true) < 0)
                        fail_msg("life %d does not settle", life);
                delete_cd(&w);
                if (world_settle(&w, true) < 0)
                        fail_msg("life %d does not end", life);
                assert_int_equal(world_count(&w), 0);
                for (size_t i = 0; i < WORLD_NODES; i++)
                        assert_false(w.nodes[i].labelled || w.nodes[i].assigned);
                world_done(&w);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
#define T_DRIVER(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(controller_add_path_creates_only_the_workload_rct_and_sets_status_ready),
                T(controller_delete_path_deletes_only_the_workload_rct_then_rct_and_cd_finalizers),
                T(the_domain_keeps_its_finalizer_while_a_foreign_finalizer_keeps_the_template),
                T(nonzero_num_nodes_is_silently_ignored_never_rejected),
                T(the_template_has_the_allocation_mode_of_the_ComputeDomain),
                T(a_template_of_the_Go_driver_stays_as_it_is),
                T(ready_means_that_the_template_exists),
                T(a_template_kept_by_a_foreign_finalizer_is_reported),
                T(a_failing_write_is_reported_until_it_succeeds),
                T(a_joining_node_costs_no_write),
                T(host_imex_health_is_reported_and_changes_nothing_else),
                T(host_imex_recovery_is_reported_even_after_an_unknown_state),
                T_DRIVER(a_change_to_host_managed_keeps_existing_domains),
                T(a_change_to_driver_managed_keeps_existing_domains),
                T(a_host_managed_domain_without_a_mode_gets_it_recorded),
                T_DRIVER(a_domain_continues_when_its_mode_returns),
                T_DRIVER(a_driver_managed_domain_without_a_mode_gets_it_recorded),
                T(a_domain_from_an_exported_manifest_is_new),
                T_DRIVER(remains_of_a_driver_managed_domain_are_deleted),
                T(nothing_is_left_after_changes_between_all_modes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
