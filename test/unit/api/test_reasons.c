/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "api/reasons.h"
#include "api/states.h"
#include "base/mem.h"

static void a_reason_is_found_by_its_object_and_name(void **state) {
        (void)state;
        const struct reason *r = reason_find(REASON_OF_NODE, REASON_UVM_NOT_LOADED);
        assert_non_null(r);
        assert_string_equal(r->name, "UVMNotLoaded");
        assert_string_equal(r->anchor, "uvmnotloaded");
        assert_int_equal(r->fixer, REASON_FIX_CLUSTER_ADMIN);
        assert_string_equal(reason_fixer_names[r->fixer], "cluster admin");
        assert_false(r->is_message);
        assert_ptr_equal(reason_find(REASON_OF_ANY, "UVMNotLoaded"), r);
        assert_null(reason_find(REASON_OF_POD, "UVMNotLoaded"));
        assert_null(reason_find(REASON_OF_ANY, "UVMNotLoade"));
        assert_null(reason_find(REASON_OF_ANY, ""));
        assert_null(reason_find(REASON_OF_ANY, NULL));
}

static void one_name_has_an_entry_for_each_kind_of_object(void **state) {
        (void)state;
        const struct reason *node = reason_find(REASON_OF_NODE, "HostIMEXDown"),
                            *domain = reason_find(REASON_OF_COMPUTE_DOMAIN, "HostIMEXDown");
        assert_non_null(node);
        assert_non_null(domain);
        assert_string_equal(node->under, "");
        assert_string_equal(domain->under, CONDITION_HOST_IMEX_HEALTHY);
        node = reason_find(REASON_OF_FABRIC, FABRIC_DOMAIN_FULL);
        domain = reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_DOMAIN_FULL);
        assert_string_equal(node->anchor, "domainfull");
        assert_string_equal(domain->anchor, "domainfull-computedomain");
}

static void a_message_is_found_by_its_constant_part(void **state) {
        (void)state;
        static const struct {
                const char *text, *anchor;
        } cases[] = {
                { "Failed to prepare dynamic resources: node-1: no IMEX daemon runs on this node yet; if "
                  "that lasts, check",
                  "no-daemon-yet" },
                { "node-1: device 'channel-0' is still held by claim 'a/b' (u): a node has one channel",
                  "device-held" },
                { "node-1: device 'channel-3', a place for one pod, is still held by claim 'a/b': wait",
                  "device-held-channels" },
                { "node-1: this node has no assignment in the IMEX domain of ComputeDomain 'a/b' on f.1 yet",
                  "no-assignment" },
                { "node-1: IMEX daemon is BACKOFF: nvidia-imex was ended by signal 9", "imex-signal" },
                { "node-1: IMEX daemon is STOPPED", "daemon-not-ready" },
                { "request 'channel': opaque configuration: strict decoding error: unknown field "
                  "\"isolation\"",
                  "isolation-unknown" },
                { "request 'channel': opaque configuration: strict decoding error: unknown field \"x\"",
                  "config-unknown-field" },
                { "node-1: ComputeDomain 'a/b' is being deleted, and this node leaves its IMEX domain",
                  "domain-ending" },
                { "ComputeDomain 'a/b' is being deleted", "domain-deleting" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct reason *r = reason_find_message(cases[i].text);
                assert_non_null(r);
                assert_true(r->is_message);
                assert_string_equal(r->anchor, cases[i].anchor);
        }
        assert_null(reason_find_message("something else"));
        assert_null(reason_find_message("UVMNotLoaded"));
        assert_null(reason_find_message(NULL));
        /* A message is not a reason. */
        assert_null(reason_find(REASON_OF_ANY, "no IMEX daemon runs on this node yet"));
}

/* Each entry can be found, so no entry hides another one. */
static void entries_are_complete_and_have_their_own_anchors(void **state) {
        (void)state;
        assert_true(reason_count > 150);
        for (size_t i = 0; i < reason_count; i++) {
                const struct reason *r = &reason_list[i];
                assert_true(*r->name && *r->meaning && *r->anchor);
                assert_true(r->objects == REASON_OF_ALERT ||
                            (r->objects && !(r->objects & ~(unsigned)REASON_OF_ANY)));
                assert_int_equal(r->meaning[strlen(r->meaning) - 1], '.');
                assert_true(!*r->remedy || strchr(".`", r->remedy[strlen(r->remedy) - 1]));
                assert_true(*r->remedy || r->fixer == REASON_FIX_NONE);
                assert_int_equal(strspn(r->anchor, "abcdefghijklmnopqrstuvwxyz0123456789-"),
                                 strlen(r->anchor));
                assert_ptr_equal(r->is_message ? reason_find_message(r->name)
                                 : r->is_cause ? reason_cause(r->name)
                                               : reason_find(r->objects, r->name),
                                 r);
                assert_ptr_equal(reason_find_anchor(r->anchor), r);
                for (size_t j = 0; j < i; j++)
                        assert_string_not_equal(r->anchor, reason_list[j].anchor);
        }
}

/* A cause is no reason of an Event or condition. */
static void causes_are_found_only_by_their_names(void **state) {
        (void)state;
        assert_string_equal(reason_cause(CAUSE_NO_FREE_CHANNEL)->anchor, "nofreechannel");
        assert_null(reason_find(REASON_OF_ANY, CAUSE_NO_PLUGIN));
        assert_null(reason_find_anchor("no-such-anchor"));
}

static void each_condition_of_a_reason_has_an_entry(void **state) {
        (void)state;
        for (size_t i = 0; i < reason_count; i++) {
                struct str rest = str_from(reason_list[i].under), name;
                while (!reason_list[i].is_message && str_next_field(&rest, ',', &name)) {
                        char under[64];
                        name = str_trim(name);
                        snprintf(under, sizeof under, "%.*s", (int)name.n, name.p);
                        assert_true(!*under || reason_find(reason_list[i].objects, under));
                }
        }
}

static void states_are_the_words_that_users_see(void **state) {
        (void)state;
        assert_string_equal(imex_status_name(IMEX_STATE_READY), "READY");
        assert_string_equal(fabric_state_name(FABRIC_LEAVING), "Leaving");
        assert_string_equal(NODE_STATE_FAILING, "failing");
        assert_string_equal(host_state_name(HOST_UNKNOWN), "UNKNOWN");
}

static void each_state_is_decoded_from_its_name(void **state) {
        (void)state;
        for (int i = 0; i < IMEX_STATES; i++)
                assert_int_equal(imex_status_decode(imex_status_name((enum imex_status)i)), i);
        for (int i = 0; i < FABRIC_STATES; i++)
                assert_int_equal(fabric_state_decode(fabric_state_name((enum fabric_state)i)), i);
        for (int i = 0; i < HOST_STATES; i++)
                assert_int_equal(host_state_decode(host_state_name((enum host_state)i)), i);
}

static void an_unknown_state_differs_from_no_state(void **state) {
        (void)state;
        assert_int_equal(imex_status_decode("Ready"), IMEX_STATE_UNKNOWN);
        assert_int_equal(imex_status_decode(""), IMEX_STATE_NONE);
        assert_int_equal(imex_status_decode(NULL), IMEX_STATE_NONE);
        assert_int_equal(fabric_state_decode("Moving"), FABRIC_STATE_UNKNOWN);
        assert_int_equal(fabric_state_decode(""), FABRIC_ACTIVE);
        assert_int_equal(fabric_state_decode(NULL), FABRIC_ACTIVE);
        assert_int_equal(host_state_decode("UPPER"), HOST_UNKNOWN);
        assert_int_equal(host_state_decode(NULL), HOST_UNKNOWN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_reason_is_found_by_its_object_and_name),
                cmocka_unit_test(one_name_has_an_entry_for_each_kind_of_object),
                cmocka_unit_test(a_message_is_found_by_its_constant_part),
                cmocka_unit_test(entries_are_complete_and_have_their_own_anchors),
                cmocka_unit_test(causes_are_found_only_by_their_names),
                cmocka_unit_test(each_condition_of_a_reason_has_an_entry),
                cmocka_unit_test(states_are_the_words_that_users_see),
                cmocka_unit_test(each_state_is_decoded_from_its_name),
                cmocka_unit_test(an_unknown_state_differs_from_no_state),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
