/* SPDX-License-Identifier: Apache-2.0 */
/* checks: reports decisions that fail the check of their rule. Such a decision is a bug of the driver. The
 * caller does not write it, and continues with all other objects. */
#pragma once

#include "controller/records.h"

enum checks_rule {
        CHECKS_ASSIGNMENT,
        CHECKS_CHANNELS,
        CHECKS_LABEL,
        CHECKS_RACK,
        CHECKS_STATUS,
        CHECKS_RULES
};

/* Returns the name of the rule in the metric. */
static inline const char *checks_rule_name(enum checks_rule rule) {
        static const char *const names[CHECKS_RULES] = {
                [CHECKS_ASSIGNMENT] = "assignment", [CHECKS_CHANNELS] = "channels", [CHECKS_LABEL] = "label",
                [CHECKS_RACK] = "rack",             [CHECKS_STATUS] = "status",
        };
        return names[rule];
}

/* Logs the failure, counts it, and records the Event DecisionWrong on the object. `why` describes the
 * violation. */
void checks_failed(struct controller *c, enum checks_rule rule, const struct event_about *about,
                   const char *why);
