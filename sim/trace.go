package sim

import "github.com/simccl/simccl/internal/nccltrace"

// TraceOptions choose what a run reports to its sink; the zero value reports
// collectives only.
type TraceOptions = nccltrace.Options

// Levels of detail of a trace; each holds the one before.
const (
	DetailOp      = nccltrace.DetailOp      // API calls, groups, collectives, decisions
	DetailChannel = nccltrace.DetailChannel // one kernel slice per channel, proxy operations
	DetailStep    = nccltrace.DetailStep    // every step, its waits, arrows, link counters
	DetailPacket  = nccltrace.DetailPacket  // one slice per transfer on each link
)
