/* SPDX-License-Identifier: Apache-2.0 */
/* golden: output of the driver that others read, compared byte by byte with a text in test/unit/golden. If
 * you change it on purpose, run the test with GOLDEN=write in the environment, and read the difference. */
#pragma once

/* Fails at the first line that differs. `name` is the file's name. */
void golden_compare(const char *name, const char *text);
