/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "cd_plugin/cd_offer.h"

#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"

static struct slice_content fabric, no_fabric, host_managed, host_rack, own_channels, nothing;

static int offers(void **state) {
        (void)state;
        fabric = cd_offer_content(&(struct cd_offer){
                .channels = true, .channel_devices = 1, .daemon = true, .clique_id = CLIQUE });
        no_fabric = cd_offer_content(&(struct cd_offer){
                .channels = true, .channel_devices = 1, .daemon = true, .clique_id = "" });
        host_managed = cd_offer_content(
                &(struct cd_offer){ .channels = true, .channel_devices = 1, .clique_id = CLIQUE });
        host_rack = cd_offer_content(&(struct cd_offer){
                .channels = true, .channel_devices = 1, .clique_id = CLIQUE, .rack = "s0-011" });
        own_channels = cd_offer_content(
                &(struct cd_offer){ .channels = true, .channel_devices = 16, .clique_id = CLIQUE });
        nothing = cd_offer_content(
                &(struct cd_offer){ .channels = false, .channel_devices = 1, .clique_id = "" });
        return 0;
}

static int no_offers(void **state) {
        (void)state;
        arena_free(fabric.arena);
        arena_free(no_fabric.arena);
        arena_free(host_managed.arena);
        arena_free(host_rack.arena);
        arena_free(own_channels.arena);
        arena_free(nothing.arena);
        return 0;
}

static void rendered(const char *version, const struct own_slice *old, const struct slice_content *want,
                     const char *text) {
        struct buf b = BUF_INIT(8192);
        slice_render(version, "n0", "node-uid", old, want, &b);
        assert_string_equal(buf_str(&b), text);
        buf_done(&b);
}

static void a_new_slice_has_the_devices_with_the_clique_id(void **state) {
        (void)state;
        rendered("v1", NULL, &fabric,
                 "{\"apiVersion\":\"resource.k8s.io/"
                 "v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"generateName\":\"00000-compute-domain."
                 "nvidia.com-n0-\","
                 "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n0\",\"uid\":"
                 "\"node-uid\",\"controller\":true}]},"
                 "\"spec\":{\"driver\":\"compute-domain.nvidia.com\",\"nodeName\":\"n0\",\"pool\":{\"name\":"
                 "\"n0\",\"generation\":1,"
                 "\"resourceSliceCount\":1},\"devices\":["
                 "{\"name\":\"channel-0\",\"attributes\":{\"cliqueID\":{\"string\":\"" CLIQUE
                 "\"},\"id\":{\"int\":0},\"type\":{\"string\":\"channel\"}}},"
                 "{\"name\":\"daemon-0\",\"attributes\":{\"cliqueID\":{\"string\":\"" CLIQUE
                 "\"},\"id\":{\"int\":0},\"type\":{\"string\":\"daemon\"}}}]}}");
}

static void v1beta1_wraps_the_attributes(void **state) {
        (void)state;
        rendered("v1beta1", NULL, &no_fabric,
                 "{\"apiVersion\":\"resource.k8s.io/"
                 "v1beta1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"generateName\":\"00000-compute-domain."
                 "nvidia.com-n0-\","
                 "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n0\",\"uid\":"
                 "\"node-uid\",\"controller\":true}]},"
                 "\"spec\":{\"driver\":\"compute-domain.nvidia.com\",\"nodeName\":\"n0\",\"pool\":{\"name\":"
                 "\"n0\",\"generation\":1,"
                 "\"resourceSliceCount\":1},\"devices\":["
                 "{\"name\":\"channel-0\",\"basic\":{\"attributes\":{\"id\":{\"int\":0},\"type\":{\"string\":"
                 "\"channel\"}}}},"
                 "{\"name\":\"daemon-0\",\"basic\":{\"attributes\":{\"id\":{\"int\":0},\"type\":{\"string\":"
                 "\"daemon\"}}}}]}}");
}

/* The slice of one channel with the attributes `id` and `type`, and those in `between`. */
#define HOST_SLICE(between)                                                                                  \
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"generateName\":"  \
        "\"00000-compute-domain.nvidia.com-n0-\",\"annotations\":{\"resource.nvidia.com/clique-id\":"        \
        "\"" CLIQUE "\"},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n0\","     \
        "\"uid\":\"node-uid\",\"controller\":true}]},\"spec\":{\"driver\":\"compute-domain.nvidia.com\","    \
        "\"nodeName\":\"n0\",\"pool\":{\"name\":\"n0\",\"generation\":1,\"resourceSliceCount\":1},"          \
        "\"devices\":["                                                                                      \
        "{\"name\":\"channel-0\",\"attributes\":{\"id\":{\"int\":0}," between "\"type\":{\"string\":"        \
        "\"channel\"}}}]}}"

static void host_managed_slice_omits_the_daemon_device_and_has_two_attributes(void **state) {
        (void)state;
        rendered("v1", NULL, &host_managed, HOST_SLICE(""));
}

static void with_racks_on_the_devices_state_the_rack_in_every_mode(void **state) {
        (void)state;
        rendered("v1", NULL, &host_rack, HOST_SLICE("\"rack\":{\"string\":\"s0-011\"},"));
}

/* failure: several pods of a node need channels -> the node offers sixteen channel devices [channels] */
static void with_channel_isolation_a_node_has_sixteen_channel_devices(void **state) {
        (void)state;
        assert_int_equal(own_channels.n_devices, 16);
        assert_string_equal(own_channels.annotation.value, CLIQUE);
        for (unsigned i = 0; i < 16; i++) {
                const struct offered_device *d = &own_channels.devices[i];
                _cleanup_(freep) char *name = xasprintf("channel-%u", i);
                assert_string_equal(d->name, name);
                /* The DeviceClass selects type and id 0. */
                assert_int_equal(d->n_attributes, 3);
                assert_string_equal(d->attributes[0].name, "cliqueID");
                assert_string_equal(d->attributes[0].text, CLIQUE);
                assert_string_equal(d->attributes[1].name, "id");
                assert_int_equal(d->attributes[1].number, 0);
                assert_string_equal(d->attributes[2].text, "channel");
        }
        struct slice_content none = cd_offer_content(
                &(struct cd_offer){ .channels = true, .channel_devices = 16, .clique_id = "" });
        assert_int_equal(none.n_devices, 0);
        arena_free(none.arena);
        /* A node that withholds its devices still belongs to its partition. */
        struct slice_content withheld =
                cd_offer_content(&(struct cd_offer){ .channel_devices = 16, .clique_id = CLIQUE });
        assert_int_equal(withheld.n_devices, 0);
        assert_string_equal(withheld.annotation.value, CLIQUE);
        arena_free(withheld.arena);
}

/* The node joins through the daemon, which needs its device for that. */
static void with_a_standing_domain_the_daemon_device_stays_when_channels_are_withheld(void **state) {
        (void)state;
        struct slice_content joined = cd_offer_content(&(struct cd_offer){
                .channels = true, .daemon = true, .channel_devices = 16, .clique_id = CLIQUE });
        struct slice_content apart = cd_offer_content(
                &(struct cd_offer){ .daemon = true, .channel_devices = 16, .clique_id = CLIQUE });
        assert_int_equal(joined.n_devices, 17);
        assert_string_equal(joined.devices[16].name, "daemon-0");
        assert_int_equal(apart.n_devices, 1);
        assert_string_equal(apart.devices[0].name, "daemon-0");
        assert_string_equal(apart.devices[0].attributes[0].text, CLIQUE);
        arena_free(joined.arena);
        arena_free(apart.arena);
}

/* As the server returns it: the written content, with added metadata. */
static void decode(const char *version, const struct slice_content *want, struct arena *a,
                   struct own_slice *ret) {
        struct buf b = BUF_INIT(8192), text = BUF_INIT(8192);
        struct err e;
        slice_render(version, "n0", "node-uid", NULL, want, &b);
        const char *meta = "\"metadata\":{";
        const char *at = strstr(buf_str(&b), meta) + strlen(meta);
        buf_add(&text, b.p, (size_t)(at - b.p));
        buf_adds(&text, "\"name\":\"s-1\",\"uid\":\"u\",\"resourceVersion\":\"7\",");
        buf_adds(&text, at);
        *ret = (struct own_slice){ 0 };
        assert_int_equal(jd_decode_text(own_slice_fields, (struct str){ text.p, text.n }, "", a, ret, &e), 0);
        buf_done(&b);
        buf_done(&text);
}

static bool matches(const struct own_slice *s, const char *node, const struct slice_content *want) {
        return slice_part_matches(s, node, want, &(struct slice_part){ .of = 1, .n = want->n_devices });
}

static void a_written_slice_matches_and_no_other_does(void **state) {
        (void)state;
        static const char *const versions[] = { "v1", "v1beta2", "v1beta1" };
        const struct slice_content *contents[] = { &fabric, &no_fabric, &host_managed, &own_channels,
                                                   &nothing };
        for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
                for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
                        struct arena *a = arena_new(4096);
                        struct own_slice s;
                        decode(versions[v], contents[i], a, &s);
                        for (size_t j = 0; j < ARRAY_LEN(contents); j++)
                                assert_int_equal(matches(&s, "n0", contents[j]), i == j);
                        assert_false(matches(&s, "n1", contents[i]));
                        arena_free(a);
                }
        }
}

/* failure: a slice differs from the node's state -> the difference is noticed */
static void a_difference_in_a_slice_is_noticed(void **state) {
        (void)state;
        struct arena *a = arena_new(4096);
        struct own_slice s;
        decode("v1", &fabric, a, &s);
        s.count = 2;
        assert_false(matches(&s, "n0", &fabric));
        decode("v1", &fabric, a, &s);
        s.n_devices = 1;
        assert_false(matches(&s, "n0", &fabric));
        decode("v1", &fabric, a, &s);
        s.pool = "other";
        assert_false(matches(&s, "n0", &fabric));
        decode("v1", &host_managed, a, &s);
        s.annotations[0].value = "another";
        assert_false(matches(&s, "n0", &host_managed));
        decode("v1", &fabric, a, &s);
        s.devices[1].attributes = STR("{\"type\":{\"string\":\"daemon\"}}");
        assert_false(matches(&s, "n0", &fabric));
        arena_free(a);
}

static void update_keeps_name_version_and_generation(void **state) {
        (void)state;
        struct own_slice old = { .o.meta = { .name = "s-1", .rv = "42" }, .generation = 5 };
        rendered("v1", &old, &nothing,
                 "{\"apiVersion\":\"resource.k8s.io/"
                 "v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"generateName\":\"00000-compute-domain."
                 "nvidia.com-n0-\",\"name\":\"s-1\","
                 "\"resourceVersion\":\"42\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\","
                 "\"name\":\"n0\",\"uid\":\"node-"
                 "uid\",\"controller\":true}]},"
                 "\"spec\":{\"driver\":\"compute-domain.nvidia.com\",\"nodeName\":\"n0\",\"pool\":{\"name\":"
                 "\"n0\",\"generation\":5,"
                 "\"resourceSliceCount\":1},\"devices\":[]}}");
}

static void the_newer_generation_stays_then_the_older_slice(void **state) {
        (void)state;
        struct own_slice a = { .o.meta = { .name = "a", .created = 10 }, .generation = 2 },
                         b = { .o.meta = { .name = "b", .created = 5 }, .generation = 1 };
        assert_true(slice_outranks(&a, &b));
        assert_false(slice_outranks(&b, &a));
        b.generation = 2;
        assert_true(slice_outranks(&b, &a));
        a.o.meta.created = 6;
        assert_true(slice_outranks(&b, &a));
        a.o.meta.created = 5;
        assert_true(slice_outranks(&a, &b));
        assert_false(slice_outranks(&b, &a));
        assert_false(slice_outranks(&a, &a));
}

/* Two plugin processes with different content: each writes again when it does not see its content. */
static unsigned writes_of_two_in(uint64_t ms) {
        struct slice_floor f[2] = { 0 };
        uint64_t due[2] = { 0 };
        unsigned writes = 0, owner = 1;
        for (uint64_t now = 1; now < ms; now += 10) {
                unsigned other = !owner;
                if (due[other] > now)
                        continue;
                uint64_t wait = slice_floor_wait(&f[other], now);
                due[other] = now + wait;
                if (wait)
                        continue;
                slice_floor_wrote(&f[other], now);
                owner = other;
                writes++;
        }
        return writes;
}

/* failure: two plugin processes publish different devices -> they write with growing delays */
static void two_processes_of_different_content_write_with_growing_delays(void **state) {
        unsigned minute = writes_of_two_in(60000), hour = writes_of_two_in(3600000);
        assert_in_range(minute, 4, 20);
        assert_in_range(hour, minute, 60);
}

/* failure: another client changes a slice once -> the slice is restored at once */
static void a_single_foreign_change_is_repaired_at_once(void **state) {
        struct slice_floor f = { 0 };
        assert_int_equal(slice_floor_wait(&f, 5), 0);
        slice_floor_wrote(&f, 5);
        assert_int_equal(slice_floor_wait(&f, 1000), 0);
        slice_floor_wrote(&f, 1000);
        assert_in_range(slice_floor_wait(&f, 2000), 1, 2 * SLICE_FLOOR_MIN_MS);
        assert_int_equal(slice_floor_wait(&f, f.due_ms - 1), 1);
        assert_int_equal(slice_floor_wait(&f, f.due_ms), 0);
        slice_floor_wrote(&f, 3000);
        assert_true(slice_floor_wait(&f, 3000 + SLICE_STABLE_MS - 1) > 0);
        slice_floor_wrote(&f, 5000);
        assert_int_equal(slice_floor_wait(&f, 5000 + SLICE_STABLE_MS), 0); /* the write has lasted */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(two_processes_of_different_content_write_with_growing_delays),
                cmocka_unit_test(a_single_foreign_change_is_repaired_at_once),
                cmocka_unit_test(a_new_slice_has_the_devices_with_the_clique_id),
                cmocka_unit_test(v1beta1_wraps_the_attributes),
                cmocka_unit_test(host_managed_slice_omits_the_daemon_device_and_has_two_attributes),
                cmocka_unit_test(with_racks_on_the_devices_state_the_rack_in_every_mode),
                cmocka_unit_test(with_channel_isolation_a_node_has_sixteen_channel_devices),
                cmocka_unit_test(with_a_standing_domain_the_daemon_device_stays_when_channels_are_withheld),
                cmocka_unit_test(a_written_slice_matches_and_no_other_does),
                cmocka_unit_test(a_difference_in_a_slice_is_noticed),
                cmocka_unit_test(update_keeps_name_version_and_generation),
                cmocka_unit_test(the_newer_generation_stays_then_the_older_slice),
        };
        return cmocka_run_group_tests(tests, offers, no_offers);
}
