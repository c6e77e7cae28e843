package launch

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/sym"
)

// NCCL takes sixteen channels in place of 17 to 24 where ranks of one node write into
// each other's registered buffers (register/coll_reg.cc:453).
const (
	directMost = 24
	directBest = 16
)

// registered reports whether all buffers of a call are: by ncclCommRegister, or as
// windows, which are registered too.
func (c *Call) registered() bool { return c.Registered || c.Windows == sym.Both }

// direct reports whether ranks of one node write into the registered buffers of a call,
// with its algorithm (register/coll_reg.cc:192-200): Simple of rings and trees out of
// place, and of rings neither Reduce nor ReduceScatter.
func (c *Comm) direct(call *Call, ch Choice) bool {
	if !call.registered() || !c.DirectP2P || c.Layout.NNodes > 1 || ch.Proto != coll.Simple {
		return false
	}
	switch ch.Algo {
	case coll.Ring:
		inPlace := call.Func == coll.AllReduce && call.InPlace
		return !inPlace && call.Func != coll.Reduce && call.Func != coll.ReduceScatter
	case coll.Tree:
		return !call.InPlace
	}
	return false
}

// channels is the most channels of a call with its algorithm, registration included.
func (c *Comm) channels(call *Call, ch Choice) int {
	if c.direct(call, ch) && directBest < ch.Channels && ch.Channels <= directMost {
		return directBest
	}
	return ch.Channels
}
