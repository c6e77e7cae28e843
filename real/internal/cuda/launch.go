package cuda

import (
	"runtime"
	"structs"
	"unsafe"
)

// Launch queues a kernel of blocks x threads with shared bytes of dynamic shared memory; params are pointers
// to the arguments in order.
func (dev *Device) Launch(k Kernel, blocks, threads, shared int, s Stream, params []unsafe.Pointer) error {
	var p uintptr
	if len(params) > 0 {
		p = addr(&params[0])
	}
	err := dev.call("cuLaunchKernel", dev.d.fn.launchKernel, uintptr(k), uintptr(blocks), 1, 1,
		uintptr(threads), 1, 1, uintptr(shared), uintptr(s), p, 0)
	runtime.KeepAlive(params)
	return err
}

// clusterSize is the number of blocks of a cluster, which run in one GPC. NCCL launches its kernels so from
// sm_90 on (2.28.9 init.cc, cgaClusterSize 4; enqueue.cc:1592), and the bandwidth between GPUs depends on it:
// on the H200s measured, eight multiprocessors support clusters of at most two and store to peers more slowly
// than the others. Blocks that the driver places singly or in pairs are put there first, clusters of four
// never. 24 blocks reach 303, 332 and 370 GB/s of broadcast in clusters of 1, 2 and 4
// (docs/results/HARDWARE.md).
const clusterSize = 4

// clustersSince is the first CUDA version whose driver launches clusters.
const clustersSince = 11080

// Clustered rounds a grid up to whole clusters if the device has them; the additional blocks must find no
// work. A grid smaller than a cluster is unchanged.
func (dev *Device) Clustered(blocks int) int {
	if !dev.clusters() || blocks < clusterSize {
		return blocks
	}
	return (blocks + clusterSize - 1) / clusterSize * clusterSize
}

func (dev *Device) clusters() bool { return dev.SM >= 90 && dev.d.version >= clustersSince }

// The driver's CUlaunchAttribute and CUlaunchConfig (cuda.h).
type (
	launchAttribute struct {
		_     structs.HostLayout
		id, _ uint32
		value [16]uint32
	}
	launchConfig struct {
		_      structs.HostLayout
		grid   [3]uint32
		block  [3]uint32
		shared uint32
		stream Stream
		attrs  unsafe.Pointer
		count  uint32
	}
)

// LaunchClusters is Launch with the blocks in clusters, if the device has them and the grid is whole clusters
// (Clustered).
func (dev *Device) LaunchClusters(k Kernel, blocks, threads int, s Stream, params []unsafe.Pointer) error {
	if !dev.clusters() || blocks%clusterSize != 0 {
		return dev.Launch(k, blocks, threads, 0, s, params)
	}
	const clusterDimension = 4 // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
	attr := &launchAttribute{id: clusterDimension, value: [16]uint32{clusterSize, 1, 1}}
	cfg := &launchConfig{grid: [3]uint32{uint32(blocks), 1, 1}, block: [3]uint32{uint32(threads), 1, 1},
		stream: s, attrs: unsafe.Pointer(attr), count: 1}
	err := dev.call("cuLaunchKernelEx", dev.d.fn.launchKernelEx, addr(cfg), uintptr(k), addr(&params[0]), 0)
	runtime.KeepAlive(cfg)
	runtime.KeepAlive(params)
	return err
}
