/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/message.h"

#include <stdarg.h>

#include "base/str.h"

const char *message_of(struct arena *a, const char *fmt, ...) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        return arena_strdup(a, buf_str(&b));
}
