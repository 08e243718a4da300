/* SPDX-License-Identifier: Apache-2.0 */
/* dump: what a controller knows and does, in its log. */
#pragma once

#include "controller/records.h"

/* Its caches, domains, what is held back, writes. Also before it starts. */
void controller_dump(const struct controller *c);
