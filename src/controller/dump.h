/* SPDX-License-Identifier: Apache-2.0 */
/* dump: logs the state of a controller. */
#pragma once

#include "controller/records.h"

/* Logs the caches, ComputeDomains, paused removals and writes of the controller. May be called before
 * controller_start(). */
void controller_dump(const struct controller *c);
