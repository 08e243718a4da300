/* SPDX-License-Identifier: Apache-2.0 */
/* devices: from what NVML and sysfs say of this node's GPUs to its devices, under the names and with the
 * attributes and capacities that the Go driver gives them (spec 1.2 to 1.4, 1.8), because users' selectors
 * and allocations name them. */
#pragma once

#include "gpu_plugin/device.h"
#include "nvidia/inventory.h"

/* Reads sysfs below `sys`, and else nothing. All memory in ret->arena, which is the caller's to free. */
void gpu_devices_describe(const struct inventory *in, const char *sys, struct gpu_devices *ret);
void gpu_devices_done(struct gpu_devices *d);

/* Is the same said of the same devices? */
bool gpu_devices_equal(const struct gpu_devices *a, const struct gpu_devices *b);

/* Pure, for the above and for tests. */

/* A version as the API takes it (semantic versioning): the first three numbers of a text, those that are
 * missing 0, without leading zeros: "580.95.05" is "580.95.5". false: there is no number at its begin. */
bool gpu_version(const char *text, char *ret, size_t n);
/* A quantity as the API server writes it, of a binary amount: 150754820096 is "143771Mi", 14 is "14". */
void gpu_quantity(int64_t v, char *ret, size_t n);
/* A profile as it is in names: lower case, without dots, what is no letter, digit or '-' as '-'. */
void gpu_profile_in_name(const char *profile, char *ret, size_t n);
