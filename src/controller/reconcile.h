/* SPDX-License-Identifier: Apache-2.0 */
/* reconcile: one domain: gathers what the caches know of it, decides by plan_make(), sends what that says. */
#pragma once

#include "controller/records.h"

void reconcile_domain(struct controller *c, const char *uid);
