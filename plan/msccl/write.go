package msccl

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/schedule"
)

// CannotSayError reports a property of a plan that MSCCL's XML cannot express.
type CannotSayError struct {
	What          string
	Rank, Channel int32 // -1: the whole plan
}

func (e *CannotSayError) Error() string {
	if e.Rank < 0 {
		return "MSCCL XML cannot say " + e.What
	}
	return fmt.Sprintf("MSCCL XML cannot say rank %d channel %d: %s", e.Rank, e.Channel, e.What)
}

// TwoSided returns a schedule in MSCCL's steps of two-sided connections. Error: *CannotSayError.
func TwoSided(s *schedule.Schedule) (*Algo, error) {
	if a, ok := s.Body.(*Algo); ok {
		return a, nil
	}
	r, err := s.Request(s.Unit(), coll.Float32)
	if err != nil {
		return nil, err
	}
	p, err := s.ProofPlan(s.Alone(), r)
	if err != nil {
		return nil, err
	}
	return FromPlan(p, s.Name)
}

// encoder converts a plan to an Algo.
type encoder struct {
	p     *plan.Plan
	s     *Algo
	chunk int64  // bytes
	used  []bool // by connection
	group []int  // by connection id: its group; the connections of a group share thread blocks
	chans []int  // by connection
	deps  []dep
	sent  map[int32][]int // by rank: the steps after which its n-th message to itself is complete
}

// dep is a step that waits for a message of its rank to itself.
type dep struct {
	gpu, block, step, number int
	conn                     int32
}

// FromPlan converts a plan to a schedule. The chunk is the largest size of which all offsets and sizes are
// multiples. Properties of NCCL that a schedule lacks are lost: slices, threads, and which programs share an
// SM. Error: *CannotSayError.
func FromPlan(p *plan.Plan, name string) (*Algo, error) {
	n := p.Comm.NRanks
	t := &encoder{p: p, used: make([]bool, p.NumConns()), sent: map[int32][]int{},
		s: newAlgo(schedule.Schedule{Name: name, Func: p.Req.Func, Channels: 1, InPlace: p.Req.InPlace,
			OutOfPlace: !p.Req.InPlace, GPUs: make([]schedule.GPU, n)})}
	t.s.Blocks = make([][]Block, n)
	if !slices.Contains(coll.Funcs(), p.Req.Func) {
		return nil, &CannotSayError{p.Req.Func.TestName(), -1, -1}
	}
	if p.Req.Func.Reduces() && p.Req.Op == coll.Avg {
		return nil, &CannotSayError{"avg: its steps do not scale; take sum", -1, -1}
	}
	if err := t.measure(); err != nil {
		return nil, err
	}
	for r := range n {
		if err := t.rank(int32(r)); err != nil {
			return nil, err
		}
	}
	for _, d := range t.deps {
		st := &t.s.Blocks[d.gpu][d.block].Steps[d.step]
		st.DepBlock, st.DepStep = t.sent[d.conn][2*d.number], t.sent[d.conn][2*d.number+1]
	}
	return t.s, t.s.validate()
}

// measure sets the chunk size to the greatest common divisor of all buffer sizes, offsets and transfer sizes,
// and assigns channels to connections. Error: *CannotSayError if more than 4096 chunks result.
func (t *encoder) measure() error {
	var unit int64
	of := func(n int64) {
		for n != 0 {
			unit, n = n, unit%n
		}
	}
	t.group = make([]int, len(t.used))
	for i := range t.group {
		t.group[i] = i
	}
	for rank := range int32(t.p.Comm.NRanks) {
		l := t.p.Layout(rank)
		of(int64(l.Input))
		of(int64(l.Output))
		of(int64(l.Scratch))
		for _, pr := range t.p.Programs(rank) {
			if err := t.program(&pr, of); err != nil {
				return err
			}
		}
	}
	t.chunk = max(unit, 1)
	if l := t.p.Layout(0); int64(max(l.Input, l.Output))/t.chunk > 4096 {
		return &CannotSayError{
			fmt.Sprintf("it in less than %d chunks; take a size that channels and chunks divide",
				int64(max(l.Input, l.Output))/t.chunk), -1, -1}
	}
	return t.channels()
}

func (t *encoder) fault(pr *plan.Program, format string, args ...any) error {
	return &CannotSayError{fmt.Sprintf(format, args...), pr.Rank, pr.Channel}
}

// program records the connections that a program uses, and calls of for each of its offsets and sizes.
func (t *encoder) program(pr *plan.Program, of func(int64)) error {
	if pr.Phase > 0 {
		return t.fault(pr, "a program that begins when another has ended")
	}
	var cur plan.Cursor
	var op plan.Op
	first := int32(-1)
	for t.p.OpenInto(&cur, pr); cur.Next(&op); {
		of(int64(op.Bytes))
		if op.Bytes > 0 {
			of(int64(op.Src.Off))
			of(int64(op.Dst.Off))
		}
		if len(op.From) > 1 || len(op.To) > 1 {
			return t.fault(pr, "%v of several connections at once", op.Do)
		}
		if op.Do&(plan.HoldRecv|plan.HoldSend) != 0 || op.RecvOff|op.SendOff != 0 {
			return t.fault(pr, "several pieces in one step of a FIFO")
		}
		for _, id := range slices.Concat(op.From, op.To) {
			c := t.p.Conn(id)
			if c.Src == c.Dst || op.Bytes == 0 {
				continue
			}
			t.used[id] = true
			if first < 0 {
				first = id
			}
			t.join(int(first), int(id))
		}
	}
	return nil
}

func (t *encoder) find(i int) int {
	for t.group[i] != i {
		i = t.group[i]
	}
	return i
}

func (t *encoder) join(a, b int) { t.group[t.find(b)] = t.find(a) }

// channels assigns a channel to each group of connections that share thread blocks.
func (t *encoder) channels() error {
	channel := map[int]int{}
	taken := map[[3]int32]bool{}
	for root := range t.used {
		if t.find(root) != root || !t.used[root] {
			continue
		}
		var pairs [][2]int32
		for id := range t.used {
			if c := t.p.Conn(int32(id)); t.used[id] && t.find(id) == root {
				at := [2]int32{c.Src, c.Dst}
				if slices.Contains(pairs, at) {
					return &CannotSayError{"two connections of a thread block to one rank", c.Src, c.Channel}
				}
				pairs = append(pairs, at)
			}
		}
		k := 0
		for ; slices.ContainsFunc(pairs, func(at [2]int32) bool {
			return taken[[3]int32{at[0], at[1], int32(k)}]
		}); k++ {
		}
		for _, at := range pairs {
			taken[[3]int32{at[0], at[1], int32(k)}] = true
		}
		channel[root] = k
		t.s.Channels = max(t.s.Channels, k+1)
	}
	for id := range t.used {
		t.chans = append(t.chans, channel[t.find(id)])
	}
	return nil
}

// rank converts the programs of a rank to thread blocks.
func (t *encoder) rank(rank int32) error {
	l := t.p.Layout(rank)
	whole := t.p.Layout(0)
	t.s.Chunks = int(int64(max(whole.Input, whole.Output)) / t.chunk)
	g := &t.s.GPUs[rank]
	*g = schedule.GPU{Input: int(int64(l.Input) / t.chunk), Output: int(int64(l.Output) / t.chunk),
		Scratch: int(int64(l.Scratch) / t.chunk)}
	for _, pr := range t.p.Programs(rank) {
		t.s.Proto = pr.Proto
		b := Block{Send: -1, Recv: -1}
		var cur plan.Cursor
		var op plan.Op
		for t.p.OpenInto(&cur, &pr); cur.Next(&op); {
			if err := t.op(&pr, &op, &b, len(g.Blocks)); err != nil {
				return err
			}
		}
		if len(b.Steps) > 0 {
			t.s.add(int(rank), b, schedule.Pos{})
		}
	}
	return nil
}

func (t *encoder) place(r plan.Ref) Place {
	buf := [...]byte{plan.Input: 'i', plan.Output: 'o', plan.Scratch: 's'}[r.Buf]
	return Place{buf, int(int64(r.Off) / t.chunk)}
}

// op converts an op of a program to a step.
func (t *encoder) op(pr *plan.Program, op *plan.Op, b *Block, block int) error {
	to, from := int32(-1), int32(-1)
	for _, id := range op.To {
		to = id
	}
	for _, id := range op.From {
		from = id
	}
	if op.Bytes == 0 {
		return t.emitEmpty(pr, to, from, b, block)
	}
	for dir, id := range [2]int32{to, from} {
		if id < 0 {
			continue
		}
		c := t.p.Conn(id)
		peer, at := int(c.Dst), &b.Send
		if dir == 1 {
			peer, at = int(c.Src), &b.Recv
		}
		if *at >= 0 && *at != peer {
			return t.fault(pr, "a thread block with the peers %d and %d", *at, peer)
		}
		*at, b.Channel = peer, t.chans[id]
	}
	st := Step{Count: int(int64(op.Bytes) / t.chunk), DepBlock: -1, DepStep: -1}
	if op.Src.Buf != plan.NoBuffer {
		st.Src = t.place(op.Src)
	}
	if op.Dst.Buf != plan.NoBuffer {
		st.Dst = t.place(op.Dst)
	}
	const does = plan.Recv | plan.Reduce | plan.Copy | plan.Send | plan.Accum
	do := op.Do & does
	if do == plan.Copy|plan.Send {
		if st.Src != st.Dst {
			b.Steps = append(b.Steps, Step{Kind: Copy, Src: st.Src, Dst: st.Dst, Count: st.Count,
				DepBlock: -1, DepStep: -1})
		}
		do = plan.Send
	}
	kind := slices.Index(kindDo[:], do)
	if kind < int(Send) {
		return t.fault(pr, "%v", op.Do)
	}
	st.Kind = Kind(kind)
	// The offset at the other end of a send has no meaning, but the format requires one.
	if st.Dst.Buf == 0 {
		st.Dst = st.Src
	}
	if st.Src.Buf == 0 {
		st.Src = st.Dst
	}
	b.Steps = append(b.Steps, st)
	return nil
}

// emitEmpty converts a message without data: from a rank to itself it orders two steps.
func (t *encoder) emitEmpty(pr *plan.Program, to, from int32, b *Block, block int) error {
	for _, id := range []int32{to, from} {
		if id < 0 {
			continue
		}
		if c := t.p.Conn(id); c.Src != c.Dst {
			if pr.Role == plan.RoleBlock {
				return t.fault(pr, "an empty message from rank %d to %d, which only orders", c.Src, c.Dst)
			}
			continue
		}
		if id == to {
			if len(b.Steps) == 0 {
				b.Steps = append(b.Steps, Step{DepBlock: -1, DepStep: -1})
			}
			t.sent[id] = append(t.sent[id], block, len(b.Steps)-1)
			continue
		}
		n := 0
		for _, d := range t.deps {
			if d.conn == id {
				n++
			}
		}
		t.deps = append(t.deps, dep{int(pr.Rank), block, len(b.Steps), n, id})
		b.Steps = append(b.Steps, Step{DepBlock: -1, DepStep: -1})
	}
	return nil
}

// XML returns the schedule in the form that MSCCL's interpreter reads.
func (s *Algo) XML() []byte {
	var b bytes.Buffer
	bit := map[bool]int{true: 1}
	fmt.Fprintf(&b, "<algo name=%q proto=%q nchannels=\"%d\" nchunksperloop=\"%d\" ngpus=\"%d\" coll=%q "+
		"inplace=\"%d\" outofplace=\"%d\" minBytes=\"%d\" maxBytes=\"%d\">\n",
		attribute(s.Name), s.Proto, s.Channels, s.Chunks, len(s.GPUs), schedule.FuncWord(s.Func),
		bit[s.InPlace], bit[s.OutOfPlace], s.MinBytes, s.MaxBytes)
	for i, g := range s.GPUs {
		fmt.Fprintf(&b, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"%d\">\n", i, g.Input,
			g.Output, g.Scratch)
		waited := map[[2]int]bool{}
		for _, k := range s.Blocks[i] {
			for _, st := range k.Steps {
				if st.DepBlock >= 0 {
					waited[[2]int{st.DepBlock, st.DepStep}] = true
				}
			}
		}
		for j, k := range s.Blocks[i] {
			fmt.Fprintf(&b, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", j, k.Send, k.Recv,
				k.Channel)
			for n, st := range k.Steps {
				fmt.Fprintf(&b, "      <step s=\"%d\" type=\"%v\" srcbuf=\"%c\" srcoff=\"%d\" "+
					"dstbuf=\"%c\" dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n", n,
					st.Kind,
					letter(st.Src), st.Src.Off, letter(st.Dst), st.Dst.Off, st.Count, st.DepBlock, st.DepStep,
					bit[waited[[2]int{j, n}]])
			}
			b.WriteString("    </tb>\n")
		}
		b.WriteString("  </gpu>\n")
	}
	b.WriteString("</algo>\n")
	return b.Bytes()
}

func letter(p Place) byte {
	if p.Buf == 0 {
		return 'i'
	}
	return p.Buf
}

// attribute replaces the characters of a name that an XML attribute cannot contain by _.
func attribute(name string) string {
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' || bytes.ContainsRune([]byte(`<>&"'\`), r) {
			return '_'
		}
		return r
	}, []byte(name)))
}
