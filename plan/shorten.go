package plan

import "slices"

// LoopGenerator is a Generator whose programs do the same iteration again and
// again, on every channel equally, before an incomplete last one.
type LoopGenerator interface {
	Generator
	// Iterations returns how many whole iterations the channel with the fewest
	// has; 0 where programs are no such loops.
	Iterations() int64
	// Shorten returns request, division and generator of the same programs with
	// so many whole iterations on the channel with the fewest, and as many fewer on
	// the others; without rest, just so many on each channel and nothing else. Blocks of
	// ranks begin with apart where those of the whole do. It reports false where that
	// would change how an iteration is cut.
	Shorten(iterations int64, rest, apart bool) (Request, Split, Generator, bool)
}

// Iterations returns how many whole iterations each program of the plan has at
// least; 0 where its programs are no loops, or are cut otherwise.
func (p *Plan) Iterations() int64 {
	if p.members != nil {
		return p.memberIterations()
	}
	if g, ok := p.gen.(LoopGenerator); ok {
		return g.Iterations()
	}
	return 0
}

// Shorten returns the plan with so many whole iterations on the channel with the
// fewest, from 1 to Iterations, and as many fewer on the others, or, without
// rest, with just so many on every channel. Chunks, connections and thread groups
// stay. It is no operation that NCCL would plan so: it shows what a part of this
// one does. It is nil where there is none.
//
// The blocks of ranks begin as far apart as those of the whole: where they do decides how
// fast they are read and written.
func (p *Plan) Shorten(iterations int64, rest bool) (*Plan, error) {
	return p.shorten(iterations, rest, true)
}

// Smaller returns the plan with fewer iterations as that of a smaller operation: as Shorten
// with rest, and with blocks of ranks as far apart as they are long.
func (p *Plan) Smaller(iterations int64) (*Plan, error) { return p.shorten(iterations, true, false) }

func (p *Plan) shorten(iterations int64, rest, apart bool) (*Plan, error) {
	if p.members != nil {
		return p.shortenMembers(iterations, rest, apart)
	}
	g, ok := p.gen.(LoopGenerator)
	if !ok || iterations < 1 || iterations > g.Iterations() {
		return nil, nil
	}
	r, s, cut, ok := g.Shorten(iterations, rest, apart)
	if !ok {
		return nil, nil
	}
	return New(p.Comm, r, s, cut)
}

// memberIterations is how many iterations equal collectives of a joined plan have, each, or its
// messages of one size; 0
// where others run in the same kernel.
func (p *Plan) memberIterations() int64 {
	n, first := int64(0), &p.members[0].Plan.Req
	for i := range p.members {
		m := p.members[i].Plan
		its := m.Iterations()
		if i > 0 && its != n || m.Req.Func != first.Func || m.Req.Algo != first.Algo ||
			m.Req.Proto != first.Proto {
			return 0
		}
		n = its
	}
	return n
}

// shortenMembers shortens all operations of a joined plan by the same iterations.
func (p *Plan) shortenMembers(iterations int64, rest, apart bool) (*Plan, error) {
	if iterations < 1 || iterations > p.memberIterations() {
		return nil, nil
	}
	members := slices.Clone(p.members)
	for i := range members {
		short, err := members[i].Plan.shorten(iterations, rest, apart)
		if short == nil || err != nil {
			return nil, err
		}
		members[i].Plan = short
	}
	return Join(p.Comm, members)
}

// DividedAs returns a shortened plan whose channels are kept apart where those of the whole
// differ, though they may do the same in it. It shares all else with the plan.
func (p *Plan) DividedAs(whole *Plan) *Plan {
	own, w := *p, &whole.Split
	if p.members != nil {
		own.members = slices.Clone(p.members)
		for i := range own.members {
			own.members[i].Plan = own.members[i].Plan.DividedAs(whole.members[i].Plan)
		}
		own.gen = &joined{members: own.members, base: p.gen.(*joined).base}
		return &own
	}
	switch {
	case w.Lo == w.Mid:
	case w.Lo == w.Hi:
		own.Split.Mid.Kind = 1
	default:
		own.Split.Lo.Kind = 1
	}
	if w.Hi != w.Mid && w.Hi != w.Lo {
		own.Split.Hi.Kind = 2
	}
	return &own
}

// TurnGenerator is a Generator whose programs take, within an iteration, the same
// turn for one block of data after the other: a ring's.
type TurnGenerator interface {
	Generator
	// Turns returns how many are in an iteration; 0 where it has none.
	Turns() int64
	// InTurns returns a generator whose iterations have so many turns, from 2 to Turns.
	InTurns(turns int64) Generator
}

// Turns returns how many turns each iteration of the plan's programs has; 0 where it
// has none.
func (p *Plan) Turns() int64 {
	if g, ok := p.gen.(TurnGenerator); ok {
		return g.Turns()
	}
	return 0
}

// InTurns returns the plan with so many turns an iteration, from 2 to Turns; all else
// stays, chunks included. It is no operation that NCCL would plan so, and leaves
// outputs incomplete: it shows what a part of this one does. It is nil where there
// is none.
func (p *Plan) InTurns(turns int64) (*Plan, error) {
	g, ok := p.gen.(TurnGenerator)
	if !ok || turns < 2 || turns > g.Turns() {
		return nil, nil
	}
	return New(p.Comm, p.Req, p.Split, g.InTurns(turns))
}
