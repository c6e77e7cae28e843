// Package real is the half of simccl that moves bytes on hardware. Its rooms
// open their libraries at run time, and answer with an *exec.UnsupportedError
// where one is missing:
//
//   - real/bootstrap: ranks find each other over TCP
//   - real/transport, real/ibv, real/sock: nets in the shape of NCCL's plugin
//   - real/host: plans on the CPU, over any net
//   - real/cuda, real/nccl, real/device: GPUs, NVIDIA's library, measurements
//   - real/dl: libraries opened without headers
package real
