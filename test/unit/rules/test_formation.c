/* SPDX-License-Identifier: Apache-2.0 */
#include "formation_world.h"

static void an_allocated_claim_gives_an_index_at_once(void **state) {
        struct world *w = *state;
        add(w, "a", CLIQUE_1);
        add(w, "b", CLIQUE_1);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@- b=1@-");
        assert_true(w->f.imex[0].urgent);
        assert_null(w->f.imex[0].old);
        assert_string_equal(w->f.imex[0].imex.infix, "abc");
        assert_string_equal(member(w, "a")->message, "no daemon Pod yet");
}

/* Nodes that come before the clique is written may still change who gets which index, so the status does not
 * speak of it yet. */
static void nobody_is_told_an_index_that_is_not_written(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("b", "", CLIQUE_1, 3, "NotReady"), INFIX);
        add(w, "a", CLIQUE_1);
        add(w, "b", CLIQUE_1);
        make(w);
        assert_false(member(w, "a")->listed);
        assert_true(member(w, "b")->listed);
        assert_int_equal(member(w, "b")->written, 3);
}

static void the_ip_and_readiness_follow_the_daemon(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "", CLIQUE_1, 3, "NotReady"), INFIX);
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 3, true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=3@10.0.0.1+");
        assert_true(w->f.imex[0].changed);
        assert_false(w->f.imex[0].urgent);
}

static void without_dns_names_an_ip_is_urgent(void **state) {
        struct world *w = *state;
        w->ip_mode = true;
        clique(w, CLIQUE_1, ENTRY("a", "", CLIQUE_1, 0, "NotReady"), INFIX);
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, false);
        make(w);
        assert_true(w->f.imex[0].urgent);
}

#define BOOT_1 "11111111-0000-4000-8000-000000000000"
#define BOOT_2 "22222222-0000-4000-8000-000000000000"

static const struct node *booted(struct world *w, const char *name, const char *boot_id) {
        return fake_node_json(
                w->a,
                "{'metadata':{'name':'%s','uid':'n','resourceVersion':'1'},'status':{'nodeInfo':{"
                "'bootID':'%s'},'conditions':[{'type':'Ready','status':'True'}]}}",
                name, boot_id);
}

/* By it the other daemons know that what ran on the node before runs no more. */
static void a_reboot_is_told_to_the_clique(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1,
               "{'nodeName':'a','ipAddress':'10.0.0.1','cliqueID':'" CLIQUE_1
               "','index':3,'status':'Ready','bootID':'" BOOT_1 "'}",
               INFIX);
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 3, true);
        n->node = booted(w, "a", BOOT_1);
        make(w);
        assert_false(w->f.imex[0].changed);
        assert_string_equal(w->f.imex[0].imex.seats[0].boot_id, BOOT_1);

        n->node = booted(w, "a", BOOT_2);
        make(w);
        assert_true(w->f.imex[0].changed);
        assert_false(w->f.imex[0].urgent);
        assert_string_equal(w->f.imex[0].imex.seats[0].boot_id, BOOT_2);

        /* What is no boot id is not passed on. */
        n->node = booted(w, "a", "../../etc");
        make(w);
        assert_string_equal(w->f.imex[0].imex.seats[0].boot_id, "");
}

/* A schema of an earlier time drops it from what we write: that is no reason to write again and again. */
static void a_boot_id_that_the_server_drops_is_not_written_for_ever(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 3, "Ready"), INFIX);
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 3, true);
        n->node = booted(w, "a", BOOT_1);
        make(w);
        assert_false(w->f.imex[0].changed);
        assert_string_equal(w->f.imex[0].imex.seats[0].boot_id, BOOT_1);
}

static void nothing_to_write_when_all_is_as_it_should_be(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready"), INFIX);
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, true);
        make(w);
        assert_false(w->f.imex[0].changed);
}

/* A READY that was reported for another index must not count: IMEX fixes its id at start. */
static void ready_under_another_index_is_not_ready(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 1, "Ready"), INFIX);
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=1@10.0.0.1-");
        assert_string_equal(member(w, "a")->message, "IMEX daemon changes from index 0 to 1");
}

static void a_lost_node_keeps_its_index_but_is_not_ready(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready"), INFIX);
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, true);
        n->node = fake_node(w->a, "a", false);
        n->wanted = false; /* its workload was evicted; the daemon pod cannot end */
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1-");
        assert_int_equal(member(w, "a")->why, FORMATION_LOST);
}

static void an_index_is_free_only_when_nothing_can_run_under_it(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready"), INFIX);
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->wanted = false;
        n->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1+"); /* the pod is there */
        n->node = fake_node_json(w->a, "{'metadata':{'name':'a','uid':'u','resourceVersion':'1'},'spec':{'"
                                       "taints':[{'key':'node.kubernetes."
                                       "io/out-of-service'}]}}");
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), ""); /* the operator says that the machine is off */
        n->node = NULL;                                /* the Node is deleted while its kubelet may live */
        w->now = 1000;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1-");
        assert_int_equal(w->f.recheck_s, FORMATION_NODE_GONE_S);
        n->gone_since = 1000;
        w->now = 1000 + FORMATION_NODE_GONE_S - 1;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1-");
        assert_int_equal(w->f.recheck_s, 1);
        n->wanted = true; /* also when its claims have not gone yet */
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1-");
        w->now++;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), ""); /* it has been gone for a minute */
        n->wanted = false;
        w->now--;
        n->pod = NULL;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), ""); /* or its pod is gone as well */
        n->node = fake_node(w->a, "a", true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), ""); /* the pod is gone */
        assert_true(w->f.imex[0].changed);
        assert_string_equal(w->f.imex[0].imex.freed, "0");
}

/* A cache that has lost touch with the server does not show what came since. */
static void what_a_stale_cache_does_not_show_frees_no_index(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1,
               ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready") "," ENTRY("b", "10.0.0.2", CLIQUE_1, 1, "Ready"),
               INFIX);
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->wanted = false;
        n = add(w, "b", CLIQUE_1);
        n->wanted = false;
        n->node = NULL;
        n->gone_since = 1;
        w->now = 100000;
        w->stale = true;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@- b=1@-");
        assert_true(w->f.held);
        w->nodes[0].node =
                fake_node_json(w->a, "{'metadata':{'name':'a','uid':'u','resourceVersion':'1'},'spec':{'"
                                     "taints':[{'key':'node.kubernetes.io/out-of-service'}]}}");
        make(w); /* what it does show is true */
        assert_string_equal(entries(w, CLIQUE_1), "b=1@-");
        w->stale = false;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "");
        assert_false(w->f.held);
}

/* A watch that is slow, and not stale, may not show yet the claim for which another leader has just written
 * the entry. */
static void an_entry_goes_when_the_server_knows_of_no_claim(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1,
               ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "NotReady") "," ENTRY("b", "", CLIQUE_1, 1, "NotReady"),
               INFIX);
        add(w, "a", CLIQUE_1)->wanted = false;
        add(w, "b", CLIQUE_1);
        w->unsure = true;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1- b=1@-"); /* as it is, which is no write */
        assert_false(w->f.imex[0].changed);
        assert_int_equal(member(w, "a")->why, FORMATION_LEAVING);
        assert_true(member(w, "a")->unconfirmed);
        assert_false(member(w, "b")->unconfirmed);
        w->nodes[0].clique = CLIQUE_2; /* and stays where it is, whatever else changes */
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1- b=1@-");
        assert_int_equal(w->f.n_imex, 1);
        w->unsure = false;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=1@-");
        assert_true(w->f.imex[0].changed);
        w->unsure = true; /* it has come after all */
        w->nodes[0].clique = CLIQUE_1;
        w->nodes[0].wanted = true;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@- b=1@-");
        assert_false(member(w, "a")->unconfirmed);
}

/* Its DaemonSet brings a daemon there as long as it has the label, which a webhook, say, keeps. */
static void an_entry_stays_while_the_node_has_the_label(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "", CLIQUE_1, 0, "NotReady"), INFIX);
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->wanted = false;
        n->node = fake_node_json(w->a, "{'metadata':{'name':'a','uid':'n','resourceVersion':'1','labels':{"
                                       "'" CD_LABEL "':'" UID_A "'}}}");
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@-");
        assert_int_equal(member(w, "a")->why, FORMATION_LEAVING);
        n->node = fake_node(w->a, "a", true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "");
}

/* Somebody deletes the clique while a daemon ends that nobody wants there any more. */
static void the_index_of_who_ends_without_an_entry_is_the_last_to_be_given(void **state) {
        struct world *w = *state;
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->wanted = false;
        n->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, true);
        add(w, "b", CLIQUE_1);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=1@-");
        assert_string_equal(w->f.imex[0].imex.freed, "0");
}

/* A Node that is gone gets no entry that it did not have. */
static void a_node_that_is_gone_gets_no_index(void **state) {
        struct world *w = *state;
        add(w, "a", CLIQUE_1)->node = NULL;
        make(w);
        assert_int_equal(w->f.n_members, 0);
}

static const char *pending(struct world *w, const char *message) {
        w->nodes[0].pod = fake_pod_json(w->a,
                                        "{'metadata':{'name':'p','namespace':'driver','uid':'u2','"
                                        "resourceVersion':'1','annotations':{'" CD_ANNOTATION_TEMPLATE
                                        "':'h'}},'spec':{'nodeName':'a'},"
                                        "'status':{'phase':'Pending','conditions':[{'type':'"
                                        "PodScheduled','status':'False','message':'%s'}]}}",
                                        message);
        make(w);
        return member(w, "a")->message;
}

/* Each attempt of the scheduler counts the nodes of the cluster anew: not a write and an Event each time. */
static void what_the_scheduler_says_is_told_without_its_numbers(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "", CLIQUE_1, 0, "NotReady"), INFIX);
        add(w, "a", CLIQUE_1);
        const char *first = pending(w, "0/3 nodes are available: 1 cannot allocate all claims, 1 "
                                       "Insufficient cpu, 2 node(s) didn\\u0027t "
                                       "match "
                                       "Pod\\u0027s node affinity/selector. still not schedulable, "
                                       "preemption: 0/3 nodes are available: 3 "
                                       "Preemption is not helpful for scheduling.");
        assert_string_equal(
                pending(w, "0/3 nodes are available: 1 cannot allocate all claims. preemption: 0/3 nodes are "
                           "available: 1 No preemption victims found for incoming pod."),
                "daemon Pod p cannot be scheduled: cannot allocate all claims");
        assert_string_equal(first,
                            "daemon Pod p cannot be scheduled: Insufficient cpu, cannot allocate all claims");
        assert_string_equal(
                pending(w, "0/12 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims. "
                           "preemption: 0/12 nodes"),
                "daemon Pod p cannot be scheduled: Insufficient cpu, cannot allocate all claims");
        assert_string_equal(
                pending(w, "0/12 nodes are available: 2 cannot allocate all claims, 9 Insufficient cpu."),
                "daemon Pod p cannot be scheduled: Insufficient cpu, cannot allocate all claims");
        assert_string_equal(pending(w, "a plugin says 42"),
                            "daemon Pod p cannot be scheduled: a plugin says 42");
}

static void a_pod_on_a_node_that_is_not_wanted_gets_no_new_entry(void **state) {
        struct world *w = *state;
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        n->wanted = false;
        n->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, true);
        make(w);
        assert_int_equal(w->f.n_members, 0);
}

static void a_replaced_pod_keeps_the_index_and_loses_ready(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 5, "Ready"), INFIX);
        add(w, "a", CLIQUE_1);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=5@-");
        w->nodes[0].pod = fake_pod_json(w->a, "{'metadata':{'name':'p','namespace':'driver','uid':'u2','"
                                              "resourceVersion':'1','annotations':{'" CD_ANNOTATION_TEMPLATE
                                              "':'h'}},'spec':{'nodeName':'a'},"
                                              "'status':{'phase':'Pending','conditions':[{'type':'"
                                              "PodScheduled','status':'False','message':'cannot allocate all "
                                              "claims'}]}}");
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=5@-");
        assert_string_equal(member(w, "a")->message,
                            "daemon Pod p cannot be scheduled: cannot allocate all claims");
        assert_int_equal(member(w, "a")->why, FORMATION_STARTING); /* which is usual for a moment */
        assert_int_equal(w->f.recheck_s, FORMATION_SCHEDULED_S);
        w->now += FORMATION_SCHEDULED_S;
        make(w);
        assert_int_equal(member(w, "a")->why, FORMATION_FAILING);
        assert_int_equal(w->f.recheck_s, 0);
}

static void the_nineteenth_node_is_told(void **state) {
        struct world *w = *state;
        w->max_nodes = 2;
        clique(w, CLIQUE_1,
               ENTRY("b", "", CLIQUE_1, 0, "NotReady") "," ENTRY("c", "", CLIQUE_1, 1, "NotReady"), INFIX);
        add(w, "a", CLIQUE_1);
        add(w, "b", CLIQUE_1);
        add(w, "c", CLIQUE_1);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=0@- c=1@-");
        assert_int_equal(member(w, "a")->why, FORMATION_FULL);
        assert_false(member(w, "a")->listed);
}

static void two_cliques_number_on_their_own(void **state) {
        struct world *w = *state;
        add(w, "a", CLIQUE_1);
        add(w, "b", CLIQUE_2);
        make(w);
        assert_int_equal(w->f.n_imex, 2);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@-");
        assert_string_equal(entries(w, CLIQUE_2), "b=0@-");
}

static void a_node_without_fabric_is_listed_without_index(void **state) {
        struct world *w = *state;
        add(w, "a", "")->pod = fake_daemon(w->a, "a", "10.0.0.1", "", -1, true);
        add(w, "b", "");
        make(w);
        assert_int_equal(w->f.n_imex, 0);
        assert_true(member(w, "a")->listed);
        assert_int_equal(member(w, "a")->seat.index, -1);
        assert_int_equal(member(w, "a")->why, FORMATION_READY);
        assert_int_equal(member(w, "b")->why, FORMATION_STARTING);
}

static void nobody_guesses_a_clique(void **state) {
        struct world *w = *state;
        add(w, "a", NULL); /* its slice says nothing (yet) */
        make(w);
        assert_int_equal(w->f.n_imex, 0);
        assert_false(member(w, "a")->listed);
        assert_string_equal(member(w, "a")->message, "its ResourceSlice does not state a clique yet");
}

static void a_missing_slice_moves_nobody(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready"), INFIX);
        add(w, "a", NULL)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 0, true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1+");
}

static void a_moved_node_stays_until_its_daemon_has_moved(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 4, "Ready"), INFIX);
        add(w, "a", CLIQUE_2)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 4, true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=4@10.0.0.1-");
        assert_int_equal(member(w, "a")->why, FORMATION_FAILING);
        const struct pod *daemon = TAKE(w->nodes[0].pod); /* as a slow watch has it */
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=4@-");
        assert_string_equal(entries(w, CLIQUE_2), "");
        w->nodes[0].pod = daemon;
        w->nodes[0].pod = fake_daemon(w->a, "a", "10.0.0.2", CLIQUE_2, -1, false);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "");
        assert_string_equal(entries(w, CLIQUE_2), "a=0@10.0.0.2-");
        assert_int_equal(w->f.n_members, 1); /* and so once in status.nodes, where the name is the key */
}

static void a_lying_daemon_is_not_believed(void **state) {
        struct world *w = *state;
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_2, 0, true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1-");
        assert_string_equal(entries(w, CLIQUE_2), "");
}

/* A daemon of the Go driver on node b. */
static const struct pod *go_daemon(struct world *w) {
        return fake_pod_json(w->a, "{'metadata':{'name':'go','namespace':'driver','uid':'u2','"
                                   "resourceVersion':'1','labels':{'" CD_LABEL_CLIQUE "':'" CLIQUE_1 "'}},"
                                   "'spec':{'nodeName':'b'},'status':{'phase':'Running','podIPs':[{'ip':'10."
                                   "0.0.2'}],'conditions':[{'type':'Ready','"
                                   "status':'True'}]}}");
}

static void an_adopted_clique_keeps_names_and_indices_and_loses_owners(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("b", "10.0.0.2", CLIQUE_1, 1, "Ready"), ",'ownerReferences':[{'uid':'x'}]");
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, -1, false);
        add(w, "b", CLIQUE_1)->pod = go_daemon(w);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1- b=1@10.0.0.2+");
        assert_null(w->f.imex[0].imex.infix);
        assert_true(w->f.imex[0].changed);
}

/* Its daemons wake IMEX at each change of an address, and IMEX sleeps through the second within five seconds.
 */
static void beside_daemons_of_the_go_driver_a_node_comes_with_its_address(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("b", "10.0.0.2", CLIQUE_1, 1, "Ready"), "");
        struct seat_facts *a = add(w, "a", CLIQUE_1);
        add(w, "b", CLIQUE_1)->pod = go_daemon(w);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=1@10.0.0.2+");
        assert_int_equal(member(w, "a")->why, FORMATION_STARTING);
        assert_false(member(w, "a")->listed);
        a->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, -1, false);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1- b=1@10.0.0.2+");
        assert_true(w->f.imex[0].urgent);
}

static void beside_daemons_of_the_go_driver_an_address_stays_until_another_follows(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1,
               ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready") "," ENTRY("b", "10.0.0.2", CLIQUE_1, 1, "Ready"),
               "");
        struct seat_facts *a = add(w, "a", CLIQUE_1);
        add(w, "b", CLIQUE_1)->pod = go_daemon(w);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1- b=1@10.0.0.2+");
        a->pod = fake_daemon(w->a, "a", "10.0.0.9", CLIQUE_1, -1, false);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.9- b=1@10.0.0.2+");
}

static void an_empty_adopted_clique_takes_our_names(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, "", "");
        add(w, "a", CLIQUE_1);
        make(w);
        assert_string_equal(w->f.imex[0].imex.infix, "abc");
}

static void a_clique_deleted_by_hand_comes_back_with_the_ids_that_run(void **state) {
        struct world *w = *state;
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 4, true);
        add(w, "b", CLIQUE_1)->pod = fake_daemon(w->a, "b", "10.0.0.2", CLIQUE_1, 0, true);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=0@10.0.0.2+ a=4@10.0.0.1+");
}

static void lose_cliques(struct world *w) {
        memcpy(w->lost, w->cliques, sizeof w->lost);
        w->n_lost = w->n_cliques;
        w->n_cliques = 0;
}

/* The cache of Pods is behind: it shows neither that one daemon runs nor what the other one says. */
static void a_clique_deleted_by_hand_comes_back_with_what_it_said(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1,
               ENTRY("a", "10.0.0.1", CLIQUE_1, 4, "Ready") "," ENTRY("b", "", CLIQUE_1, 2, "NotReady"),
               ",'annotations':{'" CD_ANNOTATION_FREED "':'3'}");
        add(w, "a", CLIQUE_1);
        pending(w, "");
        add(w, "b", CLIQUE_1);
        lose_cliques(w);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=2@- a=4@-");
        assert_string_equal(w->f.imex[0].imex.freed, "3");
        assert_null(w->f.imex[0].old);
        assert_true(w->f.needs_lost);
        /* Somebody has made it anew, with less. */
        clique(w, CLIQUE_1, ENTRY("c", "", CLIQUE_1, 2, "NotReady"), INFIX);
        add(w, "c", CLIQUE_1);
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=0@- c=2@- a=4@-");
        assert_true(w->f.needs_lost);
        w->n_cliques = 0;
        clique(w, CLIQUE_1,
               ENTRY("a", "", CLIQUE_1, 4, "NotReady") "," ENTRY("b", "", CLIQUE_1, 2, "NotReady"), INFIX);
        make(w);
        assert_false(w->f.needs_lost);
}

/* An index is kept for who has gone by nobody's word but that of his Pod, with an entry or without. */
static void who_is_gone_needs_no_lost_entry(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready"), INFIX);
        add(w, "a", CLIQUE_1)->wanted = false;
        add(w, "b", CLIQUE_1);
        lose_cliques(w);
        w->stale = true;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@- b=1@-");
        assert_true(w->f.needs_lost);
        w->stale = false;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "b=1@-");
        assert_string_equal(w->f.imex[0].imex.freed, "0");
        assert_false(w->f.needs_lost);
}

/* IMEX refuses a changed node list for good, so who runs with the Go driver's names must go on with them. */
static void an_adopted_clique_deleted_by_hand_comes_back_with_its_names(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 4, "Ready"), "");
        add(w, "a", CLIQUE_1)->pod = fake_daemon(w->a, "a", "10.0.0.1", CLIQUE_1, 4, true);
        make(w);
        assert_string_equal(w->f.adopted, UID_A ":" CLIQUE_1);
        w->adopted = w->f.adopted;
        w->n_cliques = 0;
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=4@10.0.0.1+");
        assert_null(w->f.imex[0].imex.infix);
        assert_string_equal(w->f.adopted, w->adopted);
        w->adopted = UID_B ":" CLIQUE_1; /* of an exported manifest */
        make(w);
        assert_string_equal(w->f.imex[0].imex.infix, "abc");
        w->adopted = UID_A ":" CLIQUE_1;
        w->nodes[0].pod = NULL; /* nobody runs with those names any more */
        make(w);
        assert_string_equal(w->f.imex[0].imex.infix, "abc");
        assert_null(w->f.adopted);
}

static void a_node_that_another_domain_holds_waits_without_an_index(void **state) {
        struct world *w = *state;
        add(w, "a", CLIQUE_1)->held_by = "ComputeDomain w/other";
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "");
        assert_int_equal(member(w, "a")->why, FORMATION_HELD);
        assert_string_equal(member(w, "a")->message,
                            "the node is held by ComputeDomain w/other until its last pod there is gone");
}

/* Its own daemon may be there yet, unseen, and caches of different times tell what never was. */
static void a_node_that_another_domain_holds_keeps_the_index_that_it_has(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "", CLIQUE_1, 4, "NotReady"), INFIX);
        add(w, "a", CLIQUE_1)->held_by = "ComputeDomain w/other";
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=4@-");
        assert_false(w->f.imex[0].changed);
        assert_int_equal(member(w, "a")->why, FORMATION_HELD);
}

static void a_daemon_that_is_down_says_why(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "Ready"), INFIX);
        add(w, "a", CLIQUE_1)->pod = fake_pod_json(
                w->a,
                "{'metadata':{'name':'p','namespace':'driver','uid':'u2','resourceVersion':'1','labels':{"
                "'" CD_LABEL_CLIQUE "':'" CLIQUE_1 "'},'annotations':{'" CD_ANNOTATION_TEMPLATE
                "':'h','" IMEX_ANNOTATION_READY "':'true','" IMEX_ANNOTATION_INDEX
                "':'0'}},'spec':{'nodeName':'a'},'status':{'phase':'Running','podIPs':[{'ip':'10.0.0.1'}],"
                "'containerStatuses':[{'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off "
                "5s'}}}]}}");
        make(w);
        assert_string_equal(entries(w, CLIQUE_1), "a=0@10.0.0.1-");
        assert_string_equal(
                member(w, "a")->message,
                "daemon Pod p: CrashLoopBackOff; kubectl -n driver logs --previous p says why it ends");
}

/* It cannot end by itself: somebody has to see to the nodes that it waits for. */
static void a_recovery_that_waits_for_somebody_is_a_failure(void **state) {
        struct world *w = *state;
        clique(w, CLIQUE_1, ENTRY("a", "10.0.0.1", CLIQUE_1, 0, "NotReady"), INFIX);
        struct seat_facts *n = add(w, "a", CLIQUE_1);
        for (int awaited = 0; awaited < 2; awaited++) {
                n->pod = fake_pod_json(
                        w->a,
                        "{'metadata':{'name':'p','namespace':'driver','uid':'p','resourceVersion':'1','"
                        "labels':{'" CD_LABEL "':'" UID_A "','" CD_LABEL_CLIQUE "':'" CLIQUE_1
                        "'},'annotations':{'" CD_ANNOTATION_TEMPLATE "':'h','" IMEX_ANNOTATION_STATE
                        "':'WAITING_FOR_RECOVERY','" IMEX_ANNOTATION_READY
                        "':'false','" IMEX_ANNOTATION_REASON "':'it waits for b'%s}},'spec':{'nodeName':'a'},"
                        "'status':{'phase':'Running','podIPs':[{'ip':'10.0.0.1'}]}}",
                        awaited ? ",'" IMEX_ANNOTATION_AWAITED "':'b'" : "");
                make(w);
                assert_string_equal(member(w, "a")->message,
                                    "IMEX daemon is WAITING_FOR_RECOVERY: it waits for b");
                assert_int_equal(member(w, "a")->why, awaited ? FORMATION_FAILING : FORMATION_STARTING);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(an_allocated_claim_gives_an_index_at_once),
                T(nobody_is_told_an_index_that_is_not_written),
                T(the_ip_and_readiness_follow_the_daemon),
                T(without_dns_names_an_ip_is_urgent),
                T(a_reboot_is_told_to_the_clique),
                T(a_boot_id_that_the_server_drops_is_not_written_for_ever),
                T(nothing_to_write_when_all_is_as_it_should_be),
                T(ready_under_another_index_is_not_ready),
                T(a_lost_node_keeps_its_index_but_is_not_ready),
                T(an_index_is_free_only_when_nothing_can_run_under_it),
                T(what_a_stale_cache_does_not_show_frees_no_index),
                T(an_entry_goes_when_the_server_knows_of_no_claim),
                T(an_entry_stays_while_the_node_has_the_label),
                T(the_index_of_who_ends_without_an_entry_is_the_last_to_be_given),
                T(a_node_that_is_gone_gets_no_index),
                T(what_the_scheduler_says_is_told_without_its_numbers),
                T(an_adopted_clique_deleted_by_hand_comes_back_with_its_names),
                T(a_pod_on_a_node_that_is_not_wanted_gets_no_new_entry),
                T(a_replaced_pod_keeps_the_index_and_loses_ready),
                T(the_nineteenth_node_is_told),
                T(two_cliques_number_on_their_own),
                T(a_node_without_fabric_is_listed_without_index),
                T(nobody_guesses_a_clique),
                T(a_missing_slice_moves_nobody),
                T(a_moved_node_stays_until_its_daemon_has_moved),
                T(a_lying_daemon_is_not_believed),
                T(an_adopted_clique_keeps_names_and_indices_and_loses_owners),
                T(beside_daemons_of_the_go_driver_a_node_comes_with_its_address),
                T(beside_daemons_of_the_go_driver_an_address_stays_until_another_follows),
                T(an_empty_adopted_clique_takes_our_names),
                T(a_clique_deleted_by_hand_comes_back_with_the_ids_that_run),
                T(a_clique_deleted_by_hand_comes_back_with_what_it_said),
                T(who_is_gone_needs_no_lost_entry),
                T(a_node_that_another_domain_holds_waits_without_an_index),
                T(a_node_that_another_domain_holds_keeps_the_index_that_it_has),
                T(a_daemon_that_is_down_says_why),
                T(a_recovery_that_waits_for_somebody_is_a_failure),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
