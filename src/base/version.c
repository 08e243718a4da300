/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

#include <stdio.h>

#include "base/str.h"

const char version[] = PROGRAM_VERSION;

bool version_asked(int argc, char **argv, const char *program) {
        if (argc != 2 || !streq(argv[1], "--version"))
                return false;
        printf("%s %s\n", program, version);
        return true;
}
