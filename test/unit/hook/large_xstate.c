/* SPDX-License-Identifier: Apache-2.0 */
/* large_xstate: a library to preload into user-mode-linux of Linux 6.1, which has 2,696 bytes for the
 * extended state of a processor (FP_SIZE in arch/x86/um). With AMX that state has 11 KiB, the kernel refuses
 * to set only a part of it, and user-mode-linux kills its init. This library adds the missing part, the state
 * of AMX, which no program inside uses. */
#include <assert.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

enum { MOST = 16384, HEADER = 512 }; /* the header begins with the bits of the existing parts */
static const uint64_t amx = UINT64_C(3) << 17;

static size_t size;             /* of the whole state, as the kernel returned it */
static unsigned char all[MOST]; /* static, because the stack of a thread inside is not larger than this */

long ptrace(enum __ptrace_request request, ...) {
        static long (*real)(enum __ptrace_request, ...);
        struct iovec whole = { all, sizeof all };
        uint64_t parts;
        va_list ap;
        va_start(ap, request);
        int pid = va_arg(ap, int);
        void *address = va_arg(ap, void *);
        struct iovec *given = va_arg(ap, void *);
        va_end(ap);
        if (!real)
                real = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
        if ((uintptr_t)address != NT_X86_XSTATE ||
            (request != PTRACE_GETREGSET && request != PTRACE_SETREGSET))
                return real(request, pid, address, given);
        if (request == PTRACE_GETREGSET) {
                long r = real(request, pid, address, &whole);
                if (r < 0)
                        return r;
                size = whole.iov_len;
                if (given->iov_len > size)
                        given->iov_len = size;
                memcpy(given->iov_base, all, given->iov_len);
                return r;
        }
        /* A processor may have less state than user-mode-linux has room for. The kernel ignores the rest. */
        size_t n = given->iov_len < size ? given->iov_len : size;
        assert(n >= HEADER + sizeof parts);
        memset(all, 0, sizeof all);
        memcpy(all, given->iov_base, n);
        memcpy(&parts, all + HEADER, sizeof parts);
        parts &= ~amx;
        memcpy(all + HEADER, &parts, sizeof parts);
        whole.iov_len = size;
        return real(request, pid, address, &whole);
}
