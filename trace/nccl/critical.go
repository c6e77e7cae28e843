package nccl

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// maxPathSlices bounds the memory of a critical path: 40 bytes per slice. Larger traces get none.
const maxPathSlices = 4 << 20

// CriticalPath returns a sink that forwards all events and, when it is closed, adds the critical path: the
// chain of steps that the end of the run waited for. It is found backwards from the kernel or step that ends
// last, from each receive to its send and along each channel's order. Its slices are contiguous, from zero to
// the end of the last kernel. Besides steps it has "kernel", the kernel's time before, between and after its
// steps, and "launch", the time before a rank's first kernel and between its kernels.
//
// cancelled, if not nil, is polled during the search; its error ends the search, and Close returns it and
// omits the path.
func CriticalPath(to trace.Sink, cancelled func() error) trace.Sink {
	return &pathSink{Sink: to, cancelled: cancelled, channels: map[lane]int32{}}
}

// pathSink stores the steps and kernels from which the path is found.
type pathSink struct {
	trace.Sink
	cancelled func() error
	polls     int            // rounds since cancelled was last called
	lanes     []lane         // by track id
	places    []int32        // by track id: number of its lane
	channels  map[lane]int32 // lane → its number
	last      []int32        // by track id: its latest step + 1
	steps     pathSteps
	sends     int // number of steps that are SendWaits
	newest    sendTable
	kernels   kernels
	full      bool
}

// lane identifies the rank and channel of a track's steps; rank -1: the track has none.
type lane struct{ rank, channel int32 }

// sendKey identifies a step of a connection at both of its ends.
type sendKey struct{ src, dst, channel, step int32 }

// hash mixes a key into the high bits.
func (k sendKey) hash() uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := (uint64(uint32(k.src))<<32 | uint64(uint32(k.step))) * odd
	h ^= h>>32 ^ uint64(uint32(k.dst))<<16 ^ uint64(uint32(k.channel))
	return h * odd
}

// sendTable is a hash table of the latest send of each key: slots hold the number of the step + 1, or 0.
type sendTable struct {
	slots []int32
	shift int // bits by which hashes are shifted right
}

// newSendTable returns a table with room for n keys, in which at least a quarter of the slots stays empty.
func newSendTable(n int) sendTable {
	size := bits.Len(uint(n + n/3))
	return sendTable{make([]int32, 1<<size), 64 - size}
}

// pathStep is stored for every slice of a trace; its fields are as small as possible.
type pathStep struct {
	start, end units.Time
	step       int32
	track      trace.TrackID
	peer       int32
	before     int32 // the preceding wait of the same step; -1: none
	wait       Wait
	network    bool
}

// pathSteps is a list that grows in blocks, so that growing does not copy it.
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

// sendOf returns the send that a receive waits for; with in-network reduction, the send of the rank that sent
// last.
func (p *pathSink) sendOf(s *pathStep) (int32, bool) {
	l := p.lanes[s.track]
	if s.network {
		if i, ok := p.findSend(sendKey{s.peer, NoPeer, l.channel, s.step}); ok {
			return i, ok
		}
	}
	return p.findSend(sendKey{s.peer, l.rank, l.channel, s.step})
}

// findSend returns the latest send of a step of a connection.
func (p *pathSink) findSend(k sendKey) (int32, bool) {
	i := *p.slot(k) - 1
	return i, i >= 0
}

// slot returns the table's slot of a key, or the free slot for it.
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

// phaseBefore returns the preceding wait of the same step, for a wait of the proxy.
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

// worked returns when a slice's own work began: the initial wait of a kernel that fills a step is caused by
// another slice.
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

// Track records the rank and channel whose steps are on a track.
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

// Emit forwards an event and stores steps and their arrows.
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
			p.steps, p.last = pathSteps{}, nil // no longer needed
			return
		}
		s := pathStep{start: worked(e), end: e.Start + e.Dur, track: e.Track,
			before: p.phaseBefore(e, Wait(w)), wait: Wait(w), network: e.Cat == "NET"}
		for _, a := range e.Args {
			switch a.Key {
			case "Step":
				// a run has no more steps than ops; those of a program are numbered in 31 bits
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

// pathSort is the position of the critical path in a viewer: above the ranks (ranks on the path are at
// positions below 0).
const pathSort = -1 << 30

// busiest moves the ranks with most time on the path to the top of the viewer; others keep their order.
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

// pollEvery is the number of rounds of a long loop between two polls.
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

// cause is an event that a channel can have waited for: the end of a step of its own, or a send whose data
// arrived.
type cause struct {
	end  units.Time
	step int32
}

// channelPath holds the causes on which a channel's steps waited.
type channelPath struct {
	causes []cause // by end
	recvs  []int32 // receives whose send is known, by start
}

// causes lists the causes by lane number, each list in the order of their ends. A receive is represented by
// the send whose data it waited for: its own slice lasts until the kernel has finished with the data, when
// the next send is already in flight.
func (p *pathSink) causes() (by []channelPath, final cause, err error) {
	by = make([]channelPath, len(p.channels))
	for i := range int32(p.steps.n) {
		if err := p.poll(); err != nil {
			return nil, cause{}, err
		}
		s := p.steps.at(i)
		if s.network && (s.wait == SendPeerWait || s.wait == SendWait) {
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
		p.polls += len(c.causes) // a sort costs about as much as this number of steps
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

// sortNear is a stable insertion sort for lists that are nearly in order; it falls back to a general sort if
// elements must move far.
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

// path finds the critical path, backwards from the end of the run.
func (p *pathSink) path() ([]pathPiece, error) {
	if err := p.index(); err != nil {
		return nil, err
	}
	by, final, err := p.causes()
	if err != nil || final.end == 0 {
		return nil, err
	}
	p.kernels.order()
	w := &walk{p: p, by: by, at: final.end} // all time after w.at is explained
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

// nearRecvs bounds how many receives before an instant are searched for one in flight: a channel has few at a
// time.
const nearRecvs = 64

// before returns the cause that a channel waited for at t: data whose transfer was in progress then and
// continued without a stop (LL and LL128 do not wait for a whole step), or else the latest cause at t or
// earlier. The returned cause began before t.
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
