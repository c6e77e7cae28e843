package msccl

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Threads of a block by protocol (NCCL_LL_MAX_NTHREADS, NCCL_LL128_MAX_NTHREADS,
// NCCL_SIMPLE_MAX_NTHREADS, device.h:19-30).
var threads = [3]int32{512, 640, 512}

// Request is the operation of so many bytes of a rank's message (NCCL's count) that a
// schedule does. It says what sizes are possible where it refuses one.
func (s *Schedule) Request(count int64, t coll.DataType) (plan.Request, error) {
	r := plan.Request{Func: s.Func, Count: count, Type: t, InPlace: !s.OutOfPlace, Algo: coll.Ring, Proto: s.Proto, Channels: s.Channels}
	if unit := s.unit(); count < 1 || count%unit != 0 {
		return r, fmt.Errorf("%d elements cannot be cut into the %d chunks of %s; take a multiple of %d elements", count, s.Chunks, s.File, unit)
	}
	return r, nil
}

// unit is how many elements, of NCCL's count, have one in each chunk.
func (s *Schedule) unit() int64 {
	if s.blocks() {
		return int64(s.Chunks / len(s.GPUs))
	}
	return int64(s.Chunks)
}

// Unit is the least count that the schedule can cut.
func (s *Schedule) Unit() int64 { return s.unit() }

// Plan makes the plan of an operation, as Request gives it, on a communicator of as
// many ranks. A chunk that is larger than a step of the FIFO is done in several rounds
// of the whole schedule, as MSCCL's interpreter does.
func (s *Schedule) Plan(c *connect.Layout, r plan.Request) (*plan.Plan, error) {
	if c.NRanks != len(s.GPUs) {
		return nil, s.fault(-1, -1, -1, "is a schedule of %d ranks, the machine has %d; choose with --nodes and -g", len(s.GPUs), c.NRanks)
	}
	if r.Op == coll.Avg && r.Func.Reduces() {
		return nil, &plan.UnsupportedError{What: "avg by a schedule", Why: "MSCCL's steps do not scale; take sum"}
	}
	g := &generator{s: s, c: c, req: r, chunk: r.Count / s.unit() * int64(r.Type.Size())}
	g.cut(int64(r.Type.Size()))
	g.join()
	if ops := int64(g.ops) * g.rounds; ops > maxSteps*8 {
		return nil, &plan.UnsupportedError{What: fmt.Sprintf("%s of %d elements", s.File, r.Count), Why: fmt.Sprintf("%d ops; take a smaller size", ops)}
	}
	return plan.New(c, r, plan.Split{}, g)
}

// generator makes the programs of a schedule: one a thread block, whose channel is the
// block's number.
type generator struct {
	s        *Schedule
	c        *connect.Layout
	req      plan.Request
	chunk    int64 // bytes
	part     int64 // bytes of a chunk that a round does
	together int   // chunks that one op moves at most
	rounds   int64
	conns    []plan.Conn
	steps    int32 // FIFO steps of an op
	blocks   [][]block
	ops      int
	sentBy   map[[4]int]int32 // connections by src, dst, channel and number of a dependency
}

// block is the ops of a thread block in one round.
type block struct{ ops []template }

// template is an op of every round. Step is at base in the first, each later.
type template struct {
	do          plan.Do
	from, to    []int32
	src, dst    plan.Ref // of round 0
	chunks      int
	base, every int32
	step        int // of the schedule
}

// cut finds rounds and parts.
func (g *generator) cut(elem int64) {
	step := int64(g.c.BuffSizes[g.s.Proto]) / plan.FIFOSteps
	g.steps = 1
	switch g.s.Proto {
	case coll.LL:
		step /= 2 // half of a line is flags
	case coll.LL128:
		step = step / 16 * 15
	case coll.Simple:
		step, g.steps = step*2, 2 // MSCCL_CHUNKSTEPS: two of the FIFO's eight
	}
	step = max(step/elem*elem, elem)
	g.rounds, g.part, g.together = 1, g.chunk, 1
	if g.chunk > step {
		g.rounds, g.part = (g.chunk+step-1)/step, step
	} else if g.chunk > 0 {
		g.together = int(step / g.chunk)
	}
}

// conn returns the id of a connection, dep numbering those of a rank to itself.
func (g *generator) conn(src, dst, channel, dep int) int32 {
	at := [4]int{src, dst, channel, dep}
	id, ok := g.sentBy[at]
	if !ok {
		id = int32(len(g.conns))
		g.sentBy[at] = id
		g.conns = append(g.conns, plan.Conn{ID: id, Src: int32(src), Dst: int32(dst), Channel: int32(channel), Kind: connect.P2PRoute})
	}
	return id
}

// signal is that a step has ended, for one that waits.
type signal struct{ block, step int }

// join writes the ops of a round of every block. A dependency on another block is a
// connection of the rank to itself that carries empty steps.
func (g *generator) join() {
	g.sentBy = map[[4]int]int32{}
	g.blocks = make([][]block, len(g.s.GPUs))
	for r := range g.s.GPUs {
		gpu := &g.s.GPUs[r]
		waits := map[signal][]int32{} // a step → connections to signal
		awaits := map[signal]int32{}
		n := 0
		for b := range gpu.Blocks {
			for i := range gpu.Blocks[b].Steps {
				if st := &gpu.Blocks[b].Steps[i]; st.DepBlock >= 0 && st.DepBlock != b {
					id := g.conn(r, r, n, 1)
					n++
					awaits[signal{b, i}] = id
					of := signal{st.DepBlock, st.DepStep}
					waits[of] = append(waits[of], id)
				}
			}
		}
		g.blocks[r] = make([]block, len(gpu.Blocks))
		for b := range gpu.Blocks {
			for i := range gpu.Blocks[b].Steps {
				if id, ok := awaits[signal{b, i}]; ok {
					g.add(r, b, template{do: plan.Recv, from: []int32{id}, step: i})
				}
				g.addStep(r, b, i)
				for _, id := range waits[signal{b, i}] {
					g.add(r, b, template{do: plan.Send, to: []int32{id}, src: plan.Ref{Buf: plan.Input}, step: i})
				}
			}
			g.number(g.blocks[r][b].ops)
		}
	}
}

func (g *generator) add(r, b int, t template) {
	g.blocks[r][b].ops = append(g.blocks[r][b].ops, t)
	g.ops++
}

// number counts the FIFO steps of a block's connections.
func (g *generator) number(ops []template) {
	first := func(t *template) int32 {
		if len(t.to) > 0 {
			return t.to[0]<<1 | 1
		}
		if len(t.from) > 0 {
			return t.from[0] << 1
		}
		return -1
	}
	at := map[int32]int32{}
	for i := range ops {
		t := &ops[i]
		t.base = at[first(t)]
		for _, id := range t.to {
			at[id<<1|1] += g.steps
		}
		for _, id := range t.from {
			at[id<<1] += g.steps
		}
	}
	for i := range ops {
		if k := first(&ops[i]); k >= 0 {
			ops[i].every = at[k]
		}
	}
}

var kindDo = [...]plan.Do{
	Send: plan.Send, Recv: plan.Recv | plan.Copy, RecvCopySend: plan.Recv | plan.Copy | plan.Send, RecvReduceSend: plan.Recv | plan.Reduce | plan.Send,
	RecvReduceCopy: plan.Recv | plan.Reduce | plan.Copy, RecvReduceCopySend: plan.Recv | plan.Reduce | plan.Copy | plan.Send,
	Copy: plan.Copy, Reduce: plan.Reduce | plan.Copy | plan.Accum,
}

// addStep adds the ops of a step, one for as many chunks as move together.
func (g *generator) addStep(r, b, i int) {
	k := &g.s.GPUs[r].Blocks[b]
	st := &k.Steps[i]
	if st.Kind == Nop {
		return
	}
	for done := 0; done < st.Count; done += g.together {
		t := template{do: kindDo[st.Kind], chunks: min(g.together, st.Count-done), step: i}
		if st.Kind.receives() {
			t.from = []int32{g.conn(k.Recv, r, k.Channel, 0)}
		}
		if st.Kind.sends() {
			t.to = []int32{g.conn(r, k.Send, k.Channel, 0)}
		}
		if st.Kind.reads() {
			t.src = g.ref(st.Src, done)
		}
		if st.Kind.writes() {
			t.dst = g.ref(st.Dst, done)
		}
		g.add(r, b, t)
	}
}

// ref is a place in a plan: in place, all_reduce, reduce and broadcast have their input
// in their output.
func (g *generator) ref(p Place, more int) plan.Ref {
	out := plan.Ref{Off: units.Bytes(int64(p.Off+more) * g.chunk)}
	switch p.Buf {
	case 'i':
		out.Buf = plan.Input
		if g.req.InPlace && !g.s.blocks() {
			out.Buf = plan.Output
		}
	case 'o':
		out.Buf = plan.Output
	default:
		out.Buf = plan.Scratch
	}
	return out
}

// AppendPrograms implements plan.Generator.
func (g *generator) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for b := range g.blocks[rank] {
		if len(g.blocks[rank][b].ops) == 0 {
			continue
		}
		pr := plan.Program{Rank: rank, Channel: int32(b), Role: plan.RoleBlock, Proto: g.s.Proto, Threads: threads[g.s.Proto], Slices: 1, SliceSteps: g.steps}
		if pr.Workers = pr.Threads; g.s.Proto == coll.Simple && g.s.GPUs[rank].Blocks[b].Send >= 0 {
			pr.Workers -= plan.WarpSize
		}
		dst = append(dst, pr)
	}
	return dst
}

// Open implements plan.Generator.
func (g *generator) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	s, ok := old.(*stream)
	if !ok {
		s = new(stream)
	}
	*s = stream{g: g, ops: g.blocks[pr.Rank][pr.Channel].ops, rank: pr.Rank, channel: pr.Channel}
	return s
}

// stream makes the ops of a block, round by round.
type stream struct {
	g             *generator
	ops           []template
	rank, channel int32
	round         int64
	at            int
	seq           int32
}

// Next implements plan.Stream.
func (s *stream) Next(op *plan.Op) bool {
	if s.at == len(s.ops) {
		s.at = 0
		s.round++
	}
	if s.round >= s.g.rounds || len(s.ops) == 0 {
		return false
	}
	t, g := &s.ops[s.at], s.g
	off := s.round * g.part
	size := min(g.part, g.chunk-off) * int64(t.chunks)
	*op = plan.Op{Rank: s.rank, Channel: s.channel, Seq: s.seq, Do: t.do, From: t.from, To: t.to, Src: t.src, Dst: t.dst,
		Bytes: units.Bytes(size), Chunk: int32(t.step), Step: t.base + int32(s.round)*t.every}
	if t.chunks > 0 {
		op.Src.Off, op.Dst.Off = op.Src.Off+units.Bytes(off), op.Dst.Off+units.Bytes(off)
	}
	if op.Src.Buf == plan.NoBuffer {
		op.Src.Off = 0
	}
	if op.Dst.Buf == plan.NoBuffer {
		op.Dst.Off = 0
	}
	s.at++
	s.seq++
	return true
}

// NumOps implements plan.Generator.
func (g *generator) NumOps(pr *plan.Program) int64 {
	return int64(len(g.blocks[pr.Rank][pr.Channel].ops)) * g.rounds
}

// Fanout implements plan.Generator.
func (g *generator) Fanout(*plan.Program) int32 { return 1 }

// NumConns implements plan.Generator.
func (g *generator) NumConns() int64 { return int64(len(g.conns)) }

// ConnsPerRank implements plan.Generator.
func (g *generator) ConnsPerRank() int32 { return 0 }

// Conn implements plan.Generator.
func (g *generator) Conn(c *plan.Conn) { *c = g.conns[c.ID] }

// NetGroups implements plan.Generator.
func (g *generator) NetGroups() []plan.NetGroup { return nil }

// Scratch implements plan.ScratchGenerator.
func (g *generator) Scratch(rank int32) units.Bytes {
	return units.Bytes(int64(g.s.GPUs[rank].Scratch) * g.chunk)
}
