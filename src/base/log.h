/* SPDX-License-Identifier: Apache-2.0 */
/* log: writes one line per event to stderr, as klog text (the default) or JSON.
 *
 *     log_info("prepared claim", kv_str("claim", uid), kv_int("devices", n));
 *
 * The code that handles an error logs it, once; libraries do not log (except at debug verbosity). The module
 * quotes values and cuts long ones; callers never pass secrets. May be called from any thread. If nothing
 * reads stderr, lines are dropped, and a later line reports how many. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct kv {
        const char *key;
        enum { KV_END, KV_STR, KV_INT, KV_BOOL } type;
        union {
                const char *s;
                int64_t i;
        } v;
};

#define kv_str(k, val) ((struct kv){ .key = (k), .type = KV_STR, .v.s = (val) })
#define kv_int(k, val) ((struct kv){ .key = (k), .type = KV_INT, .v.i = (int64_t)(val) })
#define kv_bool(k, val) ((struct kv){ .key = (k), .type = KV_BOOL, .v.i = (val) })
#define kv_err(e) ((struct kv){ .key = "err", .type = KV_STR, .v.s = (e)->msg })

enum { LOG_LINE_MAX = 16384 }; /* bytes; longer lines are cut */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO };
enum log_format { LOG_TEXT, LOG_JSON };

/* Sets the format and the verbosity (klog's -v): log_v(n, ...) prints if n <= verbosity. Call it before any
 * thread starts. */
void log_setup(enum log_format format, int verbosity);
int log_verbosity(void);

void log_write(enum log_level level, const char *file, int line, const char *msg, const struct kv *kvs);

#define log_at_(level, msg, ...)                                                                             \
        log_write((level), __FILE__, __LINE__, (msg),                                                        \
                  (const struct kv[]){ __VA_ARGS__ __VA_OPT__(, ){ .key = 0 } })
#define log_error(msg, ...) log_at_(LOG_ERROR, msg, __VA_ARGS__)
#define log_warn(msg, ...) log_at_(LOG_WARN, msg, __VA_ARGS__)
#define log_info(msg, ...) log_at_(LOG_INFO, msg, __VA_ARGS__)
#define log_v(n, msg, ...)                                                                                   \
        do {                                                                                                 \
                if (log_verbosity() >= (n))                                                                  \
                        log_at_(LOG_INFO, msg, __VA_ARGS__);                                                 \
        } while (0)
