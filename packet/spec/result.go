package spec

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// FlowResult is what became of a Flow.
type FlowResult struct {
	SrcPort uint16
	Start   units.Time
	// End is the arrival of the last acknowledgement at the sender, valid if Done.
	End    units.Time
	Done   bool
	Failed bool // it gave up after Retries timeouts
}

// Begun reports whether it began: its source port is known. Of very many flows between two hosts some have
// port 0.
func (f *FlowResult) Begun() bool { return f.SrcPort != 0 || f.Start > 0 || f.Done || f.Failed }

// Result is what became of all.
type Result struct {
	Flows          []FlowResult
	PeakQueue      int64 // bytes: the deepest egress queue of a switch, all priorities of a port together
	PeakLink       [2]int32
	Pauses         int64 // PFC frames that asked for a pause, received
	Marks          int64
	Drops          int64 // frames that found no buffer
	Trims          int64 // data frames that were cut to their headers
	Lost           int64 // frames lost on cables
	Retransmitted  int64
	Timeouts       int64
	Watchdogs      int64 // queues that a watchdog dropped
	Deadlocks      []Deadlock
	Blocked        []Blocked // head-of-line blocking, the longest first
	DataPacketHops int64     // data frames, each counted on each link
	FrameHops      int64     // all frames
	Windows        int64     // simulated; frames that are ahead need fewer
	Stall          *Stall    // why unfinished flows did not go on; nil if all ended
}

// Stall says why flows did not end.
type Stall struct {
	Unfinished int
	First      int32 // the first of these flows
	// Deadlock is a cycle of nodes each of which may not send to the next,
	// because the next has paused it; empty if there is none.
	Deadlock []int32
	Stopped  bool // the stop time was reached
	Waiting  bool // none of these flows began: they wait for each other
	Failed   int  // flows that gave up after their retries
	// Paused is a node that waits and the neighbour that paused it and has resumed
	// it, in a frame that was lost; -1, -1 if there is none.
	Paused [2]int32
}

// String explains it in a sentence.
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

// State is that of a cable's direction, or of a queue pair, since At.
type State struct {
	Cable  int32
	Back   bool
	Queue  int32 // a queue pair, of which Rate alone counts; -1: a cable
	At     units.Time
	Queued int64 // bytes that wait where it begins
	Marks  int64 // so far
	Paused bool
	Rate   int64 // bit/s that congestion control lets it send
}

// Port is what happened where one direction of a cable begins.
type Port struct {
	Peak, Bytes, Data    int64 // deepest queue; sent, headers included; of it data
	Pauses, Marks, Drops int64
	Trims                int64 // frames that were cut to their headers
	Watchdogs            int64 // times that a watchdog dropped its queue
	Resent               int64 // frames sent again, of a host
	Paused, Busy         units.Time
	First                units.Time // when it was paused first
	// Behind is the direction of a cable whose queue, at the node that paused it, was
	// the deepest most of the time: two times the cable's number, and one more for the
	// way back; -1: not known.
	Behind int32
}

// Unfinished is a stall by the flows that did not end.
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

// Counts is what is counted while a run goes; Result says what each is.
type Counts struct {
	Pauses, Marks, Drops, Trims, Lost, Retransmitted, Timeouts, Watchdogs, DataPacketHops int64
}

// Add adds what was counted.
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
