/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/checks.h"

#include "api/reasons.h"
#include "base/log.h"

void checks_failed(struct controller *c, enum checks_rule rule, const struct event_about *about,
                   const char *why) {
        log_error("a decision of the controller would be wrong and is not written: report this as a bug",
                  kv_str("rule", checks_rule_name(rule)), kv_str("kind", about->kind),
                  kv_str("namespace", str_or(about->ns, "")), kv_str("name", about->name),
                  kv_str("why", why));
        metric_inc(c->m.checks_failed, 1, LABELS(checks_rule_name(rule)));
        event_record(c->events, about, EVENT_WARNING, REASON_DECISION_WRONG,
                     "the controller does not write its next decision (%s), because it would be wrong: %s. "
                     "This is a bug of the driver; report it with this object",
                     checks_rule_name(rule), why);
}
