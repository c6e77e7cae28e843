// Package real is the entry to the half of simccl that moves bytes on hardware. Code that needs a vendor's
// library opens it at run time, and returns an *exec.UnsupportedError if it is missing.
//
//   - real/team: the processes of a run, their places and their secret
//   - real/bench: a benchmark on GPUs or CPUs, as data
//   - real/measure: the measurements of calibrate
//   - real/perftest: RDMA measured as perftest does
//
// This package has what they share: the classification of errors (FaultOf), and the list of RDMA devices. All
// other packages are internal:
//
//   - bootstrap, pmi, psk: ranks find each other, and prove a secret
//   - transport, ibv, sock: nets with the interface of NCCL's plugin
//   - host: plans on the CPU, over any net
//   - cuda, nccl, device: GPUs, NVIDIA's library, and sessions with both
//   - dl: libraries opened without headers
package real
