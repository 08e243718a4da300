/* SPDX-License-Identifier: Apache-2.0 */
/* Compares every write and every Event of the controller, in the life of a ComputeDomain, with recorded text.
 */
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

static void continue_with(struct story *s, const char *change) {
        buf_addf(&s->text, "\n## %s\n\n", change);
        s->world.now += 100;
        assert_true(world_settle(&s->world, false) >= 0);
}

static void delete_domain(struct story *s) {
        world_delete(&s->world, world_find(&s->world, &kube_compute_domains, WORLD_USER_NS, "cd"));
        continue_with(s, "the ComputeDomain is deleted");
        assert_int_equal(world_count(&s->world), 0);
}

static void a_driver_managed_domain_is_written_as_recorded(void **state) {
        struct story *s = *state;
        struct world *w = &s->world;
        world_create_cd(w, SPEC);
        continue_with(s, "a ComputeDomain is created");
        w->nodes[0].wanted = true;
        continue_with(s, "node-a joins");
        w->nodes[1].wanted = w->nodes[4].wanted = true;
        continue_with(s, "node-b joins, and node-e of another partition");
        w->nodes[0].ready = false;
        continue_with(s, "node-a does not answer");
        w->nodes[0].ready = true;
        continue_with(s, "node-a answers again");
        w->nodes[1].wanted = false;
        continue_with(s, "node-b leaves");
        delete_domain(s);
        golden_compare("domain-of-daemons.txt", buf_str(&s->text));
}

static void a_host_managed_domain_is_written_as_recorded(void **state) {
        struct story *s = *state;
        struct world *w = &s->world;
        world_set_mode(w, "HostManagedIMEX=true", NULL);
        world_create_cd(w, SPEC);
        continue_with(s, "a ComputeDomain is created");
        w->nodes[0].wanted = w->nodes[1].wanted = true;
        w->nodes[0].host_state = "UP";
        w->nodes[1].host_state = "DOWN";
        w->nodes[1].host_reason = "it reports DEGRADED";
        continue_with(s, "two nodes join, and IMEX of node-b is down");
        w->nodes[1].host_state = "UP";
        continue_with(s, "IMEX of node-b is up");
        delete_domain(s);
        golden_compare("domain-on-hosts.txt", buf_str(&s->text));
}

/* Every optional setting has a value. */
static void a_domain_with_all_settings_is_written_as_recorded(void **state) {
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
        continue_with(s, "a ComputeDomain is created");
        golden_compare("domain-with-other-settings.txt", buf_str(&s->text));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_driver_managed_domain_is_written_as_recorded, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_host_managed_domain_is_written_as_recorded, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_domain_with_all_settings_is_written_as_recorded, setup,
                                                teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
