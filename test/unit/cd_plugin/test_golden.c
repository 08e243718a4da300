/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a node about its claims, and its messages to the kubelet and to people, byte for byte. */
#include "world/cd_node.h"

#include <string.h>

#include "base/file.h"
#include "golden.h"

enum { MAX_TEXT = 1 << 20 };

static struct buf text;

static int setup(void **state) {
        text = BUF_INIT(MAX_TEXT);
        return world_setup_claims(state);
}

static int teardown(void **state) {
        buf_done(&text);
        return world_teardown(state);
}

/* The folder has another name in each run. */
static void add(const char *what, const char *content) {
        buf_addf(&text, "## %s\n\n", what);
        for (const char *p = str_or(content, "none"), *dir; *p;) {
                dir = strstr(p, w.dir);
                buf_add(&text, p, dir ? (size_t)(dir - p) : strlen(p));
                p = dir ? dir + strlen(w.dir) : p + strlen(p);
                if (dir)
                        buf_adds(&text, "DIR");
        }
        buf_adds(&text, "\n\n");
}

static void add_checkpoint(const char *when) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *checkpoint = world_read(path), *what = xasprintf("checkpoint %s", when);
        add(what, checkpoint);
}

static void add_cdi(const char *owner, const char *uid) {
        _cleanup_(freep) char *cdi = world_cdi(uid), *what = xasprintf("CDI file of %s", owner);
        char *edits = strstr(cdi, "DAEMON_EDITS=");
        if (edits) /* a digest that depends on the folder */
                memset(edits + strlen("DAEMON_EDITS="), 'x', 16);
        add(what, cdi);
}

static void the_files_of_a_daemon_and_a_channel_are_unchanged(void **state) {
        struct dra_op channel = { 0 }, daemon = { 0 };
        prepare(&channel, "c1", CLAIM_1);
        world_turn();
        add_checkpoint("while the channel waits for the daemon");
        daemon_ready();
        world_wait(&channel, PREPARED);
        add("answer", channel.devices);
        add_checkpoint("of both");
        add_cdi("the channel", CLAIM_1);
        add_cdi("the daemon", DAEMON_1);
        kubelet_unprepare(w.claims, &channel, "user", "c1", CLAIM_1);
        world_wait(&channel, UNPREPARED);
        daemon_dies();
        kubelet_unprepare(w.claims, &daemon, "driver", "daemon-claim", DAEMON_1);
        world_wait(&daemon, UNPREPARED);
        add_checkpoint("in the end");
        add("Events", api.events);
        golden_compare("node-daemon-and-channel.txt", buf_str(&text));
}

static void the_files_of_a_daemon_of_the_go_driver_and_a_channel_are_unchanged(void **state) {
        struct dra_op channel = { 0 };
        go_comes();
        api_clique(DOMAIN_A, "Ready");
        prepare(&channel, "c1", CLAIM_1);
        world_wait(&channel, PREPARED);
        add_checkpoint("of both");
        add_cdi("the channel", CLAIM_1);
        add_cdi("the daemon", GO_DAEMON);
        golden_compare("node-go-daemon-and-channel.txt", buf_str(&text));
}

static void the_files_of_a_channel_on_a_host_are_unchanged(void **state) {
        struct dra_op op = { 0 };
        world_stop(w.claims);
        world_mode("HostManagedIMEX=true", NULL);
        world_start(BOOT);
        host_answers("UP");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        add("answer", op.devices);
        add_checkpoint("of the channel");
        add_cdi("the channel", CLAIM_1);
        golden_compare("node-channel-on-a-host.txt", buf_str(&text));
}

static void the_files_of_an_assigned_channel_are_unchanged(void **state) {
        struct dra_op op = { 0 };
        world_stop(w.claims);
        world_mode_own_channels();
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-3", CHANNEL, DOMAIN_A, ",\"isolation\":\"Channel\"");
        api_fabric(CLIQUE, 5,
                   "{\"id\":7,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"user\",\"name\":\"cd\","
                   "\"uid\":\"" DOMAIN_A "\"}}",
                   "");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        add("answer", op.devices);
        add_checkpoint("of the channel");
        add_cdi("the channel", CLAIM_1);
        add("Events", api.events);
        golden_compare("node-own-channel.txt", buf_str(&text));
}

static void refuse(const char *what, const char *device, const char *extra) {
        struct dra_op op = { 0 };
        api_claim("user", "c1", CLAIM_1, device, CHANNEL, DOMAIN_A, extra);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        add(what, op.msg);
}

static void the_messages_of_refusals_are_unchanged(void **state) {
        struct dra_op op = { 0 };
        refuse("of an unknown member", "channel-0", ",\"isolation\":\"Channel\"");
        refuse("of an unknown device", "channel-7", "");
        api_remove_claim("user", "c1");
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        add("of a missing claim", op.msg);
        add("Events", api.events);
        golden_compare("node-refusals.txt", buf_str(&text));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_files_of_a_daemon_and_a_channel_are_unchanged, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        the_files_of_a_daemon_of_the_go_driver_and_a_channel_are_unchanged, setup, teardown),
                cmocka_unit_test_setup_teardown(the_files_of_a_channel_on_a_host_are_unchanged, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_files_of_an_assigned_channel_are_unchanged, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_messages_of_refusals_are_unchanged, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
