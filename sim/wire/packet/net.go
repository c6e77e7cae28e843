package packet

import (
	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/sim/wire/packet/spec"
	"github.com/simccl/simccl/units"
)

// What is simulated: package spec says what each of these is.
type (
	Network  = spec.Network
	Cable    = spec.Cable
	Flow     = spec.Flow
	Config   = spec.Config
	Frames   = spec.Frames
	Buffer   = spec.Buffer
	Marking  = spec.Marking
	Repair   = spec.Repair
	Routing  = spec.Routing
	Balance  = spec.Balance
	Watchdog = spec.Watchdog
	Fault    = spec.Fault
	Blocked  = spec.Blocked
	Deadlock = spec.Deadlock
)

// Balances of load in switches.
const (
	Hashed    = spec.Hashed
	PerPacket = spec.PerPacket
	PerFlow   = spec.PerFlow
)

// InputError is a network, flow or setting that cannot be.
type InputError = spec.InputError

// UnsupportedError names what the engine does not simulate.
type UnsupportedError = cc.UnsupportedError

// Check finds what is wrong with a network, its flows and the settings.
func Check(n *Network, flows []Flow, c *Config) error { return spec.Check(n, flows, c) }

// wrong makes an InputError.
func wrong(format string, args ...any) error { return spec.Wrong(format, args...) }

// FlowResult is what became of a Flow.
type FlowResult struct {
	SrcPort uint16
	Start   units.Time
	// End is the arrival of the last acknowledgement at the sender, valid if Done.
	End    units.Time
	Done   bool
	Failed bool // it gave up after Retries timeouts
}

// Result is what became of all.
type Result struct {
	Flows          []FlowResult
	PeakQueue      int64 // bytes: the deepest egress queue of a switch
	PeakLink       [2]int32
	Pauses         int64 // PFC frames that asked for a pause, received
	Marks          int64
	Drops          int64 // frames that found no buffer
	Lost           int64 // frames lost on cables
	Retransmitted  int64
	Timeouts       int64
	Watchdogs      int64 // queues that a watchdog dropped
	Deadlocks      []Deadlock
	Blocked        []Blocked // head-of-line blocking, the longest first
	DataPacketHops int64     // data frames, each counted on each link
	FrameHops      int64     // all frames
	Windows        int64
	Stall          *Stall // why unfinished flows did not go on; nil if all ended
}
