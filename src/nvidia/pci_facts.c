/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/pci_facts.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { ATTRIBUTE_MAX = 4096 /* a page: sysfs has no more */ };

bool pci_address(const char *nvml, char ret[static PCI_ADDRESS_SIZE]) {
        static const char form[] = "hhhh:hh:hh.h";
        size_t n = nvml ? strlen(nvml) : 0;
        if (n == sizeof form - 1 + 4 && str_starts(nvml, "0000")) {
                nvml += 4;
                n -= 4;
        }
        if (n != sizeof form - 1)
                return false;
        for (size_t i = 0; i < n; i++) {
                int c = tolower((unsigned char)nvml[i]);
                if (form[i] == 'h' ? !isxdigit(c) : c != form[i])
                        return false;
                ret[i] = (char)c;
        }
        ret[n] = '\0';
        return true;
}

static bool read_attribute(const char *device, const char *name, char *ret, size_t n) {
        _cleanup_(freep) char *path = file_join(device, name), *text = NULL;
        size_t size;
        struct err e;
        if (file_read(path, ATTRIBUTE_MAX, &text, &size, &e) < 0)
                return false;
        struct str s = str_trim((struct str){ text, size });
        if (s.n >= n)
                return false;
        memcpy(ret, s.p, s.n);
        ret[s.n] = '\0';
        return true;
}

/* The link of a device leads to its position in the tree: ../../../devices/pci0000:15/0000:15:01.0/... */
static void read_root(const char *device, char *ret, size_t n) {
        static const char devices[] = "/devices/";
        char to[PATH_MAX];
        ssize_t len = readlink(device, to, sizeof to - 1);
        if (len < 0)
                return;
        to[len] = '\0';
        const char *at = strstr(to, devices);
        if (!at)
                return;
        at += sizeof devices - 1;
        size_t len_root = strcspn(at, "/");
        if (str_starts(at, "pci") && len_root < n)
                snprintf(ret, n, "%.*s", (int)len_root, at);
}

static int read_numa_node(const char *device) {
        char text[32];
        int64_t node;
        /* A function that is not an NVIDIA GPU (class 0x0300 or 0x0302) is another device. */
        if (!read_attribute(device, "vendor", text, sizeof text) || !streq(text, "0x10de") ||
            !read_attribute(device, "class", text, sizeof text) ||
            !(str_starts(text, "0x0300") || str_starts(text, "0x0302")) ||
            !read_attribute(device, "numa_node", text, sizeof text) || !str_to_i64(str_from(text), &node) ||
            node < 0 || node > INT_MAX)
                return -1;
        return (int)node;
}

void pci_facts_read(const char *sys, const char *address, struct pci_facts *ret) {
        _cleanup_(freep) char *device = xasprintf("%s/bus/pci/devices/%s", sys, address);
        *ret = (struct pci_facts){ 0 };
        read_root(device, ret->root, sizeof ret->root);
        ret->numa_node = read_numa_node(device);
}
