package nccltrace

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// maxPathSlices bounds the memory of a critical path: 40 bytes a slice. Larger
// traces have none.
const maxPathSlices = 4 << 20

// CriticalPath returns a sink that passes everything on and, when it is closed,
// adds the critical path: the chain of steps that the end of the run waited
// for, found backwards from the kernel or step that ends last, from each receive
// to its send and along each channel's order. Its slices follow each other
// without a gap, from zero to the end of the last kernel. Beside steps there are
// "kernel", what a kernel does before, between and after its steps, and "launch",
// the time before a rank's first kernel and between its kernels.
//
// cancelled, if not nil, is polled while the path is sought; the error that it
// returns ends the search, and is returned by Close, which leaves out the path.
func CriticalPath(to trace.Sink, cancelled func() error) trace.Sink {
	return &pathSink{Sink: to, cancelled: cancelled}
}

// pathSink keeps what the path is found from.
type pathSink struct {
	trace.Sink
	cancelled func() error
	polls     int     // rounds since cancelled was last asked
	lanes     []lane  // by track id
	last      []int32 // by track id: its newest step + 1
	steps     pathSteps
	sends     []int32 // the SendWait of each step; from path on by sendKey
	kernels   kernels
	full      bool
}

// lane is where a track's steps belong; rank -1: no steps.
type lane struct{ rank, channel int32 }

// sendKey names a step of a connection at both of its ends.
type sendKey struct{ src, dst, channel, step int32 }

func (a sendKey) compare(b sendKey) int {
	return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.channel, b.channel), cmp.Compare(a.step, b.step))
}

// pathStep is kept of every slice of a trace: its fields are as small as they can be.
type pathStep struct {
	start, end units.Time
	step       int32
	track      trace.TrackID
	peer       int32
	before     int32 // the same step's wait before, -1 where there is none
	wait       Wait
	network    bool
}

// pathSteps is a list that grows in blocks, so that it is never there twice.
type pathSteps struct {
	blocks [][]pathStep
	n      int
}

const stepBlock = 1 << 14

func (l *pathSteps) at(i int32) *pathStep { return &l.blocks[i/stepBlock][i%stepBlock] }

func (l *pathSteps) add(s *pathStep) {
	if l.n%stepBlock == 0 {
		l.blocks = append(l.blocks, make([]pathStep, 0, stepBlock))
	}
	b := &l.blocks[l.n/stepBlock]
	*b = append(*b, *s)
	l.n++
}

// proxied reports whether the proxy or the NIC had the step: no kernel waits
// for the end of that.
func (s *pathStep) proxied() bool { return s.network && (s.wait == SendPeerWait || s.wait == SendWait) }

// sendOf returns the send that a receive waits for: of what a network that
// reduces gave, that of the rank which sent last.
func (p *pathSink) sendOf(s *pathStep) (int32, bool) {
	l := p.lanes[s.track]
	if s.network {
		if i, ok := p.findSend(sendKey{s.peer, NoPeer, l.channel, s.step}); ok {
			return i, ok
		}
	}
	return p.findSend(sendKey{s.peer, l.rank, l.channel, s.step})
}

// findSend returns the newest send of a step of a connection.
func (p *pathSink) findSend(k sendKey) (int32, bool) {
	n, _ := slices.BinarySearchFunc(p.sends, k, func(i int32, k sendKey) int {
		if p.keyOf(i).compare(k) <= 0 {
			return -1
		}
		return 1
	})
	if n == 0 || p.keyOf(p.sends[n-1]) != k {
		return 0, false
	}
	return p.sends[n-1], true
}

// keyOf names a send.
func (p *pathSink) keyOf(i int32) sendKey {
	s := p.steps.at(i)
	l := p.lanes[s.track]
	return sendKey{l.rank, s.peer, l.channel, s.step}
}

// sortSends sorts the sends by their names, those of one name as they came.
func (p *pathSink) sortSends() error {
	p.polls += len(p.sends) // takes about as long as so many steps
	if err := p.poll(); err != nil {
		return err
	}
	slices.SortFunc(p.sends, func(a, b int32) int { return cmp.Or(p.keyOf(a).compare(p.keyOf(b)), cmp.Compare(a, b)) })
	return nil
}

// phaseBefore returns the wait of the same step that a proxy's wait follows.
func (p *pathSink) phaseBefore(e *trace.Event, w Wait) int32 {
	i := p.last[e.Track] - 1
	if i < 0 || w != SendPeerWait && w != SendWait || e.Cat != "NET" {
		return -1
	}
	if b := p.steps.at(i); b.wait >= w || e.Start-b.end > trace.Tick {
		return -1
	}
	return i
}

// worked is when a slice's own work began: what a kernel that fills a step
// waited for first is another's.
func worked(e *trace.Event) units.Time {
	if e.Name != waitName[SendGPUWait] {
		return e.Start
	}
	t, _ := ParseTerms(e.Args)
	return e.Start + min(e.Dur, t[Data]+t[Room])
}

// Track notes whose steps a track holds.
func (p *pathSink) Track(t trace.Track) trace.TrackID {
	id := p.Sink.Track(t)
	for int(id) >= len(p.lanes) {
		p.lanes, p.last = append(p.lanes, lane{rank: -1}), append(p.last, 0)
	}
	p.kernels.track(id, &t)
	if rank := t.Process - RankPID; rank >= 0 && t.Process < NICPID && t.Thread >= channelTID {
		channel := (t.Thread - channelTID) / perChannel
		if t.Thread >= overflowTID {
			channel = (t.Thread - overflowTID) / 4096 / 2
		}
		p.lanes[id] = lane{int32(rank), int32(channel)}
	}
	return id
}

// Emit passes an event on and keeps steps and their arrows.
func (p *pathSink) Emit(e *trace.Event) {
	p.Sink.Emit(e)
	p.kernels.emit(e)
	l := lane{rank: -1}
	if int(e.Track) < len(p.lanes) {
		l = p.lanes[e.Track]
	}
	if l.rank < 0 || p.full {
		return
	}
	if e.Phase == trace.Slice {
		w := slices.Index(waitName[:], e.Name)
		if w < 0 || e.Cat != "NET" && e.Cat != "P2P_XFER" {
			return
		}
		if p.full = p.steps.n == maxPathSlices; p.full {
			p.steps, p.sends, p.last = pathSteps{}, nil, nil // of no use
			return
		}
		s := pathStep{start: worked(e), end: e.Start + e.Dur, track: e.Track,
			before: p.phaseBefore(e, Wait(w)), wait: Wait(w), network: e.Cat == "NET"}
		for _, a := range e.Args {
			switch a.Key {
			case "Step":
				s.step = int32(a.Int) // a run has no more steps than ops, of which 31 bits number those of a program
			case "Peer":
				s.peer = int32(a.Int)
			}
		}
		i := int32(p.steps.n)
		p.steps.add(&s)
		p.last[e.Track] = i + 1
		if s.wait == SendWait {
			p.sends = append(p.sends, i)
		}
	}
}

// Close writes the path and closes the sink.
func (p *pathSink) Close() error {
	if p.full || p.steps.n == 0 {
		return p.Sink.Close()
	}
	pieces, err := p.path()
	rec := New(p.Sink, Options{Detail: DetailChannel})
	for _, s := range pieces {
		rec.Critical(s.start, s.end, s.name, int(s.rank), int(s.channel))
	}
	p.busiest(pieces)
	if e := p.Sink.Close(); err == nil {
		err = e
	}
	return err
}

// pathSort is where the critical path is in a viewer: above the ranks, of which those on
// the path are below 0.
const pathSort = -1 << 30

// busiest puts the ranks for which the end waited longest first in the viewer; others
// stay in order.
func (p *pathSink) busiest(pieces []pathPiece) {
	o, ok := p.Sink.(trace.Orderer)
	if !ok {
		return
	}
	sums := map[int32]units.Time{}
	var ranks []int32
	for _, s := range pieces {
		if sums[s.rank] == 0 {
			ranks = append(ranks, s.rank)
		}
		sums[s.rank] += s.end - s.start
	}
	slices.SortFunc(ranks, func(a, b int32) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	for i, rank := range ranks {
		o.Order(RankPID+int64(rank), int64(i-len(ranks)))
	}
}

// pollEvery is after how many rounds of a long loop poll checks.
const pollEvery = 1 << 12

// poll checks periodically whether the search for the path is cancelled.
func (p *pathSink) poll() error {
	if p.polls++; p.cancelled == nil || p.polls < pollEvery {
		return nil
	}
	p.polls = 0
	return p.cancelled()
}

// pathPiece is one slice of the path.
type pathPiece struct {
	start, end    units.Time
	name          string
	rank, channel int32
}

// cause is what a channel can have waited for: a step of its own that ended, or
// the send of data that arrived.
type cause struct {
	end  units.Time
	step int32
}

// channelPath is what a channel's steps waited for.
type channelPath struct {
	causes []cause // by end
	recvs  []int32 // receives whose send is known, by start
}

// causes lists them by channel, each list in the order of their ends. A
// receive represents the send whose data it waited for: its own slice lasts
// until the kernel is done with it, and by then the next send is in flight.
func (p *pathSink) causes() (by map[lane]*channelPath, final cause, err error) {
	by = make(map[lane]*channelPath)
	for i := range int32(p.steps.n) {
		if err := p.poll(); err != nil {
			return nil, cause{}, err
		}
		s := p.steps.at(i)
		c := cause{s.end, i}
		k := p.lanes[s.track]
		if by[k] == nil {
			by[k] = &channelPath{}
		}
		if s.proxied() {
			continue
		}
		if c.end > final.end {
			final = c
		}
		if s.wait == RecvWait {
			if j, ok := p.sendOf(s); ok && p.steps.at(j).start < s.end {
				c = cause{min(p.steps.at(j).end, s.end), j}
				by[k].recvs = append(by[k].recvs, int32(i))
			}
		}
		by[k].causes = append(by[k].causes, c)
	}
	for _, c := range by { //lint:sorted each is sorted on its own
		p.polls += len(c.causes) // a sort takes about as long as so many steps
		if err := p.poll(); err != nil {
			return nil, cause{}, err
		}
		slices.SortStableFunc(c.recvs, func(a, b int32) int { return cmp.Compare(p.steps.at(a).start, p.steps.at(b).start) })
		slices.SortStableFunc(c.causes, func(a, b cause) int {
			return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(p.steps.at(a.step).start, p.steps.at(b.step).start))
		})
	}
	return by, final, nil
}

// path walks back from the end of the run.
func (p *pathSink) path() ([]pathPiece, error) {
	if err := p.sortSends(); err != nil {
		return nil, err
	}
	by, final, err := p.causes()
	if err != nil || final.end == 0 {
		return nil, err
	}
	p.kernels.order()
	w := &walk{p: p, by: by, at: final.end} // everything after at is explained
	i, ok := final.step, true
	if k, later := p.kernels.last(final.end); later {
		w.at = k.end
		i, ok = w.back(k.lane)
	} else if s := p.steps.at(i); s.wait == RecvWait {
		if j, known := p.sendOf(s); known && p.steps.at(j).start < w.at {
			i = j
		}
	}
	for ok {
		if err := p.poll(); err != nil {
			return nil, err
		}
		s := p.steps.at(i)
		l := p.lanes[s.track]
		w.add(s.start, waitName[s.wait], l)
		if s.before >= 0 {
			i = s.before
			continue
		}
		i, ok = w.back(l)
	}
	slices.Reverse(w.out)
	return w.out, nil
}

// nearRecvs bounds how many receives before an instant are looked at for one
// in flight: a channel has few at a time.
const nearRecvs = 64

// before returns what a channel waited for at t: data that was coming in just
// then and went on without a stop (LL and LL128 do not wait for a whole step),
// or else the latest cause at t or earlier. What it returns began before t.
func (p *pathSink) before(c *channelPath, t units.Time) (cause, bool) {
	var found cause
	ok := false
	n, _ := slices.BinarySearchFunc(c.causes, t, func(c cause, t units.Time) int {
		if c.end <= t {
			return -1
		}
		return 1
	})
	for n--; n >= 0 && !ok; n-- {
		if p.steps.at(c.causes[n].step).start < t {
			found, ok = c.causes[n], true
		}
	}
	if ok && t-found.end < trace.Tick {
		return found, true
	}
	n, _ = slices.BinarySearchFunc(c.recvs, t, func(i int32, t units.Time) int { return cmp.Compare(p.steps.at(i).start, t) })
	for k := n - 1; k >= max(0, n-nearRecvs); k-- {
		r := p.steps.at(c.recvs[k])
		j, _ := p.sendOf(r)
		if r.end > t && p.steps.at(j).start < t && p.steps.at(j).end > t && (!ok || p.steps.at(j).start > p.steps.at(found.step).start) {
			found, ok = cause{t, j}, true
		}
	}
	return found, ok
}
