/* SPDX-License-Identifier: Apache-2.0 */
/* new_command: the options of `new`, which tests set. */
#pragma once

struct new_options {
        const char *nodes, *gpus, *image, *name; /* NULL: not given */
};
extern struct new_options new_options;
