package transform

import (
	"slices"

	"github.com/simccl/simccl/workload"
)

// emitter writes the iterations of a pipeline stage. It sends messages as PyTorch's schedules do
// (torch.distributed.pipelining.schedules): a batch is one launch on the stream of the process group; the
// next computation of a rank waits for the received messages, and a send is awaited as late as the next one.
type emitter struct {
	*rewriter
	p       *workload.Program
	comms   []int
	st      *stage
	pending []int32 // messages that the next computation waits for
	last    int32   // last message, -1 none
}

// stage writes one iteration of m microbatches.
func (e *emitter) stage(st *stage, order PipelineSchedule, m int) {
	e.st, e.pending, e.last = st, nil, -1
	e.part(st.head)
	if order == gPipe {
		e.gpipe(m)
	} else {
		e.oneFOneB(m)
	}
	e.part(st.tail)
}

// forwardPass and backwardPass write a microbatch, of m. The first and last recorded
// passes are taken for the first and last ones: gradients are made by the first and added
// to by others.
func (e *emitter) forwardPass(i, m int)  { e.part(pick(e.st.forward, i, m)) }
func (e *emitter) backwardPass(i, m int) { e.part(pick(e.st.backward, i, m)) }

func pick(list []part, i, m int) part {
	switch n := len(list); {
	case i == 0:
		return list[0]
	case i == m-1:
		return list[n-1]
	case i < n-1:
		return list[i]
	case n > 2:
		return list[n-2]
	default:
		return list[n-1]
	}
}

// gpipe: all forward, then all backward; sends are waited for after each half.
func (e *emitter) gpipe(m int) {
	var sends []int32
	for i := range m {
		e.waitFor(e.batch(recvForward))
		e.forwardPass(i, m)
		sends = append(sends, e.batch(sendForward)...)
	}
	e.waitFor(sends)
	sends = nil
	for i := range m {
		e.waitFor(e.batch(recvBackward))
		e.backwardPass(i, m)
		sends = append(sends, e.batch(sendBackward)...)
	}
	e.waitFor(sends)
}

// oneFOneB: as many forward passes as there are stages behind and this one, then
// backward and forward by turns, then the rest backward. A send forward and the receive
// of a gradient are one batch, as are a send backward and the receive of an activation.
func (e *emitter) oneFOneB(m int) {
	warm := min(m, e.st.of-e.st.index)
	var sent []int32
	for i := range warm {
		e.waitFor(e.batch(recvForward))
		e.forwardPass(i, m)
		e.waitFor(sent)
		if i < warm-1 {
			sent = e.batch(sendForward)
		}
	}
	forward, backward := warm, 0
	for {
		e.waitFor(e.batch(sendForward, recvBackward))
		e.backwardPass(backward, m)
		if backward++; forward == m {
			break
		}
		e.waitFor(e.batch(sendBackward, recvForward))
		e.forwardPass(forward, m)
		forward++
	}
	sent = e.batch(sendBackward)
	for ; backward < m; backward++ {
		e.waitFor(e.batch(recvBackward))
		e.backwardPass(backward, m)
		e.waitFor(sent)
		sent = e.batch(sendBackward)
	}
	e.waitFor(sent)
}

func (e *emitter) waitFor(messages []int32) { e.pending = append(e.pending, messages...) }

// batch launches messages together; those without a neighbour are left out.
func (e *emitter) batch(ways ...way) (out []int32) {
	ways = slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return e.st.call[w] < 0 })
	if len(ways) == 0 {
		return nil
	}
	if n := len(e.out); n > 0 && e.st.lag > 0 && e.last == int32(n-1) {
		e.add(workload.Step{Kind: workload.Compute, Stream: workload.HostStream, Time: e.st.lag})
	}
	var deps []int32
	for _, d := range []int32{e.host, e.gpu} {
		if d >= 0 {
			deps = append(deps, d)
		}
	}
	deps = append(deps, e.pending...)
	if len(ways) > 1 {
		e.add(workload.Step{Kind: workload.GroupStart})
	}
	for _, w := range ways {
		out = append(out, e.add(workload.Step{Kind: workload.Issue, Stream: e.st.stream[w],
			Call: e.st.call[w], Deps: slices.Clone(deps)}))
	}
	e.last = out[len(out)-1]
	if len(ways) > 1 {
		e.last = e.add(workload.Step{Kind: workload.GroupEnd})
	}
	return out
}

// part copies a range of steps: within it steps depend on each other as recorded, on
// earlier ones of the host as on its last, and the first computation on the messages
// that are waited for.
func (e *emitter) part(p part) {
	for i := p.lo; i < p.hi; i++ {
		s := e.src[i]
		var deps []int32
		for _, d := range e.src[i].Deps {
			old := &e.src[d]
			switch {
			case int(d) >= p.lo:
				deps = append(deps, e.at[d])
			case workload.OnHost(old.Stream):
				deps = append(deps, e.host)
			case e.mine(old):
				if workload.OnHost(s.Stream) { // the host waits for the GPU
					deps = append(deps, e.messages()...)
				}
			default:
				deps = append(deps, e.at[d])
			}
		}
		s.Deps = slices.DeleteFunc(deps, func(d int32) bool { return d < 0 })
		if !workload.OnHost(s.Stream) && s.Kind != workload.GroupStart && s.Kind != workload.GroupEnd &&
			len(e.pending) > 0 {
			s.Deps, e.pending = append(s.Deps, e.pending...), nil
		}
		s.Recorded = 0
		e.at[i] = e.add(s)
	}
}

// mine reports whether a step is a message of the pipeline.
func (e *emitter) mine(s *workload.Step) bool {
	return between(e.p, e.comms, s)
}

// messages returns the last messages that were sent or received.
func (e *emitter) messages() []int32 {
	for i := len(e.out) - 1; i >= 0; i-- {
		if e.mine(&e.out[i]) {
			return []int32{int32(i)}
		}
	}
	return nil
}
