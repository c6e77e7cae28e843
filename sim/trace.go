package sim

import "github.com/simccl/simccl/trace/nccl"

// TraceOptions choose what a run reports to its sink; the zero value reports
// collectives only.
type TraceOptions = nccl.Options

// Levels of detail of a trace; each holds the one before.
const (
	DetailOp      = nccl.DetailOp      // API calls, groups, collectives, decisions
	DetailChannel = nccl.DetailChannel // one kernel slice per channel, proxy operations
	DetailStep    = nccl.DetailStep    // every step, its waits, arrows, link counters
	DetailPacket  = nccl.DetailPacket  // one slice per transfer on each link
)
