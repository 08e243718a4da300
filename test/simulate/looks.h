/* SPDX-License-Identifier: Apache-2.0 */
/* looks: records when the plugin of a node last saw the IMEX of a domain READY, and what has ended that IMEX
 * since. A plugin cannot know what happens between its check (look) and its answer. So a fault in between
 * excuses the answer, but only a recorded fault, however short the time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns a number that grows with each look and each end. */
uint64_t looks_now(void);
/* Records that the plugin has seen READY, so that it may prepare the claim. */
void looks_ready(unsigned node, const char *domain_uid);
/* Records that an IMEX that was READY ends. `fault` is a static string; NULL: a program has ended it, without
 * a fault. */
void looks_ended(unsigned node, const char *domain_uid, const char *fault);
/* Returns true if the plugin has looked since `began`, and a fault has ended IMEX after the last look. The
 * fault may also come before the look in the same moment, because virtual time does not pass until the daemon
 * has withdrawn READY. */
bool looks_excuse(unsigned node, const char *domain_uid, uint64_t began);
void looks_done(void);
