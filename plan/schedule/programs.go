package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Number of threads of a block by protocol (NCCL_LL_MAX_NTHREADS, NCCL_LL128_MAX_NTHREADS,
// NCCL_SIMPLE_MAX_NTHREADS, device.h:19-30).
var threads = [3]int32{512, 640, 512}

// lower makes the plan of a request and its programs; proof selects smaller pipeline units.
func (s *Schedule) lower(c *connect.Layout, r plan.Request, proof bool) (*plan.Plan, *Programs, error) {
	if c.NRanks != len(s.GPUs) {
		return nil, nil, s.Fault(Whole(s.Pos), "is a schedule of %d ranks, the machine has %d; choose "+
			"with --nodes and -g", len(s.GPUs), c.NRanks)
	}
	if r.Op == coll.Avg && r.Func.Reduces() {
		return nil, nil, &plan.UnsupportedError{What: "avg by a schedule",
			Why: "its steps do not scale; take sum"}
	}
	p := &Programs{s: s, c: c, req: r, Elem: int64(r.Type.Size()), Rounds: 1, nextConn: map[[2]int]int32{}}
	p.Chunk = r.Count / s.Unit() * p.Elem
	p.Part, p.Cell = p.Chunk, max(p.Chunk, 1)
	if err := s.Body.Lower(p, proof); err != nil {
		return nil, nil, err
	}
	p.close()
	if ops := int64(p.Ops) * p.Rounds; ops > MaxSteps*8 {
		return nil, nil, &plan.UnsupportedError{What: fmt.Sprintf("%s of %d elements", s.File, r.Count),
			Why: fmt.Sprintf("%d ops; take a smaller size", ops)}
	}
	out, err := plan.New(c, r, plan.Split{}, p)
	return out, p, err
}

// Programs are the programs of a schedule at a size, which its Body writes: one per thread block, on the
// channel with the block's number. The helper programs of a GPU, which the file does not have, come last.
type Programs struct {
	Elem   int64 // bytes of an element
	Chunk  int64 // bytes
	Part   int64 // bytes of a chunk in one round; for a Body that divides chunks, bytes of a piece
	Cell   int64 // bytes of the smallest range that the proof distinguishes
	Rounds int64
	Blocks [][][]Op // by GPU and block: the ops of one round
	Ops    int

	s        *Schedule
	c        *connect.Layout
	req      plan.Request
	conns    []plan.Conn
	steps    int32 // FIFO steps of an op
	edges    []edge
	nextConn map[[2]int]int32 // by source and destination: next unused channel
}

// Op is an operation that every round repeats.
type Op struct {
	Do       plan.Do
	From, To []int32  // connections
	Src, Dst plan.Ref // in round 0
	Chunks   int
	Bytes    int64 // besides the chunks
	At       Element

	base, every int32 // its FIFO step in round 0, and the number of steps of each round
}

// Point is a position in a program: before op Pos.
type Point struct{ GPU, Block, Pos int }

// edge orders two points: the program of to waits there until the program of from has reached from. A program
// that has edges in both directions at one point first signals, then waits.
type edge struct{ from, to Point }

// Order makes the program of to wait at that point until the program of from has reached from.
func (p *Programs) Order(from, to Point) { p.edges = append(p.edges, edge{from, to}) }

// Here returns the point after the last op of a program so far.
func (p *Programs) Here(gpu, block int) Point { return Point{gpu, block, len(p.Blocks[gpu][block])} }

// Add appends an op to a program.
func (p *Programs) Add(gpu, block int, op Op) {
	p.Blocks[gpu][block] = append(p.Blocks[gpu][block], op)
	p.Ops++
}

// FIFO makes each op of the Simple protocol take n FIFO steps (other protocols: one), and returns the bytes
// that these steps hold, rounded down to whole elements.
func (p *Programs) FIFO(n int32) int64 {
	step := int64(p.c.BuffSizes[p.s.Proto]) / plan.FIFOSteps
	p.steps = 1
	switch p.s.Proto {
	case coll.LL:
		step /= 2 // half of a line is flags
	case coll.LL128:
		step = step / 16 * 15
	case coll.Simple:
		step, p.steps = step*int64(n), n
	}
	return max(step/p.Elem*p.Elem, p.Elem)
}

// Connect adds a connection between two ranks, on their next unused channel.
func (p *Programs) Connect(src, dst int) int32 {
	at := [2]int{src, dst}
	channel := p.nextConn[at]
	p.nextConn[at]++
	return p.ConnectOn(src, dst, int(channel))
}

// ConnectOn adds a connection between two ranks on a channel.
func (p *Programs) ConnectOn(src, dst, channel int) int32 {
	id := int32(len(p.conns))
	p.conns = append(p.conns, plan.Conn{ID: id, Src: int32(src), Dst: int32(dst), Channel: int32(channel),
		Kind: connect.P2PRoute})
	return id
}

// close turns the edges into connections that carry empty steps, and numbers the steps. An edge that an
// earlier edge of the same two programs implies needs none. A connection carries at most a FIFO's steps per
// round, so that no program waits for room.
func (p *Programs) close() {
	slices.SortStableFunc(p.edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from.GPU, b.from.GPU), cmp.Compare(a.from.Block, b.from.Block),
			cmp.Compare(a.to.GPU, b.to.GPU), cmp.Compare(a.to.Block, b.to.Block),
			cmp.Compare(a.to.Pos, b.to.Pos), cmp.Compare(b.from.Pos, a.from.Pos))
	})
	type ends struct{ sends, waits []int32 }
	at := map[Point]*ends{}
	of := func(x Point) *ends {
		if at[x] == nil {
			at[x] = &ends{}
		}
		return at[x]
	}
	var last edge
	most, n, id := -1, 0, int32(0)
	for i, e := range p.edges {
		if i == 0 || last.from.GPU != e.from.GPU || last.from.Block != e.from.Block ||
			last.to.GPU != e.to.GPU || last.to.Block != e.to.Block {
			most, n = -1, 0
		}
		last = e
		if e.from.Pos <= most {
			continue
		}
		most = e.from.Pos
		if n%(plan.FIFOSteps/int(p.steps)) == 0 {
			id = p.Connect(e.from.GPU, e.to.GPU)
		}
		n++
		f, t := of(e.from), of(e.to)
		f.sends, t.waits = append(f.sends, id), append(t.waits, id)
	}
	p.Ops = 0
	for r := range p.Blocks {
		for b, old := range p.Blocks[r] {
			var ops []Op
			for i := 0; i <= len(old); i++ {
				if e := at[Point{r, b, i}]; e != nil {
					where := Element{r, b, -1, Pos{}}
					if i < len(old) {
						where = old[i].At
					}
					before := where
					if i > 0 {
						before = old[i-1].At
					}
					for _, id := range e.sends {
						ops = append(ops, Op{Do: plan.Send, To: []int32{id}, Src: plan.Ref{Buf: plan.Input},
							At: before})
					}
					for _, id := range e.waits {
						ops = append(ops, Op{Do: plan.Recv, From: []int32{id}, At: where})
					}
				}
				if i < len(old) && old[i].Do != 0 {
					ops = append(ops, old[i])
				}
			}
			p.Blocks[r][b] = ops
			p.Ops += len(ops)
			p.number(ops)
		}
	}
}

// number assigns the FIFO steps of a block's connections to its ops.
func (p *Programs) number(ops []Op) {
	first := func(t *Op) int32 {
		if len(t.To) > 0 {
			return t.To[0]<<1 | 1
		}
		if len(t.From) > 0 {
			return t.From[0] << 1
		}
		return -1
	}
	at := map[int32]int32{}
	for i := range ops {
		t := &ops[i]
		t.base = at[first(t)]
		for _, id := range t.To {
			at[id<<1|1] += p.steps
		}
		for _, id := range t.From {
			at[id<<1] += p.steps
		}
	}
	for i := range ops {
		if k := first(&ops[i]); k >= 0 {
			ops[i].every = at[k]
		}
	}
}

// Ref returns a place in the plan's buffers. In place, the input of all_reduce, reduce and broadcast is their
// output.
func (p *Programs) Ref(buf byte, off int64) plan.Ref {
	out := plan.Ref{Off: units.Bytes(off)}
	switch buf {
	case 'i':
		out.Buf = plan.Input
		if p.req.InPlace && !p.s.PerRank() {
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
func (p *Programs) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for b, ops := range p.Blocks[rank] {
		if len(ops) == 0 {
			continue
		}
		pr := plan.Program{Rank: rank, Channel: int32(b), Role: plan.RoleBlock, Proto: p.s.Proto,
			Threads: threads[p.s.Proto], Slices: 1, SliceSteps: p.steps}
		if pr.Workers = pr.Threads; p.s.Proto == coll.Simple &&
			slices.ContainsFunc(ops, func(op Op) bool { return len(op.To) > 0 }) {
			pr.Workers -= plan.WarpSize
		}
		dst = append(dst, pr)
	}
	return dst
}

// Open implements plan.Generator.
func (p *Programs) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	s, ok := old.(*stream)
	if !ok {
		s = new(stream)
	}
	*s = stream{p: p, ops: p.Blocks[pr.Rank][pr.Channel], rank: pr.Rank, channel: pr.Channel}
	return s
}

// stream makes the ops of a block, round after round.
type stream struct {
	p             *Programs
	ops           []Op
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
	if s.round >= s.p.Rounds || len(s.ops) == 0 {
		return false
	}
	t, p := &s.ops[s.at], s.p
	*op = plan.Op{Rank: s.rank, Channel: s.channel, Seq: s.seq, Do: t.Do, From: t.From, To: t.To, Src: t.Src,
		Dst: t.Dst, Bytes: units.Bytes(t.Bytes), Chunk: int32(t.At.Step),
		Step: t.base + int32(s.round)*t.every}
	if off := s.round * p.Part; t.Chunks > 0 {
		op.Bytes = units.Bytes(min(p.Part, p.Chunk-off) * int64(t.Chunks))
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
func (p *Programs) NumOps(pr *plan.Program) int64 {
	return int64(len(p.Blocks[pr.Rank][pr.Channel])) * p.Rounds
}

// Fanout implements plan.Generator.
func (p *Programs) Fanout(*plan.Program) int32 { return 1 }

// NumConns implements plan.Generator.
func (p *Programs) NumConns() int64 { return int64(len(p.conns)) }

// ConnsPerRank implements plan.Generator.
func (p *Programs) ConnsPerRank() int32 { return 0 }

// Conn implements plan.Generator.
func (p *Programs) Conn(c *plan.Conn) { *c = p.conns[c.ID] }

// NetGroups implements plan.Generator.
func (p *Programs) NetGroups() []plan.NetGroup { return nil }

// Scratch implements plan.ScratchGenerator.
func (p *Programs) Scratch(rank int32) units.Bytes {
	return units.Bytes(int64(p.s.GPUs[rank].Scratch) * p.Chunk)
}
