/* SPDX-License-Identifier: Apache-2.0 */
/* reconcile: handles one ComputeDomain. Collects the facts from the caches, decides with plan_make(), and
 * sends the writes. */
#pragma once

#include "controller/records.h"

void reconcile_domain(struct controller *c, const char *uid);
