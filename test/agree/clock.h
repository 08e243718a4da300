/* SPDX-License-Identifier: Apache-2.0 */
/* clock: the time of the simulated server. */
#pragma once

#include <stdint.h>

/* Sets the time, for objects that the real server created earlier. 0: the real time again. */
void clock_set(int64_t unix_s);
