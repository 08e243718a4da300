/* SPDX-License-Identifier: Apache-2.0 */
/* pci_facts: reads the position of a GPU in the machine from the kernel's sysfs. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { PCI_ADDRESS_SIZE = 13 }; /* "0000:16:00.0" */

/* Converts NVML's text of a PCI address to the kernel's form: lower case, with the domain in four digits.
 * Returns false if the text is not an address, or if its domain needs more digits. Pure. */
bool pci_address(const char *nvml, char ret[static PCI_ADDRESS_SIZE]);

struct pci_facts {
        char root[64]; /* the PCIe root complex, "pci0000:16"; "": unknown */
        int numa_node; /* -1: none, or unknown */
};
/* Reads the facts. `sys` is the path of sysfs, "/sys"; `address` has the form that pci_address() returns. A
 * fact that cannot be read is unknown. */
void pci_facts_read(const char *sys, const char *address, struct pci_facts *ret);
