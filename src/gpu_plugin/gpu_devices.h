/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_devices: makes devices from what NVML and sysfs report about this node's GPUs. They have the names,
 * attributes and capacities of the Go driver, because users' selectors and allocations contain them. */
#pragma once

#include "gpu_plugin/device.h"
#include "nvidia/inventory.h"

/* Reads sysfs below `sys`, and nothing else. All memory in ret->arena; the caller frees it with
 * gpu_devices_done(). */
void gpu_devices_describe(const struct inventory *in, const char *sys, struct gpu_devices *ret);
void gpu_devices_done(struct gpu_devices *d);

/* True if both have the same devices with the same descriptions. */
bool gpu_devices_equal(const struct gpu_devices *a, const struct gpu_devices *b);

/* Pure, for the above and for tests. */

/* Writes a version as the API accepts it (semantic versioning): the first three numbers of the text, without
 * leading zeros, and 0 for a missing number: "580.95.05" is "580.95.5". False: the text does not begin with a
 * number. */
bool gpu_version(const char *text, char *ret, size_t n);
/* Writes a quantity as the API server does, with binary units: 150754820096 is "143771Mi", 14 is "14". */
void gpu_quantity(int64_t v, char *ret, size_t n);
/* Writes a profile as in names: lower case, without dots. Other characters than letters, digits and '-'
 * become
 * '-'. */
void gpu_profile_in_name(const char *profile, char *ret, size_t n);
