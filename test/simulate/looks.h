/* SPDX-License-Identifier: Apache-2.0 */
/* looks: when the plugin of a node saw IMEX of a domain READY last, and what has ended that since. A plugin
 * cannot know what happens between its look and its answer, so a fault in between excuses the answer: but
 * only a fault that is recorded, however short the time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Grows with each look and each end; what is later has the higher number. */
uint64_t looks_now(void);
/* The plugin has seen READY, and may give the channel. */
void looks_ready(unsigned node, const char *domain_uid);
/* IMEX that was READY ends; `fault` is static, NULL: a program has ended it by itself. */
void looks_ended(unsigned node, const char *domain_uid, const char *fault);
/* The plugin has looked since `began`, and a fault has ended IMEX after the last look; or before it at the
 * same moment, because time stands still until the daemon has withdrawn READY. */
bool looks_excuse(unsigned node, const char *domain_uid, uint64_t began);
void looks_done(void);
