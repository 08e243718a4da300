/* SPDX-License-Identifier: Apache-2.0 */
/* proc_files: what the NVIDIA kernel driver says in /proc. Pure parsers of foreign bytes; fuzzed. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* The major of a character device in /proc/devices: the first line "<number> <name>" in the section after
 * "Character devices:" and before "Block devices:". ERR_NOT_FOUND when the name or the section is missing; a
 * missing final newline is fine. */
int proc_devices_major(struct str text, const char *name, unsigned *ret_major, struct err *e);
#define PROC_MAJOR_IMEX_CHANNELS "nvidia-caps-imex-channels"
#define PROC_MAJOR_CAPS "nvidia-caps"

/* A capability file: "Key: value" lines; DeviceFileMinor and DeviceFileMode (decimal, used as mode bits) are
 * required here: an unreadable number is an error and not zero. */
struct proc_capability {
        unsigned minor, mode;
};
int proc_capability_parse(struct str text, struct proc_capability *ret, struct err *e);

/* "ImexChannelCount: N" of /proc/driver/nvidia/params; ERR_NOT_FOUND when the line is missing. */
int proc_params_channel_count(struct str text, unsigned *ret, struct err *e);
