// Package scenario makes a run a value. A Spec names machines, NCCL's settings,
// the network, the workload, the engine, the seed and the outputs; it is plain
// data, as a Go value or as a JSON file. Load converts it into a machine with a
// communicator, Run simulates it, and Expand makes one Spec of each point of its
// grid.
//
//	Spec ──Validate──▶ Expand ──▶ Load (files → machine) ──▶ Run ──▶ Result
//
// The package has no operating system inside: it reads through an fs.FS and
// writes through Outputs, so the same code serves the command, a web page and a
// shard of a sweep. It prints nothing; who renders a Result is elsewhere.
//
// What it must not know: flags, terminals, hardware, how a result is shown.
package scenario
