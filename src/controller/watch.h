/* SPDX-License-Identifier: Apache-2.0 */
/* watch: what is watched, and which keys a change concerns. */
#pragma once

#include "controller/records.h"

void watch_start(struct controller *c); /* once */
void watch_stop(struct controller *c);
/* Everything is to be looked at once. */
void watch_queue_all(struct controller *c);
