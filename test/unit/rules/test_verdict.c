/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict_world.h"

/* failure: a status would be wrong -> it is not written, and DecisionWrong reports it */
static void the_check_finds_every_wrong_status(void **st) {
        struct arena *a = arena_new(4096);
        struct compute_domain cd = { .o.meta = { .name = "d", .ns = "n", .uid = "u" } };
        struct member m[] = { ready("a", 0), ready("b", 1) };
        struct verdict v = judge(a, &cd, m, 2, NULL), wrong;

        v.status = "NotReady";
        assert_string_equal(verdict_check(&v, a), "status NotReady with condition Ready True");
        v.status = "Ready";
        v.nodes_ready = 3;
        assert_string_equal(verdict_check(&v, a), "3 of 2 nodes are ready");
        v.nodes_ready = 2;
        v.nodes[1].node = "a";
        assert_string_equal(verdict_check(&v, a), "node a is listed twice");
        v.nodes[1].node = "b";
        v.n_nodes = VERDICT_NODES + 1;
        v.nodes = arena_alloc(a, v.n_nodes * sizeof *v.nodes);
        for (size_t i = 0; i < v.n_nodes; i++)
                v.nodes[i].node = arena_printf(a, "%zu", i);
        assert_string_equal(verdict_check(&v, a), "1001 nodes are listed");

        verdict_make_wrong(&(struct verdict_input){ .cd = &cd, .conditions = true, .now = 1000 },
                           "node a is listed twice", a, &wrong);
        assert_null(verdict_check(&wrong, a));
        assert_string_equal(wrong.status, "NotReady");
        assert_string_equal(wrong.conditions[0].reason, "DecisionWrong");
        assert_non_null(strstr(wrong.conditions[0].message, "node a is listed twice"));
        assert_false(wrong.has_nodes);
        assert_true(wrong.changed);
        arena_free(a);
}

static void the_message_counts_the_nodes_that_have_joined(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[] = { ready("a", 0), ready("b", 1) };
        struct verdict v = judge(a, fake_cd_json(a, CD("{}"), 3), m, 1, NULL);
        assert_string_equal(v.conditions[0].message, "1 node has joined, but spec.numNodes is 3");
        v = judge(a, fake_cd_json(a, CD("{}"), 3), m, 2, NULL);
        assert_string_equal(v.conditions[0].message, "2 nodes have joined, but spec.numNodes is 3");
        arena_free(a);
}

/* The Go driver's rule of `status`, and the additional reasons of this driver. */
static void the_status_depends_on_the_nodes_and_problems(void **st) {
        const struct {
                int num_nodes;
                struct member members[3];
                size_t n;
                const char *problem, *want_status, *want_reason;
        } cases[] = {
                { 0, { { { 0 } } }, 0, NULL, "Ready", "NoNodes" },
                { 2, { { { 0 } } }, 0, NULL, "NotReady", "NodesMissing" },
                { 2, { ready("a", 0) }, 1, NULL, "NotReady", "NodesMissing" },
                { 2, { ready("a", 0), ready("b", 1) }, 2, NULL, "Ready", "AllNodesReady" },
                { 1, { ready("a", 0), ready("b", 1) }, 2, NULL, "Ready", "AllNodesReady" },
                { 0,
                  { ready("a", 0), state("b", MEMBER_STARTING, "why", true) },
                  2,
                  NULL,
                  "NotReady",
                  "NodesNotReady" },
                { 0,
                  { ready("a", 0), state("b", MEMBER_FAILING, "why", true) },
                  2,
                  NULL,
                  "NotReady",
                  "NodeFailing" },
                { 0,
                  { ready("a", 0), state("b", MEMBER_LOST, "why", true) },
                  2,
                  NULL,
                  "NotReady",
                  "NodeLost" },
                { 0,
                  { ready("a", 0), state("b", MEMBER_FULL, "why", false) },
                  2,
                  NULL,
                  "NotReady",
                  "DomainFull" },
                { 0, { state("b", MEMBER_OCCUPIED, "why", false) }, 1, NULL, "NotReady", "NodeOccupied" },
                { 0,
                  { ready("a", 0), state("b", MEMBER_LEAVING, "why", false) },
                  2,
                  NULL,
                  "Ready",
                  "AllNodesReady" },
                { 0, { ready("a", 0) }, 1, "TemplateNameTaken", "NotReady", "TemplateNameTaken" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct arena *a = arena_new(4096);
                struct member m[3];
                memcpy(m, cases[i].members, sizeof m);
                struct verdict v = judge(a, fake_cd_json(a, CD("{}"), cases[i].num_nodes), m, cases[i].n,
                                         cases[i].problem);
                if (!streq(v.status, cases[i].want_status) ||
                    !streq(v.conditions[0].reason, cases[i].want_reason))
                        fail_msg("case %zu: %s %s", i, v.status, v.conditions[0].reason);
                assert_int_equal(v.conditions[0].observed_generation, 3);
                arena_free(a);
        }
}

/* The index of the lost node becomes free after a minute. */
/* failure: a node is replaced in a full ComputeDomain -> the message names the lost node */
static void a_full_ComputeDomain_names_its_lost_nodes(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[] = { state("a", MEMBER_FULL, "no index is free", false),
                              state("b", MEMBER_LOST, "its Node object does not exist", true) };
        struct verdict v = judge(a, fake_cd_json(a, CD("{}"), 0), m, 2, NULL);
        assert_string_equal(v.conditions[0].reason, REASON_DOMAIN_FULL);
        assert_string_equal(v.conditions[0].message,
                            "a: no index is free; b: its Node object does not exist");
        arena_free(a);
}

static void the_message_names_nodes_that_are_not_ready(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[8];
        for (size_t i = 0; i < 8; i++)
                m[i] = state(message_of(a, "n%zu", i), MEMBER_STARTING, "no daemon Pod yet", true);
        struct verdict v = judge(a, fake_cd_json(a, CD("{}"), 0), m, 8, NULL);
        assert_string_equal(v.conditions[0].message,
                            "0 of 8 nodes are ready. n0: no daemon Pod yet; n1: no daemon Pod yet; n2: no "
                            "daemon Pod yet; n3: no daemon Pod yet; "
                            "n4: no daemon Pod yet; and 3 more");
        v = judge(a, fake_cd_json(a, CD("{}"), 0), m, 6, NULL);
        assert_non_null(strstr(v.conditions[0].message, "n4: no daemon Pod yet; and 1 more"));
        v = judge(a, fake_cd_json(a, CD("{}"), 0), m, 5, NULL);
        assert_null(strstr(v.conditions[0].message, "more"));
        assert_non_null(strstr(v.conditions[0].message, "n4: no daemon Pod yet"));
        arena_free(a);
}

static void missing_peers_are_reported_and_do_not_affect_ready(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[2] = { ready("a", 0), ready("b", 1) };
        const struct compute_domain *cd = fake_cd_json(a, CD("{}"), 0);
        m[0].peers_connected = 1;
        struct verdict v = judge(a, cd, m, 2, NULL);
        assert_string_equal(v.conditions[1].status, "False");
        assert_string_equal(v.conditions[1].message, "b: not connected to its only peer");
        assert_string_equal(v.status, "Ready"); /* a dead peer does not make the ComputeDomain NotReady */
        m[1].peers_connected = 1;
        v = judge(a, cd, m, 2, NULL);
        assert_string_equal(v.conditions[1].status, "True");
        v = judge(a, cd, m, 1, NULL); /* a single node has no peers */
        assert_string_equal(v.conditions[1].status, "True");
        v = judge(a, cd, m, 0, NULL);
        assert_string_equal(v.conditions[1].status, "Unknown");
        arena_free(a);
}

/* A daemon that cannot be asked, or whose nvidia-imex-ctl fails, does not report a number of peers. */
static void a_node_with_unknown_peers_is_not_called_unconnected(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[2] = { ready("a", 0), ready("b", 1) };
        m[0].peers_connected = 1;
        m[1].peers_connected = -1;
        struct verdict v = judge(a, fake_cd_json(a, CD("{}"), 0), m, 2, NULL);
        assert_string_equal(v.conditions[1].reason, "PeersMissing");
        assert_string_equal(v.conditions[1].message, "b: not known");
        arena_free(a);
}

/* While a ComputeDomain forms, each daemon connects to one peer after the other. */
/* failure: peers are found one by one -> the status is not written for each */
static void a_connected_peer_causes_no_write(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[3] = { ready("a", 0), ready("b", 1), ready("c", 2) };
        const struct compute_domain *cd = fake_cd_json(a, CD("{}"), 0);
        struct verdict v = judge(a, cd, m, 3, NULL);
        const char *was = v.conditions[1].message;
        m[0].peers_connected = m[1].peers_connected = 1;
        v = judge(a, cd, m, 3, NULL);
        assert_string_equal(v.conditions[1].message, was);
        arena_free(a);
}

/* A node whose last claim has ended counts while its daemon is ready. */
/* failure: a node's last claim ends while its daemon is ready -> READY never exceeds WANTED */
static void nodes_ready_never_exceed_nodes_wanted(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[3] = { ready("a", 0), ready("b", 1), ready("c", 2) };
        m[0].wanted = m[1].wanted = m[2].wanted = false;
        struct verdict v = judge(a, fake_cd_json(a, CD("{}"), 0), m, 3, NULL);
        assert_int_equal(v.nodes_ready, 3);
        assert_int_equal(v.nodes_wanted, 3);
        v = judge(a, fake_cd_json(a, CD("{}"), 2), m, 3, NULL); /* nodes_wanted is at least nodes_ready,
                                                                   whatever spec.numNodes is */
        assert_int_equal(v.nodes_wanted, 3);
        v = judge(a, fake_cd_json(a, CD("{}"), 5), m, 3, NULL);
        assert_int_equal(v.nodes_wanted, 5);
        arena_free(a);
}

/* The largest possible ComputeDomain: its status fits into an object, listed nodes stay listed, and a node
 * that takes the place of another one has not joined just now. */
/* failure: a ComputeDomain has ten thousand nodes -> its status still fits into the object */
static void a_status_of_ten_thousand_nodes_fits(void **st) {
        enum { NODES = 10000 };
        struct arena *a = arena_new(1 << 20);
        const struct compute_domain *cd = fake_cd_json(a, CD("{}"), 0);
        struct member *m = arena_alloc(a, NODES * sizeof *m);
        struct membership f = { .members = m, .n_members = NODES };
        struct verdict_event *events;
        struct verdict v;
        size_t bytes;
        for (size_t i = 0; i < NODES; i++)
                m[i] = ready(message_of(a, "node-%05zu-%0200d", i, 0), (int64_t)i % 18);
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1000 }, &f, a, &v);
        assert_int_equal(v.n_nodes, VERDICT_NODES);
        assert_int_equal(v.nodes_ready, NODES);
        assert_int_equal(v.nodes_wanted, NODES);
        cd = written(a, cd, &v, &bytes);
        assert_in_range(bytes, 1, 1 << 19);
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1000 }, &f, a, &v);
        assert_false(v.changed);
        f.members++; /* the first one leaves */
        f.n_members--;
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1000 }, &f, a, &v);
        assert_true(v.changed);
        assert_int_equal(v.n_nodes, VERDICT_NODES);
        assert_string_equal(v.nodes[0].node, m[1].entry.node);
        assert_int_equal(verdict_events(cd, &f, &v, a, &events), 0);
        cd = written(a, cd, &v, &bytes);
        f.members--; /* and returns: it waits for a place, and no node is replaced */
        f.n_members++;
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1000 }, &f, a, &v);
        assert_string_equal(v.nodes[0].node, m[1].entry.node);
        arena_free(a);
}

#define CONDITIONS(ready_status, ready_reason, ready_message)                                                \
        "'conditions':[{'type':'Ready','status':'" ready_status "','reason':'" ready_reason                  \
        "','message':'" ready_message                                                                        \
        "','observedGeneration':3,'lastTransitionTime':'1970-01-01T00:01:40Z'},"                             \
        "{'type':'PeersConnected','status':'True','reason':'AllConnected','message':'All IMEX peers are "    \
        "connected','observedGeneration':3,"                                                                 \
        "'lastTransitionTime':'1970-01-01T00:01:40Z'}]"

/* failure: nothing changes -> the status is not written */
static void the_status_is_written_only_on_change(void **st) {
        struct arena *a = arena_new(4096);
        struct member m = ready("a", 0);
        const struct compute_domain *cd = fake_cd_json(
                a,
                CD("{'status':'Ready','nodesReady':1,'nodesWanted':1,'cliques':1,'nodes':[" NODE(
                        "a", "Ready") "]," CONDITIONS("True", "AllNodesReady", "The only node is ready") "}"),
                0);
        struct verdict v = judge(a, cd, &m, 1, NULL);
        assert_false(v.changed);
        assert_int_equal(v.conditions[0].last_transition, 100); /* kept while the condition's status stays */
        m = state("a", MEMBER_LOST, "gone", true);
        v = judge(a, cd, &m, 1, NULL);
        assert_true(v.changed);
        assert_int_equal(v.conditions[0].last_transition, 1000);
        arena_free(a);
}

#define TWO_NODES(counts)                                                                                    \
        "{'status':'Ready'," counts ",'nodes':[" NODE("a", "Ready") "," NODE("b", "Ready") "]," CONDITIONS(  \
                "True", "AllNodesReady", "All 2 nodes are ready") "}"

/* Each part of the status is written when it alone has changed. */
/* failure: any part of the status changes -> the status is written */
static void a_change_of_any_part_of_the_status_is_written(void **st) {
        struct arena *a = arena_new(4096);
        const struct compute_domain
                *same = fake_cd_json(a, CD(TWO_NODES("'nodesReady':2,'nodesWanted':2,'cliques':1")), 0),
                *ready_differs =
                        fake_cd_json(a, CD(TWO_NODES("'nodesReady':1,'nodesWanted':2,'cliques':1")), 0),
                *wanted_differs =
                        fake_cd_json(a, CD(TWO_NODES("'nodesReady':2,'nodesWanted':3,'cliques':1")), 0),
                *cliques_differ =
                        fake_cd_json(a, CD(TWO_NODES("'nodesReady':2,'nodesWanted':2,'cliques':2")), 0);
        struct member m[] = { ready("a", 0), ready("b", 0) };
        m[0].peers_connected = m[1].peers_connected = 1;
        assert_false(judge(a, same, m, 2, NULL).changed);
        assert_true(judge(a, ready_differs, m, 2, NULL).changed);
        assert_true(judge(a, wanted_differs, m, 2, NULL).changed);
        assert_true(judge(a, cliques_differ, m, 2, NULL).changed);
        for (size_t i = 0; i < 2; i++) {
                m[i].entry.index = 7;
                assert_true(judge(a, same, m, 2, NULL).changed);
                m[i].entry.index = 0;
        }
        m[1].peers_connected = 0; /* only PeersConnected */
        assert_true(judge(a, same, m, 2, NULL).changed);
        m[1].peers_connected = 1;
        assert_true(judge(a, same, m, 2, "TemplateNameTaken").changed); /* only Ready */
        arena_free(a);
}

/* A verdict without nodes leaves those of the object as they are. */
static void a_status_whose_nodes_others_write_is_written_only_on_change(void **st) {
        struct arena *a = arena_new(4096);
        const struct compute_domain *cd = fake_cd_json(
                a,
                CD("{'status':'NotReady','nodesReady':1,'nodes':[" NODE(
                        "a", "Ready") "],'conditions':[{'type':'Ready','status':'False','reason':"
                                      "'DecisionWrong','message':'The controller does not write the status "
                                      "that it computed, because it is inconsistent: "
                                      "why','observedGeneration':3,'lastTransitionTime':"
                                      "'1970-01-01T00:01:40Z'}]}"),
                0);
        struct verdict v;
        verdict_make_wrong(&(struct verdict_input){ cd, { 0 }, true, 1000 }, "why", a, &v);
        assert_false(v.changed);
        verdict_make_wrong(&(struct verdict_input){ cd, { 0 }, true, 1000 }, "another reason", a, &v);
        assert_true(v.changed);
        arena_free(a);
}

/* With the Go driver's schema, the API server drops conditions and counts. Their absence must not cause
 * endless writes. */
/* failure: the CustomResourceDefinition drops our conditions -> the status is not written in a loop */
static void an_old_schema_causes_no_endless_writes(void **st) {
        struct arena *a = arena_new(4096);
        struct member m = ready("a", 0);
        struct membership f = { .members = &m, .n_members = 1 };
        struct verdict v;
        const struct compute_domain *cd =
                fake_cd_json(a, CD("{'status':'Ready','nodes':[" NODE("a", "Ready") "]}"), 0);
        verdict_make(&(struct verdict_input){ cd, { 0 }, false, 1000 }, &f, a, &v);
        assert_false(v.changed);
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1000 }, &f, a, &v);
        assert_true(v.changed);
        arena_free(a);
}

static const char *reasons(struct arena *a, const struct compute_domain *cd, struct member *m, size_t n,
                           const char *problem) {
        struct membership f = { .members = m, .n_members = n };
        struct verdict_problem p = { problem, "text" };
        struct verdict v;
        struct verdict_event *events;
        struct buf b = BUF_INIT(4096);
        verdict_make(&(struct verdict_input){ cd, p, true, 1000 }, &f, a, &v);
        size_t count = verdict_events(cd, &f, &v, a, &events);
        for (size_t i = 0; i < count; i++)
                buf_addf(&b, "%s%s%s", b.n ? " " : "", events[i].warning ? "!" : "", events[i].reason);
        const char *s = arena_strdup(a, buf_str(&b));
        buf_done(&b);
        return s;
}

static void each_step_has_its_events(void **st) {
        struct arena *a = arena_new(4096);
        const struct compute_domain *
                fresh = fake_cd_json(a, CD("{}"), 0),
               *empty = fake_cd_json(a, CD("{'status':'Ready'}"), 0),
               *one = fake_cd_json(a, CD("{'status':'Ready','nodes':[" NODE("a", "Ready") "]}"), 0),
               *forming = fake_cd_json(a, CD("{'status':'NotReady','nodes':[" NODE("a", "NotReady") "]}"), 0);
        struct member up = ready("a", 0), starting = state("a", MEMBER_STARTING, "why", true),
                      lost = state("a", MEMBER_LOST, "why", true),
                      failing = state("a", MEMBER_FAILING, "why", true),
                      held = state("a", MEMBER_OCCUPIED, "why", false), moved = ready("a", 5);
        assert_string_equal(reasons(a, fresh, NULL, 0, NULL), "");
        assert_string_equal(reasons(a, empty, &starting, 1, NULL), "NodeJoined");
        assert_string_equal(reasons(a, empty, &up, 1, NULL), "NodeJoined NodeReady");
        assert_string_equal(reasons(a, forming, &up, 1, NULL), "NodeReady Ready");
        assert_string_equal(reasons(a, one, &starting, 1, NULL), "!NodeNotReady NotReady");
        assert_string_equal(reasons(a, one, &failing, 1, NULL), "!NodeNotReady !NodeFailing");
        assert_string_equal(reasons(a, one, &lost, 1, NULL), "!NodeLost");
        assert_string_equal(reasons(a, one, &moved, 1, NULL), "!NodeMoved");
        assert_string_equal(reasons(a, one, NULL, 0, NULL), "NodeLeft");
        assert_string_equal(reasons(a, empty, &held, 1, NULL), "!NodeOccupied");
        assert_string_equal(reasons(a, empty, NULL, 0, "TemplateNameTaken"), "!TemplateNameTaken");
        arena_free(a);
}

/* failure: a problem of a ComputeDomain continues -> its Event is not repeated until its text changes */
static void a_problem_that_continues_causes_no_more_events(void **st) {
        struct arena *a = arena_new(4096);
        static const char problem[] = "{'status':'NotReady','conditions':[{'type':'Ready','status':'False',"
                                      "'reason':'TemplateNameTaken','message':'%s'}]}";
        const struct compute_domain *same = fake_cd_json(a, CD("%s"), 0, message_of(a, problem, "text")),
                                    *other = fake_cd_json(a, CD("%s"), 0,
                                                          message_of(a, problem, "another text"));
        assert_string_equal(reasons(a, same, NULL, 0, "TemplateNameTaken"), "");
        assert_string_equal(reasons(a, other, NULL, 0, "TemplateNameTaken"), "!TemplateNameTaken");
        assert_string_equal(reasons(a, same, NULL, 0, "WriteFailed"), "!WriteFailed");
        arena_free(a);
}

/* failure: the text of a problem is cut inside a character -> the status is written once */
static void a_text_with_invalid_bytes_is_stored_as_it_is(void **st) {
        struct arena *a = arena_new(4096);
        struct verdict v;
        verdict_make(
                &(struct verdict_input){
                        fake_cd_json(a, CD("{}"), 0), { "WriteFailed", "it is \xc3" }, true, 1000 },
                &(struct membership){ 0 }, a, &v);
        assert_string_equal(v.conditions[0].message, "it is ?");
        arena_free(a);
}

static const char *text_of(struct arena *a, const struct compute_domain *cd, struct member *m, size_t n,
                           const char *reason) {
        struct membership f = { .members = m, .n_members = n };
        struct verdict v;
        struct verdict_event *events;
        const char *text = NULL;
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1000 }, &f, a, &v);
        size_t count = verdict_events(cd, &f, &v, a, &events);
        for (size_t i = 0; i < count; i++) {
                if (!streq(events[i].reason, reason))
                        continue;
                assert_null(text); /* one Event per reason, for any number of nodes */
                text = events[i].message;
        }
        return text;
}

static void many_nodes_in_one_step_are_one_event(void **st) {
        struct arena *a = arena_new(4096);
        const struct compute_domain *empty = fake_cd_json(a, CD("{'status':'Ready'}"), 0);
        struct member m[20];
        for (int i = 0; i < 20; i++)
                m[i] = ready(message_of(a, "n%d", i), i);
        assert_string_equal(text_of(a, empty, m, 1, "NodeReady"), "Node n0 is ready");
        assert_string_equal(text_of(a, empty, m, 2, "NodeJoined"),
                            "2 nodes have joined: n0 (index 0), n1 (index 1)");
        assert_string_equal(text_of(a, empty, m, 20, "NodeReady"),
                            "20 nodes are ready: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, "
                            "n14, n15, n16, n17 and 2 more");
        assert_non_null(strstr(text_of(a, empty, m, 19, "NodeReady"), "n17 and 1 more"));
        assert_null(strstr(text_of(a, empty, m, 18, "NodeReady"), "more"));
        arena_free(a);
}

/* failure: another client sorts the nodes of a status differently -> no node seems to join or leave */
static void the_order_of_the_nodes_of_a_status_does_not_matter(void **st) {
        struct arena *a = arena_new(4096);
        static const char *const orders[] = {
                NODE("a", "Ready") "," NODE("b", "Ready") "," NODE("c", "Ready") "," NODE("d", "Ready"),
                NODE("d", "Ready") "," NODE("c", "Ready") "," NODE("b", "Ready") "," NODE("a", "Ready"),
                NODE("b", "Ready") "," NODE("a", "Ready") "," NODE("c", "Ready") "," NODE("d", "Ready")
        };
        for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
                struct member m[] = { ready("a", 0), ready("b", 0), ready("c", 0), ready("d", 0) };
                const char *text = message_of(
                        a,
                        "{'metadata':{'name':'cd','namespace':'w','uid':'" UID_A
                        "','resourceVersion':'1','generation':3},'spec':{'numNodes':0,'channel':{"
                        "'resourceClaimTemplate':{'name':'t'}}},'status':{'status':'Ready','nodes':[%s]}}",
                        orders[i]);
                assert_string_equal(reasons(a, fake_cd_json(a, "%s", text), m, 4, NULL), "");
        }
        arena_free(a);
}

static void a_wanted_number_of_one_node_counts(void **st) {
        struct arena *a = arena_new(4096);
        struct member m[] = { ready("a", 0), state("b", MEMBER_STARTING, "why", true) };
        assert_int_equal(judge(a, fake_cd_json(a, CD("{}"), 1), NULL, 0, NULL).nodes_wanted, 1);
        assert_int_equal(judge(a, fake_cd_json(a, CD("{}"), 0), m, 2, NULL).nodes_wanted, 2);
        arena_free(a);
}

static void at_most_a_thousand_nodes_are_listed(void **st) {
        struct arena *a = arena_new(4096);
        struct member *m = xnew_n(struct member, VERDICT_NODES + 1);
        for (int i = 0; i <= VERDICT_NODES; i++)
                m[i] = ready(message_of(a, "n%04d", i), i);
        for (size_t n = VERDICT_NODES - 1; n <= VERDICT_NODES + 1; n++) {
                struct verdict v = judge(a, fake_cd_json(a, CD("{}"), 0), m, n, NULL);
                assert_int_equal(v.n_nodes, n < VERDICT_NODES ? n : VERDICT_NODES);
                assert_int_equal(v.n_joined, n);
        }
        free(m);
        arena_free(a);
}

/* A ComputeDomain of 1000 listed nodes, with names from n0001 to n1000. */
static struct compute_domain full_list(struct arena *a, size_t n) {
        struct domain_node *nodes = arena_alloc(a, n * sizeof *nodes);
        for (size_t i = 0; i < n; i++)
                nodes[i] = ready(message_of(a, "n%04zu", i + 1), 0).entry;
        return (struct compute_domain){ .o.meta.uid = "u", .nodes = nodes, .n_nodes = n };
}

static struct member *many_ready(struct arena *a, size_t first, size_t n) {
        struct member *m = arena_alloc(a, n * sizeof *m);
        for (size_t i = 0; i < n; i++)
                m[i] = ready(message_of(a, "n%04zu", first + i), 0);
        return m;
}

/* failure: more nodes join than a status may list -> the listed nodes keep their places */
static void listed_nodes_keep_their_places_when_others_join(void **st) {
        struct arena *a = arena_new(1 << 20);
        struct compute_domain cd = full_list(a, VERDICT_NODES + 1);
        struct member *m = many_ready(a, 1, VERDICT_NODES + 1);
        cd.nodes += VERDICT_NODES; /* only the last node is listed */
        cd.n_nodes = 1;
        struct verdict v = judge(a, &cd, m, VERDICT_NODES + 1, NULL);
        assert_int_equal(v.n_nodes, VERDICT_NODES);
        assert_string_equal(v.nodes[VERDICT_NODES - 1].node, "n1001");
        assert_string_equal(v.nodes[VERDICT_NODES - 2].node, "n0999");
        cd = full_list(a, VERDICT_NODES + 1); /* another client has listed too many */
        assert_int_equal(judge(a, &cd, m, VERDICT_NODES + 1, NULL).n_nodes, VERDICT_NODES);
        arena_free(a);
}

static void a_node_that_takes_a_place_in_a_full_list_has_not_just_joined(void **st) {
        struct arena *a = arena_new(1 << 20);
        struct compute_domain full = full_list(a, VERDICT_NODES), almost = full_list(a, VERDICT_NODES - 1),
                              empty = full_list(a, 0);
        struct member *m = many_ready(a, 2, VERDICT_NODES); /* n0001 has left, and n1001 has joined */
        full.status = almost.status = "Ready";
        assert_null(text_of(a, &full, m, VERDICT_NODES, "NodeJoined"));
        assert_null(text_of(a, &full, m, VERDICT_NODES, "NodeLeft"));
        m = many_ready(a, 1, VERDICT_NODES + 1);
        assert_non_null(text_of(a, &almost, m, VERDICT_NODES, "NodeJoined"));
        assert_null(text_of(a, &almost, m, VERDICT_NODES + 1, "NodeJoined"));
        assert_non_null(text_of(a, &empty, m, VERDICT_NODES, "NodeJoined"));
        assert_null(text_of(a, &empty, m, VERDICT_NODES + 1, "NodeJoined"));
        arena_free(a);
}

/* IMEX of one node waits for a lost node. A person who repairs the lost node needs to see both. */
/* failure: IMEX waits for a lost node -> the condition names both nodes */
static void a_lost_node_does_not_hide_a_failing_node(void **st) {
        struct arena *a = arena_new(4096);
        struct member both[] = { state("a", MEMBER_FAILING, "waits for b", true),
                                 state("b", MEMBER_LOST, "not reachable", true) };
        struct verdict v = judge(a,
                                 fake_cd_json(a, "{'metadata':{'name':'cd','namespace':'w','uid':'" UID_A
                                                 "','resourceVersion':'1'}}"),
                                 both, 2, NULL);
        assert_string_equal(v.conditions[0].reason, "NodeLost");
        assert_string_equal(v.conditions[0].message, "b: not reachable; a: waits for b");
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_check_finds_every_wrong_status),
                cmocka_unit_test(the_status_depends_on_the_nodes_and_problems),
                cmocka_unit_test(the_message_counts_the_nodes_that_have_joined),
                cmocka_unit_test(a_full_ComputeDomain_names_its_lost_nodes),
                cmocka_unit_test(the_message_names_nodes_that_are_not_ready),
                cmocka_unit_test(missing_peers_are_reported_and_do_not_affect_ready),
                cmocka_unit_test(a_node_with_unknown_peers_is_not_called_unconnected),
                cmocka_unit_test(a_connected_peer_causes_no_write),
                cmocka_unit_test(nodes_ready_never_exceed_nodes_wanted),
                cmocka_unit_test(a_status_of_ten_thousand_nodes_fits),
                cmocka_unit_test(the_status_is_written_only_on_change),
                cmocka_unit_test(a_change_of_any_part_of_the_status_is_written),
                cmocka_unit_test(a_status_whose_nodes_others_write_is_written_only_on_change),
                cmocka_unit_test(an_old_schema_causes_no_endless_writes),
                cmocka_unit_test(each_step_has_its_events),
                cmocka_unit_test(a_problem_that_continues_causes_no_more_events),
                cmocka_unit_test(a_text_with_invalid_bytes_is_stored_as_it_is),
                cmocka_unit_test(many_nodes_in_one_step_are_one_event),
                cmocka_unit_test(the_order_of_the_nodes_of_a_status_does_not_matter),
                cmocka_unit_test(a_wanted_number_of_one_node_counts),
                cmocka_unit_test(at_most_a_thousand_nodes_are_listed),
                cmocka_unit_test(listed_nodes_keep_their_places_when_others_join),
                cmocka_unit_test(a_node_that_takes_a_place_in_a_full_list_has_not_just_joined),
                cmocka_unit_test(a_lost_node_does_not_hide_a_failing_node),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
