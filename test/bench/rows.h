/* SPDX-License-Identifier: Apache-2.0 */
/* rows: prints a table of measurements, with a line for each row. */
#pragma once

#include <stddef.h>

void rows_begin(void);
void row(const char *what, const char *bar, const char *note, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* Sorts `v`. p: from 0 to 1. */
double percentile(double *v, size_t n, double p);
