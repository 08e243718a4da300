/* SPDX-License-Identifier: Apache-2.0 */
/* pci_facts: the position of a GPU in the machine, from the kernel's sysfs. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { PCI_ADDRESS_SIZE = 13 }; /* "0000:16:00.0" */

/* Pure. Converts NVML's text of a PCI address to the kernel's form: lower case, the domain in four digits.
 * False: the text is not an address, or its domain needs more digits. */
bool pci_address(const char *nvml, char ret[static PCI_ADDRESS_SIZE]);

struct pci_facts {
        char root[64]; /* the PCIe root complex, "pci0000:16"; "": unknown */
        int numa_node; /* -1: none, or unknown */
};
/* `sys` is the path of sysfs, "/sys"; `address` as pci_address() returns it. A fact that cannot be read is
 * unknown. */
void pci_facts_read(const char *sys, const char *address, struct pci_facts *ret);
