// Package search finds rings, trees and NVLS and CollNet heads in one System as
// NCCL 2.28.9 does (graph/search.cc).
//
// In: a topo.System and Params. Out: a Graph for each pattern (All), with every
// Attempt: the speed, the path kinds and the crossing of nets that were tried
// and why each try stopped. It knows no ranks beyond its System, no message
// sizes, no time: budgets count steps, as NCCL's do, and they decide what is
// found, so steps are counted exactly as NCCL counts them.
//
// schedule.go chooses the attempts, walk.go and heads.go go through the GPUs of
// one attempt, order.go and nets.go rank what to try next, reserve.go takes and
// gives back bandwidth. What makes it faster than NCCL changes no result: nets
// are ranked once, bandwidth is counted in integers where that is exact, a try
// whose budget is spent is left, and a try that repeats another is taken over
// (engine.prepare and schedule.once say when that is allowed).
package search

import (
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Pattern is the shape searched for, with NCCL's numbers (graph.h,
// NCCL_TOPO_PATTERN_*).
type Pattern uint8

// Patterns.
const (
	BalancedTree  Pattern = 1
	SplitTree     Pattern = 2
	TreePattern   Pattern = 3
	RingPattern   Pattern = 4
	NVLSPattern   Pattern = 5
	CollNetDirect Pattern = 6
)

// Graph ids as NCCL's graph XML has them.
const (
	RingID = iota
	TreeID
	CollNetChainID
	NVLSID
	CollNetDirectID
	NumGraphs
)

// NoNet is in Graph.Inter the net of a GPU that reaches none
// (search.cc:1202 of v2.29.7).
const NoNet = ^uint64(0)

// Graph is the result of one search: per channel the order of the GPUs and
// the two nets it enters and leaves by.
type Graph struct {
	ID           int
	Name         string
	Pattern      Pattern
	CollNet      bool
	NChannels    int
	MinChannels  int
	MaxChannels  int
	BWIntra      units.GBps // per channel
	BWInter      units.GBps // per channel
	LatencyInter float32    // microseconds
	TypeIntra    topo.PathKind
	TypeInter    topo.PathKind
	SameChannels int
	CrossNIC     int
	NHops        int
	// Intra[c] lists the System's local ranks in the channel's order.
	Intra [][]int
	// Inter[c] is {net in, net out} as NCCL ids (Node.Ident of NET nodes),
	// zero where no net is used.
	Inter [][2]uint64
	// NIntraChannels are channels of a preset that name NICs; IntraNets[c] are these, before and behind each
	// GPU,
	// -1 for none.
	NIntraChannels int
	IntraNets      [][]int
	// Attempts records what was tried, at what speed, and why it stopped.
	Attempts []Attempt
	// Steps counts calls of the recursive GPU search, the budget NCCL counts.
	Steps int64
}

// Attempt is one search at one setting.
type Attempt struct {
	BWIntra, BWInter     units.GBps
	TypeIntra, TypeInter topo.PathKind
	SameChannels         bool
	Channels             int    // found
	Stop                 string // "perfect", "exhausted", "budget", "none"
	// Repeated: the settings permit no route that an earlier attempt did not,
	// so the outcome was taken over instead of searched again.
	Repeated bool
}
