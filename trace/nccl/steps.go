package nccl

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Dir is a side of a connection.
type Dir uint8

// Sides.
const (
	Send Dir = iota
	Recv
)

var dirName = [2]string{"send", "recv"}

// Wait is a phase of a step, by the names of NCCL's profiler plugin.
type Wait uint8

// Waits of a step. Transfers inside a node have no proxy and use only SendWait and RecvWait.
const (
	SendGPUWait   Wait = iota // the kernel has not filled the slot yet
	SendPeerWait              // the receiver has not posted a buffer
	SendWait                  // on the wire until completion
	RecvWait                  // the receive is posted, data has not arrived
	RecvFlushWait             // GPU memory is being flushed
	RecvGPUWait               // the kernel has not consumed the slot yet
)

var waitName = [...]string{"SendGpuWait", "SendPeerWait", "SendWait", "RecvWait", "RecvFlushWait",
	"RecvGpuWait"}

var waitTint = [...]trace.Tint{SendGPUWait: trace.Waits, SendPeerWait: trace.Waits, SendWait: trace.Sends,
	RecvWait: trace.Waits, RecvFlushWait: trace.Copies, RecvGPUWait: trace.Receives}

// String returns NCCL's name of the wait.
func (w Wait) String() string { return waitName[w] }

// Step is one step (or slice) of a connection: its slices follow each other on one lane.
type Step struct {
	Rank, Channel int
	Dir           Dir
	Step          int64
	Slot          int
	Peer          int // NoPeer: the network
	Bytes         units.Bytes
	Transport     string // NET/IB, COLLNET/SHARP, P2P/CUMEM, SHM, NVLS
	GDR           bool
	Link          string // limiting link, may be empty
	Chunk         int64  // -1: not known
	// Deps are arrows from received data to the sends that waited for them: they start at a receive and end
	// at a send.
	Deps []int64
	// Fan are further arrows that start at a send: one for each receive that waited for it, if the network
	// delivers the same data to several ranks.
	Fan []Arrow
}

// Arrow is one end of an arrow whose other end is at another rank.
type Arrow struct {
	ID   int64
	Rank int
}

// network reports whether the step crosses the network; others are written with category P2P_XFER, so that
// filters on NET still select the network.
func (s *Step) network() bool {
	return strings.HasPrefix(s.Transport, "NET") || strings.HasPrefix(s.Transport, "COLLNET")
}

// Phase is one wait of a step, with the terms of its time if known.
type Phase struct {
	Wait       Wait
	Start, End units.Time
	Terms      Terms
}

// Flow returns a new arrow number. Draw one per transfer if both ends are written, and pass it to the send's
// and the receive's Steps call.
func (r *Recorder) Flow() int64 {
	r.nextFlow++
	return r.nextFlow
}

// Steps writes a step whose phases are all known, at its end. Phases must follow each other without overlap;
// those shorter than a tick are omitted. flow joins the send's SendWait with the receive's RecvWait; 0: no
// arrow. Calls must come in the order of the steps' starts or of their ends.
func (r *Recorder) Steps(s *Step, flow int64, phases ...Phase) {
	if len(phases) == 0 || !r.on(DetailStep, MaskProxyStep, s.Rank) {
		return
	}
	t := r.rank(s.Rank)
	track := r.stepTrack(t, s, phases[0].Start, phases[len(phases)-1].End)
	cat := "P2P_XFER"
	if s.network() {
		cat = "NET"
	}
	a := r.stepArgs(s)
	if s.Peer == NoPeer || !r.On(DetailStep, s.Peer) {
		flow = 0 // the other end is not in the trace
	}
	var first, last *Phase
	for i := range phases {
		p := &phases[i]
		if p.End-p.Start < trace.Tick {
			continue
		}
		if last = p; first == nil {
			first = p
		}
		r.tinted(track, p.Start, p.End, cat, waitName[p.Wait], waitTint[p.Wait], p.Terms.args(a))
		if flow != 0 {
			r.arrow(track, p, flow)
		}
		if p.Wait == SendWait {
			r.fan(track, p, s.Fan)
		}
	}
	if first != nil {
		r.deps(track, s, first, last)
	}
}

// fan writes the starts of a send's further arrows.
func (r *Recorder) fan(track trace.TrackID, p *Phase, arrows []Arrow) {
	for _, a := range arrows {
		if r.On(DetailStep, a.Rank) {
			r.arrow(track, p, a.ID)
		}
	}
}

// deps writes a step's ends of the arrows within its rank.
func (r *Recorder) deps(track trace.TrackID, s *Step, first, last *Phase) {
	phase, p := trace.FlowStart, last
	if s.Dir == Send {
		phase, p = trace.FlowEnd, first
	}
	_, to := trace.Span(p.Start, p.End)
	for _, id := range s.Deps {
		r.event = trace.Event{Phase: phase, Track: track, Start: units.Time(to)*trace.Tick - trace.Tick,
			Cat: "flow", Name: "dep", ID: id}
		r.sink.Emit(&r.event)
	}
}

func (r *Recorder) arrow(track trace.TrackID, p *Phase, flow int64) {
	from, to := trace.Span(p.Start, p.End)
	ev := trace.Event{Track: track, Cat: "flow", Name: "xfer", ID: flow}
	switch p.Wait {
	case SendWait:
		if to-from > 1 {
			from++ // inside the slice, so that viewers bind the arrow to it
		}
		ev.Phase, ev.Start = trace.FlowStart, units.Time(from)*trace.Tick
	case RecvWait:
		ev.Phase, ev.Start = trace.FlowEnd, units.Time(to)*trace.Tick-trace.Tick
	default:
		return
	}
	r.event = ev
	r.sink.Emit(&r.event)
}

func (r *Recorder) stepArgs(s *Step) []trace.Arg {
	gdr := int64(0)
	if s.GDR {
		gdr = 1
	}
	a := append(r.args[:0], trace.Int("Step", s.Step), trace.Int("Peer", int64(s.Peer)),
		trace.Int("bytes", int64(s.Bytes)), trace.Int("slot", int64(s.Slot)),
		trace.Str("transport", s.Transport))
	if s.network() {
		a = append(a, trace.Int("gdr", gdr))
	}
	if s.Chunk >= 0 {
		a = append(a, trace.Int("chunk", s.Chunk))
	}
	if s.Link != "" {
		a = append(a, trace.Str("link", s.Link))
	}
	return a
}

// namedPeers is the number of peers of a channel's side that have their own lanes; further peers share lanes.
const namedPeers = 16

// peerLanes are the lanes on which steps with one peer are drawn: simultaneous steps need several.
type peerLanes struct {
	peer  int
	lanes trace.Lanes
	ids   []trace.TrackID
}

// lanesOf returns the lanes of a peer, and their index.
func (s *sideTracks) lanesOf(peer int) (n int, l *peerLanes) {
	for n = range s.peers {
		if l = &s.peers[n]; l.peer == peer || n == namedPeers {
			return n, l
		}
	}
	s.peers = append(s.peers, peerLanes{peer: peer})
	n = len(s.peers) - 1
	return n, &s.peers[n]
}

var dirArrow = [2]string{"→", "←"}

// laneName names a lane by the channel and the peer.
func laneName(s *Step, peer, lane int) string {
	who := fmt.Sprintf("rank %d", s.Peer)
	switch {
	case peer == namedPeers:
		who = "other ranks"
	case s.Peer == NoPeer:
		who = "the network"
	case s.Transport == "NVLS": // through the switch, to and from a head
		who = fmt.Sprintf("NVLS %d", s.Peer)
	}
	return fmt.Sprintf("ch %02d %s %s · step %d", s.Channel, dirArrow[s.Dir], who, lane)
}

// stepTrack returns the lowest lane of the peer that is free for the step.
func (r *Recorder) stepTrack(t *rankTracks, s *Step, start, end units.Time) trace.TrackID {
	side := &t.channel(s.Channel).sides[s.Dir]
	peer, of := side.lanesOf(s.Peer)
	lane := of.lanes.Place(start, end)
	if lane < len(of.ids) {
		return of.ids[lane]
	}
	// A new lane gets the next number of the side: thread numbers of one peer need not be consecutive, but
	// their positions in a viewer are.
	n := side.lanes
	side.lanes++
	tr := t.base
	tr.Thread = int64(channelTID + perChannel*s.Channel + recvOffset*int(s.Dir) + n)
	if n >= stepLanes {
		// 4096 overflow lanes for each side of a channel.
		tr.Thread = int64(overflowTID + (2*s.Channel+int(s.Dir))*4096 + n - stepLanes)
	}
	tr.ThreadSort = sideSort(s.Channel, s.Dir) + int64(peer+1)*4096 + int64(lane)
	tr.ThreadName = laneName(s, peer, lane)
	of.ids = append(of.ids, r.sink.Track(tr))
	return of.ids[lane]
}

// sideSort returns the viewer's position of the lanes of a channel's side: lanes of proxy operations first,
// then those of each peer.
func sideSort(channel int, dir Dir) int64 {
	return int64(1<<20) + int64(2*channel+int(dir))*(namedPeers+2)*4096
}

// ProxyOp describes one proxy operation, which spans many steps.
type ProxyOp struct {
	Rank, Channel, Peer int
	Dir                 Dir
	Steps               int64
	ChunkSize           units.Bytes
	TransSize           units.Bytes
}

var proxyNames = [2][2]string{{"ScheduleSend", "ProgressSend"}, {"ScheduleRecv", "ProgressRecv"}}

// ProxyOperation writes a proxy operation on its channel's op lanes: it exists since posted, and is active
// from start to end.
func (r *Recorder) ProxyOperation(posted, start, end units.Time, p ProxyOp) {
	if !r.on(DetailChannel, MaskProxyOp, p.Rank) {
		return
	}
	t := r.rank(p.Rank)
	c := t.channel(p.Channel)
	lane := c.sides[p.Dir].op.Place(posted, end)
	tid := int64(channelTID + perChannel*p.Channel + recvOffset*int(p.Dir) + stepLanes + lane)
	if lane >= opLanes {
		tid = int64(overflowTID + (2*64+2*p.Channel+int(p.Dir))*4096 + lane - opLanes)
	}
	id := r.sorted(t, tid, sideSort(p.Channel, p.Dir)+int64(lane), func() string {
		return fmt.Sprintf("ch %02d %s · op %d", p.Channel, dirName[p.Dir], lane)
	})
	a := append(r.args[:0], trace.Int("Channel", int64(p.Channel)), trace.Int("Peer", int64(p.Peer)),
		trace.Int("Steps", p.Steps),
		trace.Int("ChunkSize", int64(p.ChunkSize)), trace.Int("transSize", int64(p.TransSize)))
	if start-posted >= trace.Tick {
		r.tinted(id, posted, start, "PROXY", proxyNames[p.Dir][0], trace.Waits, a)
	}
	r.slice(id, start, end, "PROXY", proxyNames[p.Dir][1], a)
}
