/* SPDX-License-Identifier: Apache-2.0 */
/* golden: what the driver says to the world, compared byte by byte with a text that is kept in
 * test/unit/golden. Who changes it on purpose runs the test with GOLDEN=write in the environment, and reads
 * the difference. */
#pragma once

/* Fails at the first line that differs. `name` is the file's. */
void golden_compare(const char *name, const char *text);
