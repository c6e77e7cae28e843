package gen

// kind is a pass over a stage's layers: forward, backward, or the weights' part of a divided backward pass.
type kind uint8

const (
	forward  kind = iota
	backward      // of inputs and weights, or of inputs where weights follows
	weights       // of weights
)

// action is one pass over a stage's layers.
type action struct {
	kind  kind
	micro int
	chunk int // which of the rank's stages
}

// actions is the order of passes of a rank of a pipeline of p ranks with m microbatches
// and v stages a rank.
func actions(s Schedule, p, rank, m, v int) []action {
	switch s {
	case GPipe:
		return gpipe(m)
	case Interleaved:
		return interleaved(p, rank, m, v)
	case ZeroBubble:
		return zeroBubble(p, rank, m)
	}
	return oneFOneB(min(p-rank-1, m), m)
}

func gpipe(m int) (out []action) {
	for i := range m {
		out = append(out, action{kind: forward, micro: i})
	}
	for i := range m {
		out = append(out, action{kind: backward, micro: i})
	}
	return out
}

// oneFOneB is warm passes forward, then one forward and one backward by turns.
func oneFOneB(warm, m int) (out []action) {
	for i := range warm {
		out = append(out, action{kind: forward, micro: i})
	}
	for i := range m {
		if warm+i < m {
			out = append(out, action{kind: forward, micro: warm + i})
		}
		out = append(out, action{kind: backward, micro: i})
	}
	return out
}

// interleaved takes microbatches p at a time through each of the rank's stages in turn
// (Narayanan et al., 2021, section 2.2).
func interleaved(p, rank, m, v int) (out []action) {
	total := m * v
	at := func(k kind, i int) action {
		round, within := i/(p*v), i%(p*v)
		chunk := within / p
		if k == backward {
			chunk = v - 1 - chunk
		}
		return action{k, round*p + within%p, chunk}
	}
	warm := min((p-rank-1)*2+(v-1)*p, total)
	for i := range warm {
		out = append(out, at(forward, i))
	}
	for i := range total {
		if warm+i < total {
			out = append(out, at(forward, warm+i))
		}
		out = append(out, at(backward, i))
	}
	return out
}

// zeroBubble is ZB-H1 (Qi et al., 2023, section 2.2): passes as in 1F1B, but the
// gradients of weights of a microbatch are computed as many microbatches later as there
// are stages before this one. Each rank then holds as many activations as the first one
// of 1F1B, p.
func zeroBubble(p, rank, m int) (out []action) {
	for _, a := range oneFOneB(min(p-rank-1, m), m) {
		out = append(out, a)
		if a.kind == backward && a.micro >= rank {
			out = append(out, action{kind: weights, micro: a.micro - rank})
		}
	}
	for i := max(m-rank, 0); i < m; i++ {
		out = append(out, action{kind: weights, micro: i})
	}
	return out
}
