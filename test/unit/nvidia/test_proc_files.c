/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "nvidia/proc_files.h"

static struct err e;

static int major_of(const char *text) {
        unsigned m = 0;
        e = (struct err){ 0 };
        return proc_devices_major(str_from(text), PROC_MAJOR_CAPS, &m, &e) < 0 ? -1 : (int)m;
}

/* failure: /proc/devices has an unusual form -> it is read correctly */
static void devices(void **state) {
        (void)state;
        assert_int_equal(major_of("Character devices:\n  1 mem\n240 nvidia-caps-imex-channels\n241 "
                                  "nvidia-caps\n\nBlock devices:\n  8 sd\n"),
                         241);
        assert_int_equal(major_of("Character devices:\n241 nvidia-caps"), 241);
        assert_int_equal(major_of("Character devices:\n  9 nvidia-caps\r\n"), 9);
        assert_int_equal(major_of("Character devices:\n1 nvidia-caps\n2 nvidia-caps\n"), 1);
        assert_int_equal(major_of("Character devices:\n4095 nvidia-caps\n"), 4095);
}

/* failure: /proc/devices is garbage -> no major number is read from it */
static void malformed_device_lists_are_ignored(void **state) {
        (void)state;
        assert_int_equal(major_of("Character devices:\n  1 mem\nBlock devices:\n241 nvidia-caps\n"), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(major_of("241 nvidia-caps\n"), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(major_of(""), -1);
        assert_int_equal(major_of("Character devices:\n241 nvidia-caps2\n242 xnvidia-caps\n-3 nvidia-caps\nx "
                                  "nvidia-caps\n+4 "
                                  "nvidia-caps\n5  nvidia-caps\n"),
                         -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(major_of("Character devices:\n0 nvidia-caps\n"), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_int_equal(major_of("Character devices:\n4096 nvidia-caps\n"), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_int_equal(major_of("Character devices:\n99999999999999999999 nvidia-caps\n"), -1);
}

/* failure: a capability file is garbage -> it is refused */
static void capability(void **state) {
        (void)state;
        struct proc_capability c = { 0 };
        assert_int_equal(
                proc_capability_parse(STR("DeviceFileMinor: 512\nDeviceFileMode: 438\nDeviceFileModify: 1\n"),
                                      &c, &e),
                0);
        assert_int_equal(c.minor, 512);
        assert_int_equal(c.mode, 0666);
        assert_int_equal(proc_capability_parse(STR("x\nDeviceFileMode:256\nDeviceFileMinor:\t0"), &c, &e), 0);
        assert_int_equal(c.minor, 0);
        assert_int_equal(c.mode, 0400);
        assert_int_equal(proc_capability_parse(STR("DeviceFileMinor: 1048575\nDeviceFileMode: 511"), &c, &e),
                         0);
        assert_int_equal(c.minor, 1048575);
        assert_int_equal(c.mode, 0777);
        c.mode = 0400;
        static const char *const bad[] = { "",
                                           "DeviceFileMinor: 5\n",
                                           "DeviceFileMode: 256\n",
                                           "DeviceFileMinor: x\nDeviceFileMode: 256\n",
                                           "DeviceFileMinor: 5\nDeviceFileMode: \n",
                                           "DeviceFileMinor: -5\nDeviceFileMode: 256\n",
                                           "DeviceFileMinor: 5\nDeviceFileMode: 4096\n",
                                           "DeviceFileMinor: 1048576\nDeviceFileMode: 256\n" };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(proc_capability_parse(str_from(bad[i]), &c, &e), -1);
        assert_int_equal(c.mode, 0400); /* untouched by failures */
        assert_int_equal(proc_capability_parse(STR("DeviceFileMinor:"), &c, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        const struct str cut = { "DeviceFileMinor:", 15 };
        assert_int_equal(proc_capability_parse(cut, &c, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static void channel_count(void **state) {
        (void)state;
        unsigned n = 0;
        assert_int_equal(proc_params_channel_count(
                                 STR("ResmanDebugLevel: 4294967295\nImexChannelCount: 4096\n"), &n, &e),
                         0);
        assert_int_equal(n, 4096);
        assert_int_equal(proc_params_channel_count(STR("ResmanDebugLevel: 1\n"), &n, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(proc_params_channel_count(STR("ImexChannelCount: many\n"), &n, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
}

static void majors_of_the_driver(void **state) {
        struct proc_majors m;
        (void)state;
        assert_int_equal(proc_devices_majors(STR("Character devices:\n195 nvidia\n195 nvidia-modeset\n195 "
                                                 "nvidiactl\n236 nvidia-caps\n506 nvidia-uvm\n"),
                                             &m, &e),
                         0);
        assert_int_equal(m.gpu, 195);
        assert_int_equal(m.uvm, 506);
        assert_int_equal(m.caps, 236);
        /* Before 550.40, and without the module of unified memory. */
        e.kind = ERR_INVALID; /* of an earlier call */
        assert_int_equal(proc_devices_majors(STR("Character devices:\n195 nvidia-frontend\n"), &m, &e), 0);
        assert_int_equal(m.gpu, 195);
        assert_int_equal(m.uvm, 0);
        assert_int_equal(m.caps, 0);
        assert_int_equal(proc_devices_majors(STR("Character devices:\n0 nvidia-uvm\n"), &m, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
}

static void permissions_of_nodes(void **state) {
        unsigned mode = 1, gid = 2;
        (void)state;
        proc_params_node(STR("DeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n"), &mode, &gid);
        assert_int_equal(mode, 0660);
        assert_int_equal(gid, 44);
        proc_params_node(STR("DeviceFileGID: many\nDeviceFileMode: 99999\n"), &mode, &gid);
        assert_int_equal(mode, 0660);
        assert_int_equal(gid, 44);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(devices),
                cmocka_unit_test(malformed_device_lists_are_ignored),
                cmocka_unit_test(capability),
                cmocka_unit_test(majors_of_the_driver),
                cmocka_unit_test(permissions_of_nodes),
                cmocka_unit_test(channel_count),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
