/* SPDX-License-Identifier: Apache-2.0 */
/* command_table: declares the commands. Each is defined in the file of its name. */
#pragma once

#include "cli/command.h"

extern const struct command command_status, command_why, command_watch, command_racks, command_explain,
        command_test, command_doctor, command_new, command_bundle, command_version, command_completion;
