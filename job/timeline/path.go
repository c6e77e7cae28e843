package timeline

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// PieceKind is the kind of a piece of the critical path.
type PieceKind uint8

// Kinds of pieces.
const (
	Computing PieceKind = iota // a compute kernel
	Hosting                    // a thread of the host
	Moving                     // a call, from when its last member began
	Queued                     // a kernel waits for SMs
	Unknown                    // a kernel that communicates by an unknown call
)

// Piece is a part of the critical path: a step of a rank, or its wait before.
type Piece struct {
	Place
	Kind     PieceKind
	From, To units.Time
}

// Path returns the critical path: the chain of steps that the end of the job waited for, in the order of
// time. Each piece begins where the one before it ends. A call contributes the time after its last member
// began; the path then continues with the steps of that member.
func (t *Timeline) Path() []Piece {
	at, end := Place{}, units.Time(-1)
	for rank := range t.r.Spans {
		for i := range t.r.Spans[rank] {
			if e := t.r.Spans[rank][i].End; e > end {
				at, end = Place{int32(rank), int32(i)}, e
			}
		}
	}
	if end < 0 {
		return nil
	}
	var out []Piece
	total := 0
	for _, s := range t.r.Spans {
		total += len(s)
	}
	for range 2*total + 1 { // each step occurs at most once with its own time, and once without
		at = t.pieces(at, &out)
		var ok bool
		if at, ok = t.before(at); !ok {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// pieces appends, latest first, the intervals during which the end of step at was awaited, and returns the
// step with whose begin they start (of a call: that of its last member).
func (t *Timeline) pieces(at Place, out *[]Piece) Place {
	s, step := t.span(at), t.step(at)
	add := func(p Place, k PieceKind, from, to units.Time) {
		if to > from {
			*out = append(*out, Piece{p, k, from, to})
		}
	}
	switch step.Kind {
	case workload.Compute:
		kind := Computing
		switch {
		case workload.OnHost(step.Stream):
			kind = Hosting
		case t.r.Program.Communicates(step):
			kind = Unknown
		}
		add(at, kind, s.Begin, s.End)
	case workload.Issue:
		at = t.latest(at)
		met := t.met(at)
		s = t.span(at)
		add(at, Moving, met, s.End)
		if o := &t.ops[t.of[at.Rank][at.Step]-1]; met > s.Begin {
			at = o.last
			s = t.span(at)
		}
	}
	add(at, Queued, s.Issued, s.Begin)
	return at
}

// latest returns, among the sends and receives in the kernel of step at, the one whose other rank began last.
func (t *Timeline) latest(at Place) Place {
	o, c := t.orderOf(at.Rank), t.callAt(at)
	g := o.group[at.Step]
	if g < 0 || !message(c) {
		return at
	}
	steps := t.r.Program.Lists[t.r.Program.Of[at.Rank]].Steps
	best := at
	for i := g + 1; int(i) < len(steps) && o.group[i] == g; i++ {
		p := Place{at.Rank, i}
		if steps[i].Kind == workload.Issue && message(t.callAt(p)) && t.callAt(p).Comm == c.Comm &&
			t.met(p) > t.met(best) {
			best = p
		}
	}
	return best
}

func message(c *workload.Call) bool { return c.Func == coll.Send || c.Func == coll.Recv }

func (t *Timeline) callAt(p Place) *workload.Call { return &t.r.Program.Calls[t.step(p).Call] }

// orderOf returns the predecessors of the steps of a rank's list, computed on first use.
func (t *Timeline) orderOf(rank int32) *order {
	list := t.r.Program.Of[rank]
	if t.orders[list] == nil {
		t.orders[list] = newOrder(t.r.Program, list)
	}
	return t.orders[list]
}

// order holds the predecessors of each step of a list.
type order struct {
	stream []int32   // the step before on its stream; -1: none
	record []int32   // of a wait: its Record; of a call: the call before on the same resources; -1: none
	group  []int32   // first step of the outermost group that contains it; -1: none
	first  [][]int32 // by number of a group: predecessors of its first step
	of     []int32   // number of the group that a step begins or ends; -1: none
}

// before returns the predecessor of a step that ended last before the step's kernel was launched. ok is false
// if the step was ready at time zero.
func (t *Timeline) before(at Place) (Place, bool) {
	if t.span(at).Issued <= 0 {
		return Place{}, false
	}
	o, steps := t.orderOf(at.Rank), t.r.Program.Lists[t.r.Program.Of[at.Rank]].Steps
	best, end := int32(-1), units.Time(-1)
	try := func(i int32) {
		if i < 0 || i >= at.Step && steps[at.Step].Kind != workload.GroupEnd {
			return
		}
		if e := t.r.Spans[at.Rank][i].End; e > end && e <= t.span(at).Issued && i != at.Step {
			best, end = i, e
		}
	}
	switch g := o.group[at.Step]; {
	case g >= 0 && g != at.Step && steps[at.Step].Kind != workload.GroupEnd:
		try(g)
	case g >= 0 && g == at.Step:
		for _, i := range o.first[o.of[at.Step]] {
			try(i)
		}
	case g >= 0:
		for i := g; i < at.Step; i++ {
			try(i)
		}
	default:
		try(o.stream[at.Step])
		for _, d := range steps[at.Step].Deps {
			try(d)
		}
	}
	try(o.record[at.Step])
	return Place{at.Rank, best}, best >= 0
}

// newOrder finds the predecessors of a list's steps, in the order that NCCL and CUDA keep: steps of a stream,
// awaited events, and kernels of one communicator's resources.
func newOrder(p *workload.Program, list int32) *order {
	steps := p.Lists[list].Steps
	n := len(steps)
	o := &order{stream: make([]int32, n), record: make([]int32, n), group: make([]int32, n),
		of: make([]int32, n)}
	stream, event, resource := map[int32]int32{}, map[int32]int32{}, map[int32]int32{}
	last := func(m map[int32]int32, key int32) int32 {
		if i, ok := m[key]; ok {
			return i
		}
		return -1
	}
	depth, first := 0, int32(-1)
	for i := range steps {
		s, k := &steps[i], int32(i)
		o.stream[i], o.record[i], o.group[i], o.of[i] = -1, -1, -1, -1
		if s.Kind == workload.GroupStart {
			if depth++; depth == 1 {
				first, o.of[i] = k, int32(len(o.first))
				o.first = append(o.first, nil)
			}
		}
		if depth > 0 {
			o.group[i] = first
			g := &o.first[len(o.first)-1]
			for _, d := range s.Deps {
				if d < first {
					*g = append(*g, d)
				}
			}
			if s.Kind == workload.Issue {
				if b := last(stream, s.Stream); b >= 0 && b < first {
					*g = append(*g, b)
				}
			}
		} else {
			o.stream[i] = last(stream, s.Stream)
			stream[s.Stream] = k
		}
		switch s.Kind {
		case workload.Issue:
			r := p.Resources(p.Calls[s.Call].Comm)
			o.record[i] = last(resource, r)
			resource[r] = k
		case workload.Record:
			event[s.Event] = k
		case workload.Wait:
			o.record[i] = last(event, s.Event)
		case workload.GroupEnd:
			if depth--; depth == 0 {
				for j := first; j < k; j++ {
					if steps[j].Kind == workload.Issue {
						stream[steps[j].Stream] = k
					}
				}
			}
		}
	}
	return o
}

// Share is the total of one kind of piece on the critical path.
type Share struct {
	Kind PieceKind
	Comm int32 // index of the communicator if Kind is Moving, else -1
	Time units.Time
}

// Shares sums a path's pieces by kind and communicator, the longest first.
func (t *Timeline) Shares(path []Piece) (out []Share) {
	for i := range path {
		p := &path[i]
		comm := int32(-1)
		if p.Kind == Moving {
			comm = t.r.Program.Calls[t.step(p.Place).Call].Comm
		}
		k := slices.IndexFunc(out, func(s Share) bool { return s.Kind == p.Kind && s.Comm == comm })
		if k < 0 {
			k = len(out)
			out = append(out, Share{p.Kind, comm, 0})
		}
		out[k].Time += p.To - p.From
	}
	slices.SortStableFunc(out, func(a, b Share) int { return cmp.Compare(b.Time, a.Time) })
	return out
}
