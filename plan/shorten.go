package plan

import "slices"

// LoopGenerator is a Generator whose programs repeat the same iteration, equally on every channel, before an
// incomplete last one.
type LoopGenerator interface {
	Generator
	// Iterations returns the number of whole iterations on the channel with the fewest; 0 if the programs are
	// no such loops.
	Iterations() int64
	// Shorten returns the request, division and generator of the same programs with the given number of whole
	// iterations on the channel with the fewest; other channels lose equally many. Without rest, each channel
	// has exactly that number, and no incomplete iteration. With apart, the blocks of ranks keep their
	// distance. It returns false if that would change how an iteration is divided into chunks.
	Shorten(iterations int64, rest, apart bool) (Request, Split, Generator, bool)
}

// Iterations returns the number of whole iterations that each program of the plan has at least; 0 if its
// programs are no loops, or are divided in another way.
func (p *Plan) Iterations() int64 {
	if p.members != nil {
		return p.memberIterations()
	}
	if g, ok := p.gen.(LoopGenerator); ok {
		return g.Iterations()
	}
	return 0
}

// Shorten returns the plan with the given number of whole iterations, from 1 to Iterations, on the channel
// with the fewest; other channels lose equally many. Without rest, each channel has exactly that number.
// Chunks, connections and thread groups stay. NCCL would never plan such an operation: it serves to simulate
// a part of this one. It returns nil if no such plan exists.
//
// The blocks of ranks keep their distance, because that determines how fast they are read and written.
func (p *Plan) Shorten(iterations int64, rest bool) (*Plan, error) {
	return p.shorten(iterations, rest, true)
}

// Smaller returns the plan with fewer iterations as that of a smaller operation: like Shorten with rest, but
// with the blocks of ranks adjacent.
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

// memberIterations returns the number of iterations of a joined plan of equal collectives, or of messages of
// one size; 0 for other joined plans.
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

// shortenMembers shortens all operations of a joined plan to the same number of iterations.
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

// DividedAs returns a shortened plan in which channels that differ in the whole plan still count as different
// (Part.Kind), even if they have equal shares now. It shares all other data with p.
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

// TurnGenerator is a Generator whose programs repeat, within an iteration, the same ops for one block of data
// after the other: a ring's. Such a repetition is called a turn.
type TurnGenerator interface {
	Generator
	// Turns returns the number of turns in an iteration; 0: none.
	Turns() int64
	// InTurns returns a generator whose iterations have the given number of turns, from 2 to Turns.
	InTurns(turns int64) Generator
}

// Turns returns the number of turns in each iteration of the plan's programs; 0: none.
func (p *Plan) Turns() int64 {
	if g, ok := p.gen.(TurnGenerator); ok {
		return g.Turns()
	}
	return 0
}

// InTurns returns the plan with the given number of turns per iteration, from 2 to Turns; everything else
// stays, chunks included. NCCL would never plan such an operation, and its outputs are incomplete: it serves
// to simulate a part of this one. It returns nil if no such plan exists.
func (p *Plan) InTurns(turns int64) (*Plan, error) {
	g, ok := p.gen.(TurnGenerator)
	if !ok || turns < 2 || turns > g.Turns() {
		return nil, nil
	}
	return New(p.Comm, p.Req, p.Split, g.InTurns(turns))
}
