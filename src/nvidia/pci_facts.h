/* SPDX-License-Identifier: Apache-2.0 */
/* pci_facts: where a GPU sits, from the kernel's sysfs. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { PCI_ADDRESS_SIZE = 13 }; /* "0000:16:00.0" */

/* Pure. NVML's text of a PCI address as the kernel writes it: lower case, the domain in four digits. false:
 * it is none, or one of a domain that has more. */
bool pci_address(const char *nvml, char ret[static PCI_ADDRESS_SIZE]);

struct pci_facts {
        char root[64]; /* the PCIe root complex, "pci0000:16"; "" when it is not known */
        int numa_node; /* -1: none, or not known */
};
/* `sys` is where sysfs is seen, "/sys"; address as pci_address() gives it. What cannot be read is not
 * known. */
void pci_facts_read(const char *sys, const char *address, struct pci_facts *ret);
