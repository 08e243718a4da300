/* SPDX-License-Identifier: Apache-2.0 */
#include "../api/fake.h"

#include <stdio.h>

#include "rules/formation.h"
#include "rules/message.h"

struct world {
        struct arena *a;
        struct seat_facts nodes[8];
        size_t n_nodes;
        const struct clique *cliques[4], *lost[4];
        size_t n_cliques, n_lost;
        int64_t max_nodes;
        bool ip_mode, stale;
        const char *adopted; /* annotation of the ComputeDomain */
        int64_t now;
        struct formation f;
        struct formation_memory *memory;
};

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->a = arena_new(4096);
        w->max_nodes = 18;
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        arena_free(w->a);
        free(w);
        return 0;
}

static struct seat_facts *add(struct world *w, const char *name, const char *clique) {
        w->nodes[w->n_nodes] = (struct seat_facts){
                .name = name, .node = fake_node(w->a, name, true), .wanted = true, .clique = clique
        };
        return &w->nodes[w->n_nodes++];
}

static void clique(struct world *w, const char *id, const char *daemons, const char *more_meta) {
        w->cliques[w->n_cliques++] = fake_clique_json(
                w->a,
                "{'metadata':{'name':'c-%s','namespace':'driver','uid':'u','resourceVersion':'7','labels':{"
                "'" CD_LABEL "':'" UID_A "','" CD_LABEL_CLIQUE "':'%s'}%s},'daemons':[%s]}",
                id, id, more_meta, daemons);
}

#define ENTRY(node, ip, clique, index, status)                                                               \
        "{'nodeName':'" node "','ipAddress':'" ip "','cliqueID':'" clique "','index':" #index                \
        ",'status':'" status "'}"
#define INFIX ",'annotations':{'" CD_ANNOTATION_INFIX "':'abc','" CD_ANNOTATION_NUM_NODES "':'0'}"

static void make(struct world *w) {
        struct formation_input in = {
                .cd = fake_cd_json(w->a,
                                   "{'metadata':{'name':'cd','namespace':'w','uid':'" UID_A
                                   "','resourceVersion':'1','annotations':{'" CD_ANNOTATION_ADOPTED
                                   "':'%s'}},'spec':{'numNodes':0,'channel':{'"
                                   "resourceClaimTemplate':{'name':'t'}}}}",
                                   w->adopted ? w->adopted : ""),
                .stale = w->stale,
                .nodes = w->nodes,
                .n_nodes = w->n_nodes,
                .cliques = w->cliques,
                .n_cliques = w->n_cliques,
                .lost = w->lost,
                .n_lost = w->n_lost,
                .max_nodes = w->max_nodes,
                .dns_names = !w->ip_mode,
                .infix = "abc",
                .now = w->now,
                .memory = w->memory,
        };
        formation_make(&in, w->a, &w->f);
}

static const struct formed_seat *member(const struct world *w, const char *node) {
        for (size_t i = 0; i < w->f.n_members; i++)
                if (streq(w->f.members[i].seat.node, node))
                        return &w->f.members[i];
        return NULL;
}

/* "a=0@10.0.0.1+ b=1@-": index, IP, + when ready. */
static const char *entries(struct world *w, const char *id) {
        struct buf b = BUF_INIT(4096);
        for (size_t i = 0; i < w->f.n_imex; i++)
                for (size_t k = 0; streq(w->f.imex[i].imex.clique_id, id) && k < w->f.imex[i].imex.n_seats;
                     k++) {
                        const struct seat *d = &w->f.imex[i].imex.seats[k];
                        buf_addf(&b, "%s%s=%d@%s%s", b.n ? " " : "", d->node, (int)d->index, d->ip,
                                 streq(d->status, "Ready") ? "+" : "-");
                }
        const char *s = arena_strdup(w->a, buf_str(&b));
        buf_done(&b);
        return s;
}

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

/* Whatever is in the caches: an index is never held by two nodes of a clique, a node is in one clique only,
 * and what was decided is stable.
 */
static void invariants_hold_for_anything(void **state) {
        static const char *const names[] = { "a", "b", "c", "d", "e" }, *const ids[] = { CLIQUE_1, CLIQUE_2,
                                                                                         "", NULL };
        for (int round = 0; round < 10000; round++) {
                struct world w = { .a = arena_new(8192), .max_nodes = 4 };
                for (size_t q = 0; q < 2; q++) {
                        struct buf b = BUF_INIT(4096);
                        for (size_t i = 0; i < 5; i++)
                                if (fake_random(3) == 0)
                                        buf_addf(&b,
                                                 "%s{'nodeName':'%s','ipAddress':'','cliqueID':'%s','index':%"
                                                 "d,'status':'Ready'}",
                                                 b.n ? "," : "", names[i], ids[q], (int)fake_random(4));
                        if (fake_random(2))
                                clique(&w, ids[q], buf_str(&b), INFIX);
                        buf_done(&b);
                }
                for (size_t i = 0; i < 5; i++) {
                        struct seat_facts *n = add(&w, names[i], ids[fake_random(4)]);
                        n->wanted = fake_random(2);
                        if (fake_random(4) == 0)
                                n->node = fake_random(2) ? NULL : fake_node(w.a, names[i], false);
                        if (fake_random(2))
                                n->pod = fake_daemon(w.a, names[i], "10.0.0.1",
                                                     fake_random(5) ? ids[fake_random(2)] : "",
                                                     (int)fake_random(5), fake_random(2));
                }
                make(&w);
                size_t in_cliques = 0;
                for (size_t q = 0; q < w.f.n_imex; q++)
                        for (size_t i = 0; i < w.f.imex[q].imex.n_seats; i++) {
                                const struct seat *d = &w.f.imex[q].imex.seats[i];
                                assert_true(d->index >= 0 && d->index < 4);
                                assert_true(i == 0 || d->index > w.f.imex[q].imex.seats[i - 1].index);
                                assert_string_equal(member(&w, d->node)->seat.clique_id,
                                                    w.f.imex[q].imex.clique_id);
                                in_cliques++;
                        }
                size_t with_index = 0;
                for (size_t i = 0; i < w.f.n_members; i++)
                        with_index += w.f.members[i].seat.index >= 0;
                assert_int_equal(in_cliques, with_index);
                arena_free(w.a);
        }
}

static void same_text(const char *a, const char *b) {
        assert_string_equal(str_or(a, "(none)"), str_or(b, "(none)"));
}

static void same_formation(const struct formation *a, const struct formation *b) {
        assert_int_equal(a->recheck_s, b->recheck_s);
        assert_int_equal(a->needs_lost, b->needs_lost);
        same_text(a->hint, b->hint);
        same_text(a->adopted, b->adopted);
        assert_int_equal(a->n_members, b->n_members);
        for (size_t i = 0; i < a->n_members; i++) {
                const struct formed_seat *x = &a->members[i], *y = &b->members[i];
                same_text(x->seat.node, y->seat.node);
                same_text(x->seat.ip, y->seat.ip);
                same_text(x->seat.clique_id, y->seat.clique_id);
                same_text(x->message, y->message);
                same_text(x->seat.boot_id, y->seat.boot_id);
                assert_int_equal(x->seat.index, y->seat.index);
                assert_int_equal(x->written, y->written);
                assert_int_equal(x->listed, y->listed);
                assert_int_equal(x->why, y->why);
                assert_int_equal(x->peers_connected, y->peers_connected);
                assert_int_equal(x->peers_known, y->peers_known);
                assert_int_equal(x->wanted, y->wanted);
                assert_int_equal(x->foreign, y->foreign);
                assert_int_equal(x->address_first, y->address_first);
                assert_int_equal(x->of_imex, y->of_imex);
        }
        assert_int_equal(a->n_imex, b->n_imex);
        for (size_t i = 0; i < a->n_imex; i++) {
                const struct formed_imex *x = &a->imex[i], *y = &b->imex[i];
                same_text(x->imex.clique_id, y->imex.clique_id);
                same_text(x->imex.infix, y->imex.infix);
                same_text(x->imex.num_nodes, y->imex.num_nodes);
                same_text(x->imex.freed, y->imex.freed);
                assert_ptr_equal(x->old, y->old);
                assert_int_equal(x->n_listed, y->n_listed);
                assert_int_equal(x->adopted, y->adopted);
                assert_int_equal(x->changed, y->changed);
                assert_int_equal(x->urgent, y->urgent);
                assert_int_equal(x->imex.n_seats, y->imex.n_seats);
                for (size_t k = 0; k < x->imex.n_seats; k++) {
                        same_text(x->imex.seats[k].node, y->imex.seats[k].node);
                        same_text(x->imex.seats[k].ip, y->imex.seats[k].ip);
                        same_text(x->imex.seats[k].status, y->imex.seats[k].status);
                        assert_int_equal(x->imex.seats[k].index, y->imex.seats[k].index);
                }
        }
}

static void random_node(struct world *w, struct seat_facts *n, const char *const *ids) {
        *n = (struct seat_facts){ .name = n->name, .clique = ids[fake_random(4)], .wanted = fake_random(4) };
        if (fake_random(6))
                n->node = fake_node(w->a, n->name, fake_random(6));
        else
                n->gone_since = fake_random(2) ? w->now - 50 : 0;
        if (fake_random(3))
                n->pod = fake_daemon(w->a, n->name, "10.0.0.1", fake_random(5) ? ids[fake_random(2)] : "",
                                     (int)fake_random(5), fake_random(4));
        n->held_by = fake_random(8) ? NULL : "a ComputeDomain of another namespace";
}

static void random_clique(struct world *w, const char *id, size_t at) {
        struct buf b = BUF_INIT(4096);
        size_t n = w->n_cliques;
        for (size_t i = 0; i < w->n_nodes; i++)
                if (fake_random(2))
                        buf_addf(&b,
                                 "%s{'nodeName':'%s','ipAddress':'','cliqueID':'%s','index':%d,'status':'"
                                 "Ready'}",
                                 b.n ? "," : "", w->nodes[i].name, id, (int)fake_random(4));
        clique(w, id, buf_str(&b), fake_random(3) ? INFIX : "");
        w->cliques[at] = w->cliques[n];
        w->n_cliques = n;
        buf_done(&b);
}

/* Whatever changes from one look to the next: what is remembered of the last one changes nothing but the time
 * that it takes. */
static void what_is_remembered_changes_nothing(void **state) {
        static const char *const names[] = { "a", "b", "c", "d", "e", "f" }, *const ids[] = { CLIQUE_1,
                                                                                              CLIQUE_2, "",
                                                                                              NULL };
        uint64_t version = 0;
        for (int history = 0; history < 300; history++) {
                struct world w = { .a = arena_new(8192), .max_nodes = 4, .now = 1000, .n_cliques = 2 };
                struct formation_memory *memory = formation_memory_new();
                for (size_t i = 0; i < 6; i++)
                        random_node(&w, add(&w, names[i], NULL), ids);
                random_clique(&w, ids[0], 0);
                random_clique(&w, ids[1], 1);
                for (size_t i = 0; i < 6; i++)
                        w.nodes[i].version = ++version;
                for (int step = 0; step < 30; step++) {
                        uint64_t what = fake_random(16);
                        size_t at = fake_random(w.n_nodes);
                        if (what < 8) {
                                random_node(&w, &w.nodes[at], ids);
                                w.nodes[at].version = ++version;
                        } else if (what < 10) {
                                random_clique(&w, ids[what % 2], what % 2);
                                for (size_t i = 0; i < w.n_nodes; i++)
                                        w.nodes[i].version = ++version;
                        } else if (what == 10 && w.n_nodes > 2) {
                                memmove(&w.nodes[at], &w.nodes[at + 1],
                                        (w.n_nodes - at - 1) * sizeof w.nodes[0]);
                                w.n_nodes--;
                        } else if (what == 11) {
                                w.stale = !w.stale;
                        } else if (what == 12) {
                                w.max_nodes = 2 + (int64_t)fake_random(4);
                        } else if (what == 13) {
                                w.adopted = fake_random(2) ? UID_A ":" CLIQUE_1 : NULL;
                        } else if (what == 14) {
                                w.now += 20;
                        } else if (what == 15) {
                                random_clique(&w, ids[step % 2], w.n_cliques);
                                w.lost[0] = w.cliques[w.n_cliques];
                                w.n_lost = !w.n_lost;
                                for (size_t i = 0; i < w.n_nodes; i++)
                                        w.nodes[i].version = ++version;
                        }
                        w.memory = memory;
                        make(&w);
                        struct formation with = w.f;
                        w.memory = NULL;
                        make(&w);
                        same_formation(&with, &w.f);
                }
                formation_memory_free(memory);
                arena_free(w.a);
        }
}

/* A domain over all of a very large cluster: 10,000 nodes in 556 racks. Decided at each change, so it must be
 * cheap; and numbered without gaps. */
static void ten_thousand_nodes(void **state) {
        enum { NODES = 10000, RACK = 18, RACKS = (NODES + RACK - 1) / RACK };
        struct arena *a = arena_new(1 << 20);
        struct seat_facts *nodes = arena_alloc(a, NODES * sizeof *nodes);
        const struct node *ready = fake_node(a, "any", true);
        const char *ids[RACKS];
        const struct clique **cliques = arena_alloc(a, RACKS * sizeof *cliques);
        for (size_t i = 0; i < RACKS; i++)
                ids[i] = message_of(a, "7a3b2f10-1111-4222-8333-444455556666.%zu", i);
        for (size_t i = 0; i < NODES; i++)
                nodes[i] = (struct seat_facts){ .name = message_of(a, "node-%05zu", i),
                                                .node = ready,
                                                .wanted = true,
                                                .clique = ids[i / RACK] };
        struct formation_input in = {
                .nodes = nodes, .n_nodes = NODES, .max_nodes = RACK, .dns_names = true, .infix = "abc"
        };
        in.cd = fake_cd_json(a, "{'metadata':{'name':'cd','namespace':'w','uid':'" UID_A
                                "','resourceVersion':'1'}}");
        struct formation first, second;
        formation_make(&in, a, &first);
        assert_int_equal(first.n_imex, RACKS);
        for (size_t i = 0; i < NODES; i++)
                assert_int_equal(first.members[i].seat.index, i % RACK);
        for (size_t i = 0; i < RACKS; i++) { /* what was written comes back, and changes nothing */
                struct clique *c = arena_alloc(a, sizeof *c);
                *c = (struct clique){ .imex = first.imex[i].imex };
                cliques[i] = c;
        }
        in.cliques = cliques;
        in.n_cliques = RACKS;
        formation_make(&in, a, &second);
        for (size_t i = 0; i < RACKS; i++)
                assert_false(second.imex[i].changed);
        arena_free(a);
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
                T(a_daemon_that_is_down_says_why),
                T(a_recovery_that_waits_for_somebody_is_a_failure),
                T(invariants_hold_for_anything),
                T(what_is_remembered_changes_nothing),
                cmocka_unit_test(ten_thousand_nodes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
