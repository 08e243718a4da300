/* SPDX-License-Identifier: Apache-2.0 */
/* Every write of the controller, and every Event, in the life of a domain, to the byte. */
#include "golden.h"
#include "world/domain.h"

#include "api/resources.h"

enum { MAX_TEXT = 1 << 20 };
#define SPEC "{'numNodes':2,'channel':{'resourceClaimTemplate':{'name':'tpl'},'allocationMode':'Single'}}"

struct story {
        struct world world;
        struct buf text;
};

static int setup(void **state) {
        struct story *s = xnew(struct story);
        world_init(&s->world);
        s->text = BUF_INIT(MAX_TEXT);
        s->world.transcript = &s->text;
        *state = s;
        return 0;
}

static int teardown(void **state) {
        struct story *s = *state;
        world_done(&s->world);
        buf_done(&s->text);
        free(s);
        return 0;
}

static void goes_on(struct story *s, const char *with) {
        buf_addf(&s->text, "\n## %s\n\n", with);
        s->world.now += 100;
        assert_true(world_settle(&s->world, false) >= 0);
}

static void ends(struct story *s) {
        world_delete(&s->world, world_find(&s->world, &kube_compute_domains, WORLD_USER_NS, "cd"));
        goes_on(s, "it is deleted");
        assert_int_equal(world_count(&s->world), 0);
}

static void a_domain_of_daemons(void **state) {
        struct story *s = *state;
        struct world *w = &s->world;
        world_create_cd(w, SPEC);
        goes_on(s, "a domain is made");
        w->nodes[0].wanted = true;
        goes_on(s, "node-a comes in");
        w->nodes[1].wanted = w->nodes[4].wanted = true;
        goes_on(s, "node-b comes in, and node-e, which is in another clique");
        w->nodes[0].ready = false;
        goes_on(s, "node-a is lost");
        w->nodes[0].ready = true;
        goes_on(s, "node-a is back");
        w->nodes[1].wanted = false;
        goes_on(s, "node-b goes out");
        ends(s);
        golden_compare("domain-of-daemons.txt", buf_str(&s->text));
}

static void a_domain_on_hosts(void **state) {
        struct story *s = *state;
        struct world *w = &s->world;
        world_set_mode(w, "HostManagedIMEX=true", NULL);
        world_create_cd(w, SPEC);
        goes_on(s, "a domain is made");
        w->nodes[0].wanted = w->nodes[1].wanted = true;
        w->nodes[0].host_state = "UP";
        w->nodes[1].host_state = "DOWN";
        w->nodes[1].host_reason = "it says DEGRADED";
        goes_on(s, "two nodes come in, IMEX of node-b is down");
        w->nodes[1].host_state = "UP";
        goes_on(s, "it is up");
        ends(s);
        golden_compare("domain-on-hosts.txt", buf_str(&s->text));
}

/* What was given by a settings file rather than left out. */
static void all_settings(void **state) {
        static const char *const secrets[] = { "first", "second" };
        static const struct jd_pair labels[] = { { "team", "fabric" } },
                                    annotations[] = { { "note", "\"<&>\"" } };
        struct story *s = *state;
        s->world.settings = (struct objects_settings){ .ns = WORLD_NS,
                                                       .resource_api = "v1beta1",
                                                       .image = "image:1",
                                                       .log_verbosity = "6",
                                                       .gates = "IMEXDaemonsWithDNSNames=false,",
                                                       .priority_class = "system-node-critical",
                                                       .imex_config = "",
                                                       .pull_secrets = secrets,
                                                       .n_pull_secrets = ARRAY_LEN(secrets),
                                                       .requests = STR("{\"cpu\":\"10m\"}"),
                                                       .limits = STR("{\"memory\":\"64Mi\"}"),
                                                       .pull_policy = "Always",
                                                       .json_log = true,
                                                       .labels = labels,
                                                       .n_labels = ARRAY_LEN(labels),
                                                       .annotations = annotations,
                                                       .n_annotations = ARRAY_LEN(annotations) };
        world_create_cd(&s->world,
                        "{'channel':{'resourceClaimTemplate':{'name':'tpl'},'allocationMode':'All'}}");
        buf_adds(&s->text, "\n## the daemons\n\n");
        objects_daemonset(&s->world.settings, &s->text);
        buf_adds(&s->text, "\n\n");
        objects_daemon_rct(s->world.settings.resource_api, WORLD_NS, &s->text);
        goes_on(s, "a domain is made");
        golden_compare("domain-with-other-settings.txt", buf_str(&s->text));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_domain_of_daemons, setup, teardown),
                cmocka_unit_test_setup_teardown(a_domain_on_hosts, setup, teardown),
                cmocka_unit_test_setup_teardown(all_settings, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
