/* SPDX-License-Identifier: Apache-2.0 */
/* watch: runs the watches of the controller, and queues the keys that a change concerns. */
#pragma once

#include "controller/records.h"

void watch_start(struct controller *c); /* may be called only once */
void watch_stop(struct controller *c);
/* Queues every key once. */
void watch_queue_all(struct controller *c);
