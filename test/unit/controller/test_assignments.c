/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller in driver-managed mode: which assignments it writes into the fabric object, and what
 * it asks the API server before it removes one. */
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
#include "daemons_world.h"
#include "imex/imex_files.h"

/* ---- new assignments ---- */

/* failure: a node is assigned to an IMEX domain -> its address is that of the daemon's Pod */
static void a_claim_assigns_its_node_to_the_domain_with_an_index_and_an_address(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, IDLE);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNS));
        assert_non_null(strstr(w->fabric, ASSIGNED_FIRST));
        assert_non_null(strstr(w->fabric, "\"epoch\":1,\"recount\":0,\"removals\":[],"));
        assert_non_null(strstr(w->fabric, "\"resourceVersion\":\"5\""));
}

static void a_daemon_that_has_not_reported_gets_no_assignment(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, NULL);
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, ASSIGNS));
        world_change_report(w, IDLE);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNED_FIRST));
}

/* failure: the report of a daemon cannot be read -> the daemon gets no assignment */
static void a_daemon_with_an_unreadable_report_gets_no_assignment(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, "{\"claimUID\":\"" CLAIM_UID "\",\"bootID\":\"x\"}");
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, ASSIGNS));
        world_change_report(w, IDLE);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNED_FIRST));
}

/* failure: a cache does not show a claim -> its assignment leaves only after confirmation */
static void an_assignment_leaves_only_after_confirmation_that_no_claim_exists(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        world_has_reported(w, RUNS("3", "7"));
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_LEAVING("Leaving")));
        assert_true(w->n_claim_lists >= 2); /* one list for the cache, one for the confirmation */
}

/* failure: a cache does not show a ComputeDomain -> its assignments end only after confirmation */
static void assignments_end_only_after_confirmation_that_the_domain_is_deleted(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->domains = "";
        world_has_reported(w, RUNS("3", "7"));
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_LEAVING("Ending")));
        assert_true(w->n_domain_lists >= 2);
}

/* failure: a Node is deleted, the fabric object is lost, the controller restarts -> no index is assigned
 * twice */
static void a_daemon_on_a_deleted_node_keeps_its_index_in_a_new_object(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, IDLE);
        w->n_orphans = 1;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, ASSIGNS));
        assert_non_null(strstr(w->fabric, "has known this object for less than two minutes"));
        assert_in_range(records_vanished_left(&w->l.c, CLIQUE, clock_mono_s()), 50, 60);
        assert_int_equal(records_vanished_left(&w->l.c, ELSEWHERE, clock_mono_s()), 0);
}

/* failure: slices, fabric object and a Node are lost while no controller runs -> no index is assigned for a
 * minute [etcd] */
static void an_object_that_is_younger_than_a_plugin_assigns_nothing_in_its_first_minute(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        w->assignments = NULL;
        w->fabric_created = "2026-01-01T00:01:01Z";
        world_has_reported(w, REPORT_IN(BOOT, "", ""));
        leading_start(&w->l);
        run_for(&w->l.loop, 2000);
        assert_null(strstr(w->fabric, ASSIGNS));
        assert_non_null(strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNS));
}

static void an_object_of_new_plugins_does_not_wait(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        w->assignments = NULL;
        w->fabric_created = "2026-01-01T00:01:00Z";
        world_has_reported(w, REPORT_IN(BOOT, "", ""));
        leading_start(&w->l);
        run_for(&w->l.loop, 2000);
        assert_non_null(strstr(w->fabric, ASSIGNS));
}

/* failure: a Node of a partition that was idle for hours is deleted -> the other nodes still get assignments
 */
static void a_deleted_node_delays_no_assignment_in_a_known_object(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        world_has_reported(w, IDLE);
        leading_start(&w->l);
        run_for(&w->l.loop, 2 * 3600 * 1000);
        records_seen(&w->l.c, "another object", 1);
        records_vanished(&w->l.c, CLIQUE, "n9");
        fake_chunk(w->claims_watch, "{\"type\":\"ADDED\",\"object\":" A_CLAIM "}\n");
        run_for(&w->l.loop, 500);
        assert_non_null(strstr(w->fabric, ASSIGNED_FIRST));
        assert_null(strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
        fake_chunk(w->fabrics_watch, "{\"type\":\"DELETED\",\"object\":");
        fake_chunk(w->fabrics_watch, w->object);
        fake_chunk(w->fabrics_watch, "}\n");
        RUN_UNTIL(&w->l.loop, !first_seen_get(w->l.c.memory.known, OBJECT));
}

/* The DaemonSet controller will delete the daemon's Pod. */
/* failure: the label of a daemon's Node is removed while a claim is allocated -> the label is restored before
 * an assignment */
static void a_daemon_whose_node_has_lost_its_label_gets_no_assignment(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, IDLE);
        w->node_labels = "";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_DAEMON "\":\"true\""));
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, ASSIGNS));
}

#define TERMINATES "\"deletionTimestamp\":\"2026-02-01T00:00:00Z\","

/* failure: a daemon is terminating -> it gets no assignment, and its index is reserved for the next */
static void a_terminating_daemon_gets_no_assignment_and_its_index_is_reserved(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        world_has_reported(w, REPORT(",\"left\":\"7\",\"seen\":7"));
        w->daemon_meta = TERMINATES;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_RESERVED));
        run_for(&w->l.loop, 300);
        assert_non_null(strstr(w->fabric, IS_RESERVED));
        w->daemon_meta = "";
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"index\":3,\"epoch\":8," THE_DAEMON));
}

/* ---- the end of assignments ---- */

/* A force-deleted Pod may still run on a node that is cut off. */
/* failure: the Pod of a daemon disappears while its Node exists -> the index stays taken [force-deleted] */
static void a_force_deleted_daemon_keeps_its_index_while_its_node_exists(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_LEAVING("Leaving")));
        run_for(&w->l.loop, 500);
        assert_non_null(strstr(w->fabric, IS_LEAVING("Leaving")));
        assert_non_null(strstr(w->object, "\"epoch\":7,\"state\":\"Leaving\""));
        /* The index is not reserved for the next daemon either, while claims exist. */
        w->claims = A_CLAIM;
        world_start_again(w);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "Reserved"));
}

/* failure: a daemon reports that it has left an epoch -> its index is free */
static void an_epoch_that_a_daemon_has_left_frees_its_index(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->assignments = LEAVING;
        world_has_reported(w, RUNS("3", "7"));
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "\"assignments\":[]"));
        world_change_report(w, REPORT(",\"left\":\"7\",\"seen\":7"));
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"assignments\":[],\"freed\":\"3\""));
}

/* failure: the plugin reports a daemon claim as unprepared -> its index is free, or reserved while claims
 * remain */
static void a_daemon_claim_that_the_plugin_has_unprepared_frees_its_assignment(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->unprepared = CLAIM_UID;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"assignments\":[],\"freed\":\"3\""));
        /* While a claim of the ComputeDomain exists, the node keeps its index. */
        w->claims = A_CLAIM;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_RESERVED));
        /* An unprepared claim of another daemon does not concern this assignment. */
        w->claims = "";
        w->unprepared = OTHER_CLAIM_UID;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_LEAVING("Leaving")));
        run_for(&w->l.loop, 300);
        assert_non_null(strstr(w->fabric, IS_LEAVING("Leaving")));
}

/* The earlier report of the daemon does not count again after later writes. */
static void stays_free(struct world *w) {
        unsigned n = w->n_fabric_writes;
        run_for(&w->l.loop, 500);
        records_queue_fabric(&w->l.c, CLIQUE);
        run_for(&w->l.loop, 500);
        assert_non_null(strstr(w->object, "\"assignments\":[]"));
        assert_null(strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
        assert_true(w->n_fabric_writes <= n + 1);
}

/* failure: a cache shows another boot of a node -> its index is free only after confirmation [rebooted] */
static void another_boot_frees_an_index_only_after_confirmation(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->assignments = LEAVING;
        w->boot = BOOT_2;
        w->asked_boot = BOOT; /* the cache shows another boot than the API server */
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_node_asks);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, "\"assignments\":[]"));
        w->asked_refused = true;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, w->n_node_asks);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, "\"assignments\":[]"));
        w->asked_refused = false;
        w->asked_boot = BOOT_2;
        world_has_reported(w, RUNS("3", "7")); /* in the earlier boot; the daemon has not started again */
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"assignments\":[],\"freed\":\"3\""));
        assert_true(w->n_node_asks);
        stays_free(w);
}

/* failure: a node reboots under a pod -> it gets a new epoch with the same index when its daemon reports
 * [rebooted] */
static void a_rebooted_node_gets_a_new_epoch_with_its_index_when_its_daemon_has_reported(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        w->boot = BOOT_2;
        world_has_reported(w, RUNS("3", "7")); /* in the earlier boot; the same Pod starts again */
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_RESERVED));
        run_for(&w->l.loop, 300);
        assert_non_null(strstr(w->fabric, IS_RESERVED));
        world_change_report(w, REPORT_IN(BOOT_2, OBJECT, ",\"left\":\"7\",\"seen\":7"));
        RUN_UNTIL(&w->l.loop,
                  strstr(w->fabric, "\"assignments\":[{\"node\":\"n1\",\"index\":3,\"epoch\":8,\"claimUID\":"
                                    "\"" CLAIM_UID "\",\"bootID\":\"" BOOT_2 "\",\"ip\":\"10.0.0.1\"}]"));
}

#define OUT_OF_SERVICE                                                                                       \
        "\"taints\":[{\"key\":\"node.kubernetes.io/"                                                         \
        "out-of-service\",\"value\":\"x\",\"effect\":\"NoExecute\"}]"

/* failure: a cache shows the out-of-service taint -> the index is free only after confirmation [powered-off]
 * */
static void a_powered_off_node_that_is_out_of_service_frees_its_index_only_after_confirmation(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->assignments = LEAVING;
        world_has_reported(w, RUNS("3", "7"));
        w->node_spec = OUT_OF_SERVICE;
        w->asked_spec = "";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_node_asks);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, "\"assignments\":[]"));
        w->asked_spec = NULL;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"assignments\":[],\"freed\":\"3\""));
        assert_true(w->n_node_asks);
        stays_free(w);
}

/* ---- lost and restored fabric objects ---- */

/* failure: the fabric object is lost while a daemon terminates -> what it runs is entered again [etcd] */
static void a_terminating_daemon_keeps_its_assignment_after_the_object_was_lost(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, RUNS("3", "7"));
        w->daemon_meta = TERMINATES;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"index\":3,\"epoch\":7," THE_DAEMON));
        assert_null(strstr(w->fabric, "\"state\":"));
}

/* Whether the object has the names that follow from the UID. */
static bool has_names_of(const struct world *w, const char *uid) {
        char infix[IMEX_INFIX_SIZE], member[32];
        imex_infix(uid, infix);
        snprintf(member, sizeof member, "\"infix\":\"%s\"", infix);
        return strstr(w->fabric, member);
}

/* failure: the fabric object lacks what a daemon runs -> it is entered with the daemon's index and epoch
 * [etcd] */
static void a_running_assignment_is_entered_with_its_index_and_names(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, RUNS("5", "9"));
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNS));
        assert_true(has_names_of(w, DOMAIN));
        assert_non_null(strstr(w->fabric, "{\"node\":\"n1\",\"index\":5,\"epoch\":9," THE_DAEMON));
        /* Other daemons may also run IMEX, so a recount starts. */
        assert_non_null(strstr(w->fabric, "\"epoch\":10,\"recount\":10,"));
}

#define ANSWERS(recount) REPORT(",\"seen\":4,\"recount\":" recount)

/* failure: a daemon still reports an earlier fabric object -> nothing is assigned, and a condition names its
 * node [etcd] */
static void nothing_is_assigned_while_a_daemon_watches_another_object(void **state) {
        struct world *w = *state;
        world_is_claimed(w);
        world_has_reported(w, REPORT_IN(BOOT, "00000000-0000-4000-8000-000000000009", ",\"seen\":4"));
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
        assert_non_null(strstr(w->fabric, "Nodes that have not reported yet: n1"));
        assert_non_null(strstr(w->fabric, "\"epoch\":5,\"recount\":5,"));
        world_change_report(w, ANSWERS("4"));
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, ASSIGNS));
        world_change_report(w, ANSWERS("5"));
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"index\":0,\"epoch\":6," THE_DAEMON));
        assert_non_null(strstr(w->fabric, "\"epoch\":6,\"recount\":0,"));
        assert_null(strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
}

/* etcd was restored. The object lacks later assignments, and the daemons run them. */
/* failure: the version of the fabric object goes back -> a recount starts before anything is assigned [etcd]
 * */
static void an_older_version_of_the_fabric_object_starts_a_recount(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        w->epoch = "4";
        world_has_reported(w, ANSWERS("0"));
        leading_start(&w->l);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
        w->restored = true;
        fake_chunk(w->fabrics_watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                                     "\"reason\":\"Expired\",\"message\":\"too old\"}}\n");
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
        assert_non_null(strstr(w->fabric, "\"epoch\":5,\"recount\":5,"));
        fake_chunk(w->claims_watch, "{\"type\":\"ADDED\",\"object\":" A_CLAIM "}\n");
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, ASSIGNS));
        world_change_report(w, ANSWERS("5"));
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"index\":0,\"epoch\":6," THE_DAEMON));
        assert_non_null(strstr(w->fabric, "\"epoch\":6,\"recount\":0,"));
        run_for(&w->l.loop, 300); /* the version went back once, so there is one recount */
        assert_non_null(strstr(w->fabric, "\"recount\":0,"));
}

/* The controller sees that the object was deleted, and then another one with these members. */
static void replace_object(struct world *w, const char *more) {
        _cleanup_(freep) char *events =
                xasprintf("{\"type\":\"DELETED\",\"object\":%s}\n"
                          "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"" CLIQUE
                          "\",\"uid\":\"" OTHER_OBJECT
                          "\",\"resourceVersion\":\"20\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                          "\"tableOf\":\"" OTHER_OBJECT "\",\"members\":[\"n1\"],\"nodes\":1%s}}\n",
                          w->object, more);
        fake_chunk(w->fabrics_watch, events);
}

/* failure: the fabric object is deleted before a daemon has reported its assignment -> a recount starts
 * [etcd]
 */
static void a_new_object_after_one_with_assignments_starts_a_recount(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        world_has_reported(w, REPORT_IN(BOOT, "", ""));
        leading_start(&w->l);
        run_for(&w->l.loop, 300);
        replace_object(w, "");
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
        assert_non_null(strstr(w->fabric, "\"epoch\":1,\"recount\":1,"));
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, ASSIGNS));
        world_change_report(
                w, REPORT_IN(BOOT, OTHER_OBJECT, ASSIGNED(DOMAIN, "3", "7") ",\"seen\":7,\"recount\":1"));
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "{\"node\":\"n1\",\"index\":3,\"epoch\":7,"));
}

/* failure: an earlier fabric object is restored in the middle of its recount -> another recount starts [etcd]
 */
static void a_restored_object_with_an_earlier_recount_starts_another_one(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->claims = A_CLAIM;
        world_has_reported(w, REPORT_IN(BOOT, OTHER_OBJECT, ",\"recount\":5"));
        leading_start(&w->l);
        run_for(&w->l.loop, 300);
        replace_object(w, ",\"epoch\":5,\"recount\":5");
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"recount\":6,"));
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, ASSIGNS));
}

/* ---- another partition ---- */

/* A process with the token of the node can write such a report. */
static void a_report_about_a_partition_that_the_slice_does_not_name_is_ignored(void **state) {
        struct world *w = *state;
        w->elsewhere = true;
        world_has_reported(w, "{\"claimUID\":\"" CLAIM_UID "\",\"bootID\":\"" BOOT
                              "\",\"fabricUID\":\"" OTHER_OBJECT "\",\"assignment\":\"" ELSEWHERE "/" DOMAIN
                              "/9/12\",\"seen\":12}");
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->other, DOMAIN));
        assert_null(strstr(w->other, "\"epoch\":12"));
        /* It does not count for its own partition either, because it does not watch this object. */
        assert_null(strstr(w->fabric, DOMAIN));
        assert_null(strstr(w->fabric, "\"epoch\":12"));
        assert_null(strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
}

/* The fabric object of its old partition was restored after the node had moved. No daemon would ever report
 * that it has left the assignment. */
/* failure: the fabric object is restored after a node has moved -> its old assignments are removed [etcd] */
static void a_node_whose_daemon_serves_another_partition_has_left_this_one(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->assignments = LEAVING;
        w->elsewhere = true;
        w->slice = ELSEWHERE;
        world_has_reported(w, REPORT_IN(BOOT, OTHER_OBJECT, ",\"seen\":1"));
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"assignments\":[]"));
        assert_null(strstr(w->fabric, FABRIC_ASSIGNMENTS_INCOMPLETE));
}

/* The daemon may still run its old assignment. */
/* failure: a moved node's daemon does not yet watch its new fabric object -> its old assignment stays [etcd]
 * */
static void a_daemon_that_does_not_watch_the_other_fabric_object_keeps_its_assignment(void **state) {
        struct world *w = *state;
        world_is_assigned(w);
        w->assignments = LEAVING;
        w->elsewhere = true;
        w->slice = ELSEWHERE;
        world_has_reported(w, REPORT_IN(BOOT, "", ",\"seen\":1"));
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "\"assignments\":[]"));
}

/* ---- the standing domain ---- */

#define OWN_CLAIM                                                                                            \
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"team-a\",\"uid\":\"c\",\"resourceVersion\":\"1\","    \
        "\"creationTimestamp\":\"2026-02-01T00:00:00Z\"},\"status\":{\"allocation\":{\"devices\":{"          \
        "\"results\":[{"                                                                                     \
        "\"request\":\"channel\",\"driver\":\"" CD_DRIVER "\",\"pool\":\"n1\",\"device\":\"channel-4\"}],"   \
        "\"config\":[{\"source\":\"FromClaim\",\"requests\":[],\"opaque\":{\"driver\":\"" CD_DRIVER          \
        "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                                                \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN                                  \
        "\",\"isolation\":\"Channel\"}}}]}}}}"

/* Sets report and object of a node that is assigned in the standing domain. */
static void stands(struct world *w, const char *gates, const char *isolation) {
        static char report[600], domains[600], uid[37];
        world_set_mode(w, gates, isolation);
        fabric_standing_uid(CLIQUE, uid);
        snprintf(report, sizeof report,
                 REPORT(",\"assignment\":\"" CLIQUE "/%s/3/7\",\"seen\":7,"
                        "\"ready\":true,\"served\":true"),
                 uid);
        snprintf(domains, sizeof domains,
                 "{\"owner\":{\"kind\":\"" CD_FABRIC_KIND "\",\"name\":\"" CLIQUE "\",\"uid\":\"%s\"},"
                 "\"infix\":\"0123456789\",\"slots\":18,\"port\":28001,\"assignments\":[{\"node\":\"n1\","
                 "\"index\":3,\"epoch\":7," THE_DAEMON ",\"ip\":\"10.0.0.1\"}]}",
                 uid);
        w->node_labels = LABELLED;
        world_has_reported(w, report);
        w->assignments = domains;
        w->epoch = "7";
}

/* failure: a node starts, with channel isolation -> it joins the standing domain before any claim [standing]
 * */
static void a_node_joins_the_standing_domain_before_any_claim(void **state) {
        struct world *w = *state;
        char uid[37];
        fabric_standing_uid(CLIQUE, uid);
        world_set_mode(w, BY_DAEMONS, "channel");
        world_has_reported(w, IDLE);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNS));
        _cleanup_(freep) char *owner = xasprintf(
                "\"owner\":{\"kind\":\"" CD_FABRIC_KIND "\",\"name\":\"" CLIQUE "\",\"uid\":\"%s\"}", uid);
        assert_non_null(strstr(w->fabric, owner));
        assert_non_null(strstr(w->fabric, "\"slots\":18,"));
        assert_non_null(strstr(w->fabric, ASSIGNED_FIRST));
        assert_non_null(strstr(w->fabric, "\"domainCount\":0,")); /* of ComputeDomains */
        /* Its owner is the partition, so the controller does not look for a ComputeDomain with this UID. */
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_domain_lists, 1);
}

/* failure: a node without claims is cordoned, with channel isolation -> it leaves the standing domain
 * [cordoned] */
static void a_cordoned_node_leaves_the_standing_domain(void **state) {
        struct world *w = *state;
        stands(w, BY_DAEMONS, "channel");
        w->node_spec = "\"unschedulable\":true";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_LEAVING("Leaving")));
        assert_null(strstr(w->node, CD_LABEL_DAEMON)); /* the daemon stays, without an assignment */
}

/* failure: a node with a claim is cordoned, with channel isolation -> it stays in the standing domain
 * [cordoned] */
static void a_cordoned_node_with_a_claim_stays_in_the_standing_domain(void **state) {
        struct world *w = *state;
        stands(w, BY_DAEMONS, "channel");
        w->node_spec = "\"unschedulable\":true";
        w->domains = A_DOMAIN(MODE_DRIVER_CHANNEL);
        w->claims = OWN_CLAIM;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "Leaving"));
        assert_null(strstr(w->node, CD_LABEL_DAEMON));
}

/* Status and message of the condition IMEXHealthy of a ComputeDomain with a claim on n1. */
static const char *health_of(struct world *w) {
        static char text[512];
        w->domains = A_DOMAIN(MODE_DRIVER_CHANNEL);
        w->claims = OWN_CLAIM;
        w->ready = true;
        w->status[0] = '\0';
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, *w->status);
        yyjson_doc *doc = yyjson_read(w->status, strlen(w->status), 0);
        yyjson_val *list = yyjson_ptr_get(yyjson_doc_get_root(doc), "/status/conditions"), *condition;
        size_t i, n;
        text[0] = '\0';
        yyjson_arr_foreach (list, i, n, condition)
                if (streq(yyjson_get_str(yyjson_obj_get(condition, "type")), CONDITION_IMEX_HEALTHY))
                        snprintf(text, sizeof text, "%s %s",
                                 yyjson_get_str(yyjson_obj_get(condition, "status")),
                                 yyjson_get_str(yyjson_obj_get(condition, "message")));
        yyjson_doc_free(doc);
        return text;
}

/* failure: the isolation changes to channel -> IMEXHealthy does not count daemons of old IMEX domains
 * [standing] */
static void a_daemon_is_healthy_only_in_the_domain_that_its_partition_lists(void **state) {
        struct world *w = *state;
        stands(w, BY_DAEMONS, "channel");
        leading_start(&w->l);
        assert_non_null(strstr(health_of(w), "True "));
        /* The isolation changes, and the daemon has not left the IMEX domain of a ComputeDomain yet. */
        w->report = RUNS("3", "6");
        assert_non_null(strstr(health_of(w), "False n1 is DOWN: its daemon still serves"));
        /* No object lists the IMEX domain that the daemon serves. */
        stands(w, BY_DAEMONS, "channel");
        w->assignments = "";
        w->epoch = "0";
        w->hold_fabric = true;
        assert_non_null(strstr(health_of(w), "Unknown "));
}

/* IMEX stops only when the workload ends, and not because of a change in the API. */
/* failure: the mode is changed while pods use the standing domain -> nodes leave only after their pods
 * [standing] */
static void after_a_mode_change_a_node_leaves_and_its_imex_is_not_stopped(void **state) {
        struct world *w = *state;
        stands(w, BY_HOSTS, NULL);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, IS_LEAVING("Leaving")));
        assert_null(strstr(w->node, CD_LABEL_DAEMON));
        /* The same if the object was lost: the owner is the partition, and not a deleted ComputeDomain. */
        w->assignments = "";
        w->epoch = "0";
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"index\":3,\"epoch\":7,"));
        run_for(&w->l.loop, 300);
        assert_non_null(strstr(w->fabric, "\"kind\":\"" CD_FABRIC_KIND "\""));
        assert_null(strstr(w->fabric, "Ending"));
}

/* ---- channels that were assigned with isolation=channel ---- */

#define A_CHANNEL                                                                                            \
        "{\"id\":4,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN "\"}}"
#define A_RELEASED_CHANNEL                                                                                   \
        "{\"id\":4,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN         \
        "\"},\"releasing\":\"2026-01-02T00:00:00Z\"}"

/* failure: the isolation changes from channel to domain -> channels of deleted ComputeDomains are freed
 * [channels] */
static void after_channel_isolation_the_entry_of_a_deleted_domain_is_removed(void **state) {
        struct world *w = *state;
        w->channels = A_RELEASED_CHANNEL;
        world_has_reported(w, IDLE);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"channels\":[]"));
        assert_true(w->n_claim_lists >= 2);
        assert_true(w->n_lease_lists >= 2);
}

/* failure: the isolation changes from channel to domain -> a channel stays while a claim exists [channels] */
static void after_channel_isolation_an_entry_stays_while_a_claim_exists(void **state) {
        struct world *w = *state;
        w->channels = A_CHANNEL;
        world_has_reported(w, IDLE);
        w->claims = OWN_CLAIM;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"releasing\":"));
        w->channels = A_RELEASED_CHANNEL;
        world_start_again(w);
        RUN_UNTIL(&w->l.loop, w->n_claim_lists >= 3 && w->n_lease_lists >= 2);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, "\"channels\":[]"));
}

/* failure: the fabric object with a standing domain is deleted -> its nodes are entered again unchanged
 * [etcd] */
static void running_assignments_are_entered_after_the_object_was_deleted(void **state) {
        struct world *w = *state;
        char uid[37];
        stands(w, BY_DAEMONS, "channel");
        w->assignments = "";
        w->epoch = "0";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, ASSIGNS));
        assert_non_null(strstr(w->fabric, "\"kind\":\"" CD_FABRIC_KIND "\""));
        assert_non_null(strstr(w->fabric, "{\"node\":\"n1\",\"index\":3,\"epoch\":7,"));
        fabric_standing_uid(CLIQUE, uid);
        assert_true(has_names_of(w, uid));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(a_claim_assigns_its_node_to_the_domain_with_an_index_and_an_address),
                TEST(a_daemon_that_has_not_reported_gets_no_assignment),
                TEST(a_daemon_with_an_unreadable_report_gets_no_assignment),
                TEST(an_assignment_leaves_only_after_confirmation_that_no_claim_exists),
                TEST(assignments_end_only_after_confirmation_that_the_domain_is_deleted),
                TEST(a_daemon_on_a_deleted_node_keeps_its_index_in_a_new_object),
                TEST(an_object_that_is_younger_than_a_plugin_assigns_nothing_in_its_first_minute),
                TEST(an_object_of_new_plugins_does_not_wait),
                TEST(a_deleted_node_delays_no_assignment_in_a_known_object),
                TEST(a_daemon_whose_node_has_lost_its_label_gets_no_assignment),
                TEST(a_terminating_daemon_gets_no_assignment_and_its_index_is_reserved),
                TEST(a_force_deleted_daemon_keeps_its_index_while_its_node_exists),
                TEST(an_epoch_that_a_daemon_has_left_frees_its_index),
                TEST(a_daemon_claim_that_the_plugin_has_unprepared_frees_its_assignment),
                TEST(another_boot_frees_an_index_only_after_confirmation),
                TEST(a_rebooted_node_gets_a_new_epoch_with_its_index_when_its_daemon_has_reported),
                TEST(a_powered_off_node_that_is_out_of_service_frees_its_index_only_after_confirmation),
                TEST(a_terminating_daemon_keeps_its_assignment_after_the_object_was_lost),
                TEST(a_running_assignment_is_entered_with_its_index_and_names),
                TEST(nothing_is_assigned_while_a_daemon_watches_another_object),
                TEST(an_older_version_of_the_fabric_object_starts_a_recount),
                TEST(a_new_object_after_one_with_assignments_starts_a_recount),
                TEST(a_restored_object_with_an_earlier_recount_starts_another_one),
                TEST(a_report_about_a_partition_that_the_slice_does_not_name_is_ignored),
                TEST(a_node_whose_daemon_serves_another_partition_has_left_this_one),
                TEST(a_daemon_that_does_not_watch_the_other_fabric_object_keeps_its_assignment),
                TEST(a_node_joins_the_standing_domain_before_any_claim),
                TEST(a_cordoned_node_leaves_the_standing_domain),
                TEST(a_cordoned_node_with_a_claim_stays_in_the_standing_domain),
                TEST(a_daemon_is_healthy_only_in_the_domain_that_its_partition_lists),
                TEST(after_a_mode_change_a_node_leaves_and_its_imex_is_not_stopped),
                TEST(after_channel_isolation_the_entry_of_a_deleted_domain_is_removed),
                TEST(after_channel_isolation_an_entry_stays_while_a_claim_exists),
                TEST(running_assignments_are_entered_after_the_object_was_deleted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
