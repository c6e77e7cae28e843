package nccl

import (
	"cmp"
	"math/bits"
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
	return &pathSink{Sink: to, cancelled: cancelled, channels: map[lane]int32{}}
}

// pathSink keeps what the path is found from.
type pathSink struct {
	trace.Sink
	cancelled func() error
	polls     int            // rounds since cancelled was last asked
	lanes     []lane         // by track id
	places    []int32        // by track id: the number of its lane
	channels  map[lane]int32 // numbers of lanes
	last      []int32        // by track id: its newest step + 1
	steps     pathSteps
	sends     int // steps that are SendWaits
	newest    sendTable
	kernels   kernels
	full      bool
}

// lane is where a track's steps belong; rank -1: no steps.
type lane struct{ rank, channel int32 }

// sendKey names a step of a connection at both of its ends.
type sendKey struct{ src, dst, channel, step int32 }

// hash mixes a key into the high bits.
func (k sendKey) hash() uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := (uint64(uint32(k.src))<<32 | uint64(uint32(k.step))) * odd
	h ^= h>>32 ^ uint64(uint32(k.dst))<<16 ^ uint64(uint32(k.channel))
	return h * odd
}

// sendTable finds the newest send of each key: places by hash, the number of the step
// + 1 in each, 0 where there is none.
type sendTable struct {
	slots []int32
	shift int // of hashes
}

// newSendTable makes a table with room for n keys, in which a quarter of the places or
// more stays empty.
func newSendTable(n int) sendTable {
	size := bits.Len(uint(n + n/3))
	return sendTable{make([]int32, 1<<size), 64 - size}
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
	i := *p.slot(k) - 1
	return i, i >= 0
}

// slot is where the table has a key, or is to have it.
func (p *pathSink) slot(k sendKey) *int32 {
	t := &p.newest
	for at := k.hash() >> t.shift; ; at = (at + 1) & uint64(len(t.slots)-1) {
		if i := t.slots[at]; i == 0 || p.keyOf(i-1) == k {
			return &t.slots[at]
		}
	}
}

func (p *pathSink) keyOf(i int32) sendKey {
	s := p.steps.at(i)
	l := p.lanes[s.track]
	return sendKey{l.rank, s.peer, l.channel, s.step}
}

// index fills the table of sends.
func (p *pathSink) index() error {
	p.newest = newSendTable(p.sends)
	for i := range int32(p.steps.n) {
		if err := p.poll(); err != nil {
			return err
		}
		if p.steps.at(i).wait == SendWait {
			*p.slot(p.keyOf(i)) = i + 1
		}
	}
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
	waited := units.Time(0)
	for i := range e.Args {
		if k := e.Args[i].Key; k == termKey[Data] || k == termKey[Room] {
			waited += argTime(&e.Args[i])
		}
	}
	return e.Start + min(e.Dur, waited)
}

// Track notes whose steps a track holds.
func (p *pathSink) Track(t trace.Track) trace.TrackID {
	id := p.Sink.Track(t)
	for int(id) >= len(p.lanes) {
		p.lanes, p.last, p.places = append(p.lanes, lane{rank: -1}), append(p.last, 0), append(p.places, -1)
	}
	p.kernels.track(id, &t)
	if rank := t.Process - RankPID; rank >= 0 && t.Process < NICPID && t.Thread >= channelTID {
		channel := (t.Thread - channelTID) / perChannel
		if t.Thread >= overflowTID {
			channel = (t.Thread - overflowTID) / 4096 / 2
		}
		l := lane{int32(rank), int32(channel)}
		at, ok := p.channels[l]
		if !ok {
			at = int32(len(p.channels))
			p.channels[l] = at
		}
		p.lanes[id], p.places[id] = l, at
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
			p.steps, p.last = pathSteps{}, nil // of no use
			return
		}
		s := pathStep{start: worked(e), end: e.Start + e.Dur, track: e.Track,
			before: p.phaseBefore(e, Wait(w)), wait: Wait(w), network: e.Cat == "NET"}
		for _, a := range e.Args {
			switch a.Key {
			case "Step":
				// a run has no more steps than ops, of which 31 bits number those of a program
				s.step = int32(a.Int)
			case "Peer":
				s.peer = int32(a.Int)
			}
		}
		i := int32(p.steps.n)
		p.steps.add(&s)
		p.last[e.Track] = i + 1
		if s.wait == SendWait {
			p.sends++
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
	slices.SortFunc(ranks, func(a, b int32) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
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

// pathPiece is one interval of the critical path.
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

// channelPath is the causes on which a channel's steps waited.
type channelPath struct {
	causes []cause // by end
	recvs  []int32 // receives whose send is known, by start
}

// causes lists them by the number of the channel's lane, each list in the order of
// their ends. A receive represents the send whose data it waited for: its own slice
// lasts until the kernel is done with it, and by then the next send is in flight.
func (p *pathSink) causes() (by []channelPath, final cause, err error) {
	by = make([]channelPath, len(p.channels))
	for i := range int32(p.steps.n) {
		if err := p.poll(); err != nil {
			return nil, cause{}, err
		}
		s := p.steps.at(i)
		if s.proxied() {
			continue
		}
		c := cause{s.end, i}
		if c.end > final.end {
			final = c
		}
		of := &by[p.places[s.track]]
		if s.wait == RecvWait {
			if j, ok := p.sendOf(s); ok {
				if send := p.steps.at(j); send.start < s.end {
					c = cause{min(send.end, s.end), j}
					of.recvs = append(of.recvs, i)
				}
			}
		}
		of.causes = append(of.causes, c)
	}
	for i := range by {
		c := &by[i]
		p.polls += len(c.causes) // a sort takes about as long as so many steps
		if err := p.poll(); err != nil {
			return nil, cause{}, err
		}
		sortNear(c.recvs, func(a, b int32) int {
			return cmp.Compare(p.steps.at(a).start, p.steps.at(b).start)
		})
		sortNear(c.causes, func(a, b cause) int {
			if a.end != b.end {
				return cmp.Compare(a.end, b.end)
			}
			return cmp.Compare(p.steps.at(a.step).start, p.steps.at(b.step).start)
		})
	}
	return by, final, nil
}

// sortNear is a stable sort of what is nearly in order: each is moved to its place as
// long as that is near.
func sortNear[E any](list []E, compare func(a, b E) int) {
	moves := 8 * len(list)
	for i := 1; i < len(list) && moves > 0; i++ {
		x, j := list[i], i
		for ; j > 0 && compare(x, list[j-1]) < 0; j-- {
			list[j] = list[j-1]
		}
		list[j] = x
		moves -= i - j
	}
	if moves <= 0 {
		slices.SortStableFunc(list, compare)
	}
}

// path walks back from the end of the run.
func (p *pathSink) path() ([]pathPiece, error) {
	if err := p.index(); err != nil {
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
	n, _ = slices.BinarySearchFunc(c.recvs, t, func(i int32, t units.Time) int {
		return cmp.Compare(p.steps.at(i).start, t)
	})
	for k := n - 1; k >= max(0, n-nearRecvs); k-- {
		r := p.steps.at(c.recvs[k])
		j, _ := p.sendOf(r)
		if r.end > t && p.steps.at(j).start < t && p.steps.at(j).end > t &&
			(!ok || p.steps.at(j).start > p.steps.at(found.step).start) {
			found, ok = cause{t, j}, true
		}
	}
	return found, ok
}
