/* SPDX-License-Identifier: Apache-2.0 */
/* reconcile: one domain: gathers what the caches know of it, decides by plan_make(), sends what that says. */
#pragma once

#include "controller/records.h"

void reconcile_domain(struct controller *c, const char *uid);
/* The source of c->seats. */
void reconcile_name_nodes(void *u, const char *uid, seats_add_fn *add, void *seats);
bool reconcile_look_at_node(void *u, const char *uid, struct seat_facts *seat, struct arena *a);
