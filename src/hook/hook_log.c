/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/hook_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 1, 0))) static void print_line(const char *fmt, va_list ap, const char *cause) {
        fputs("cdi-hook: ", stderr);
        vfprintf(stderr, fmt, ap);
        fprintf(stderr, "%s%s\n", cause ? ": " : "", cause ? cause : "");
}

int hook_log(const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        print_line(fmt, ap, NULL);
        va_end(ap);
        return -1;
}

int hook_log_errno(const char *fmt, ...) {
        const char *cause = strerror(errno);
        va_list ap;
        va_start(ap, fmt);
        print_line(fmt, ap, cause);
        va_end(ap);
        return -1;
}
