package msccl

import (
	"errors"

	"github.com/simccl/simccl/internal/connect"
	"github.com/simccl/simccl/internal/rules"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/units"
)

// Check proves the schedule: it ends, its steps meet, no two that touch a chunk are
// unordered, and each output chunk holds what the operation promises. The error is an
// *Error with the first element that is wrong.
func (s *Schedule) Check(c *connect.Layout, r plan.Request) error {
	p, err := s.Plan(c, r)
	if err != nil {
		return err
	}
	if err := check.Plan(p); err != nil {
		return s.Locate(p, err)
	}
	return s.races(r.InPlace)
}

// Locate names the element of an error of check.Plan.
func (s *Schedule) Locate(p *plan.Plan, err error) error {
	var e *check.Error
	if !errors.As(err, &e) || e.Rank < 0 || int(e.Rank) >= len(s.GPUs) {
		return err
	}
	gpu := &s.GPUs[e.Rank]
	if e.Seq < 0 || e.Channel < 0 || int(e.Channel) >= len(gpu.Blocks) {
		return s.fault(int(e.Rank), -1, -1, "%s", e.Problem)
	}
	step := -1
	for _, pr := range p.Programs(e.Rank) {
		if pr.Channel != e.Channel {
			continue
		}
		var op plan.Op
		for cur := p.Open(&pr); cur.Next(&op); {
			if op.Seq == e.Seq {
				step = int(op.Chunk)
				break
			}
		}
	}
	return s.fault(int(e.Rank), int(e.Channel), step, "%s", e.Problem)
}

// cell is who touched a chunk last.
type cell struct {
	writer  *mark
	readers []*mark
}

// mark is a step that has run: what every block of the schedule had done before it.
type mark struct{ gpu, block, step int }

// racer runs a schedule once and keeps, for each block, how many steps of every other
// one are known to have ended (a vector clock).
type racer struct {
	s       *Schedule
	first   []int     // of each GPU: its first block's number
	clock   [][]int32 // by block
	at      []int     // next step of each block
	ended   map[[3]int][]int32
	queued  map[[3]int][][]int32 // messages in progress, by src, dst, channel
	cells   map[[3]int]*cell     // by gpu, buffer, chunk
	inPlace bool
}

// races finds two steps that touch a chunk, one of them writing it, which nothing
// orders.
func (s *Schedule) races(inPlace bool) error {
	r := &racer{s: s, ended: map[[3]int][]int32{}, queued: map[[3]int][][]int32{}, cells: map[[3]int]*cell{}, inPlace: inPlace}
	n := 0
	for g := range s.GPUs {
		r.first = append(r.first, n)
		n += len(s.GPUs[g].Blocks)
	}
	r.at, r.clock = make([]int, n), make([][]int32, n)
	for i := range r.clock {
		r.clock[i] = make([]int32, n)
	}
	for moved := true; moved; {
		moved = false
		for g := range s.GPUs {
			for b := range s.GPUs[g].Blocks {
				for r.ready(g, b) {
					if err := r.step(g, b); err != nil {
						return err
					}
					moved = true
				}
			}
		}
	}
	return nil
}

func (r *racer) ready(g, b int) bool {
	k, id := &r.s.GPUs[g].Blocks[b], r.first[g]+b
	if r.at[id] >= len(k.Steps) {
		return false
	}
	st := &k.Steps[r.at[id]]
	return (st.DepBlock < 0 || r.at[r.first[g]+st.DepBlock] > st.DepStep) &&
		(!st.Kind.receives() || len(r.queued[[3]int{k.Recv, g, k.Channel}]) > 0)
}

// step runs the next step of a block.
func (r *racer) step(g, b int) error {
	k, id := &r.s.GPUs[g].Blocks[b], r.first[g]+b
	i := r.at[id]
	st := &k.Steps[i]
	if st.DepBlock >= 0 {
		r.learn(id, r.ended[[3]int{g, st.DepBlock, st.DepStep}])
	}
	if st.Kind.receives() {
		at := [3]int{k.Recv, g, k.Channel}
		r.learn(id, r.queued[at][0])
		r.queued[at] = r.queued[at][1:]
	}
	m := &mark{g, b, i}
	for c := range st.Count {
		if st.Kind.reads() {
			if err := r.touch(m, st.Src, c, false); err != nil {
				return err
			}
		}
		if st.Kind.writes() {
			if err := r.touch(m, st.Dst, c, true); err != nil {
				return err
			}
		}
	}
	r.clock[id][id]++
	r.at[id]++
	now := append([]int32(nil), r.clock[id]...)
	r.ended[[3]int{g, b, i}] = now
	if st.Kind.sends() {
		at := [3]int{g, k.Send, k.Channel}
		r.queued[at] = append(r.queued[at], now)
	}
	return nil
}

func (r *racer) learn(id int, of []int32) {
	for i, n := range of {
		r.clock[id][i] = max(r.clock[id][i], n)
	}
}

// touch reads or writes a chunk.
func (r *racer) touch(m *mark, p Place, more int, write bool) error {
	buf, off := int(p.Buf), p.Off+more
	if r.inPlace && p.Buf == 'i' {
		buf = 'o'
		if part := r.s.chunksOf(m.gpu, 'i'); part < r.s.Chunks {
			off += part * m.gpu
		}
	} else if r.inPlace && p.Buf == 'o' {
		if part := r.s.chunksOf(m.gpu, 'o'); part < r.s.Chunks {
			off += part * m.gpu
		}
	}
	at := [3]int{m.gpu, buf, off}
	c := r.cells[at]
	if c == nil {
		c = &cell{}
		r.cells[at] = c
	}
	before := func(o *mark) error {
		if o == nil || *o == *m || int(r.clock[r.first[m.gpu]+m.block][r.first[o.gpu]+o.block]) > o.step {
			return nil
		}
		return r.s.fault(m.gpu, m.block, m.step, "touches chunk %d of %c like tb %d step %d, and nothing orders the two; add depid=%d deps=%d", p.Off+more, p.Buf, o.block, o.step, o.block, o.step)
	}
	if err := before(c.writer); err != nil {
		return err
	}
	if !write {
		c.readers = append(c.readers, m)
		return nil
	}
	for _, o := range c.readers {
		if c.writer == nil && p.Buf == 's' && before(o) != nil {
			return r.s.fault(o.gpu, o.block, o.step, "reads chunk %d of s, which tb %d step %d writes, without waiting for it; add depid=%d deps=%d", p.Off+more, m.block, m.step, m.block, m.step)
		}
		if err := before(o); err != nil {
			return err
		}
	}
	c.writer, c.readers = m, c.readers[:0]
	return nil
}

// Alone is a communicator to prove a schedule on where no machine is given: as many
// ranks of one node, with NCCL's own buffers.
func (s *Schedule) Alone() *connect.Layout {
	n := len(s.GPUs)
	return &connect.Layout{Rules: rules.Default(), NRanks: n, NNodes: 1, NodeOf: make([]int32, n), BuffSizes: [3]units.Bytes{524288, 4915200, 4194304}}
}
