package spec

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// FlowResult is the outcome of a Flow: its start, its end, or its failure.
type FlowResult struct {
	SrcPort uint16
	Start   units.Time
	// End is the arrival of the last acknowledgement at the sender, valid if Done.
	End    units.Time
	Done   bool
	Failed bool // after Retries timeouts
}

// Begun reports whether the flow has started: it has a source port. (Of very many flows between two hosts
// some have port 0.)
func (f *FlowResult) Begun() bool { return f.SrcPort != 0 || f.Start > 0 || f.Done || f.Failed }

// Result is the outcome of a run.
type Result struct {
	Flows          []FlowResult
	PeakQueue      int64 // bytes of the deepest egress queue, all priorities of a port together
	PeakLink       [2]int32
	Pauses         int64 // PAUSE frames received
	Marks          int64
	Drops          int64 // frames that found no buffer
	Trims          int64 // data frames cut to their header
	Lost           int64 // frames lost on cables
	Retransmitted  int64
	Timeouts       int64
	Watchdogs      int64 // queues dropped by a watchdog
	Deadlocks      []Deadlock
	Blocked        []Blocked // longest first
	DataPacketHops int64     // data frames, counted on each link
	FrameHops      int64     // all frames, counted on each link
	Windows        int64     // windows simulated, a measure of the work
	Busiest        Busy      // the direction of a cable that carried most data in proportion to its rate
	Series         *Series   // with Config.Every
	Stall          *Stall    // why unfinished flows did not proceed; nil: all ended
}

// Busy is the traffic of one direction of a cable.
type Busy struct {
	Link  [2]int32   // from, to
	Data  int64      // bytes of data frames, including retransmissions
	Rate  int64      // bit/s, without faults
	Lasts units.Time // transmission time of these bytes, in full frames
}

// Stall explains why flows did not end.
type Stall struct {
	Unfinished int
	First      int32 // the first unfinished flow
	// Deadlock is a cycle of nodes, each paused by the next; empty: none.
	Deadlock []int32
	Stopped  bool // the run ended at Config.Stop
	Waiting  bool // none of the unfinished flows started: they wait for each other
	Failed   int  // flows that gave up
	// Paused is a paused node and the neighbour whose RESUME was lost; -1, -1: none.
	Paused [2]int32
}

func (s *Stall) String() string {
	head := fmt.Sprintf("%d flows did not end, the first is flow %d", s.Unfinished, s.First)
	switch {
	case len(s.Deadlock) > 0:
		return fmt.Sprintf("%s: deadlock, links pause each other in a cycle: %s", head, Ring(s.Deadlock))
	case s.Paused[0] >= 0:
		return fmt.Sprintf("%s: node %d is still paused: the XON from node %d was lost", head, s.Paused[0],
			s.Paused[1])
	case s.Stopped:
		return head + ": the stop time was reached"
	}
	if s.Waiting {
		return head + ": flows that wait for each other never begin"
	}
	if s.Failed > 0 {
		return fmt.Sprintf("%s: %d of them gave up after their retries", head, s.Failed)
	}
	return head + ": the last frames of a flow were lost, and no timeout retransmits them"
}

// State is the present state of a cable's direction or of a queue pair.
type State struct {
	Cable  int32
	Back   bool
	Queue  int32 // a queue pair, for which only Rate is valid; -1: a cable
	At     units.Time
	Queued int64 // bytes at the port where the direction begins
	Marks  int64 // so far
	Paused bool
	Rate   int64 // bit/s that congestion control allows
}

// Port is the counters of a port, the start of one direction of a cable.
type Port struct {
	Peak, Bytes, Data    int64 // bytes: deepest queue; sent with headers; of data frames
	Pauses, Marks, Drops int64
	Trims                int64 // data frames cut to their header
	Watchdogs            int64 // queues dropped by a watchdog
	Resent               int64 // data frames retransmitted, of a host
	Paused, Busy         units.Time
	First                units.Time // start of the first pause
	// Behind is the link (2·cable, +1 for B to A) whose queue caused most of the paused time; -1: unknown.
	Behind int32
}

// Unfinished returns a Stall that counts the flows that have not ended.
func Unfinished(all []FlowResult) *Stall {
	s := &Stall{First: -1, Waiting: true}
	for i := range all {
		if all[i].Done {
			continue
		}
		if s.First < 0 {
			s.First = int32(i)
		}
		s.Unfinished++
		s.Waiting = s.Waiting && !all[i].Begun()
		if all[i].Failed {
			s.Failed++
		}
	}
	return s
}

// Counts are Result's counters during a run, one set per worker.
type Counts struct {
	Pauses, Marks, Drops, Trims, Lost, Retransmitted, Timeouts, Watchdogs, DataPacketHops int64
}

// Add adds one worker's counters.
func (r *Result) Add(c *Counts) {
	r.Pauses += c.Pauses
	r.Marks += c.Marks
	r.Drops += c.Drops
	r.Trims += c.Trims
	r.Lost += c.Lost
	r.Retransmitted += c.Retransmitted
	r.Timeouts += c.Timeouts
	r.Watchdogs += c.Watchdogs
	r.DataPacketHops += c.DataPacketHops
}
