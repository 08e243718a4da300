/* SPDX-License-Identifier: Apache-2.0 */
/* driver_set: the files of an NVIDIA driver that a container with a GPU needs: libraries, programs,
 * configuration, firmware and, where that is asked for, the socket of nvidia-persistenced, found below the
 * driver's root wherever distributions and driver containers have them (spec 3.11). What is missing is left
 * out.
 *
 * A search takes thousands of system calls. Its result comes with what it depends on, so that whether it
 * still holds costs some hundred. The socket of the Fabric Manager is never part of it: it accepts commands
 * that change the NVLink partitions of other containers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "nvidia/driver_root.h"

enum driver_group {
        DRIVER_LIBRARY,  /* named after the driver's version, beside libcuda or libnvidia-ml or in vdpau/
                            there,  and libnvidia-nvvm70.so.<its own> there */
        DRIVER_GRAPHICS, /* a library with a version of its own */
        DRIVER_XORG,
        DRIVER_CONFIG,
        DRIVER_FIRMWARE,
        DRIVER_PROGRAM,
        DRIVER_SOCKET,
};

struct driver_item {
        enum driver_group group;
        const char *real;   /* its path below the root, without links */
        const char *host;   /* for CDI mounts: the same on the host */
        const char *inside; /* where a container expects it */
        /* Of DRIVER_LIBRARY: the name that programs ask for ("libcuda.so.1", NULL: none), and whether links
         * of that name and of the bare one ("libcuda.so") are beside it on the host. */
        const char *soname;
        bool has_soname_link, has_bare_link;
};

/* A folder that was searched, as it was just before. */
struct driver_folder {
        const char *path; /* below the root, maybe through links */
        bool there;
        uint64_t dev, ino;
        struct timespec changed; /* when the last name was added, removed or renamed */
};

struct driver_set {
        const char *library_dir; /* as containers see it: where libcuda is, or libnvidia-ml */
        struct driver_item *items;
        size_t n;
        struct driver_folder *folders;
        size_t n_folders;
        struct timespec begun; /* when the search began, by the clock of `changed` */
};

struct driver_set_options {
        struct driver_root root;
        const char *version;        /* of the driver, "580.95.05"; digits and dots */
        const char *machine;        /* as uname -m says it: x86_64, aarch64 */
        const char *kernel_release; /* as uname -r says it */
        const char
                *firmware_path; /* the kernel's own search path (firmware_class.path), "" when it has none */
        bool sockets;           /* look for the socket of nvidia-persistenced, too */
};

/* All memory in the arena. ERR_NOT_FOUND: there is no library of that version, and where it was searched;
 * other errors: a folder could not be looked at. */
int driver_set_find(const struct driver_set_options *o, struct arena *a, struct driver_set *ret,
                    struct err *e);

/* Would a search with the same options find the same files? False also where that cannot be known: a folder
 * cannot be looked at, or was changed so shortly before the search that its time does not tell. */
bool driver_set_holds(const struct driver_root *root, const struct driver_set *set);
