/* SPDX-License-Identifier: Apache-2.0 */
#include "api/resources.h"
#include "world/domain.h"
#include "rules/message.h"

#define SPEC "{'channel':{'resourceClaimTemplate':{'name':'tpl'}}}"

/* ---- life of a ComputeDomain ---- */

static void a_new_domain_gets_its_objects_in_one_pass(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        struct plan *p = world_plan(w, a);
        assert_non_null(strstr(world_action(p, KUBE_MERGE_PATCH, &kube_compute_domains)->body.p,
                               "\"finalizers\":[\"" CD_FINALIZER "\"]"));
        assert_string_equal(world_action(p, KUBE_CREATE, &kube_resource_claim_templates)->name, "tpl");
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready"); /* unused, and Ready as with the Go driver */
        assert_string_equal(world_condition(w, a, "Ready")->reason, "NoNodes");
        assert_int_equal(world_count(w), 2); /* the ComputeDomain and its claim template */
        assert_int_equal(w->conflicts, 0);
        arena_free(a);
}

static void a_domain_forms_shrinks_and_is_deleted(void **state) {
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

/* failure: a daemon of a deleted ComputeDomain does not end -> the deletion waits for a limited time */
static void deletion_waits_for_daemons_for_a_limited_time(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        world_settle(w, false);
        w->nodes[0].stuck = true;
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        w->now += PLAN_REPORT_AFTER_S;
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "DeletionWaiting");
        assert_string_equal(world_condition(w, a, "Ready")->message, "Waiting for IMEX to stop on node-a");
        w->now += PLAN_DAEMONS_END_S;
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

static void delete_cd(struct world *w) {
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
}

/* Another controller has finalizers on the ComputeDomain. */
static void create_held_cd(struct world *w, const char *finalizers) {
        struct buf b = BUF_INIT(4096);
        buf_addf(&b,
                 "{'metadata':{'name':'cd','namespace':'" WORLD_USER_NS "','uid':'" UID_A
                 "','finalizers':[%s]},'spec':" SPEC "}",
                 finalizers);
        world_put(w, &kube_compute_domains, WORLD_USER_NS, "cd", buf_str(&b));
        buf_done(&b);
}

/* The other controller removes its finalizer. */
static void remove_foreign_finalizer(struct world *w) {
        struct buf b = BUF_INIT(4096);
        buf_adds(&b, "{\"metadata\":{\"finalizers\":[\"" CD_FINALIZER "\"]}}");
        const struct plan_action x = { .verb = KUBE_MERGE_PATCH,
                                       .res = &kube_compute_domains,
                                       .ns = WORLD_USER_NS,
                                       .name = "cd",
                                       .body = { buf_str(&b), b.n } };
        assert_true(world_perform(w, &x));
        buf_done(&b);
}

/* failure: a foreign finalizer keeps a deleted ComputeDomain -> it continues where claims exist */
static void a_deleted_domain_with_a_foreign_finalizer_continues_where_claims_exist(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        create_held_cd(w, "'example.com/keep'");
        w->nodes[0].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        assert_true(w->nodes[0].joined);
        delete_cd(w);
        assert_true(world_settle(w, false) >= 0);
        assert_string_not_equal(world_condition(w, a, "Ready")->reason, "DeletionWaiting");
        w->now += PLAN_DAEMONS_END_S + PLAN_REPORT_AFTER_S;
        assert_true(world_settle(w, false) >= 0);
        assert_true(w->nodes[0].labelled && w->nodes[0].joined && !w->nodes[0].leaving);
        assert_non_null(strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json,
                               "deletionTimestamp"));
        assert_string_equal(world_condition(w, a, "Ready")->reason, "DeletionWaiting");
        assert_non_null(strstr(world_condition(w, a, "Ready")->message, "finalizers: example.com/keep. "));
        w->nodes[0].wanted = false;
        assert_true(world_settle(w, false) >= 0);
        assert_false(w->nodes[0].labelled || w->nodes[0].assigned);
        remove_foreign_finalizer(w);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

/* The minute of the daemons begins when the foreign finalizer is removed, however late that is. */
/* failure: a foreign finalizer is removed late -> the daemons still get their full minute to stop */
static void a_domain_without_its_foreign_finalizer_ends_as_usual(void **state) {
        struct world *w = *state;
        create_held_cd(w, "'example.com/keep'");
        w->nodes[0].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        delete_cd(w);
        w->now += 10 * PLAN_DAEMONS_END_S;
        assert_true(world_settle(w, false) >= 0);
        w->nodes[0].stuck = true;
        remove_foreign_finalizer(w);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 2); /* it waits for the daemon */
        w->now += PLAN_DAEMONS_END_S;
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
}

/* The garbage collector removes "foregroundDeletion" only when the dependents are deleted. Waiting for it
 * would never end. */
/* failure: a ComputeDomain is deleted in the foreground -> the garbage collector's finalizer does not block
 * the deletion */
static void the_garbage_collectors_finalizers_do_not_block(void **state) {
        struct world *w = *state;
        create_held_cd(w, "'foregroundDeletion','orphan'");
        w->nodes[0].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        delete_cd(w);
        assert_true(world_settle(w, false) >= 0);
        assert_false(w->nodes[0].labelled || w->nodes[0].assigned);
}

static void deletion_works_when_the_template_is_missing(void **state) {
        struct world *w = *state;
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        assert_true(world_settle(w, false) >= 0);
        object_vanish(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, NULL));
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
}

/* failure: a ComputeDomain disappears without its finalizer -> its objects are removed */
static void objects_of_a_deleted_domain_are_removed(void **state) {
        struct world *w = *state;
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        world_settle(w, false);
        object_vanish(world_find(w, &kube_compute_domains, WORLD_USER_NS,
                                 "cd")); /* a user has removed the finalizer by hand */
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
}

static void a_domain_without_a_spec_reports_that_and_can_be_deleted(void **state) {
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

/* failure: the name of the claim template is taken -> it is reported, and the foreign template stays */
static void a_taken_template_name_is_reported_and_not_taken_over(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        const char *theirs = "{'metadata':{'name':'tpl','namespace':'" WORLD_USER_NS
                             "'},'spec':{'spec':{'devices':{'requests':[{'name':'gpu'}]}}}}";
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl", theirs);
        world_create_cd(w, SPEC);
        assert_int_equal(world_settle(w, false),
                         -1); /* it keeps trying, because only the API server knows when the name is free */
        assert_string_equal(world_condition(w, a, "Ready")->reason, "TemplateNameTaken");
        assert_string_equal(world_cd(w, a)->status, "NotReady");
        assert_null(
                strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json, CD_LABEL));
        world_delete(w, world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl"));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

static void a_template_that_lost_its_label_gets_it_back(void **state) {
        struct world *w = *state;
        world_create_cd(w, SPEC);
        world_settle(w, false);
        struct object *o = world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl");
        char *label = strstr(o->json, CD_LABEL "\"");
        label[0] = 'x';
        assert_true(world_settle(w, false) >= 0);
        assert_non_null(strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json,
                               "\"" CD_LABEL "\":\"" UID_A "\""));
}

/* An admission webhook writes another device class into it. */
/* failure: a webhook changes each claim template -> it is reported, and the template is not recreated in a
 * loop */
static void a_template_that_a_webhook_changes_is_reported_and_not_recreated(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        assert_true(world_settle(w, false) >= 0);
        struct object *o = world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl");
        char *class = strstr(o->json, "compute-domain-");
        *class = 'x';
        assert_null(world_action(world_plan(w, a), KUBE_DELETE, &kube_resource_claim_templates));
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "TemplateChanged");
        assert_non_null(strstr(world_condition(w, a, "Ready")->message, "admission webhook"));
        *class = 'c';
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

static void a_deleted_template_is_recreated(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        assert_int_equal(world_plan(w, a)->n_actions, 0);
        world_delete(w, world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl"));
        const struct plan_action *x = world_action(world_plan(w, a), KUBE_MERGE_PATCH, &kube_compute_domains);
        assert_non_null(strstr(x->body.p, "\"TemplateMissing\""));
        assert_true(world_settle(w, false) >= 0);
        assert_null(strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json,
                           "deletionTimestamp"));
        assert_string_equal(world_cd(w, a)->status, "Ready");
        arena_free(a);
}

static void choose_isolation(struct world *w, const char *isolation) {
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, NULL, isolation, &w->mode, &e), 0);
}

/* failure: the isolation changes while a cache lacks the mode of a ComputeDomain -> its template stays */
static void a_template_stays_until_its_domain_states_the_mode(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        choose_isolation(w, "channel");
        world_create_cd(w, SPEC);
        /* The template is created, and the cache does not show the adoption yet. */
        world_perform(w, world_action(world_plan(w, a), KUBE_CREATE, &kube_resource_claim_templates));
        choose_isolation(w, "domain");
        struct plan *p = world_plan(w, a);
        assert_null(world_action(p, KUBE_DELETE, &kube_resource_claim_templates));
        assert_non_null(strstr(world_action(p, KUBE_MERGE_PATCH, &kube_compute_domains)->body.p,
                               "\"" CD_ANNOTATION_MODE "\":\"driverManaged\""));
        /* The earlier leader could not record its mode, so this one does, and replaces the template. */
        assert_true(world_settle(w, false) >= 0);
        assert_string_equal(world_cd(w, a)->status, "Ready");
        assert_null(strstr(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl")->json,
                           "\"isolation\""));
        arena_free(a);
}

/* ---- absence is no proof ---- */

static bool takes_away(const struct plan *p) {
        for (size_t i = 0; i < p->n_actions; i++) {
                const struct plan_action *x = &p->actions[i];
                if (x->verb == KUBE_DELETE || (x->body.p && strstr(x->body.p, "\"finalizers\":[]")))
                        return true;
        }
        return false;
}

/* The cache of a new leader shows the objects of the ComputeDomain, but not the ComputeDomain yet. */
/* failure: a new leader's cache lacks a ComputeDomain -> its objects stay */
static void a_domain_that_is_not_in_the_cache_keeps_its_objects(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        world_settle(w, false);
        size_t n = world_count(w);
        w->cd_unseen = true;
        w->stale = true;
        struct plan *p = world_plan(w, a);
        assert_int_equal(p->n_actions, 0);
        assert_true(p->held);
        assert_false(p->nothing_left || p->ask_domain);
        w->stale = false; /* the cache counts as current, so the API server is asked */
        p = world_plan(w, a);
        assert_int_equal(p->n_actions, 0);
        assert_true(p->ask_domain);
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), n);
        assert_true(w->nodes[0].labelled && w->nodes[0].joined && !w->nodes[0].leaving);
        object_vanish(world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd")); /* it is really deleted */
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

/* failure: a ComputeDomain is deleted while a cache is stale -> its finalizer stays until nothing is left */
static void a_finalizer_is_removed_only_when_nothing_is_left(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        w->now += PLAN_REPORT_AFTER_S;
        w->stale = true;
        for (int i = 0; i < 20; i++) { /* the template is deleted, because the deletionTimestamp is a fact */
                struct plan *p = world_plan(w, a);
                for (size_t k = 0; k < p->n_actions; k++)
                        world_perform(w, &p->actions[k]);
                world_turn(w);
        }
        assert_int_equal(world_count(w), 1);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "DeletionWaiting");
        assert_non_null(strstr(world_condition(w, a, "Ready")->message, "resourceclaims"));
        w->stale = false;
        assert_true(world_settle(w, false) >= 0);
        assert_int_equal(world_count(w), 0);
        arena_free(a);
}

/* failure: a label cannot be removed during a deletion -> the ComputeDomain reports why */
static void a_deletion_that_waits_for_labels_reports_why(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        struct plan_input in;
        struct plan p;
        world_create_cd(w, SPEC);
        world_settle(w, false);
        world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
        w->now += PLAN_REPORT_AFTER_S;
        w->label_error = "patch Node node-a: a webhook refuses it";
        world_view(w, a, &in);
        in.n_labelled = 1;
        in.labelled = "node-a";
        plan_make(&in, a, &p);
        const struct plan_action *x = world_action(&p, KUBE_MERGE_PATCH, &kube_compute_domains);
        assert_non_null(strstr(
                x->body.p,
                "Waiting for the label to be removed from node-a: patch Node node-a: a webhook refuses it"));
        arena_free(a);
}

/* The claim template is deleted with its ComputeDomain, and has a finalizer of another controller. */
/* failure: a foreign finalizer keeps an object during a deletion -> the ComputeDomain names it */
static void a_deletion_that_waits_for_a_template_names_the_finalizer(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_create_cd(w, SPEC);
        world_settle(w, false);
        object_vanish(world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl"));
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl",
                  "{'metadata':{'name':'tpl','namespace':'" WORLD_USER_NS "','uid':'t','labels':{'" CD_LABEL
                  "':'" UID_A "','" CD_LABEL_TARGET "':'" CD_TARGET_WORKLOAD "'},'finalizers':['" CD_FINALIZER
                  "','example.com/keep']}}");
        delete_cd(w);
        w->now += PLAN_REPORT_AFTER_S;
        assert_true(world_settle(w, false) >= 0);
        const struct cd_condition *c = world_condition(w, a, "Ready");
        assert_string_equal(c->status, "False");
        assert_string_equal(c->reason, "DeletionWaiting");
        assert_string_equal(c->message,
                            "Waiting for objects to be deleted: ResourceClaimTemplate " WORLD_USER_NS
                            "/tpl (finalizers: example.com/keep). Other controllers must remove their "
                            "finalizers");
        arena_free(a);
}

/* A view of a ComputeDomain that ends, while its claim template still exists. */
static void view_ending(struct world *w, int64_t seconds, struct arena *a, struct plan_input *in) {
        world_create_cd(w, SPEC);
        world_settle(w, false);
        delete_cd(w);
        w->now += seconds;
        world_view(w, a, in);
        assert_int_equal(in->n_rcts, 1);
}

/* failure: a webhook refuses a DELETE -> the ComputeDomain reports it at once */
static void a_refused_deletion_is_reported_at_once(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        struct plan_input in;
        struct plan p;
        w->write_error = "delete ResourceClaimTemplate tpl: a webhook refuses it";
        view_ending(w, PLAN_REPORT_AFTER_S, a, &in);
        plan_make(&in, a, &p);
        const struct plan_action *x = world_action(&p, KUBE_MERGE_PATCH, &kube_compute_domains);
        assert_non_null(strstr(x->body.p, "DeletionWaiting"));
        assert_non_null(strstr(x->body.p, "ResourceClaimTemplate " WORLD_USER_NS "/tpl. The last attempt "
                                          "failed: delete ResourceClaimTemplate tpl: a webhook refuses it"));
        assert_int_equal(p.n_events, 1);
        assert_string_equal(p.events[0].reason, "DeletionWaiting");
        assert_true(p.events[0].warning);
        assert_non_null(world_action(&p, KUBE_DELETE, &kube_resource_claim_templates)); /* the next attempt */
        arena_free(a);
}

/* failure: a deletion makes no progress for a minute -> the ComputeDomain names what is left */
static void a_deletion_without_progress_names_what_is_left_after_a_minute(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        struct plan_input in;
        struct plan p;
        view_ending(w, PLAN_REPORT_AFTER_S, a, &in);
        struct rct r = *in.rcts[0];
        const struct rct *rcts[] = { &r };
        in.rcts = rcts;
        r.o.meta.deleted = in.now;
        in.now += PLAN_STANDSTILL_S;
        plan_make(&in, a, &p); /* this plan removes the finalizer */
        assert_null(world_action(&p, KUBE_MERGE_PATCH, &kube_compute_domains));
        r.n_finalizers = 0;
        in.now--;
        plan_make(&in, a, &p);
        assert_int_equal(p.n_actions, 0);
        assert_int_equal(p.recheck_s, 1);
        in.now++;
        plan_make(&in, a, &p);
        const struct plan_action *x = world_action(&p, KUBE_MERGE_PATCH, &kube_compute_domains);
        assert_non_null(strstr(x->body.p, "DeletionWaiting"));
        assert_non_null(strstr(x->body.p, "ResourceClaimTemplate " WORLD_USER_NS "/tpl. kubectl get"));
        assert_int_equal(p.n_events, 1);
        arena_free(a);
}

/* failure: the driver's finalizer cannot be removed -> the ComputeDomain reports it */
static void a_finalizer_that_cannot_be_removed_is_reported(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        struct plan_input in;
        struct plan p;
        view_ending(w, PLAN_REPORT_AFTER_S, a, &in);
        in.n_rcts = 0;
        in.write_error = "patch ComputeDomain cd: a webhook refuses it";
        plan_make(&in, a, &p);
        const struct plan_action *x = world_action(&p, KUBE_MERGE_PATCH, &kube_compute_domains);
        assert_string_equal(x->subresource, "status");
        assert_non_null(strstr(x->body.p, "cannot remove its finalizer: patch ComputeDomain cd: a webhook"));
        assert_int_equal(p.n_actions, 2); /* the next attempt */
        arena_free(a);
}

/* ---- refused writes ---- */

#define REFUSED "patch Node node-a: a webhook refuses it"

static size_t occurrences(const char *text, const char *part) {
        size_t n = 0;
        for (; (text = strstr(text, part)); text++)
                n++;
        return n;
}

/* failure: a write keeps failing -> the condition Ready reports it until it succeeds */
static void a_failing_write_is_reported_until_it_succeeds(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        struct buf transcript = BUF_INIT(1 << 20);
        world_create_cd(w, SPEC);
        w->nodes[0].wanted = true;
        world_settle(w, false);
        w->transcript = &transcript;
        w->write_error = REFUSED;
        assert_true(world_settle(w, false) >= 0);
        const struct cd_condition *c = world_condition(w, a, "Ready");
        assert_string_equal(c->status, "False");
        assert_string_equal(c->reason, "WriteFailed");
        assert_string_equal(c->message, REFUSED);
        assert_int_equal(occurrences(buf_str(&transcript), "EVENT Warning WriteFailed: " REFUSED "\n"), 1);
        w->write_error = NULL;
        assert_true(world_settle(w, false) >= 0);
        c = world_condition(w, a, "Ready");
        assert_string_equal(c->status, "True");
        assert_null(strstr(c->message, "webhook"));
        assert_string_equal(world_cd(w, a)->status, "Ready");
        w->transcript = NULL;
        buf_done(&transcript);
        arena_free(a);
}

/* A problem that the user can fix in the ComputeDomain itself is reported first. */
/* failure: the template's name is taken and writes fail -> what the user can fix is reported first */
static void a_taken_name_is_reported_before_a_failing_write(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        world_put(w, &kube_resource_claim_templates, WORLD_USER_NS, "tpl",
                  "{'metadata':{'name':'tpl','namespace':'" WORLD_USER_NS
                  "'},'spec':{'spec':{'devices':{'requests':[{'name':'gpu'}]}}}}");
        world_create_cd(w, SPEC);
        w->write_error = REFUSED;
        world_settle(w, false);
        assert_string_equal(world_condition(w, a, "Ready")->reason, "TemplateNameTaken");
        arena_free(a);
}

/* ---- objects of other tenants ---- */

/* The UID is on every Node, so every tenant can write the label on its own objects. */
/* failure: a tenant labels a claim template with another ComputeDomain -> it does not block the deletion
 * [tenants] */
static void a_template_of_another_namespace_does_not_block_a_deletion(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(4096);
        static const char theirs[] =
                "{'metadata':{'name':'tpl','namespace':'theirs','labels':{'" CD_LABEL "':'" UID_A
                "','" CD_LABEL_TARGET "':'%s'},'finalizers':['example.com/mine']}}";
        for (int daemon = 0; daemon < 2; daemon++) {
                world_put(w, &kube_resource_claim_templates, "theirs", "tpl",
                          message_of(a, theirs, daemon ? CD_TARGET_DAEMON : CD_TARGET_WORKLOAD));
                world_create_cd(w, SPEC);
                w->nodes[0].wanted = true;
                assert_true(world_settle(w, false) >= 0);
                assert_string_equal(world_cd(w, a)->status, "Ready");
                world_delete(w, world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"));
                assert_true(world_settle(w, false) >= 0);
                assert_int_equal(world_count(w), 1); /* the other tenant's object, unchanged */
                assert_null(strstr(world_find(w, &kube_resource_claim_templates, "theirs", "tpl")->json,
                                   "deletionTimestamp"));
                object_vanish(world_find(w, &kube_resource_claim_templates, "theirs", "tpl"));
        }
        arena_free(a);
}

/* ---- limits ---- */

static const char *long_name(struct arena *a, size_t i, size_t n) {
        char *s = arena_alloc(a, n + 1);
        memset(s, 'x', n);
        s[n] = '\0';
        for (size_t k = 4; k-- > 0; i /= 10)
                s[k] = (char)('0' + i % 10);
        return s;
}

static void a_status_that_is_too_large_is_not_written(void **state) {
        enum { NODES = 300, LONG = 16000 };
        struct world *w = *state;
        struct arena *a = arena_new(1 << 20);
        struct plan_input in;
        struct plan p;
        world_create_cd(w, SPEC);
        world_settle(w, false);
        world_view(w, a, &in);
        struct member_facts *nodes = arena_alloc(a, NODES * sizeof *nodes);
        const struct node *ready = fake_node(a, "any", true);
        for (size_t i = 0; i < NODES; i++)
                nodes[i] = (struct member_facts){
                        .name = long_name(a, i, LONG), .node = ready, .wanted = true, .clique = ""
                };
        in.members = nodes;
        in.n_members = NODES;
        plan_make(&in, a, &p);
        assert_string_equal(p.too_large, "cd");
        assert_null(world_action(&p, KUBE_MERGE_PATCH, &kube_compute_domains));
        arena_free(a);
}

/* ---- random events ---- */

static void something_happens(struct world *w) {
        struct world_node *n = &w->nodes[fake_random(WORLD_NODES)];
        struct object *o;
        switch (fake_random(7)) {
        case 0:
        case 1:
        case 2:
                n->wanted = !n->wanted && n->exists;
                break;
        case 3:
                n->ready = !n->ready;
                break;
        case 4: /* a node is removed, or is added (again) */
                n->exists = !n->exists;
                n->wanted = n->wanted && n->exists;
                break;
        case 5: /* its daemon is replaced */
                n->joined = false;
                break;
        default:
                o = world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, NULL);
                if (o)
                        world_delete(w, o);
        }
}

/* With random events and lost writes: when the events end, everything reaches its desired state, and after
 * the deletion of the ComputeDomain nothing is left. */
/* failure: writes are lost at random -> everything settles, and nothing is left after the deletion */
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
                }
                size_t wanted = 0;
                for (size_t i = 0; i < WORLD_NODES; i++) {
                        w.nodes[i].ready = true;
                        wanted += w.nodes[i].exists && w.nodes[i].wanted;
                }
                if (world_settle(&w, true) < 0)
                        fail_msg("life %d does not settle", life);
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

/* Caches are stale, or lack claims or the ComputeDomain without being marked as stale, as those of a new
 * leader. A node keeps its label while a claim is allocated there. No object of the ComputeDomain is removed
 * until it is deleted. When the caches are current again, everything reaches its desired state. */
/* failure: caches are stale or incomplete -> no label or object in use is removed */
static void a_stale_cache_removes_nothing(void **state) {
        for (int life = 0; life < 250; life++) {
                struct world w;
                size_t removals = 0;
                world_init(&w);
                world_create_cd(&w, SPEC);
                world_settle(&w, false);
                for (int event = 0; event < 40; event++) {
                        struct world_node *n = &w.nodes[fake_random(WORLD_NODES)];
                        bool kept[WORLD_NODES];
                        switch (fake_random(6)) {
                        case 0:
                        case 1:
                                n->wanted = !n->wanted;
                                break;
                        case 2:
                                n->unseen = !n->unseen;
                                break;
                        case 3:
                                w.stale = !w.stale;
                                break;
                        case 4:
                                w.cd_unseen = !w.cd_unseen;
                                break;
                        default:
                                n->ready = !n->ready;
                        }
                        for (size_t i = 0; i < WORLD_NODES; i++)
                                kept[i] = w.nodes[i].labelled && w.nodes[i].wanted;
                        struct arena *a = arena_new(8192);
                        struct plan *p = world_plan(&w, a);
                        if (w.stale || w.cd_unseen)
                                assert_false(takes_away(p));
                        removals += takes_away(p);
                        for (size_t i = 0; i < p->n_actions; i++)
                                if (fake_random(3))
                                        world_perform(&w, &p->actions[i]);
                        arena_free(a);
                        world_turn(&w);
                        for (size_t i = 0; i < WORLD_NODES; i++)
                                if (kept[i] && !w.nodes[i].labelled)
                                        fail_msg("life %d, event %d: %s lost what it uses", life, event,
                                                 world_names[i]);
                }
                w.stale = w.cd_unseen = false;
                for (size_t i = 0; i < WORLD_NODES; i++) {
                        w.nodes[i].unseen = false;
                        w.nodes[i].ready = true;
                }
                if (world_settle(&w, true) < 0)
                        fail_msg("life %d does not settle", life);
                for (size_t i = 0; i < WORLD_NODES; i++)
                        assert_int_equal(w.nodes[i].labelled, w.nodes[i].wanted);
                world_delete(&w, world_find(&w, &kube_compute_domains, WORLD_USER_NS, "cd"));
                if (world_settle(&w, true) < 0)
                        fail_msg("life %d does not end", life);
                assert_int_equal(world_count(&w), 0);
                world_done(&w);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_new_domain_gets_its_objects_in_one_pass),
                T(a_domain_forms_shrinks_and_is_deleted),
                T(deletion_waits_for_daemons_for_a_limited_time),
                T(a_deleted_domain_with_a_foreign_finalizer_continues_where_claims_exist),
                T(a_domain_without_its_foreign_finalizer_ends_as_usual),
                T(the_garbage_collectors_finalizers_do_not_block),
                T(deletion_works_when_the_template_is_missing),
                T(objects_of_a_deleted_domain_are_removed),
                T(a_domain_without_a_spec_reports_that_and_can_be_deleted),
                T(a_taken_template_name_is_reported_and_not_taken_over),
                T(a_template_that_lost_its_label_gets_it_back),
                T(a_template_that_a_webhook_changes_is_reported_and_not_recreated),
                T(a_deleted_template_is_recreated),
                T(a_template_stays_until_its_domain_states_the_mode),
                T(it_always_settles),
                T(a_domain_that_is_not_in_the_cache_keeps_its_objects),
                T(a_finalizer_is_removed_only_when_nothing_is_left),
                T(a_deletion_that_waits_for_labels_reports_why),
                T(a_deletion_that_waits_for_a_template_names_the_finalizer),
                T(a_refused_deletion_is_reported_at_once),
                T(a_deletion_without_progress_names_what_is_left_after_a_minute),
                T(a_finalizer_that_cannot_be_removed_is_reported),
                T(a_failing_write_is_reported_until_it_succeeds),
                T(a_taken_name_is_reported_before_a_failing_write),
                T(a_template_of_another_namespace_does_not_block_a_deletion),
                T(a_status_that_is_too_large_is_not_written),
                T(a_stale_cache_removes_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
