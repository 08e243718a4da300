/* SPDX-License-Identifier: Apache-2.0 */
#include "driver_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "tree.h"

static char *make_way(const char *root, const char *path) {
        struct err e;
        char *p = file_join(root, path);
        _cleanup_(freep) char *dir = xstrndup(p, (size_t)(strrchr(p, '/') - p));
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        return p;
}

void driver_tree_library(const char *root, const char *path, const char *soname) {
        struct err e;
        struct {
                Elf64_Ehdr head;
                Elf64_Phdr segments[2];
                Elf64_Dyn entries[3];
                char strings[128];
        } elf = { .head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                         EV_CURRENT },
                            .e_type = ET_DYN,
                            .e_phoff = sizeof elf.head,
                            .e_phentsize = sizeof *elf.segments,
                            .e_phnum = 2 } };
        const uint64_t base = 0x1000; /* so that an address differs from an offset */
        elf.segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = base, .p_filesz = sizeof elf };
        elf.segments[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
                                        .p_offset = (size_t)((char *)elf.entries - (char *)&elf),
                                        .p_filesz = sizeof elf.entries };
        elf.entries[0].d_tag = DT_STRTAB;
        elf.entries[0].d_un.d_ptr = base + (size_t)(elf.strings - (char *)&elf);
        if (soname) {
                assert_true(strlen(soname) + 2 < sizeof elf.strings);
                memcpy(elf.strings + 1, soname, strlen(soname) + 1);
                elf.entries[1].d_tag = DT_SONAME;
                elf.entries[1].d_un.d_val = 1;
        }
        _cleanup_(freep) char *p = make_way(root, path);
        assert_int_equal(file_replace_volatile(p, &elf, sizeof elf, 0755, &e), 0);
}

void driver_tree_link(const char *root, const char *path, const char *to) {
        _cleanup_(freep) char *p = make_way(root, path);
        assert_int_equal(symlink(to, p), 0);
}

bool driver_tree_node(const char *root, const char *path, unsigned major, unsigned minor, unsigned mode,
                      unsigned gid) {
        _cleanup_(freep) char *p = make_way(root, path);
        if (mknod(p, S_IFCHR, makedev(major, minor)) < 0) {
                assert_true(errno == EPERM);
                return false;
        }
        return chown(p, 0, gid) == 0 && chmod(p, mode) == 0;
}

#define L "usr/lib64/"
#define V ".so." DRIVER_TREE_VERSION

bool driver_tree_of_golden(const char *root) {
        static const struct {
                const char *file, *soname;
                bool linked, bare;
        } libraries[] = {
                { L "libGLX_nvidia" V, "libGLX_nvidia.so.0", true, false },
                { L "libcuda" V, "libcuda.so.1", true, true },
                { L "libcudadebugger" V, "libcudadebugger.so.1", true, false },
                { L "libnvcuvid" V, "libnvcuvid.so.1", true, false },
                { L "libnvidia-allocator" V, "libnvidia-allocator.so.1", true, false },
                { L "libnvidia-egl-gbm.so.1.1.2", "libnvidia-egl-gbm.so.1", true, false },
                { L "libnvidia-encode" V, "libnvidia-encode.so.1", true, true },
                { L "libnvidia-glcore" V, "libnvidia-glcore" V, false, false },
                { L "libnvidia-ml" V, "libnvidia-ml.so.1", true, true },
                { L "libnvidia-opticalflow" V, "libnvidia-opticalflow.so.1", true, false },
                { L "libnvidia-ptxjitcompiler" V, "libnvidia-ptxjitcompiler.so.1", true, false },
                { L "libnvidia-vulkan-producer" V, NULL, false, false },
                { L "vdpau/libvdpau_nvidia" V, "libvdpau_nvidia.so.1", true, false },
        };
        static const char *const files[] = { "etc/vulkan/icd.d/nvidia_icd.json",
                                             "lib/firmware/nvidia/" DRIVER_TREE_VERSION "/gsp_ga10x.bin",
                                             "lib/firmware/nvidia/" DRIVER_TREE_VERSION "/gsp_tu10x.bin",
                                             "usr/bin/nvidia-cuda-mps-control",
                                             "usr/bin/nvidia-cuda-mps-server",
                                             "usr/bin/nvidia-debugdump",
                                             "usr/bin/nvidia-persistenced",
                                             "usr/bin/nvidia-smi",
                                             "usr/share/glvnd/egl_vendor.d/10_nvidia.json",
                                             "usr/share/nvidia/nvoptix.bin",
                                             "run/nvidia-persistenced/socket" };
        for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
                const char *file = libraries[i].file, *name = strrchr(file, '/') + 1,
                           *so = strstr(name, ".so.");
                _cleanup_(freep) char *dir = xstrndup(file, (size_t)(name - file));
                driver_tree_library(root, file, libraries[i].soname);
                if (libraries[i].linked) {
                        _cleanup_(freep) char *link = xasprintf("%s%s", dir, libraries[i].soname);
                        driver_tree_link(root, link, name);
                }
                if (libraries[i].bare) {
                        _cleanup_(freep) char *link = xasprintf("%s%.*s.so", dir, (int)(so - name), name);
                        driver_tree_link(root, link, libraries[i].soname);
                }
        }
        for (size_t i = 0; i < ARRAY_LEN(files); i++)
                tree_put(root, files[i], "");
        return driver_tree_node(root, "dev/nvidia0", 195, 0, 0666, 0) &&
               driver_tree_node(root, "dev/nvidia1", 195, 1, 0666, 0) &&
               driver_tree_node(root, "dev/nvidiactl", 195, 255, 0666, 0) &&
               driver_tree_node(root, "dev/nvidia-modeset", 195, 254, 0660, 44) &&
               driver_tree_node(root, "dev/nvidia-uvm", 510, 0, 0666, 0) &&
               driver_tree_node(root, "dev/nvidia-uvm-tools", 510, 1, 0666, 0);
}
