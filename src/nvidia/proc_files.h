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

/* The majors of the driver's devices, as /proc/devices lists them; 0: not listed. nvidia<N>, nvidiactl and
 * nvidia-modeset share one, which drivers before 550.40 list as "nvidia-frontend" and later ones as "nvidia"
 * (NVIDIA container toolkit 1.20.0, internal/info/proc/devices). nvidia-uvm is listed while that module is
 * loaded. */
struct proc_majors {
        unsigned gpu, uvm, caps;
};
/* ERR_INVALID: a number that cannot be a major. */
int proc_devices_majors(struct str text, struct proc_majors *ret, struct err *e);

/* Minors that the driver gives its shared devices. */
enum { PROC_MINOR_CTL = 255, PROC_MINOR_MODESET = 254, PROC_MINOR_UVM = 0, PROC_MINOR_UVM_TOOLS = 1 };

/* A capability file: "Key: value" lines; DeviceFileMinor and DeviceFileMode (decimal, used as mode bits) are
 * required here: an unreadable number is an error and not zero. */
struct proc_capability {
        unsigned minor, mode;
};
int proc_capability_parse(struct str text, struct proc_capability *ret, struct err *e);

/* "ImexChannelCount: N" of /proc/driver/nvidia/params; ERR_NOT_FOUND when the line is missing. */
int proc_params_channel_count(struct str text, unsigned *ret, struct err *e);

/* With which permissions and group the driver has its nodes made: "DeviceFileMode" (decimal) and
 * "DeviceFileGID" of the same file. What the text does not say stays as it is in *mode and *gid. */
void proc_params_node(struct str text, unsigned *mode, unsigned *gid);
