package tuning

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Segment is a range of sizes in which the same algorithm and protocol win.
type Segment struct {
	From, To units.Bytes // both ends included, sizes as Choice.NBytes has them
	Algo     coll.Algorithm
	Proto    coll.Protocol
	// Mixed is set where two rivals are equal up to the rounding of NCCL's
	// float32 over the whole range, so that they alternate; Algo and Proto win
	// at From.
	Mixed  bool
	Direct string // Choice's
}

// MaxSize is where Segments stop: no buffer is larger.
const MaxSize units.Bytes = 1 << 40

// Segments lists who wins from one element up to limit bytes (MaxSize where it
// is 0), for the operation o whose Count does not matter. The borders are
// exact: the model's own float32 decides on either side of each.
//
// Within a piece (between two powers of two, and on one side of the ring's
// plateau) every time is a constant plus bytes over a constant, rounded thrice.
// So a rival that loses at both ends of a range by more than the rounding can
// make up loses inside it too; only where the margin is thinner is the range
// halved, down to single elements.
func (m *Model) Segments(o Op, limit units.Bytes) ([]Segment, error) {
	o.Count = 1
	if _, err := m.Choose(o); err != nil {
		return nil, err
	}
	if limit <= 0 || limit > MaxSize {
		limit = MaxSize
	}
	s := &scan{m: m, o: o, unit: uint64(o.NBytes(m.In.NRanks)), left: scanBudget}
	last := uint64(limit) / s.unit
	if last == 0 {
		return nil, fmt.Errorf("tuning: %d bytes are less than one element a rank (%d bytes)", limit, s.unit)
	}
	for _, p := range s.pieces(last) {
		s.halve(p[0], p[1])
	}
	return s.out, nil
}

// scanBudget bounds the evaluations of one Segments.
const scanBudget = 200000

type scan struct {
	m    *Model
	o    Op
	unit uint64 // bytes of one element of every rank
	left int
	out  []Segment
}

// pieces cuts counts 1..last where the model's constants change.
func (s *scan) pieces(last uint64) [][2]uint64 {
	var cuts []uint64 // first count of a piece
	for k := 6; k <= 6+len(s.m.tab.TreeCorrection[0]); k++ {
		cuts = append(cuts, (uint64(1)<<k+s.unit-1)/s.unit)
	}
	if p := s.m.Params.Plugin; p != nil {
		for i := range p.Rows {
			cuts = append(cuts, p.Rows[i].Min/s.unit+min(1, p.Rows[i].Min%s.unit), p.Rows[i].Max/s.unit+1)
		}
	}
	if s.m.cost != nil {
		cuts = append(cuts, s.m.amdCuts(s.o.Func, s.unit)...)
	}
	plateau := (64*s.m.plateau() + s.unit - 1) / s.unit
	var out [][2]uint64
	from := uint64(1)
	for from <= last {
		next := last + 1
		for _, c := range append(cuts, plateau) {
			if c > from && c < next {
				next = c
			}
		}
		out = append(out, [2]uint64{from, next - 1})
		from = next
	}
	return out
}

// at returns the winner and all times for a count.
func (s *scan) at(count uint64) (cell, Times) {
	s.left--
	o := s.o
	o.Count = int64(count)
	c := Choice{Op: o, Times: s.m.times(o, count*s.unit)}
	s.m.steer(&c)
	t := c.Times
	best := cell{-1, -1}
	for a := range t {
		for p, v := range t[a] {
			if v >= 0 && (best.a < 0 || v < t[best.a][best.p]) {
				best = cell{a, p}
			}
		}
	}
	if s.m.tab.RingRemains && best.a >= 0 && t[best.a][best.p] >= s.m.tab.LongestUs {
		best = cell{remains, remains}
	}
	return best, t
}

// remains is Ring by Simple where every time is too long to be taken.
const remains = -2

type cell struct{ a, p int }

// halve finds the segments of the counts from..to, which lie in one piece.
func (s *scan) halve(from, to uint64) {
	w, first := s.at(from)
	if from == to {
		s.add(from, to, w, false)
		return
	}
	w2, lastT := s.at(to)
	if w == w2 && (w.a == remains || s.holds(w, first, lastT)) {
		s.add(from, to, w, false)
		return
	}
	if s.left <= 0 {
		s.add(from, to, w, true)
		return
	}
	mid := from + (to-from)/2
	s.halve(from, mid)
	s.halve(mid+1, to)
}

// holds reports whether the winner at both ends certainly wins between them.
func (s *scan) holds(w cell, first, last Times) bool {
	const ulps = 8.0 / (1 << 24) // twice the four roundings of two times
	for a := range first {
		for p := range first[a] {
			r := cell{a, p}
			if r == w || first[a][p] < 0 || s.twins(w, r) {
				continue
			}
			slack := float32(ulps) * max(last[a][p], last[w.a][w.p])
			if first[a][p]-first[w.a][w.p] <= slack || last[a][p]-last[w.a][w.p] <= slack {
				return false
			}
		}
	}
	return true
}

// twins are cells with equal constants: equal times everywhere, and the first
// wins.
func (s *scan) twins(x, y cell) bool {
	m, f := s.m, s.o.Func
	special := func(c cell) bool {
		return m.cost != nil || f == coll.AllReduce && (coll.Algorithm(c.a) == coll.Tree ||
			coll.Algorithm(c.a) == coll.Ring)
	}
	return !special(x) && !special(y) && m.Latency[f][x.a][x.p] == m.Latency[f][y.a][y.p] &&
		m.Bandwidth[f][x.a][x.p] == m.Bandwidth[f][y.a][y.p]
}

// add appends a range, joining it to the last where the winner is the same.
func (s *scan) add(from, to uint64, w cell, mixed bool) {
	if w.a == remains {
		w = cell{int(coll.Ring), int(coll.Simple)}
	}
	seg := Segment{From: units.Bytes(from * s.unit), To: units.Bytes(to * s.unit), Algo: coll.Algorithm(w.a),
		Proto: coll.Protocol(w.p), Mixed: mixed}
	if s.m.cost != nil && w.a >= 0 {
		c := Choice{Op: s.o, Algo: seg.Algo, Proto: seg.Proto, NBytes: seg.From,
			Times: s.m.times(s.o, from*s.unit)}
		s.m.amdAfter(&c)
		seg.Algo, seg.Proto, seg.Direct = c.Algo, c.Proto, c.Direct
	}
	if n := len(s.out); n > 0 {
		l, same := &s.out[n-1], seg
		same.From, same.To = l.From, l.To
		if same == *l {
			l.To = seg.To
			return
		}
	}
	s.out = append(s.out, seg)
}
