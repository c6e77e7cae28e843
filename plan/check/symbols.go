package check

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// seg is the symbolic content of n bytes: the contributions of a set of ranks,
// byte i being their inputs' byte off+i.
type seg struct {
	n, off units.Bytes
	set    int32 // below the number of symbols.ranks: that one alone
	post   bool  // scaled
}

// value is the content of a payload.
type value []seg

// interval is a seg at a place in memory.
type interval struct {
	at units.Bytes
	seg
}

// symbols holds what every rank's buffers contain, and the sets of ranks met.
type symbols struct {
	p     *plan.Plan
	ranks []int32         // whose buffers there are
	at    map[int32]int32 // rank → its place in ranks, nil where these are all
	bufs  [][3][]interval // of ranks: Input, Output, Scratch, sorted; the first alone where they are shared
	sets  ranks
	all   int32

	layout layoutOf
	segs   arena[seg]
	put    []interval // scratch of Write
}

// arena makes short slices that are kept, many in one piece of memory.
type arena[T any] struct{ room []T }

// arenaRoom is how many elements one piece of memory has.
const arenaRoom = 1 << 10

// one returns an empty slice with room for one element.
func (a *arena[T]) one() []T {
	if len(a.room) == 0 {
		a.room = make([]T, arenaRoom)
	}
	s := a.room[:0:1]
	a.room = a.room[1:]
	return s
}

// layoutOf keeps the memory of the rank that was asked for last.
type layoutOf struct {
	rank  int32
	known bool
	plan.Layout
}

func (l *layoutOf) get(p *plan.Plan, rank int32) *plan.Layout {
	if !l.known || l.rank != rank {
		*l = layoutOf{rank, true, p.Layout(rank)}
	}
	return &l.Layout
}

// ranks are sets of ranks, numbered from those of one rank on.
type ranks interface {
	// union returns the set of both. An error names a rank that is in both.
	union(a, b int32) (int32, error)
	// members lists a set, shortened.
	members(id int32) string
}

func newSymbols(p *plan.Plan, listedUpTo int) *symbols {
	n := p.Comm.NRanks
	m := &symbols{p: p, ranks: allRanks(p)}
	if n <= listedUpTo {
		m.sets, m.all = newListed(n)
	} else {
		m.sets, m.all = newSummed(n)
	}
	m.fillInputs()
	return m
}

// fillInputs makes the ranks' buffers, of which the inputs hold what is theirs.
func (m *symbols) fillInputs() {
	m.bufs = make([][3][]interval, len(m.ranks))
	for i, r := range m.ranks {
		if l := m.p.Layout(r); l.Input > 0 {
			m.bufs[i][0] = []interval{{l.InputAt, seg{n: l.Input, set: int32(i)}}}
		}
	}
}

// place returns the buffer and the offset in it of a Ref.
func (m *symbols) place(rank int32, r plan.Ref) (*[]interval, units.Bytes) {
	i := rank
	if m.at != nil {
		i = m.at[rank]
	}
	bufs := &m.bufs[i]
	if r.Buf == plan.Scratch {
		return &bufs[2], r.Off
	}
	l := m.layout.get(m.p, rank)
	b := &bufs[1]
	off := r.Off + l.OutputAt
	if r.Buf == plan.Input {
		b, off = &bufs[0], r.Off+l.InputAt
	}
	if l.Shared {
		b = &bufs[0]
	}
	return b, off
}

// find returns the index of the first interval that ends after at.
func find(b []interval, at units.Bytes) int {
	i, _ := slices.BinarySearchFunc(b, at, func(v interval, at units.Bytes) int {
		if v.at+v.n <= at {
			return -1
		}
		return 1
	})
	return i
}

// Read returns the content of n bytes, an error where some are undefined.
func (m *symbols) Read(rank int32, r plan.Ref, n units.Bytes) (value, error) {
	if n == 0 {
		return nil, nil
	}
	b, at := m.place(rank, r)
	v := value(m.segs.one())
	for i := find(*b, at); n > 0; i++ {
		if i >= len(*b) || (*b)[i].at > at {
			return nil, fmt.Errorf("rank %d reads byte %d of %v, which was never written", rank, at-r.Off, r)
		}
		s := (*b)[i].seg
		skip := at - (*b)[i].at
		s.off += skip
		s.n = min(s.n-skip, n)
		v = append(v, s)
		at += s.n
		n -= s.n
	}
	return v, nil
}

// Write stores a value, replacing the old one.
func (m *symbols) Write(rank int32, r plan.Ref, n units.Bytes, v value) error {
	if n == 0 {
		return nil
	}
	b, at := m.place(rank, r)
	first := find(*b, at)
	last := first
	put := m.put[:0]
	if first > 0 { // what follows may continue it
		put = append(put, (*b)[first-1])
	}
	if first < len(*b) && (*b)[first].at < at {
		left := (*b)[first]
		left.n = at - left.at
		put = append(put, left)
	}
	pos := at
	for _, s := range v {
		put = appendMerged(put, interval{pos, s})
		pos += s.n
	}
	for last < len(*b) && (*b)[last].at < at+n {
		right := (*b)[last]
		if cut := at + n - right.at; cut < right.n {
			put = appendMerged(put, interval{at + n, seg{right.n - cut, right.off + cut, right.set,
				right.post}})
		}
		last++
	}
	first = max(0, first-1)
	if last < len(*b) && len(put) > 0 && joins(put[len(put)-1], (*b)[last]) {
		put[len(put)-1].n += (*b)[last].n
		last++
	}
	*b = slices.Replace(*b, first, last, put...)
	m.put = put
	return nil
}

// joins reports whether b continues a.
func joins(a, b interval) bool {
	return a.at+a.n == b.at && a.set == b.set && a.post == b.post && a.off+a.n == b.off
}

func appendMerged(list []interval, v interval) []interval {
	if k := len(list); k > 0 && joins(list[k-1], v) {
		list[k-1].n += v.n
		return list
	}
	return append(list, v)
}

// Reduce adds two values of equal size byte by byte.
func (m *symbols) Reduce(_ *plan.Op, a, b value) (value, error) {
	out := value(m.segs.one())
	if n := max(len(a), len(b)); n > 1 {
		out = make(value, 0, n)
	}
	var x, y seg // what is left of the first ones of a and b
	for {
		if x.n == 0 && len(a) > 0 {
			x, a = a[0], a[1:]
		}
		if y.n == 0 && len(b) > 0 {
			y, b = b[0], b[1:]
		}
		n := min(x.n, y.n)
		if n == 0 {
			break
		}
		if x.off != y.off {
			return nil, fmt.Errorf("adds byte %d of one input to byte %d of another", x.off, y.off)
		}
		if x.post || y.post {
			return nil, fmt.Errorf("adds to a result that was scaled already")
		}
		set, err := m.sets.union(x.set, y.set)
		if err != nil {
			return nil, err
		}
		if k := len(out); k > 0 && out[k-1].set == set && out[k-1].off+out[k-1].n == x.off {
			out[k-1].n += n
		} else {
			out = append(out, seg{n: n, off: x.off, set: set})
		}
		x.n, x.off, y.n, y.off = x.n-n, x.off+n, y.n-n, y.off+n
	}
	if x.n+y.n > 0 || len(a)+len(b) > 0 {
		return nil, fmt.Errorf("adds values of different size")
	}
	return out, nil
}

// Post applies the final scaling, which is right only on complete sums.
func (m *symbols) Post(_ *plan.Op, v value) (value, error) {
	v = slices.Clone(v)
	for i := range v {
		if v[i].set != m.all {
			return nil, fmt.Errorf("scales a sum that is not complete")
		}
		v[i].post = m.p.Req.Op == coll.Avg
	}
	return v, nil
}

// compare checks an output against what it should hold.
func (m *symbols) compare(rank int32, at units.Bytes, got value, want seg) error {
	for _, s := range got {
		if s.set != want.set || s.off != want.off || s.post != want.post {
			return &Error{rank, -1, -1, -1,
				fmt.Sprintf("output byte %d holds byte %d of ranks %s (scaled: %t), should hold byte %d of "+
					"%s",
					at, s.off, m.sets.members(s.set), s.post, want.off, m.sets.members(want.set))}
		}
		at += s.n
		want.off += s.n
	}
	return nil
}
