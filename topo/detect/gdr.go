//go:build linux && (amd64 || arm64)

package detect

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Attributes of cuda.h: CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED and
// CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED.
const (
	attrGPUDirectRDMA = 116
	attrDMABuf        = 124
)

// withGDR queries the CUDA driver which GPUs let NICs reach their memory, and
// which export it as DMA-BUF, as NCCL does (init.cc, ncclGpuGdrSupport and
// dmaBufSupported). Without the driver nothing is claimed.
func withGDR(gpus []GPU) []GPU {
	h, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return gpus
	}
	call := func(name string, args ...uintptr) int32 {
		f, err := purego.Dlsym(h, name)
		if err != nil {
			return -1
		}
		r, _, _ := purego.SyscallN(f, args...)
		return int32(r)
	}
	if call("cuInit", 0) != 0 {
		return gpus
	}
	for i := range gpus {
		id := append([]byte(gpus[i].BusID), 0)
		dev, yes := new(int32), new(int32)
		var hold runtime.Pinner // C code accesses these, so they must not move
		hold.Pin(&id[0])
		hold.Pin(dev)
		hold.Pin(yes)
		if call("cuDeviceGetByPCIBusId", uintptr(unsafe.Pointer(dev)), uintptr(unsafe.Pointer(&id[0]))) == 0 {
			if call("cuDeviceGetAttribute", uintptr(unsafe.Pointer(yes)), attrGPUDirectRDMA, uintptr(*dev)) ==
				0 {
				gpus[i].GDR = *yes == 1
			}
			if call("cuDeviceGetAttribute", uintptr(unsafe.Pointer(yes)), attrDMABuf, uintptr(*dev)) == 0 {
				gpus[i].DMABuf = *yes == 1
			}
		}
		hold.Unpin()
	}
	return gpus
}
