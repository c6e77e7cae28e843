package msccl

import (
	"fmt"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/schedule"
)

// Algo is a schedule made of MSCCL's steps, and its own Body.
type Algo struct {
	*schedule.Schedule
	Blocks [][]Block // by GPU
}

// newAlgo returns the Algo of a schedule, without thread blocks yet.
func newAlgo(s schedule.Schedule) *Algo {
	a := &Algo{Schedule: &s}
	s.Format, s.Body = "msccl", a
	return a
}

// add adds a thread block to a GPU.
func (s *Algo) add(gpu int, b Block, at schedule.Pos) {
	s.Blocks[gpu] = append(s.Blocks[gpu], b)
	s.GPUs[gpu].Blocks = append(s.GPUs[gpu].Blocks, schedule.Block{Pos: at})
}

// Block is a thread block. Send and Recv are the ranks it sends to and receives from; -1: none.
type Block struct {
	Send, Recv, Channel int
	Steps               []Step
}

// Kind is the action of a step: receive, reduce, copy, send and their combinations.
type Kind uint8

// Kinds of steps, in the order of kindWords.
const (
	Nop Kind = iota
	Send
	Recv
	RecvCopySend
	RecvReduceSend
	RecvReduceCopy
	RecvReduceCopySend
	Copy
	Reduce
)

var kindWords = [...]string{"nop", "s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re"}

// String returns MSCCL's word for the kind.
func (k Kind) String() string { return kindWords[k] }

func (k Kind) sends() bool    { return kindDo[k]&plan.Send != 0 }
func (k Kind) receives() bool { return kindDo[k]&plan.Recv != 0 }

// reads reports whether the step reads Src, writes whether it writes Dst.
func (k Kind) reads() bool  { return kindDo[k]&plan.Reduce != 0 || k != Nop && !k.receives() }
func (k Kind) writes() bool { return kindDo[k]&plan.Copy != 0 }

// Place is a chunk of a buffer: i (input), o (output) or s (scratch).
type Place struct {
	Buf byte
	Off int
}

// Step is one step of a thread block. It waits until step DepStep of block DepBlock of the same GPU has
// ended; -1: it waits for none.
type Step struct {
	Kind              Kind
	Src, Dst          Place
	Count             int // chunks
	DepBlock, DepStep int
	Pos               schedule.Pos
}

// chunkSteps is the number of FIFO steps that a chunk takes with the Simple protocol (MSCCL_CHUNKSTEPS).
const chunkSteps = 2

// ProofChunk implements schedule.Body. It returns 0: each size proves its own plan, because all rounds of a
// size are equal.
func (s *Algo) ProofChunk(int64) int64 { return 0 }

// Describe implements schedule.Body.
func (s *Algo) Describe(at schedule.Element, _ int) (name, order string) {
	return fmt.Sprintf("tb %d step %d", at.Block, at.Step),
		fmt.Sprintf("add depid=%d deps=%d", at.Block, at.Step)
}

// Lower implements schedule.Body: a chunk larger than a FIFO step is processed in several rounds; smaller
// chunks of a step move together.
func (s *Algo) Lower(p *schedule.Programs, _ bool) error {
	room, together := p.FIFO(chunkSteps), 1
	switch {
	case p.Chunk > room:
		p.Rounds, p.Part = (p.Chunk+room-1)/room, room
	case p.Chunk > 0:
		together = int(room / p.Chunk)
	}
	conns := map[[3]int]int32{} // by source, destination and channel
	conn := func(src, dst, channel int) []int32 {
		at := [3]int{src, dst, channel}
		id, ok := conns[at]
		if !ok {
			id = p.ConnectOn(src, dst, channel)
			conns[at] = id
		}
		return []int32{id}
	}
	p.Blocks = make([][][]schedule.Op, len(s.GPUs))
	for r, blocks := range s.Blocks {
		p.Blocks[r] = make([][]schedule.Op, len(blocks))
		begin, end := make([][]schedule.Point, len(blocks)), make([][]schedule.Point, len(blocks))
		for b := range blocks {
			for i := range blocks[b].Steps {
				begin[b] = append(begin[b], p.Here(r, b))
				s.addStep(p, schedule.Element{GPU: r, Block: b, Step: i}, together, conn)
				end[b] = append(end[b], p.Here(r, b))
			}
		}
		for b := range blocks {
			for i := range blocks[b].Steps {
				if st := &blocks[b].Steps[i]; st.DepBlock >= 0 && st.DepBlock != b {
					p.Order(end[st.DepBlock][st.DepStep], begin[b][i])
				}
			}
		}
	}
	return nil
}

var kindDo = [...]plan.Do{
	Send: plan.Send, Recv: plan.Recv | plan.Copy, RecvCopySend: plan.Recv | plan.Copy | plan.Send,
	RecvReduceSend: plan.Recv | plan.Reduce | plan.Send,
	RecvReduceCopy: plan.Recv | plan.Reduce | plan.Copy, RecvReduceCopySend: plan.Recv | plan.Reduce |
		plan.Copy | plan.Send,
	Copy: plan.Copy, Reduce: plan.Reduce | plan.Copy | plan.Accum,
}

// addStep adds the ops of a step, one op for each together chunks that move together.
func (s *Algo) addStep(p *schedule.Programs, at schedule.Element, together int,
	conn func(src, dst, channel int) []int32) {
	k := &s.Blocks[at.GPU][at.Block]
	st := &k.Steps[at.Step]
	if at.Pos = st.Pos; st.Kind == Nop {
		p.Add(at.GPU, at.Block, schedule.Op{At: at})
		return
	}
	for done := 0; done < st.Count; done += together {
		op := schedule.Op{Do: kindDo[st.Kind], Chunks: min(together, st.Count-done), At: at}
		if st.Kind.receives() {
			op.From = conn(k.Recv, at.GPU, k.Channel)
		}
		if st.Kind.sends() {
			op.To = conn(at.GPU, k.Send, k.Channel)
		}
		if st.Kind.reads() {
			op.Src = p.Ref(st.Src.Buf, int64(st.Src.Off+done)*p.Chunk)
		}
		if st.Kind.writes() {
			op.Dst = p.Ref(st.Dst.Buf, int64(st.Dst.Off+done)*p.Chunk)
		}
		p.Add(at.GPU, at.Block, op)
	}
}
