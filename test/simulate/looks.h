/* SPDX-License-Identifier: Apache-2.0 */
/* looks: when the plugin of a node last saw the IMEX of a domain READY, and what has ended that IMEX since. A
 * plugin cannot know what happens between its look and its answer. So a fault in between excuses the answer,
 * but only a recorded fault, however short the time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A number that grows with each look and each end. */
uint64_t looks_now(void);
/* The plugin has seen READY, and may prepare the claim. */
void looks_ready(unsigned node, const char *domain_uid);
/* IMEX that was READY ends. `fault` is static; NULL: no fault, a program has ended it. */
void looks_ended(unsigned node, const char *domain_uid, const char *fault);
/* The plugin has looked since `began`, and a fault has ended IMEX after the last look. The fault may also
 * come before the look in the same moment, because virtual time does not pass until the daemon has withdrawn
 * READY. */
bool looks_excuse(unsigned node, const char *domain_uid, uint64_t began);
void looks_done(void);
