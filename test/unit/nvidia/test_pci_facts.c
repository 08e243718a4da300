/* SPDX-License-Identifier: Apache-2.0 */
/* Positions on the PCI bus, from a folder in the form of sysfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "nvidia/pci_facts.h"
#include "tree.h"

#define ADDRESS "0000:16:00.0"

static char *sys;

static int setup(void **state) {
        sys = tree_new();
        tree_put(sys, "bus/pci/devices/.keep", "");
        return 0;
}

static int teardown(void **state) {
        tree_remove(sys);
        return 0;
}

static const char *address(const char *nvml) {
        static char ret[PCI_ADDRESS_SIZE];
        memset(ret, '?', sizeof ret);
        return pci_address(nvml, ret) ? ret : "none";
}

static void addresses_are_those_of_the_kernel(void **state) {
        assert_string_equal(address("00000000:16:00.0"), "0000:16:00.0");
        assert_string_equal(address("00000009:3A:0B.7"), "0009:3a:0b.7");
        assert_string_equal(address("0000:AF:00.0"), "0000:af:00.0");
        static const char *const none[] = { "",
                                            "00010000:16:00.0",
                                            "0000:16:00.0/..",
                                            "0000:16:00",
                                            "../../etc/pas",
                                            "0000:1g:00.0",
                                            "0000:16:00.g",
                                            "0000-16:00.0" };
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                assert_string_equal(address(none[i]), "none");
        assert_string_equal(address(NULL), "none");
}

/* Creates the GPU's attributes. NULL: there is no such file. */
static void put_attributes(const char *vendor, const char *class, const char *numa) {
        const char *const files[][2] = { { "vendor", vendor }, { "class", class }, { "numa_node", numa } };
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                char path[64];
                snprintf(path, sizeof path, "bus/pci/devices/" ADDRESS "/%s", files[i][0]);
                if (files[i][1])
                        tree_put(sys, path, files[i][1]);
        }
}

static int numa_node(const char *vendor, const char *class, const char *numa) {
        struct pci_facts facts;
        put_attributes(vendor, class, numa);
        pci_facts_read(sys, ADDRESS, &facts);
        assert_string_equal(facts.root, ""); /* a folder, which is not a link into the tree of devices */
        tree_remove(sys);
        setup(NULL);
        return facts.numa_node;
}

#define NVIDIA "0x10de\n", "0x030200\n"
#define ZEROS_30 "000000000000000000000000000000"

/* failure: sysfs has no valid NUMA node of a GPU -> the node is unknown */
static void the_numa_node_is_a_number_or_unknown(void **state) {
        assert_int_equal(numa_node(NVIDIA, "0\n"), 0);
        assert_int_equal(numa_node(NVIDIA, "1"), 1);
        assert_int_equal(numa_node("0x10de\n", "0x030000\n", "2147483647\n"), INT32_MAX);
        assert_int_equal(numa_node(NVIDIA, ZEROS_30 "7\n"), 7); /* the longest text that is read */
        static const char *const unknown[] = { "-1\n",        "-2\n", "2147483648\n", "4294967297\n",
                                               ZEROS_30 "07", "\n",   "none\n",       NULL };
        for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
                assert_int_equal(numa_node(NVIDIA, unknown[i]), -1);
}

static void another_device_at_the_address_has_no_facts(void **state) {
        assert_int_equal(numa_node("0x8086\n", "0x030200\n", "0\n"), -1);
        assert_int_equal(numa_node("0x10de\n", "0x060400\n", "0\n"), -1);
        assert_int_equal(numa_node(NULL, "0x030200\n", "0\n"), -1);
        assert_int_equal(numa_node("0x10de\n", NULL, "0\n"), -1);
}

/* The root complex of a GPU whose link has this target. */
static const char *root_of(const char *target) {
        static struct pci_facts facts;
        _cleanup_(freep) char *link = xasprintf("%s/bus/pci/devices/" ADDRESS, sys);
        assert_int_equal(symlink(target, link), 0);
        pci_facts_read(sys, ADDRESS, &facts);
        assert_int_equal(facts.numa_node, -1);
        assert_int_equal(unlink(link), 0);
        return facts.root;
}

static void the_root_complex_is_the_first_folder_of_the_link(void **state) {
        struct pci_facts facts;
        char longest[] = "pci0000:0123456789012345678901234567890123456789012345678901234", target[128];
        assert_int_equal(strlen(longest), sizeof facts.root - 1);
        snprintf(target, sizeof target, "/devices/%s/a", longest);
        assert_string_equal(root_of("../../../devices/pci0000:15/0000:15:01.0/" ADDRESS), "pci0000:15");
        assert_string_equal(root_of("/devices/pci0000:15"), "pci0000:15");
        assert_string_equal(root_of(target), longest);
        snprintf(target, sizeof target, "/devices/%s5/a", longest);
        assert_string_equal(root_of(target), "");
        assert_string_equal(root_of("../../../devices/platform/" ADDRESS), "");
        assert_string_equal(root_of("../elsewhere/pci0000:15"), "");
        pci_facts_read(sys, ADDRESS, &facts); /* no such device */
        assert_string_equal(facts.root, "");
        assert_int_equal(facts.numa_node, -1);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(addresses_are_those_of_the_kernel),
                T(the_numa_node_is_a_number_or_unknown),
                T(another_device_at_the_address_has_no_facts),
                T(the_root_complex_is_the_first_folder_of_the_link),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
