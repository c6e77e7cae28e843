package schedule

import (
	"fmt"

	"github.com/simccl/simccl/plan"
)

// cell records the last accesses to a range of memory.
type cell struct {
	writer  *mark
	readers []*mark
}

// mark is an op that has run, identified by its program and index.
type mark struct {
	program, op int
	at          Element
}

// racer runs one round of a schedule and keeps, for each program, the number of ops of every other program
// that are known to have ended (a vector clock).
type racer struct {
	g      *Programs
	p      *plan.Plan
	first  []int            // number of each GPU's first program
	clock  [][]int32        // by program
	done   []int            // next op of each program
	queued [][][]int32      // by connection: messages in flight
	cells  map[[3]int]*cell // by GPU, buffer and cell
	order  [][3]int         // keys of cells, in the order of first access
}

func newRacer(g *Programs, p *plan.Plan) *racer {
	r := &racer{g: g, p: p, cells: map[[3]int]*cell{}, queued: make([][][]int32, len(g.conns))}
	n := 0
	for i := range g.Blocks {
		r.first = append(r.first, n)
		n += len(g.Blocks[i])
	}
	r.done, r.clock = make([]int, n), make([][]int32, n)
	for i := range r.clock {
		r.clock[i] = make([]int32, n)
	}
	return r
}

// run returns an error for two unordered ops that access a chunk, at least one of them writing it.
func (r *racer) run() error {
	for moved := true; moved; {
		moved = false
		for gpu := range r.g.Blocks {
			for b := range r.g.Blocks[gpu] {
				for r.ready(gpu, b) {
					if err := r.step(gpu, b); err != nil {
						return err
					}
					moved = true
				}
			}
		}
	}
	return r.ends()
}

func (r *racer) ready(gpu, b int) bool {
	ops, at := r.g.Blocks[gpu][b], r.done[r.first[gpu]+b]
	return at < len(ops) && (len(ops[at].From) == 0 || len(r.queued[ops[at].From[0]]) > 0)
}

// step runs the next op of a program.
func (r *racer) step(gpu, b int) error {
	id := r.first[gpu] + b
	t := &r.g.Blocks[gpu][b][r.done[id]]
	for _, c := range t.From {
		for i, n := range r.queued[c][0] {
			r.clock[id][i] = max(r.clock[id][i], n)
		}
		r.queued[c] = r.queued[c][1:]
	}
	m := &mark{id, r.done[id], t.At}
	size := t.Bytes
	if t.Chunks > 0 {
		size = int64(t.Chunks) * r.g.Chunk
	}
	if err := r.touch(gpu, m, t.Src, size, false); err != nil {
		return err
	}
	if err := r.touch(gpu, m, t.Dst, size, true); err != nil {
		return err
	}
	r.clock[id][id]++
	r.done[id]++
	for _, c := range t.To {
		r.queued[c] = append(r.queued[c], append([]int32(nil), r.clock[id]...))
	}
	return nil
}

// touch records a read or write of a range of a buffer. Error: an unordered earlier access.
func (r *racer) touch(gpu int, m *mark, ref plan.Ref, size int64, write bool) error {
	if ref.Buf == plan.NoBuffer || size == 0 {
		return nil
	}
	buf, off := ref.Buf, int64(ref.Off)
	if l := r.p.Layout(int32(gpu)); l.Shared && buf == plan.Input {
		buf, off = plan.Output, off+int64(l.InputAt)
	} else if l.Shared && buf == plan.Output {
		off += int64(l.OutputAt)
	}
	for at := off / r.g.Cell; at*r.g.Cell < off+size; at++ {
		chunk := (int64(ref.Off) + at*r.g.Cell - off) / max(r.g.Chunk, 1)
		if err := r.touchCell([3]int{gpu, int(buf), int(at)}, m, ref.Buf, chunk, write); err != nil {
			return err
		}
	}
	return nil
}

// before reports whether o is known to have ended when m runs.
func (r *racer) before(m, o *mark) bool {
	return o == nil || o.program == m.program || int(r.clock[m.program][o.program]) > o.op
}

func (r *racer) touchCell(at [3]int, m *mark, buf plan.Buffer, chunk int64, write bool) error {
	c := r.cells[at]
	if c == nil {
		c = &cell{}
		r.cells[at] = c
		r.order = append(r.order, at)
	}
	name := [...]string{plan.Input: "i", plan.Output: "o", plan.Scratch: "s"}[buf]
	whose := ""
	if at[0] != m.at.GPU {
		whose = fmt.Sprintf(" of gpu %d", at[0])
	}
	unordered := func(o *mark) error {
		other, order := r.g.s.Body.Describe(o.at, m.at.GPU)
		return r.g.s.Fault(m.at, "touches chunk %d of %s%s like %s, and nothing orders the two; %s", chunk,
			name, whose, other, order)
	}
	if !r.before(m, c.writer) {
		return unordered(c.writer)
	}
	if !write {
		c.readers = append(c.readers, m)
		return nil
	}
	for _, o := range c.readers {
		if r.before(m, o) {
			continue
		}
		if c.writer == nil && buf == plan.Scratch {
			other, order := r.g.s.Body.Describe(m.at, o.at.GPU)
			return r.g.s.Fault(o.at, "reads chunk %d of s, which %s writes, without waiting for it; %s",
				chunk, other, order)
		}
		return unordered(o)
	}
	c.writer, c.readers = m, c.readers[:0]
	return nil
}

// ends returns an error for a write of one GPU into another's buffers that the other one does not wait for:
// its kernel may end before.
func (r *racer) ends() error {
	for _, at := range r.order {
		w, own := r.cells[at].writer, r.first[at[0]]
		if at[1] == int(plan.Scratch) || w == nil || w.program < own+len(r.g.s.GPUs[at[0]].Blocks) {
			continue
		}
		seen := false
		for b := range r.g.s.GPUs[at[0]].Blocks {
			seen = seen || int(r.clock[own+b][w.program]) > w.op
		}
		if !seen {
			return r.g.s.Fault(w.at, "writes into gpu %d, which may have ended before: no thread block "+
				"there waits for it; signal, and wait there", at[0])
		}
	}
	return nil
}
