/* SPDX-License-Identifier: Apache-2.0 */
/* proc_files: parses the NVIDIA kernel driver's files in /proc. Pure; fuzzed. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Finds the major of a character device in /proc/devices: the first line "<number> <name>" in the section
 * after "Character devices:" and before "Block devices:". ERR_NOT_FOUND: the name or the section is missing.
 * The last line needs no newline. */
int proc_devices_major(struct str text, const char *name, unsigned *ret_major, struct err *e);
#define PROC_MAJOR_IMEX_CHANNELS "nvidia-caps-imex-channels"
#define PROC_MAJOR_CAPS "nvidia-caps"

/* The majors of the driver's devices, as /proc/devices lists them; 0: not listed. nvidia<N>, nvidiactl and
 * nvidia-modeset share one major, which drivers before 550.40 list as "nvidia-frontend" and later ones as
 * "nvidia" (NVIDIA container toolkit 1.20.0, internal/info/proc/devices). nvidia-uvm is listed while that
 * module is loaded. */
struct proc_majors {
        unsigned gpu, uvm, caps;
};
/* Parses /proc/devices. ERR_INVALID: a number in it cannot be a major. */
int proc_devices_majors(struct str text, struct proc_majors *ret, struct err *e);

/* The minors of the driver's shared devices. */
enum { PROC_MINOR_CTL = 255, PROC_MINOR_MODESET = 254, PROC_MINOR_UVM = 0, PROC_MINOR_UVM_TOOLS = 1 };

/* A capability file consists of "Key: value" lines. DeviceFileMinor and DeviceFileMode (decimal, used as mode
 * bits) are required. An unreadable number is an error, not zero. */
struct proc_capability {
        unsigned minor, mode;
};
int proc_capability_parse(struct str text, struct proc_capability *ret, struct err *e);

/* Parses "ImexChannelCount: N" of /proc/driver/nvidia/params. ERR_NOT_FOUND: the line is missing. */
int proc_params_channel_count(struct str text, unsigned *ret, struct err *e);

/* Parses the permissions and the group of the device nodes that the driver creates: "DeviceFileMode"
 * (decimal) and "DeviceFileGID" of /proc/driver/nvidia/params. *mode or *gid keeps its value if the text
 * lacks the line. */
void proc_params_node(struct str text, unsigned *mode, unsigned *gid);
