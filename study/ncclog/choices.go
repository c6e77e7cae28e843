package ncclog

// choice stores the line of an operation together with the call that led to it. In a group the calls of all
// ranks of the process come first, then the choices of rank 0, one per call, in NCCL's order.
func (r *reader) choice(thread string, m []string, text string) {
	op := chosen{process: process(thread), Choice: Choice{Text: r.at(text), Func: m[1], Bytes: num64(m[2])}}
	g := r.groups[thread]
	if g != nil {
		g.ended = true
		if op.Func == "" && len(g.calls) > 0 {
			op.Func = g.calls[0].fn // before 2.23.4 the call alone names it
		}
		op.pointer, op.Grouped = g.of(r, op.process, op.Func)
		if c := g.only(op.pointer); c != nil && !op.Grouped && c.fn == op.Func {
			op.Called, op.Type, op.RedOp, op.Root = true, c.dtype, c.redop, c.root
		}
	}
	r.chosen = append(r.chosen, op)
}

// group is the calls of a thread before their choices.
type group struct {
	calls []call
	ended bool // a choice followed: the next call begins another group
}

// of names the communicator of rank 0 among the calls of a function, and whether
// it has several calls.
func (g *group) of(r *reader, process, fn string) (pointer string, several bool) {
	for _, c := range g.calls {
		if rank := r.procs[process+c.pointer]; c.fn == fn && (rank == nil || rank.Rank == 0) {
			pointer = c.pointer
			break
		}
	}
	n := 0
	for _, c := range g.calls {
		if c.pointer == pointer {
			n++
		}
	}
	return pointer, n > 1
}

// only returns the first call on a communicator, nil if there is none.
func (g *group) only(pointer string) *call {
	for i := range g.calls {
		if g.calls[i].pointer == pointer {
			return &g.calls[i]
		}
	}
	return nil
}
