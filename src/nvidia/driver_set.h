/* SPDX-License-Identifier: Apache-2.0 */
/* driver_set: the files of an NVIDIA driver that a container with a GPU needs: libraries, programs,
 * configuration, firmware and, on request, the socket of nvidia-persistenced. The search covers the places
 * below the driver's root where distributions and driver containers install them. Missing files are left out.
 *
 * A search takes thousands of system calls. The result includes the folders that it depends on, so that
 * driver_set_holds() needs only about a hundred. The socket of the Fabric Manager is never included: it
 * accepts commands that change the NVLink partitions of other containers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "nvidia/driver_root.h"

enum driver_group {
        DRIVER_LIBRARY,  /* a library with the driver's version in its name, in the folder of libcuda or
                            libnvidia-ml or in its folder vdpau/; also libnvidia-nvvm70.so, which has its own
                            version */
        DRIVER_GRAPHICS, /* a library with its own version */
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
        /* For DRIVER_LIBRARY: the name that programs load ("libcuda.so.1", NULL: none), and whether the host
         * has links with that name and with the bare name ("libcuda.so") in the same folder. */
        const char *soname;
        bool has_soname_link, has_bare_link;
};

/* A searched folder, in its state just before the search. */
struct driver_folder {
        const char *path; /* below the root, maybe through links */
        bool there;
        uint64_t dev, ino;
        struct timespec changed; /* when the last name was added, removed or renamed */
};

struct driver_set {
        const char *library_dir; /* the folder of libcuda, or of libnvidia-ml, as containers see it */
        struct driver_item *items;
        size_t n;
        struct driver_folder *folders;
        size_t n_folders;
        struct timespec begun; /* when the search began, by the clock of `changed` */
};

struct driver_set_options {
        struct driver_root root;
        const char *version;        /* of the driver, "580.95.05"; digits and dots */
        const char *machine;        /* as uname -m prints it: x86_64, aarch64 */
        const char *kernel_release; /* as uname -r prints it */
        /* The kernel's own search path (firmware_class.path); "": it has none. */
        const char *firmware_path;
        bool sockets; /* include the socket of nvidia-persistenced */
};

/* All memory in the arena. ERR_NOT_FOUND: no library has that version; the message names the folders
 * searched. Other errors: a folder could not be read. */
int driver_set_find(const struct driver_set_options *o, struct arena *a, struct driver_set *ret,
                    struct err *e);

/* True if a search with the same options would find the same files. False also if that is unknown: a folder
 * cannot be read, or it changed so shortly before the search that its time of change proves nothing. */
bool driver_set_holds(const struct driver_root *root, const struct driver_set *set);
