package msccl

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Threads of a block by protocol (NCCL_LL_MAX_NTHREADS, NCCL_LL128_MAX_NTHREADS,
// NCCL_SIMPLE_MAX_NTHREADS, device.h:19-30).
var threads = [3]int32{512, 640, 512}

// Request is the operation of so many bytes of a rank's message (NCCL's count) that a
// schedule does. It says what sizes are possible where it refuses one.
func (s *Schedule) Request(count int64, t coll.DataType) (plan.Request, error) {
	r := plan.Request{Func: s.Func, Count: count, Type: t, InPlace: !s.OutOfPlace, Algo: coll.Ring,
		Proto: s.Proto, Channels: s.Channels}
	if unit := s.unit(); count < 1 || count%unit != 0 {
		return r,
			fmt.Errorf("%d elements cannot be cut into the %d chunks of %s; take a multiple of %d elements",
				count, s.Chunks, s.File, unit)
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
// many ranks. A chunk of MSCCL that is larger than a step of the FIFO is done in several
// rounds of the whole schedule, as MSCCL's interpreter does; one of MSCCL++ is cut into
// pieces.
func (s *Schedule) Plan(c *connect.Layout, r plan.Request) (*plan.Plan, error) {
	p, _, err := s.lower(c, r, false)
	return p, err
}

// lower makes the plan and its generator. proof scales the units of pipelines so that
// small sizes have several of them.
func (s *Schedule) lower(c *connect.Layout, r plan.Request, proof bool) (*plan.Plan, *generator, error) {
	if c.NRanks != len(s.GPUs) {
		return nil, nil,
			s.fault(-1, -1, -1, "is a schedule of %d ranks, the machine has %d; choose with --nodes and -g",
				len(s.GPUs), c.NRanks)
	}
	if r.Op == coll.Avg && r.Func.Reduces() {
		return nil, nil, &plan.UnsupportedError{What: "avg by a schedule",
			Why: "its steps do not scale; take sum"}
	}
	g := &generator{s: s, c: c, req: r, chunk: r.Count / s.unit() * int64(r.Type.Size()),
		nextConn: map[[2]int]int32{}}
	g.cell = max(g.chunk, 1)
	g.cut(int64(r.Type.Size()))
	if s.plus != nil {
		if err := g.lowerPlus(int64(r.Type.Size()), proof); err != nil {
			return nil, nil, err
		}
	} else {
		g.join()
	}
	g.close()
	if ops := int64(g.ops) * g.rounds; ops > maxSteps*8 {
		return nil, nil, &plan.UnsupportedError{What: fmt.Sprintf("%s of %d elements", s.File, r.Count),
			Why: fmt.Sprintf("%d ops; take a smaller size", ops)}
	}
	p, err := plan.New(c, r, plan.Split{}, g)
	return p, g, err
}

// generator makes the programs of a schedule: one a thread block, whose channel is the
// block's number. Those of a GPU that are not in the file come last.
type generator struct {
	s        *Schedule
	c        *connect.Layout
	req      plan.Request
	chunk    int64 // bytes
	part     int64 // bytes of a chunk that a round does; of MSCCL++ those of a piece
	cell     int64 // bytes of memory that are proved as one
	together int   // chunks that one op moves at most
	rounds   int64
	conns    []plan.Conn
	steps    int32 // FIFO steps of an op
	blocks   [][]program
	edges    []edge
	ops      int
	nextConn map[[2]int]int32 // by source and destination: the next free channel
}

// program is the ops of a thread block in one round.
type program struct{ ops []template }

// element is where in the file an op comes from.
type element struct {
	gpu, block, step int
	pos              Pos
}

// template is an op of every round. Step is at base in the first, each later.
type template struct {
	do          plan.Do
	from, to    []int32
	src, dst    plan.Ref // of round 0
	chunks      int
	bytes       int64 // beside the chunks
	base, every int32
	at          element
}

// point is a place in a program: before the op pos.
type point struct{ gpu, block, pos int }

// edge makes a program wait at a point until another has come to one. At a point a
// program first informs others, then waits.
type edge struct{ from, to point }

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
		if g.s.plus == nil {
			step, g.steps = step*2, 2 // MSCCL_CHUNKSTEPS: two of the FIFO's eight
		}
	}
	step = max(step/elem*elem, elem)
	g.rounds, g.part, g.together = 1, g.chunk, 1
	switch {
	case g.s.plus != nil:
		g.part = step
	case g.chunk > step:
		g.rounds, g.part = (g.chunk+step-1)/step, step
	case g.chunk > 0:
		g.together = int(step / g.chunk)
	}
}

// connect adds a connection of two ranks.
func (g *generator) connect(src, dst int) int32 {
	at := [2]int{src, dst}
	channel := g.nextConn[at]
	g.nextConn[at]++
	return g.connectOn(src, dst, int(channel))
}

func (g *generator) connectOn(src, dst, channel int) int32 {
	id := int32(len(g.conns))
	g.conns = append(g.conns, plan.Conn{ID: id, Src: int32(src), Dst: int32(dst), Channel: int32(channel),
		Kind: connect.P2PRoute})
	return id
}

// join writes the ops of a round of every block.
func (g *generator) join() {
	sentBy := map[[3]int]int32{} // connections by src, dst and channel
	conn := func(src, dst, channel int) int32 {
		at := [3]int{src, dst, channel}
		id, ok := sentBy[at]
		if !ok {
			id = g.connectOn(src, dst, channel)
			sentBy[at] = id
		}
		return id
	}
	g.blocks = make([][]program, len(g.s.GPUs))
	for r := range g.s.GPUs {
		gpu := &g.s.GPUs[r]
		g.blocks[r] = make([]program, len(gpu.Blocks))
		begin, end := make([][]int, len(gpu.Blocks)), make([][]int, len(gpu.Blocks))
		for b := range gpu.Blocks {
			for i := range gpu.Blocks[b].Steps {
				begin[b] = append(begin[b], len(g.blocks[r][b].ops))
				g.addStep(r, b, i, conn)
				end[b] = append(end[b], len(g.blocks[r][b].ops))
			}
		}
		for b := range gpu.Blocks {
			for i := range gpu.Blocks[b].Steps {
				if st := &gpu.Blocks[b].Steps[i]; st.DepBlock >= 0 && st.DepBlock != b {
					g.edges = append(g.edges, edge{point{r, st.DepBlock, end[st.DepBlock][st.DepStep]},
						point{r, b, begin[b][i]}})
				}
			}
		}
	}
}

func (g *generator) add(r, b int, t template) {
	g.blocks[r][b].ops = append(g.blocks[r][b].ops, t)
	g.ops++
}

// close makes connections of the edges, over which empty steps go, and numbers the
// steps. An edge that an earlier one of the same two programs implies needs none.
// A connection has no more than a FIFO of them, so that none has to wait for room.
func (g *generator) close() {
	slices.SortStableFunc(g.edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from.gpu, b.from.gpu), cmp.Compare(a.from.block, b.from.block),
			cmp.Compare(a.to.gpu, b.to.gpu),
			cmp.Compare(a.to.block, b.to.block), cmp.Compare(a.to.pos, b.to.pos),
			cmp.Compare(b.from.pos, a.from.pos))
	})
	type ends struct{ sends, waits []int32 }
	at := map[point]*ends{}
	of := func(p point) *ends {
		if at[p] == nil {
			at[p] = &ends{}
		}
		return at[p]
	}
	var last edge
	most, n, id := -1, 0, int32(0)
	for i, e := range g.edges {
		if i == 0 || last.from.gpu != e.from.gpu || last.from.block != e.from.block ||
			last.to.gpu != e.to.gpu || last.to.block != e.to.block {
			most, n = -1, 0
		}
		last = e
		if e.from.pos <= most {
			continue
		}
		most = e.from.pos
		if n%(plan.FIFOSteps/int(g.steps)) == 0 {
			id = g.connect(e.from.gpu, e.to.gpu)
		}
		n++
		f, t := of(e.from), of(e.to)
		f.sends, t.waits = append(f.sends, id), append(t.waits, id)
	}
	g.ops = 0
	for r := range g.blocks {
		for b := range g.blocks[r] {
			pr := &g.blocks[r][b]
			var ops []template
			for i := 0; i <= len(pr.ops); i++ {
				if e := at[point{r, b, i}]; e != nil {
					where := element{r, b, -1, Pos{}}
					if i < len(pr.ops) {
						where = pr.ops[i].at
					}
					for _, id := range e.sends {
						before := where
						if i > 0 {
							before = pr.ops[i-1].at
						}
						ops = append(ops, template{do: plan.Send, to: []int32{id},
							src: plan.Ref{Buf: plan.Input}, at: before})
					}
					for _, id := range e.waits {
						ops = append(ops, template{do: plan.Recv, from: []int32{id}, at: where})
					}
				}
				if i < len(pr.ops) && pr.ops[i].do != 0 {
					ops = append(ops, pr.ops[i])
				}
			}
			pr.ops = ops
			g.ops += len(ops)
			g.number(ops)
		}
	}
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
	Send: plan.Send, Recv: plan.Recv | plan.Copy, RecvCopySend: plan.Recv | plan.Copy | plan.Send,
	RecvReduceSend: plan.Recv | plan.Reduce | plan.Send,
	RecvReduceCopy: plan.Recv | plan.Reduce | plan.Copy, RecvReduceCopySend: plan.Recv | plan.Reduce |
		plan.Copy | plan.Send,
	Copy: plan.Copy, Reduce: plan.Reduce | plan.Copy | plan.Accum,
}

// addStep adds the ops of a step, one for as many chunks as move together.
func (g *generator) addStep(r, b, i int, conn func(src, dst, channel int) int32) {
	k := &g.s.GPUs[r].Blocks[b]
	st := &k.Steps[i]
	if st.Kind == Nop {
		g.add(r, b, template{at: element{r, b, i, st.Pos}})
		return
	}
	for done := 0; done < st.Count; done += g.together {
		t := template{do: kindDo[st.Kind], chunks: min(g.together, st.Count-done),
			at: element{r, b, i, st.Pos}}
		if st.Kind.receives() {
			t.from = []int32{conn(k.Recv, r, k.Channel)}
		}
		if st.Kind.sends() {
			t.to = []int32{conn(r, k.Send, k.Channel)}
		}
		if st.Kind.reads() {
			t.src = g.ref(st.Src.Buf, int64(st.Src.Off+done)*g.chunk)
		}
		if st.Kind.writes() {
			t.dst = g.ref(st.Dst.Buf, int64(st.Dst.Off+done)*g.chunk)
		}
		g.add(r, b, t)
	}
}

// ref is a place in a plan: in place, all_reduce, reduce and broadcast have their input
// in their output.
func (g *generator) ref(buf byte, off int64) plan.Ref {
	out := plan.Ref{Off: units.Bytes(off)}
	switch buf {
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
		pr := plan.Program{Rank: rank, Channel: int32(b), Role: plan.RoleBlock, Proto: g.s.Proto,
			Threads: threads[g.s.Proto], Slices: 1, SliceSteps: g.steps}
		if pr.Workers = pr.Threads; g.s.Proto == coll.Simple && g.sends(rank, b) {
			pr.Workers -= plan.WarpSize
		}
		dst = append(dst, pr)
	}
	return dst
}

// sends reports whether a program sends.
func (g *generator) sends(rank int32, b int) bool {
	return slices.ContainsFunc(g.blocks[rank][b].ops, func(t template) bool { return len(t.to) > 0 })
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
	size := t.bytes
	if t.chunks > 0 {
		size = min(g.part, g.chunk-off) * int64(t.chunks)
	}
	*op = plan.Op{Rank: s.rank, Channel: s.channel, Seq: s.seq, Do: t.do, From: t.from, To: t.to, Src: t.src,
		Dst:   t.dst,
		Bytes: units.Bytes(size), Chunk: int32(t.at.step), Step: t.base + int32(s.round)*t.every}
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
