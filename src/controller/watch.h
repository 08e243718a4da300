/* SPDX-License-Identifier: Apache-2.0 */
/* watch: the watches of the controller, and which keys a change concerns. */
#pragma once

#include "controller/records.h"

void watch_start(struct controller *c); /* once */
void watch_stop(struct controller *c);
/* Queues all keys once. */
void watch_queue_all(struct controller *c);
