// Package nccl defines the appearance of a run of collectives on a timeline: process and thread numbers,
// event names, categories and arguments. Simulator and hardware runs both write through it, so their traces
// have equal tracks and names and can be compared event by event.
//
// Names and categories are those of NCCL 2.28.9's example profiler plugin (ext-profiler/example), so scripts
// written for it keep working.
package nccl

import (
	"cmp"
	"fmt"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Process numbers. No thread number may equal a process number, because Perfetto would treat that thread as
// the main thread of the process.
const (
	RankPID     int64 = 1000000
	NICPID      int64 = 2000000
	LinksPID    int64 = 3000000
	PortsPID    int64 = 3400000
	PausesPID   int64 = 3410000
	PairsPID    int64 = 3420000
	NetworkPID  int64 = 3500000
	PeriodsPID  int64 = 3700000
	CriticalPID int64 = 4000000
	MergedPID   int64 = 10000000 // added to the processes of a merged second trace
)

// Thread numbers inside a rank's process. speedscope opens a trace at the lowest thread of the lowest
// process: that is the collectives, not the calls, which take a few microseconds. Viewers that sort show the
// calls first.
const (
	apiSort     = 1
	collTID     = 200
	p2pTID      = 300
	kernelTID   = 400
	proxyTID    = 9000
	apiTID      = 9900
	channelTID  = 10000
	overflowTID = 20000
	perChannel  = 128
	perComm     = 64
	recvOffset  = 64
	stepLanes   = 48
	opLanes     = 16
)

// Detail is the depth of a trace; each level includes the one before.
type Detail uint8

// Levels of detail.
const (
	DetailOp      Detail = iota // API calls, groups, collectives, decisions
	DetailChannel               // one kernel slice per channel, proxy ops
	DetailStep                  // every step, its waits, arrows, link counters
	DetailPacket                // one slice per transfer on each link
)

// Details are the values of --trace-detail, by Detail.
var Details = [...]string{"op", "channel", "step", "packet"}

// Simulated are the values of --trace-detail for simulations: also period, which is step with
// Options.Periods.
var Simulated = append(Details[:], "period")

// DetailOf parses such a value; an empty or unknown one is step.
func DetailOf(word string) (d Detail, periods bool) {
	for i, w := range Details {
		if w == word {
			return Detail(i), false
		}
	}
	return DetailStep, word == "period"
}

// Options choose the events that are written.
type Options struct {
	Detail Detail
	Ranks  func(rank int) bool // nil: every rank
	Mask   uint32              // NCCL_PROFILE_EVENT_MASK; 0: everything
	Deps   bool                // arrows from a received piece to the send that waited for it
	// Periods shows a steady state as one of its periods and the number of repetitions, in a simulation
	// without jitter.
	Periods bool
	// Predicted is the time by NCCL's cost model for the operation, Tuner the origin of the choice (model,
	// env or plugin), if known.
	Predicted units.Time
	Tuner     string
}

// Rank describes one rank for its process name.
type Rank struct {
	Rank, Node, GPU int
	BusID           string // may be empty
	Host            string // node0, node1, … in simulations
}

// Recorder writes the activities of a run as events to one sink. It is not safe for concurrent use.
type Recorder struct {
	sink     trace.Sink
	opt      Options
	off      bool
	ranks    []rankTracks
	nics     []nicTracks
	links    []linkTrack
	nextFlow int64
	event    trace.Event
	args     []trace.Arg
}

// New returns a Recorder for a sink; with trace.Discard every method returns immediately.
func New(sink trace.Sink, opt Options) *Recorder {
	opt.Mask = cmp.Or(opt.Mask, MaskAll)
	return &Recorder{sink: sink, opt: opt, off: sink == trace.Discard, args: make([]trace.Arg, 0, 24)}
}

// On reports whether events of level d are written for a rank; use it to guard costly preparation.
func (r *Recorder) On(d Detail, rank int) bool {
	return !r.off && d <= r.opt.Detail && (r.opt.Ranks == nil || r.opt.Ranks(rank))
}

// Wanted reports whether events of level d are written for any rank.
func (r *Recorder) Wanted(d Detail) bool { return !r.off && d <= r.opt.Detail }

// Bits of NCCL_PROFILE_EVENT_MASK (profiler.h of 2.28.9).
const (
	MaskGroup uint32 = 1 << iota
	MaskColl
	MaskP2P
	MaskProxyOp
	MaskProxyStep
	MaskProxyCtrl
	MaskKernelCh
	MaskNetPlugin
	MaskGroupAPI
	MaskCollAPI
	MaskP2PAPI
	MaskKernelLaunch
	MaskAll uint32 = 1<<iota - 1
)

func (r *Recorder) on(d Detail, mask uint32, rank int) bool {
	return r.opt.Mask&mask != 0 && r.On(d, rank)
}

// rankTracks caches the track ids of one rank, plus one; 0 means not registered yet.
type rankTracks struct {
	known   bool
	base    trace.Track
	threads map[int64]trace.TrackID
	coll    trace.Lanes
	p2p     trace.Lanes
	chans   []chanTracks
}

type chanTracks struct{ sides [2]sideTracks }

// sideTracks are the lanes of the sends or the receives of a channel.
type sideTracks struct {
	peers []peerLanes
	lanes int // number of lanes of steps
	op    trace.Lanes
}

// AddRank declares a rank. Ranks that are never declared are named by their number only.
func (r *Recorder) AddRank(info Rank) {
	if r.off {
		return
	}
	t := r.rank(info.Rank)
	name := fmt.Sprintf("rank %d · node %d · GPU %d", info.Rank, info.Node, info.GPU)
	if info.BusID != "" {
		name += " (" + info.BusID + ")"
	}
	t.base.ProcessName, t.base.Labels = name, info.Host
}

func (r *Recorder) rank(rank int) *rankTracks {
	for rank >= len(r.ranks) {
		r.ranks = append(r.ranks, rankTracks{})
	}
	t := &r.ranks[rank]
	if !t.known {
		t.known = true
		t.threads = make(map[int64]trace.TrackID)
		t.base = trace.Track{
			Process: RankPID + int64(rank), ProcessSort: int64(rank),
			ProcessName: fmt.Sprintf("rank %d", rank),
		}
	}
	return t
}

func (r *Recorder) thread(t *rankTracks, tid int64, name func() string) trace.TrackID {
	return r.sorted(t, tid, tid, name)
}

// sorted is thread for a lane whose position in the viewer is sort instead of its thread number.
func (r *Recorder) sorted(t *rankTracks, tid, sort int64, name func() string) trace.TrackID {
	if id, ok := t.threads[tid]; ok {
		return id
	}
	tr := t.base
	tr.Thread, tr.ThreadSort, tr.ThreadName = tid, sort, name()
	id := r.sink.Track(tr)
	t.threads[tid] = id
	return id
}

func (t *rankTracks) channel(ch int) *chanTracks {
	for ch >= len(t.chans) {
		t.chans = append(t.chans, chanTracks{})
	}
	return &t.chans[ch]
}

func (r *Recorder) slice(track trace.TrackID, start, end units.Time, cat, name string, args []trace.Arg) {
	r.tinted(track, start, end, cat, name, trace.Plain, args)
}

func (r *Recorder) tinted(track trace.TrackID, start, end units.Time, cat, name string, tint trace.Tint,
	args []trace.Arg) {
	r.event = trace.Event{Phase: trace.Slice, Track: track, Start: start, Dur: end - start, Cat: cat,
		Name: name, Tint: tint, Args: args}
	r.sink.Emit(&r.event)
}

// Overflows reports whether a track is a lane beyond the reserved numbers.
func Overflows(t *trace.Track) bool {
	switch {
	case t.Process >= RankPID && t.Process < NICPID:
		return t.Thread >= overflowTID
	case t.Process >= NICPID && t.Process < LinksPID:
		return t.Thread >= highTID
	}
	return t.Process >= overflowNIC && t.Process < MergedPID
}
