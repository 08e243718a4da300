// SPDX-License-Identifier: Apache-2.0

// A stand-in of NVML like those of other projects: in Go, as a C library, with the threads and signal
// handlers of its runtime, only some of the functions, and a goroutine that outlives each session.
package main

/*
struct memory {
	unsigned long long total, free, used;
};
*/
import "C"

import (
	"fmt"
	"unsafe"
)

func put(p *C.char, n C.uint, text string) C.int {
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))
	if len(text) >= len(b) {
		return 7
	}
	copy(b, text)
	b[len(text)] = 0
	return 0
}

func index(device C.ulong) C.uint { return C.uint(device) - 1 }

//export nvmlInitWithFlags
func nvmlInitWithFlags(flags C.uint) C.int {
	go func() { select {} }()
	return 0
}

//export nvmlShutdown
func nvmlShutdown() C.int { return 0 }

//export nvmlSystemGetDriverVersion
func nvmlSystemGetDriverVersion(p *C.char, n C.uint) C.int { return put(p, n, "550.163.01") }

//export nvmlSystemGetCudaDriverVersion
func nvmlSystemGetCudaDriverVersion(version *C.int) C.int {
	*version = 12040
	return 0
}

//export nvmlDeviceGetCount_v2
func nvmlDeviceGetCount_v2(n *C.uint) C.int {
	*n = 8
	return 0
}

//export nvmlDeviceGetHandleByIndex_v2
func nvmlDeviceGetHandleByIndex_v2(i C.uint, device *C.ulong) C.int {
	*device = C.ulong(i) + 1
	return 0
}

//export nvmlDeviceGetUUID
func nvmlDeviceGetUUID(device C.ulong, p *C.char, n C.uint) C.int {
	return put(p, n, fmt.Sprintf("GPU-00000000-0000-4000-8000-%012d", index(device)))
}

//export nvmlDeviceGetName
func nvmlDeviceGetName(device C.ulong, p *C.char, n C.uint) C.int {
	return put(p, n, "NVIDIA A100-SXM4-40GB")
}

//export nvmlDeviceGetMinorNumber
func nvmlDeviceGetMinorNumber(device C.ulong, minor *C.uint) C.int {
	*minor = index(device)
	return 0
}

//export nvmlDeviceGetMigMode
func nvmlDeviceGetMigMode(device C.ulong, current, pending *C.uint) C.int { return 3 }

//export nvmlDeviceGetMemoryInfo
func nvmlDeviceGetMemoryInfo(device C.ulong, info *C.struct_memory) C.int {
	info.total = 40 << 30
	return 0
}

func main() {}
