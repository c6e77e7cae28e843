package msccl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/simccl/simccl/coll"
)

// Bounds of what is read: more is a mistake, or an attack.
const (
	maxRanks  = 1 << 12
	maxChunks = 1 << 20
	maxSteps  = 1 << 21 // of all GPUs
)

// reader builds a Schedule element by element.
type reader struct {
	dec   *xml.Decoder
	s     *Schedule
	depth int
	steps int
	pos   Pos
}

// Read reads a schedule; file is its name in errors. Errors are *Errors with line and
// column.
func Read(text []byte, file string) (*Schedule, error) {
	r := &reader{dec: xml.NewDecoder(bytes.NewReader(text)), s: &Schedule{File: file}}
	for {
		line, col := r.dec.InputPos()
		r.pos = Pos{line, col}
		t, err := r.dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, r.errorf("no XML: %v", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			err = r.start(t)
			r.depth++
		case xml.EndElement:
			r.depth--
		}
		if err != nil {
			return nil, err
		}
	}
	if len(r.s.GPUs) == 0 {
		return nil, r.errorf("no algo element with gpu elements; write MSCCL's XML")
	}
	return r.s, r.s.validate()
}

func (r *reader) errorf(format string, args ...any) error {
	return &Error{File: r.s.File, Pos: r.pos, GPU: -1, Block: -1, Step: -1, Problem: fmt.Sprintf(format,
		args...)}
}

// levels are the names of the elements by depth.
var levels = [...]string{"algo", "gpu", "tb", "step"}

func (r *reader) start(t xml.StartElement) error {
	if r.depth >= len(levels) || t.Name.Local != levels[r.depth] {
		want := "nothing"
		if r.depth < len(levels) {
			want = levels[r.depth]
		}
		return r.errorf("element <%s>, want %s here", t.Name.Local, want)
	}
	a := attrs{r: r, list: t.Attr}
	switch r.depth {
	case 0:
		r.algo(&a)
	case 1:
		r.gpu(&a)
	case 2:
		r.block(&a)
	case 3:
		r.step(&a)
	}
	return a.err
}

// attrs are the attributes of an element; err is the first fault.
type attrs struct {
	r    *reader
	list []xml.Attr
	err  error
}

func (a *attrs) fail(format string, args ...any) {
	if a.err == nil {
		a.err = a.r.errorf(format, args...)
	}
}

func (a *attrs) text(name string) (string, bool) {
	i := slices.IndexFunc(a.list, func(x xml.Attr) bool { return x.Name.Local == name })
	if i < 0 {
		return "", false
	}
	return a.list[i].Value, true
}

// number reads an attribute from lo to hi.
func (a *attrs) number(name string, lo, hi int64) int64 {
	v, ok := a.text(name)
	if !ok {
		a.fail("lacks %s=", name)
		return lo
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < lo || n > hi {
		a.fail("%s=%q: write a number from %d to %d", name, v, lo, hi)
		return lo
	}
	return n
}

func (a *attrs) numberOr(name string, lo, hi, def int64) int64 {
	if _, ok := a.text(name); !ok {
		return def
	}
	return a.number(name, lo, hi)
}

// funcs are the values of coll.
var funcs = map[string]coll.Func{"allreduce": coll.AllReduce, "allgather": coll.AllGather,
	"reducescatter": coll.ReduceScatter, "reduce_scatter": coll.ReduceScatter,
	"alltoall": coll.AllToAll, "broadcast": coll.Broadcast, "reduce": coll.Reduce, "gather": coll.Gather,
	"scatter": coll.Scatter, "sendrecv": coll.SendRecv}

func (r *reader) algo(a *attrs) {
	s := r.s
	if s.Pos.Line > 0 {
		a.fail("a second algo element; give one a file")
		return
	}
	s.Pos = r.pos
	s.Name, _ = a.text("name")
	word, _ := a.text("coll")
	f, known := funcs[word]
	if !known {
		a.fail("coll=%q: write allreduce, allgather, reducescatter, alltoall, broadcast, reduce, gather, "+
			"scatter or sendrecv", word)
	}
	proto, ok := a.text("proto")
	if !ok {
		proto = "Simple"
	}
	var err error
	if s.Proto, err = coll.ParseProtocol(proto); err != nil {
		a.fail("proto=%q: write LL, LL128 or Simple", proto)
	}
	s.Func = f
	s.Channels = int(a.number("nchannels", 1, 1024))
	s.Chunks = int(a.number("nchunksperloop", 1, maxChunks))
	ranks := a.number("ngpus", 2, maxRanks)
	s.InPlace = a.numberOr("inplace", 0, 1, 0) == 1
	out := int64(1)
	if s.InPlace {
		out = 0
	}
	s.OutOfPlace = a.numberOr("outofplace", 0, 1, out) == 1
	s.MinBytes = a.numberOr("minBytes", 0, math.MaxInt64, 0)
	s.MaxBytes = a.numberOr("maxBytes", 0, math.MaxInt64, 0)
	if !s.InPlace && !s.OutOfPlace {
		a.fail("inplace and outofplace are 0; set one of them to 1")
	}
	s.GPUs = make([]GPU, 0, ranks)
}

func (r *reader) gpu(a *attrs) {
	s := r.s
	if len(s.GPUs) == cap(s.GPUs) {
		a.fail("more gpu elements than ngpus=%d", cap(s.GPUs))
		return
	}
	if id := a.number("id", 0, maxRanks); a.err == nil && int(id) != len(s.GPUs) {
		a.fail("gpu id=%d, want %d: list them in order", id, len(s.GPUs))
	}
	s.GPUs = append(s.GPUs, GPU{Input: int(a.number("i_chunks", 0, maxChunks)),
		Output:  int(a.number("o_chunks", 0, maxChunks)),
		Scratch: int(a.number("s_chunks", 0, maxChunks)), Pos: r.pos})
}

func (r *reader) block(a *attrs) {
	g := &r.s.GPUs[len(r.s.GPUs)-1]
	if id := a.number("id", 0, maxChunks); a.err == nil && int(id) != len(g.Blocks) {
		a.fail("tb id=%d, want %d: list them in order", id, len(g.Blocks))
	}
	top := int64(cap(r.s.GPUs) - 1)
	g.Blocks = append(g.Blocks, Block{Send: int(a.number("send", -1, top)),
		Recv: int(a.number("recv", -1, top)), Channel: int(a.number("chan", 0, 1023)), Pos: r.pos})
}

func (r *reader) step(a *attrs) {
	g := &r.s.GPUs[len(r.s.GPUs)-1]
	b := &g.Blocks[len(g.Blocks)-1]
	number := "s"
	if _, ok := a.text(number); !ok {
		number = "step" // as some msccl-tools write it
	}
	if id := a.number(number, 0, maxSteps); a.err == nil && int(id) != len(b.Steps) {
		a.fail("step %s=%d, want %d: list them in order", number, id, len(b.Steps))
	}
	word, _ := a.text("type")
	kind := slices.Index(kindWords[:], word)
	if kind < 0 {
		a.fail("type=%q: write s, r, rcs, rrs, rrc, rrcs, cpy, re or nop", word)
		return
	}
	st := Step{Kind: Kind(kind), Pos: r.pos, DepBlock: int(a.numberOr("depid", -1, maxSteps, -1)),
		DepStep: int(a.numberOr("deps", -1, maxSteps, -1))}
	if st.Kind != Nop {
		st.Count = int(a.number("cnt", 1, maxChunks))
		if st.Kind.reads() || st.Kind == Recv || st.Kind == RecvCopySend {
			st.Src = a.place("src")
		}
		if st.Kind.writes() || st.Kind == Send {
			st.Dst = a.place("dst")
		}
	}
	if r.steps++; r.steps > maxSteps {
		a.fail("more than %d steps", maxSteps)
	}
	b.Steps = append(b.Steps, st)
}

func (a *attrs) place(end string) Place {
	buf, _ := a.text(end + "buf")
	if buf != "i" && buf != "o" && buf != "s" {
		a.fail("%sbuf=%q: write i, o or s", end, buf)
		return Place{}
	}
	return Place{buf[0], int(a.number(end+"off", 0, maxChunks))}
}

// validate checks what no single element shows.
func (s *Schedule) validate() error {
	if len(s.GPUs) != cap(s.GPUs) {
		return s.fault(-1, -1, -1, "%d gpu elements, ngpus=%d", len(s.GPUs), cap(s.GPUs))
	}
	if n := len(s.GPUs); s.blocks() && s.Chunks%n != 0 {
		return s.fault(-1, -1, -1, "nchunksperloop=%d is no multiple of ngpus=%d, as %s needs it", s.Chunks,
			n, s.Func.TestName())
	}
	for g := range s.GPUs {
		owners := map[[3]int]int{}
		for b := range s.GPUs[g].Blocks {
			if err := s.validateBlock(g, b, owners); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Schedule) validateBlock(g, b int, owners map[[3]int]int) error {
	k := &s.GPUs[g].Blocks[b]
	for dir, peer := range [2]int{k.Send, k.Recv} {
		if peer == g {
			return s.fault(g, b, -1, "is joined to itself; use cpy")
		}
		at := [3]int{dir, peer, k.Channel}
		if other, taken := owners[at]; peer >= 0 && taken {
			return s.fault(g, b, -1,
				"uses the connection to gpu %d on channel %d like tb %d; give it another chan", peer,
				k.Channel, other)
		}
		owners[at] = b
	}
	for i := range k.Steps {
		st := &k.Steps[i]
		switch {
		case st.Kind.sends() && k.Send < 0:
			return s.fault(g, b, i, "type %v sends, but the tb has send=-1", st.Kind)
		case st.Kind.receives() && k.Recv < 0:
			return s.fault(g, b, i, "type %v receives, but the tb has recv=-1", st.Kind)
		case st.DepBlock >= 0 && (st.DepBlock >= len(s.GPUs[g].Blocks) || st.DepStep < 0 ||
			st.DepStep >= len(s.GPUs[g].Blocks[st.DepBlock].Steps)):
			return s.fault(g, b, i, "depid=%d deps=%d: the gpu has no such step", st.DepBlock, st.DepStep)
		case st.DepBlock == b && st.DepStep >= i:
			return s.fault(g, b, i, "depid=%d deps=%d: waits for itself or a later step", st.DepBlock,
				st.DepStep)
		case st.Kind.reads() && st.Src.Off+st.Count > s.chunksOf(g, st.Src.Buf):
			return s.fault(g, b, i, "reads chunks %d to %d of %c, which has %d", st.Src.Off, st.Src.Off+
				st.Count-1, st.Src.Buf, s.chunksOf(g, st.Src.Buf))
		case st.Kind.writes() && st.Dst.Off+st.Count > s.chunksOf(g, st.Dst.Buf):
			return s.fault(g, b, i, "writes chunks %d to %d of %c, which has %d", st.Dst.Off, st.Dst.Off+
				st.Count-1, st.Dst.Buf, s.chunksOf(g, st.Dst.Buf))
		}
	}
	return nil
}

// blocks reports whether a buffer of the operation has a block for each rank.
func (s *Schedule) blocks() bool {
	return s.Func == coll.AllGather || s.Func == coll.ReduceScatter || s.Func == coll.AllToAll ||
		s.Func == coll.Gather || s.Func == coll.Scatter
}

// chunksOf is how many chunks a buffer has: those of scratch as the file says, those of
// the operation as it needs them.
func (s *Schedule) chunksOf(g int, buf byte) int {
	whole, part := s.Chunks, s.Chunks
	if s.blocks() {
		part = s.Chunks / len(s.GPUs)
	}
	switch {
	case buf == 's':
		return s.GPUs[g].Scratch
	case s.Func == coll.AllGather || s.Func == coll.Gather:
		if buf == 'i' {
			return part
		}
	case s.Func == coll.ReduceScatter || s.Func == coll.Scatter:
		if buf == 'o' {
			return part
		}
	}
	return whole
}
