// Package rebuild makes a program of what profilers recorded of the ranks of a
// job: what depends on what, how long each step takes by itself, and what the
// host does in between.
//
// Rules:
//
//   - An operation begins after the runtime call that launched it, after those
//     before it on its stream, and after what its stream waits for. Waits come from
//     the recording (cuda_sync); where it does not name what is waited for, or there
//     is none, they are inferred, and a guess that the recorded times disprove is
//     dropped.
//   - The threads of a rank that launch work are one thread of the host: what lies
//     between two launches is a step of it. Calls that wait for the GPU depend on
//     what they wait for, and the waiting is no time of the host.
//   - A call of a process group is an operation of the program and its recorded time
//     is how long it took once the last rank had begun, in the median of the calls
//     of one shape: waiting for late ranks is simulated, never kept.
//   - A kernel beside which a collective ran takes the median of the same kernel
//     (name and grid) where none did, so that slow-down by overlap is not counted
//     twice.
//   - Clocks of ranks are aligned at the ends of collectives.
//
// Input: recordings of package kineto. Output: a workload.Program, in picoseconds,
// and what was found out on the way.
//
// What it must not know: files, topologies, plans, executors.
package rebuild
