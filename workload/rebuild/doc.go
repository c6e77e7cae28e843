// Package rebuild reconstructs a program from the profiler recordings of a job's ranks: the dependencies, the
// time that each step takes alone, and the work of the host in between.
//
// Rules:
//
//   - An operation begins after the runtime call that launched it, after the operations before it on its
//     stream, and after those that its stream waits for. Waits are taken from the recording (cuda_sync); if
//     it does not name the event's source, or has no waits, they are inferred, and a guess that the recorded
//     times disprove is dropped.
//   - The threads of a rank that launch work become one host thread; the time between two launches is a step
//     of it. Calls that wait for the GPU depend on the operations that they wait for; the waiting is no host
//     time.
//   - A process-group call becomes an operation whose recorded time is counted from the begin of its last
//     rank, in the median of the calls of one shape: waiting for late ranks is simulated, never kept.
//   - A kernel beside which a collective ran takes the median time of the same kernel (name and grid) without
//     one, so that slow-down by overlap is not counted twice.
//   - Clocks of ranks are aligned at the ends of collectives.
//
// Input: recordings of package kineto. Output: a workload.Program, in picoseconds, and statistics of the
// reconstruction.
//
// What it must not know: files, topologies, plans, executors.
package rebuild
