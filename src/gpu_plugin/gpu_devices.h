/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_devices: converts the facts that NVML and sysfs report about this node's GPUs to devices. The names,
 * attributes and capacities are those of the Go driver, because users' selectors and allocations contain
 * them. */
#pragma once

#include "gpu_plugin/device.h"
#include "nvidia/inventory.h"

/* Describes the devices of an inventory. Reads only sysfs, below `sys`. All memory is allocated in
 * ret->arena; the caller frees it with gpu_devices_done(). */
void gpu_devices_describe(const struct inventory *in, const char *sys, struct gpu_devices *ret);
void gpu_devices_done(struct gpu_devices *d);

/* Returns true if both contain the same devices with the same descriptions. */
bool gpu_devices_equal(const struct gpu_devices *a, const struct gpu_devices *b);

/* The following functions are pure. They are exported for tests. */

/* Writes a version as the API accepts it (semantic versioning): the first three numbers of the text, without
 * leading zeros, and 0 for a missing number. "580.95.05" becomes "580.95.5". Returns false if the text does
 * not begin with a number. */
bool gpu_version(const char *text, char *ret, size_t n);
/* Writes a quantity as the API server does, with binary units: 150754820096 becomes "143771Mi", 14 becomes
 * "14". */
void gpu_quantity(int64_t v, char *ret, size_t n);
/* Writes a profile as device names contain it: in lower case and without dots. Characters other than letters,
 * digits and '-' become '-'. */
void gpu_profile_in_name(const char *profile, char *ret, size_t n);
