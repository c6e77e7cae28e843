package packet

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/spec"
)

// The input and output of a run; package spec documents the types.
type (
	Network  = spec.Network
	Cable    = spec.Cable
	Flow     = spec.Flow
	Queue    = spec.Queue
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

	InputError       = spec.InputError
	UnsupportedError = cc.UnsupportedError

	FlowResult = spec.FlowResult
	Result     = spec.Result
	Stall      = spec.Stall
	Series     = spec.Series
	Busy       = spec.Busy
	State      = spec.State
	Port       = spec.Port
)

// Constants of package spec.
const (
	Overtaken = spec.Overtaken
	LeastHead = spec.LeastHead // least bytes for Config.CutThrough

	Hashed    = spec.Hashed
	PerPacket = spec.PerPacket
	PerFlow   = spec.PerFlow
)

// Check validates a network, flows and settings without running them. Errors: *InputError, *UnsupportedError.
func Check(n *Network, flows []Flow, c *Config) error { return spec.Check(n, flows, c) }

func wrong(format string, args ...any) error { return spec.Wrong(format, args...) }
