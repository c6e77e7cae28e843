// Package real is the door to the half of simccl that moves bytes on hardware.
// What opens a library does so at run time, and answers with an
// *exec.UnsupportedError where one is missing.
//
//   - real/team: the processes of a run, their places and what they share
//   - real/bench: a benchmark on GPUs or CPUs, as data
//   - real/measure: the measurements of calibrate
//   - real/perftest: RDMA as perftest measures it
//
// Here is what they have in common: whose fault an error is (FaultOf), and which
// RDMA devices there are. Everything else is internal:
//
//   - bootstrap, pmi, psk: ranks find each other, and prove a secret
//   - transport, ibv, sock: nets in the shape of NCCL's plugin
//   - host: plans on the CPU, over any net
//   - cuda, nccl, device: GPUs, NVIDIA's library, and both in sessions
//   - dl: libraries opened without headers
package real
