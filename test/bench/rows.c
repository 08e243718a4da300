/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void rows_begin(void) {
        printf("| what | measured | bar | note |\n|---|---|---|---|\n");
        fflush(stdout);
}

void row(const char *what, const char *bar, const char *note, const char *fmt, ...) {
        va_list ap;
        printf("| %s | ", what);
        va_start(ap, fmt);
        vprintf(fmt, ap);
        va_end(ap);
        printf(" | %s | %s |\n", bar, note);
        fflush(stdout);
}

static int by_size(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;
        return x < y ? -1 : x > y;
}

double percentile(double *v, size_t n, double p) {
        qsort(v, n, sizeof *v, by_size);
        size_t at = (size_t)(p * (double)(n - 1) + 0.5);
        return v[at];
}
