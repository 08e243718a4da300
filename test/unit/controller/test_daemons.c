/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller in driver-managed mode: which nodes get a daemon, the claim template and the DaemonSet
 * of the daemons' Pods, and how a daemon is removed or replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/names.h"
#include "base/clock.h"
#include "controller/labels.h"
#include "daemons_world.h"
#include "rules/rollout.h"

/* ---- which nodes get a daemon ---- */

static void each_node_of_a_partition_gets_a_daemon(void **state) {
        struct world *w = *state;
        w->assignments = NULL;
        w->node_labels = "";
        w->takes_templates = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->node && *w->fabric && w->n_sets && w->n_templates);
        assert_non_null(strstr(w->node, "\"" CD_LABEL_DAEMON "\":\"true\""));
        assert_non_null(strstr(w->node, "\"" CD_ANNOTATION_CLIQUE "\":\"" CLIQUE "\""));
        assert_non_null(strstr(w->fabric, "\"members\":[\"n1\"]"));
        assert_null(strstr(w->fabric, "\"domains\"")); /* no node has ever had an assignment */
}

/* ---- removals ---- */

#define OLD_HASH "0123456789abcdef"

/* failure: an idle daemon has an old template -> it is marked before its Pod is deleted [upgrade] */
static void an_idle_daemon_of_an_old_template_is_marked_before_its_pod_is_deleted(void **state) {
        struct world *w = *state;
        w->has_set = w->hold_fabric = w->hold_deletes = true;
        world_has_reported(w, IDLE);
        w->template_hash = OLD_HASH;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, MARKED));
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 0);
        w->hold_fabric = false;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        assert_true(w->n_before_delete >= 1);
        assert_non_null(strstr(w->object, MARKED));
        assert_non_null(strstr(w->deleted, "\"preconditions\":{\"uid\":\"p1\""));
}

/* failure: a node is not ready during a rollout -> its idle daemon is replaced when the node is ready
 * [upgrade] */
static void an_idle_daemon_of_an_old_template_is_replaced_when_its_node_becomes_ready(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *text = world_template_text("\"uid\":\"r\",\"resourceVersion\":\"1\",");
        w->daemon_template = text;
        w->has_set = w->hold_deletes = w->not_ready = true;
        world_has_reported(w, IDLE);
        w->template_hash = OLD_HASH;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, MARKED));
        w->not_ready = false;
        world_change_node(w, "MODIFIED", LABELLED);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
}

/* failure: a daemon in use has an old template -> it is replaced only when it is idle [upgrade] */
static void a_busy_daemon_of_an_old_template_is_not_marked_until_it_is_idle(void **state) {
        struct world *w = *state;
        w->has_set = w->hold_deletes = true;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        world_has_reported(w, RUNS("3", "7"));
        w->template_hash = OLD_HASH;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, MARKED));
        assert_int_equal(w->n_pod_deletes, 0);
        w->assignments = LEAVING;
        w->claims = "";
        world_start_again(w);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, MARKED));
        assert_int_equal(w->n_pod_deletes, 0);
        world_change_report(w, REPORT(",\"left\":\"7\",\"seen\":7,\"served\":true"));
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        assert_non_null(strstr(w->object, MARKED));
}

/* Its assignment stays until there is proof that IMEX does not run in it. */
/* failure: IMEX of an old daemon was never READY -> the daemon counts as idle and is replaced [upgrade] */
static void a_daemon_whose_imex_was_never_ready_is_idle(void **state) {
        struct world *w = *state;
        w->has_set = w->hold_deletes = true;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        world_has_reported(w, STARTS("3", "7"));
        w->template_hash = OLD_HASH;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        assert_non_null(strstr(w->object, MARKED));
        assert_non_null(strstr(w->object, "\"index\":3,\"epoch\":7," THE_DAEMON));
}

/* failure: a node joins while its daemon is marked -> the daemon is deleted and gets no assignment [upgrade]
 * */
static void a_marked_daemon_gets_no_assignment_and_is_deleted(void **state) {
        struct world *w = *state;
        char hash[17];
        w->has_set = w->hold_deletes = true;
        world_is_claimed(w);
        w->more = "," MARKED;
        leading_start(&w->l); /* the hash of the present template is known only after this */
        objects_daemonset_hash(&w->l.c.settings, hash);
        w->template_hash = hash;
        world_has_reported(w, IDLE);
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
        assert_non_null(strstr(w->deleted, "\"preconditions\":{\"uid\":\"p1\""));
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, ASSIGNS));
        /* A mark is never withdrawn, even if the deletion fails. */
        w->hold_deletes = false;
        fake_refuse(w->held, 403, "not in this test");
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes >= 2);
        assert_null(strstr(w->fabric, ASSIGNS));
        assert_true(!*w->fabric || strstr(w->object, MARKED));
}

/* failure: a marked daemon was replaced -> the mark is removed, and the next daemon gets assignments
 * [upgrade] */
static void a_mark_is_removed_when_the_next_pod_of_the_node_reports(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, IDLE);
        w->more = ",\"removals\":[{\"node\":\"n1\",\"podUID\":\"p0\"}]";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNED_FIRST));
        assert_non_null(strstr(w->fabric, "\"removals\":[],"));
}

/* n1 is in another partition than n2. Somebody with the token of its daemon had written the partition of n2
 * into the label of its earlier Pod, which was then marked there, too. n1 has no other Pod yet. */
static void is_marked_in_another_partition(struct world *w) {
        w->n_daemons = 2;
        w->n_missing = 1;
        w->slice = ELSEWHERE;
        w->elsewhere = true;
        w->member = "n2";
        w->epoch = "7";
        w->more = ",\"recount\":7,\"removals\":[{\"node\":\"n1\",\"podUID\":\"p0\"}]";
        world_has_reported(w, REPORT(",\"seen\":7,\"recount\":7"));
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "not reported yet: n1."));
        run_for(&w->l.loop, 500);
        assert_non_null(strstr(w->object, "\"removals\":[{\"node\":\"n1\""));
}

/* failure: another partition still marks a node's earlier daemon -> its recount ends when the next daemon
 * reports [tenants] */
static void a_mark_in_another_partition_is_removed_when_the_next_pod_reports(void **state) {
        struct world *w = *state;
        is_marked_in_another_partition(w);
        world_change_report(w, REPORT_IN(BOOT, OTHER_OBJECT, ""));
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"recount\":0,\"removals\":[],"));
}

/* failure: another partition still marks a node's earlier daemon -> its recount ends when the node has no
 * daemon [tenants] */
static void a_mark_in_another_partition_is_removed_when_the_node_gets_no_daemon(void **state) {
        struct world *w = *state;
        is_marked_in_another_partition(w);
        world_change_node(w, "MODIFIED", "");
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"recount\":0,\"removals\":[],"));
}

/* ---- the claim template of the daemons ---- */

#define A_TEMPLATE(more)                                                                                     \
        "{\"metadata\":{\"name\":\"" CD_DAEMON_OBJECT "\",\"namespace\":\"driver\",\"uid\":\"r\","           \
        "\"resourceVersion\":\"1\",\"annotations\":{\"" CD_ANNOTATION_TEMPLATE "\":\"" OLD_HASH "\"}" more   \
        "},\"spec\":{\"spec\":{}}}"

static void a_claim_template_of_this_version_stays(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *text = world_template_text("\"uid\":\"r\",\"resourceVersion\":\"1\",");
        w->daemon_template = text;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strlen(w->order) >= 2); /* writes of the DaemonSet, which are refused */
        assert_null(strpbrk(w->order, "dc"));
}

/* failure: a new version changes the daemons' claim template -> the template is replaced before the DaemonSet
 * [upgrade] */
static void a_claim_template_of_another_version_is_replaced_before_the_daemonset_is_updated(void **state) {
        struct world *w = *state;
        w->daemon_template = A_TEMPLATE("");
        w->takes_templates = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strchr(w->order, 's'));
        assert_memory_equal(w->order, "dcs", 3);
        assert_non_null(strstr(w->deleted, "\"preconditions\":{\"uid\":\"r\""));
}

/* failure: the watch does not show that the old claim template was deleted -> it is recreated at once
 * [upgrade] */
static void a_deleted_claim_template_is_recreated_without_the_watch(void **state) {
        struct world *w = *state;
        w->daemon_template = A_TEMPLATE("");
        w->takes_templates = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strlen(w->order) >= 2);
        assert_memory_equal(w->order, "dc", 2);
}

/* failure: the leader crashes while it replaces the daemons' claim template -> the next leader completes that
 * [upgrade] */
static void after_a_crash_the_next_leader_deletes_the_claim_template_or_creates_it(void **state) {
        struct world *w = *state;
        w->daemon_template = A_TEMPLATE("");
        w->takes_templates = w->hold_deletes = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->order);
        world_start_again(w); /* the DELETE has not arrived */
        RUN_UNTIL(&w->l.loop, *w->order);
        assert_string_equal(w->order, "d");
        w->daemon_template = NULL; /* it has arrived, and the answer was lost */
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strchr(w->order, 's'));
        assert_memory_equal(w->order, "cs", 2);
}

/* The DaemonSet is not updated either, because new Pods would use the old claim template. */
/* failure: a finalizer keeps the old claim template of the daemons -> an error names it, and the DaemonSet
 * stays [upgrade] */
static void a_claim_template_that_a_finalizer_keeps_is_an_error(void **state) {
        struct world *w = *state;
        w->daemon_template = A_TEMPLATE(",\"deletionTimestamp\":\"2026-02-01T00:00:00Z\",\"finalizers\":["
                                        "\"example.com/keep\"]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, writes_error(w->l.c.writes, KEY_OF_DAEMONS));
        assert_non_null(strstr(writes_error(w->l.c.writes, KEY_OF_DAEMONS), "example.com/keep"));
        assert_string_equal(w->order, "");
}

/* ---- ComputeDomains that the Go driver formed ---- */

#define GO_LABEL "\"" CD_LABEL "\":\"" DOMAIN "\""

/* n1 has a claim of such a ComputeDomain. */
static void is_claimed_of_go(struct world *w, const char *labels) {
        world_is_claimed(w);
        w->templates = DAEMON_TEMPLATE;
        w->go_set = true;
        w->node_labels = labels;
        world_has_reported(w, IDLE);
}

static void a_node_does_not_join_a_domain_of_the_go_driver(void **state) {
        struct world *w = *state;
        is_claimed_of_go(w, LABELLED);
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(labels_of(&w->l.c, "n1")); /* the write of the label itself may wait */
        assert_null(strstr(w->fabric, ASSIGNS));
        w->templates = "";
        w->go_set = false;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNED_FIRST));
}

#define GO_META(name, more)                                                                                  \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"driver\",\"uid\":\"" name                      \
        "\",\"resourceVersion\":\"1\",\"labels\":{" GO_LABEL "}" more "}"
#define GO_POD(more) GO_META("go", more) ",\"spec\":{\"nodeName\":\"n9\"},\"status\":{\"phase\":\"Running\"}}"

/* failure: root on a node creates a static Pod with the label of a ComputeDomain -> nodes still join it
 * [tenants] */
static void a_static_pod_does_not_keep_nodes_out_of_a_domain(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        w->node_labels = LABELLED;
        world_has_reported(w, IDLE);
        w->go_pods = GO_POD("");
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, ASSIGNS));
        w->go_pods = GO_POD(",\"annotations\":{\"kubernetes.io/config.mirror\":\"x\"}");
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNED_FIRST));
}

/* failure: root on a node creates a static Pod with the daemon's labels -> it does not count as a daemon
 * [tenants] */
static void a_static_pod_is_no_daemon(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        w->node_labels = LABELLED;
        world_has_reported(w, IDLE);
        w->mirror = true;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, ASSIGNS));
        w->mirror = false;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNED_FIRST));
}

/* failure: a daemon of the Go driver writes a ComputeDomainClique of another ComputeDomain -> nodes still
 * join it [tenants] */
static void a_clique_alone_does_not_keep_nodes_out_of_a_domain(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        w->node_labels = LABELLED;
        world_has_reported(w, IDLE);
        w->go_cliques = GO_META("clique", "") ",\"daemons\":[]}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNED_FIRST));
}

static void the_label_of_a_domain_of_the_go_driver_stays_until_its_last_claim_is_deleted(void **state) {
        struct world *w = *state;
        is_claimed_of_go(w, GO_LABEL);
        w->has_daemon = false;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_string_equal(w->node, ""); /* the node does not get a daemon of this driver either */
        w->claims = "";
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL "\":null"));
        assert_true(w->n_claim_lists >= 3); /* one list for each cache, one for the confirmation */
}

/* failure: no node has the Go driver's label any more -> that driver's objects are deleted [go] */
static void the_objects_of_the_go_driver_are_deleted_when_no_node_has_its_label(void **state) {
        struct world *w = *state;
        is_claimed_of_go(w, GO_LABEL);
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_go_deletes, 0);
        w->node_labels = LABELLED; /* the claim waits on a node that the Go driver does not serve */
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, w->n_go_deletes);
}

/* failure: the Go driver claims a node with an idle daemon -> the daemon is marked before it is removed [go]
 * */
static void an_idle_daemon_is_marked_before_it_yields_the_node_to_the_go_driver(void **state) {
        struct world *w = *state;
        is_claimed_of_go(w, LABELLED "," GO_LABEL);
        w->hold_fabric = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, MARKED));
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->node, CD_LABEL_DAEMON));
        w->hold_fabric = false;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_DAEMON "\":null"));
        assert_true(w->n_before_label >= 1);
        assert_non_null(strstr(w->object, MARKED));
        assert_null(strstr(w->fabric, ASSIGNS));
}

/* Its claims are for the shared channel, which the controller does not see with channel isolation. */
/* failure: a daemon of the Go driver is on a node -> the node keeps it until its ComputeDomain is deleted
 * [go] */
static void a_node_keeps_the_go_drivers_daemon_until_its_domain_is_deleted(void **state) {
        struct world *w = *state;
        world_set_mode(w, BY_DAEMONS, "channel");
        is_claimed_of_go(w, GO_LABEL);
        w->has_daemon = false;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->node, CD_LABEL_DAEMON));
        w->domains = "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN
                     "\",\"resourceVersion\":\"2\",\"deletionTimestamp\":\"2026-02-01T00:00:00Z\","
                     "\"finalizers\":[\"" CD_FINALIZER "\"]},\"spec\":{\"channel\":{"
                     "\"resourceClaimTemplate\":{\"name\":\"t\"}}}}";
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL "\":null"));
}

#define ANOTHER_DOMAIN "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"

/* failure: the Go driver claims a node whose daemon is in use -> the daemon keeps the node [go] */
static void a_daemon_that_is_in_a_domain_keeps_the_node(void **state) {
        struct world *w = *state;
        is_claimed_of_go(w, LABELLED "," GO_LABEL);
        world_has_reported(w, REPORT(ASSIGNED(ANOTHER_DOMAIN, "0", "1") ",\"ready\":true"));
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->fabric);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->node, CD_LABEL_DAEMON));
        assert_null(strstr(w->fabric, MARKED));
}

/* failure: IMEX becomes host-managed -> idle daemons are removed, and daemons in use stay [host-managed] */
static void with_host_managed_imex_idle_daemons_are_removed_and_busy_ones_stay(void **state) {
        struct world *w = *state;
        world_set_mode(w, BY_HOSTS, NULL);
        world_has_reported(w, IDLE);
        w->node_labels = LABELLED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_DAEMON "\":null"));
        assert_non_null(strstr(w->node, "\"resourceVersion\":\"1\""));
        assert_non_null(strstr(w->object, MARKED));
        assert_true(w->n_before_label >= 1);
        assert_int_equal(w->n_sets, 0);
        world_is_assigned(w);
        w->claims = A_CLAIM;
        w->report = RUNS("3", "7");
        world_start_again(w);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->node, CD_LABEL_DAEMON));
        assert_null(strstr(w->fabric, "Leaving"));
        assert_null(strstr(w->fabric, MARKED));
        /* A restarted daemon is not idle either, while its node is assigned. */
        w->report = STARTS("3", "7");
        world_start_again(w);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->node, CD_LABEL_DAEMON));
        assert_null(strstr(w->fabric, MARKED));
}

/* With host-managed IMEX, the DaemonSet stays while a Node has the label. */
static void keeps_the_set(struct world *w) {
        world_set_mode(w, BY_HOSTS, NULL);
        w->has_set = true;
        w->node_labels = LABELLED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_DAEMON "\":null"));
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_set_deletes, 0);
}

/* failure: the last Node loses its label after a change to host-managed -> the DaemonSet is deleted
 * [host-managed] */
static void with_host_managed_imex_the_daemonset_is_deleted_after_the_last_label(void **state) {
        struct world *w = *state;
        keeps_the_set(w);
        world_change_node(w, "MODIFIED", "");
        RUN_UNTIL(&w->l.loop, w->n_set_deletes);
}

/* failure: the last labelled Node is deleted after a change to host-managed -> the DaemonSet is deleted
 * [host-managed] */
static void with_host_managed_imex_the_daemonset_is_deleted_after_the_last_labelled_node(void **state) {
        struct world *w = *state;
        keeps_the_set(w);
        world_change_node(w, "DELETED", LABELLED);
        RUN_UNTIL(&w->l.loop, w->n_set_deletes);
}

/* ---- daemons that crash ---- */

static void a_daemon_that_crashes_from_its_start_is_replaced_even_if_it_is_assigned(void **state) {
        struct world *w = *state;
        w->has_set = true;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        world_has_reported(w, NULL);
        w->template_hash = OLD_HASH;
        w->daemon_status = CRASHES;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
        assert_non_null(strstr(w->object, MARKED));
        assert_non_null(strstr(w->object, "\"index\":3,\"epoch\":7," THE_DAEMON));
}

/* etcd was restored from a backup that has the Pod of an earlier daemon, and its plugin refuses the claim. */
static void a_daemon_whose_claim_was_unprepared_is_replaced_even_if_it_reported_ready(void **state) {
        struct world *w = *state;
        w->has_set = true;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        world_has_reported(w, RUNS("3", "7"));
        w->unprepared = CLAIM_UID;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
        assert_non_null(strstr(w->object, MARKED));
}

/* failure: a restore of etcd brings back the Pod of an earlier daemon, without a report -> the Pod is
 * replaced [etcd] */
static void a_restored_daemon_without_a_report_is_replaced_when_its_plugin_refuses_it(void **state) {
        struct world *w = *state;
        w->has_set = true;
        world_is_claimed(w);
        world_has_reported(w, NULL);
        w->refused = "p1";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
        assert_non_null(strstr(w->object, MARKED));
}

/* How often the controller has looked at all daemons. */
static double n_passes(const struct world *w) {
        static const char series[] = "reconcile_seconds_count{kind=\"daemons\"} ";
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        metrics_render(w->l.metrics, &b);
        const char *at = strstr(buf_str(&b), series);
        return at ? strtod(at + strlen(series), NULL) : 0;
}

#define REMOVES(pod) ",\"removals\":[{\"node\":\"n9\",\"podUID\":\"" pod "\"}]"

/* failure: plugins and daemons report all the time -> the controller looks at all daemons twice a second
 * [tenants] */
static void reports_share_the_look_at_all_daemons(void **state) {
        static const char *const refused[] = { "a", "b", "c", "d" };
        static const char *const more[] = { REMOVES("a"), REMOVES("b"), REMOVES("c"), REMOVES("d") };
        struct world *w = *state;
        /* All objects are right, so that nothing but the reports causes a look. */
        _cleanup_(freep) char *template = world_template_text("\"uid\":\"r1\",\"resourceVersion\":\"1\",");
        w->daemon_template = template;
        w->has_set = true;
        w->hold_fabric = true;
        world_has_reported(w, IDLE);
        w->refused = "none";
        w->more = REMOVES("none");
        leading_start(&w->l);
        run_for(&w->l.loop, 2000);
        double n = n_passes(w);
        assert_true(n);
        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                world_change_refused(w, refused[i]);
                world_change_fabric(w, more[i]);
                run_for(&w->l.loop, 100);
        }
        assert_int_equal(n_passes(w) - n, 0);
        run_for(&w->l.loop, 500);
        assert_int_equal(n_passes(w) - n, 1);
}

static void a_daemon_that_its_plugin_has_not_refused_stays(void **state) {
        struct world *w = *state;
        w->has_set = true;
        world_is_claimed(w);
        world_has_reported(w, NULL);
        w->refused = "p2";
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 0);
}

/* failure: a daemon of an old template never reports -> it is replaced, even where a claim exists [upgrade]
 * */
static void a_daemon_that_never_reports_is_replaced_even_if_a_claim_exists(void **state) {
        struct world *w = *state;
        w->has_set = true;
        world_is_claimed(w);
        world_has_reported(w, NULL);
        w->template_hash = OLD_HASH;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
        assert_non_null(strstr(w->object, MARKED));
}

/* A process with the token of a node can write such a report. */
static void a_daemon_with_an_unreadable_report_is_replaced(void **state) {
        static const char *const reports[] = { "", "{", "[]", REPORT(",\"assignment\":\"x\""),
                                               REPORT(",\"left\":\"-1\"") };
        struct world *w = *state;
        w->has_set = w->hold_deletes = true;
        w->template_hash = OLD_HASH;
        for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
                world_has_reported(w, reports[i]);
                if (i == 0)
                        leading_start(&w->l);
                else
                        world_start_again(w);
                RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        }
}

/* failure: a daemon crashes while IMEX becomes host-managed -> it is removed [host-managed] */
static void a_crashing_daemon_is_removed_when_imex_becomes_host_managed(void **state) {
        struct world *w = *state;
        world_set_mode(w, BY_HOSTS, NULL);
        w->has_set = true;
        w->node_labels = LABELLED;
        world_has_reported(w, NULL);
        w->template_hash = OLD_HASH;
        w->daemon_status = CRASHES;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_DAEMON "\":null"));
}

/* The earlier Pod no longer exists, and the DaemonSet controller will create one with the newest template. */
static void a_node_that_waits_for_its_next_pod_counts_as_trying_the_template(void **state) {
        struct world *w = *state;
        w->has_set = true;
        w->node_labels = LABELLED;
        world_has_reported(w, IDLE);
        w->template_hash = OLD_HASH;
        w->n_daemons = 8;
        w->n_missing = 1;
        w->hold_deletes = true;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 0);
        w->n_missing = 0;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
}

static void begin_rollout_of_thirty(struct world *w) {
        w->has_set = w->hold_deletes = true;
        w->node_labels = LABELLED;
        world_has_reported(w, IDLE);
        w->template_hash = OLD_HASH;
        w->n_daemons = 30;
}

static void replaces_one_after_ten_minutes(struct world *w) {
        leading_start(&w->l);
        run_for(&w->l.loop, (ROLLOUT_PATIENCE_S - 5) * 1000);
        assert_int_equal(w->n_pod_deletes, 0);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
}

/* failure: the new daemon of one node never starts -> after ten minutes the rollout continues, and an Event
 * names the node [upgrade] */
static void a_rollout_waits_ten_minutes_for_a_daemon_that_does_not_start(void **state) {
        struct world *w = *state;
        begin_rollout_of_thirty(w);
        w->n_missing = 1;
        replaces_one_after_ten_minutes(w);
        assert_non_null(strstr(w->event, "DaemonsCrash"));
        assert_non_null(strstr(w->event, "have not started in ten minutes, on these nodes: n1. "));
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 1);
}

/* failure: the daemon of one node does not end -> after ten minutes the rollout continues, and an Event names
 * the node [upgrade] */
static void a_rollout_waits_ten_minutes_for_a_daemon_that_does_not_end(void **state) {
        struct world *w = *state;
        begin_rollout_of_thirty(w);
        w->n_ending = 1;
        replaces_one_after_ten_minutes(w);
        assert_non_null(strstr(w->event, "have not started in ten minutes, on these nodes: n1. "));
}

/* failure: a node withholds its devices after the next daemon's Pod was created -> after ten minutes the
 * rollout continues [upgrade] */
static void a_rollout_waits_ten_minutes_for_a_node_that_withholds_its_devices(void **state) {
        struct world *w = *state;
        begin_rollout_of_thirty(w);
        w->slice = CLIQUE;
        w->withheld = true;
        w->n_new = 1;
        replaces_one_after_ten_minutes(w);
}

static void withholds_during_a_rollout(struct world *w) {
        w->has_set = w->hold_deletes = w->withheld = true;
        w->node_labels = LABELLED;
        world_has_reported(w, IDLE);
        w->template_hash = OLD_HASH;
}

/* failure: a node that withholds its devices waits for its next daemon -> the rollout does not wait for it
 * [upgrade] */
static void a_rollout_does_not_wait_for_a_node_that_withholds_its_devices(void **state) {
        struct world *w = *state;
        withholds_during_a_rollout(w);
        w->n_daemons = 8;
        w->n_missing = 1;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
        assert_non_null(strstr(w->deleted, "\"preconditions\":{\"uid\":\"p2\""));
}

/* failure: a node withholds its devices during a rollout -> its daemon is replaced when it offers them
 * [upgrade] */
static void a_daemon_is_replaced_only_while_its_node_offers_its_devices(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *text = world_template_text("\"uid\":\"r\",\"resourceVersion\":\"1\",");
        withholds_during_a_rollout(w);
        w->daemon_template = text;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, MARKED));
        world_offer(w);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
}

/* failure: a new version of the daemons crashes -> only one of eight idle daemons gets it [upgrade] */
static void a_crashing_template_reaches_one_of_eight_idle_nodes(void **state) {
        struct world *w = *state;
        w->has_set = true;
        world_has_reported(w, IDLE);
        w->template_hash = OLD_HASH;
        w->n_daemons = 8;
        w->hold_deletes = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 1);
        w->n_crashing = 1; /* the replaced daemon crashes */
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, *w->event);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 0);
        assert_non_null(strstr(w->event, "DaemonsCrash"));
        assert_non_null(strstr(w->event, "on these nodes: n1. "));
}

#define RUNS_SINCE(time)                                                                                     \
        ",\"containerStatuses\":[{\"name\":\"compute-domain-daemon\",\"state\":{\"running\":{\"startedAt\":" \
        "\"" time "\"}}}]"

static size_t n_starts(const struct world *w) {
        return first_seen_count(w->l.c.memory.known, "p1/", clock_mono_s());
}

/* failure: nothing happens for hours during a rollout -> the daemons count as healthy afterwards */
static void the_start_of_a_daemon_is_remembered_until_it_starts_again(void **state) {
        struct world *w = *state;
        w->has_set = true;
        world_has_reported(w, IDLE);
        w->daemon_status = RUNS_SINCE("2026-01-01T00:00:00Z");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, n_starts(w) == 1 && w->daemons_watch);
        first_seen_at(w->l.c.memory.known, "another object", clock_mono_s() + 2 * 3600);
        assert_int_equal(n_starts(w), 1);
        w->daemon_status = RUNS_SINCE("2026-01-01T01:00:00Z");
        world_change_report(w, IDLE);
        run_for(&w->l.loop, 2000);
        assert_int_equal(n_starts(w), 1);
        fake_chunk(w->daemons_watch,
                   "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"daemon-1\","
                   "\"namespace\":\"driver\",\"uid\":\"p1\",\"resourceVersion\":\"900\"}}}\n");
        RUN_UNTIL(&w->l.loop, !n_starts(w));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(each_node_of_a_partition_gets_a_daemon),
                TEST(an_idle_daemon_of_an_old_template_is_marked_before_its_pod_is_deleted),
                TEST(an_idle_daemon_of_an_old_template_is_replaced_when_its_node_becomes_ready),
                TEST(a_busy_daemon_of_an_old_template_is_not_marked_until_it_is_idle),
                TEST(a_daemon_whose_imex_was_never_ready_is_idle),
                TEST(a_marked_daemon_gets_no_assignment_and_is_deleted),
                TEST(a_mark_is_removed_when_the_next_pod_of_the_node_reports),
                TEST(a_mark_in_another_partition_is_removed_when_the_next_pod_reports),
                TEST(a_mark_in_another_partition_is_removed_when_the_node_gets_no_daemon),
                TEST(a_claim_template_of_this_version_stays),
                TEST(a_claim_template_of_another_version_is_replaced_before_the_daemonset_is_updated),
                TEST(a_deleted_claim_template_is_recreated_without_the_watch),
                TEST(after_a_crash_the_next_leader_deletes_the_claim_template_or_creates_it),
                TEST(a_claim_template_that_a_finalizer_keeps_is_an_error),
                TEST(a_node_does_not_join_a_domain_of_the_go_driver),
                TEST(a_static_pod_does_not_keep_nodes_out_of_a_domain),
                TEST(a_static_pod_is_no_daemon),
                TEST(a_clique_alone_does_not_keep_nodes_out_of_a_domain),
                TEST(the_label_of_a_domain_of_the_go_driver_stays_until_its_last_claim_is_deleted),
                TEST(the_objects_of_the_go_driver_are_deleted_when_no_node_has_its_label),
                TEST(an_idle_daemon_is_marked_before_it_yields_the_node_to_the_go_driver),
                TEST(a_daemon_that_is_in_a_domain_keeps_the_node),
                TEST(with_host_managed_imex_idle_daemons_are_removed_and_busy_ones_stay),
                TEST(with_host_managed_imex_the_daemonset_is_deleted_after_the_last_label),
                TEST(with_host_managed_imex_the_daemonset_is_deleted_after_the_last_labelled_node),
                TEST(a_node_keeps_the_go_drivers_daemon_until_its_domain_is_deleted),
                TEST(a_daemon_that_crashes_from_its_start_is_replaced_even_if_it_is_assigned),
                TEST(a_daemon_whose_claim_was_unprepared_is_replaced_even_if_it_reported_ready),
                TEST(a_restored_daemon_without_a_report_is_replaced_when_its_plugin_refuses_it),
                TEST(reports_share_the_look_at_all_daemons),
                TEST(a_daemon_that_its_plugin_has_not_refused_stays),
                TEST(a_daemon_that_never_reports_is_replaced_even_if_a_claim_exists),
                TEST(a_daemon_with_an_unreadable_report_is_replaced),
                TEST(a_crashing_daemon_is_removed_when_imex_becomes_host_managed),
                TEST(a_node_that_waits_for_its_next_pod_counts_as_trying_the_template),
                TEST(a_rollout_waits_ten_minutes_for_a_daemon_that_does_not_start),
                TEST(a_rollout_waits_ten_minutes_for_a_daemon_that_does_not_end),
                TEST(a_rollout_waits_ten_minutes_for_a_node_that_withholds_its_devices),
                TEST(a_rollout_does_not_wait_for_a_node_that_withholds_its_devices),
                TEST(a_daemon_is_replaced_only_while_its_node_offers_its_devices),
                TEST(a_crashing_template_reaches_one_of_eight_idle_nodes),
                TEST(the_start_of_a_daemon_is_remembered_until_it_starts_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
