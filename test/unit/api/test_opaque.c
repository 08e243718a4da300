/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "api/opaque.h"

#define UID "5d6a2d5c-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define HEAD(kind) "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"" kind "\""

static const struct {
        const char *json;
        bool strict;
        const char *err; /* part of the message; NULL: it decodes */
        enum opaque_kind kind;
        const char *domain, *mode;
        bool own_channel;
} cases[] = {
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\"}", true, NULL, OPAQUE_CHANNEL, UID,
          "" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"allocationMode\":\"All\"}", true,
          NULL, OPAQUE_CHANNEL, UID, "All" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"allocationMode\":null}", true, NULL,
          OPAQUE_CHANNEL, UID, "" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"isolation\":\"Channel\"}", true,
          NULL, OPAQUE_CHANNEL, UID, "", true },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"isolation\":null}", true, NULL,
          OPAQUE_CHANNEL, UID, "" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"isolation\":\"\"}", true,
          "isolation \"\" is not Channel" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"isolation\":\"channel\"}", true,
          "isolation \"channel\" is not Channel" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"isolation\":7}", true,
          "isolation: not a string" },
        { HEAD("ComputeDomainDaemonConfig") ",\"domainID\":\"" UID "\",\"isolation\":\"Channel\"}", true,
          "strict decoding error: unknown field \"isolation\"" },
        { HEAD("ComputeDomainDaemonConfig") ",\"domainID\":\"" UID "\"}", true, NULL, OPAQUE_DAEMON, UID,
          "" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"colour\":1}", true,
          "strict decoding error: unknown field \"colour\"" },
        { HEAD("ComputeDomainDaemonConfig") ",\"domainID\":\"" UID "\",\"allocationMode\":\"All\"}", true,
          "strict decoding error: unknown field \"allocationMode\"" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainid\":\"" UID "\"}", true,
          "unknown field \"domainid\"" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"domainID\":\"" UID "\"}", true,
          "duplicate field \"domainID\"" },
        { HEAD("ComputeDomainChannelConfig") "}", true, "domainID is empty" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"\"}", true, "domainID is empty" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"../../etc\"}", true,
          "domainID \"../../etc\" is not the UID" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":7}", true, "domainID: not a string" },
        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"" UID "\",\"allocationMode\":\"Some\"}", true,
          "neither Single nor All" },
        { HEAD("GpuConfig") ",\"domainID\":\"" UID "\"}", true, "kind \"GpuConfig\"" },
        { "{\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" UID "\"}", true, "apiVersion \"\"" },
        { "{\"apiVersion\":\"resource.nvidia.com/v2\",\"kind\":\"ComputeDomainChannelConfig\"}", true,
          "apiVersion \"resource.nvidia.com/v2\"" },
        { "[]", true, "not an object" },
        { "", true, "not JSON" },
        { "{", true, "not JSON" },

        { HEAD("ComputeDomainChannelConfig") ",\"domainID\":\"../x\",\"colour\":1}", false, NULL,
          OPAQUE_CHANNEL, "../x", "" },
        { HEAD("ComputeDomainDaemonConfig") ",\"domainID\":7}", false, NULL, OPAQUE_DAEMON, "", "" },
        { HEAD("ComputeDomainChannelConfig") ",\"isolation\":\"Channel\"}", false, NULL, OPAQUE_CHANNEL, "",
          "", true },
        { "{\"apiVersion\":\"resource.nvidia.com/"
          "v2\",\"kind\":\"ComputeDomainChannelConfig\",\"allocationMode\":\"New\"}",
          false, NULL, OPAQUE_CHANNEL, "", "New" },
        { HEAD("GpuConfig") "}", false, "is not one of the driver" },
        { "[]", false, "not a JSON object" },
        { "", false, "not JSON" },
};

static void configurations_are_decoded_strictly_and_leniently(void **state) {
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct arena *a = arena_new(256);
                struct opaque_config c;
                struct err e = { 0 };
                int r = opaque_decode(str_from(cases[i].json), cases[i].strict, a, &c, &e);
                if (cases[i].err) {
                        if (r == 0 || !strstr(e.msg, cases[i].err))
                                fail_msg("case %zu: %d '%s'", i, r, e.msg);
                        assert_int_equal(e.kind, ERR_INVALID);
                } else {
                        if (r != 0)
                                fail_msg("case %zu: '%s'", i, e.msg);
                        assert_int_equal(c.kind, cases[i].kind);
                        assert_string_equal(c.domain_id, cases[i].domain);
                        assert_string_equal(c.allocation_mode, cases[i].mode);
                        assert_int_equal(c.own_channel, cases[i].own_channel);
                }
                arena_free(a);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(
                configurations_are_decoded_strictly_and_leniently) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
