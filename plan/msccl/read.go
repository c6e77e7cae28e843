// Package msccl reads and writes schedules in MSCCL's XML (the algo element of microsoft/msccl-tools), whose
// steps send and receive over two-sided connections. It must not know files.
package msccl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/schedule"
)

// reader builds an Algo element by element.
type reader struct {
	dec   *xml.Decoder
	s     *Algo
	ranks int
	depth int
	steps int
	pos   schedule.Pos
}

// Read reads a schedule; file is its name in errors. Errors are *schedule.Errors with line and
// column.
func Read(text []byte, file string) (*schedule.Schedule, error) {
	r := &reader{dec: xml.NewDecoder(bytes.NewReader(text)), s: newAlgo(schedule.Schedule{File: file})}
	for {
		line, col := r.dec.InputPos()
		r.pos = schedule.Pos{Line: line, Col: col}
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
	if len(r.s.GPUs) != r.ranks {
		return nil, r.s.Fault(schedule.Whole(r.s.Pos), "%d gpu elements, ngpus=%d", len(r.s.GPUs), r.ranks)
	}
	return r.s.Schedule, r.s.validate()
}

func (r *reader) errorf(format string, args ...any) error {
	return r.s.Fault(schedule.Whole(r.pos), format, args...)
}

// levels are the names of the elements by depth of nesting.
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

func (r *reader) algo(a *attrs) {
	s := r.s
	if s.Pos.Line > 0 {
		a.fail("a second algo element; give one a file")
		return
	}
	s.Pos = r.pos
	s.Name, _ = a.text("name")
	word, _ := a.text("coll")
	var known bool
	if s.Func, known = schedule.ParseFunc(word); !known {
		a.fail("coll=%q: %s", word, schedule.FuncHint)
	}
	proto, ok := a.text("proto")
	if !ok {
		proto = "Simple"
	}
	var err error
	if s.Proto, err = coll.ParseProtocol(proto); err != nil {
		a.fail("proto=%q: write LL, LL128 or Simple", proto)
	}
	s.Channels = int(a.number("nchannels", 1, 1024))
	s.Chunks = int(a.number("nchunksperloop", 1, schedule.MaxChunks))
	r.ranks = int(a.number("ngpus", 2, schedule.MaxRanks))
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
}

func (r *reader) gpu(a *attrs) {
	s := r.s
	if len(s.GPUs) == r.ranks {
		a.fail("more gpu elements than ngpus=%d", r.ranks)
		return
	}
	if id := a.number("id", 0, schedule.MaxRanks); a.err == nil && int(id) != len(s.GPUs) {
		a.fail("gpu id=%d, want %d: list them in order", id, len(s.GPUs))
	}
	s.Blocks = append(s.Blocks, nil)
	s.GPUs = append(s.GPUs, schedule.GPU{Input: int(a.number("i_chunks", 0, schedule.MaxChunks)),
		Output:  int(a.number("o_chunks", 0, schedule.MaxChunks)),
		Scratch: int(a.number("s_chunks", 0, schedule.MaxChunks)), Pos: r.pos})
}

func (r *reader) block(a *attrs) {
	g := len(r.s.GPUs) - 1
	if id := a.number("id", 0, schedule.MaxChunks); a.err == nil && int(id) != len(r.s.Blocks[g]) {
		a.fail("tb id=%d, want %d: list them in order", id, len(r.s.Blocks[g]))
	}
	top := int64(r.ranks - 1)
	r.s.add(g, Block{Send: int(a.number("send", -1, top)), Recv: int(a.number("recv", -1, top)),
		Channel: int(a.number("chan", 0, 1023))}, r.pos)
}

// step reads a <step> into the thread block before it, and records in a what MSCCL would not run.
func (r *reader) step(a *attrs) {
	blocks := r.s.Blocks[len(r.s.GPUs)-1]
	b := &blocks[len(blocks)-1]
	number := "s"
	if _, ok := a.text(number); !ok {
		number = "step" // an alternative spelling that some msccl-tools write
	}
	if id := a.number(number, 0, schedule.MaxSteps); a.err == nil && int(id) != len(b.Steps) {
		a.fail("step %s=%d, want %d: list them in order", number, id, len(b.Steps))
	}
	word, _ := a.text("type")
	kind := slices.Index(kindWords[:], word)
	if kind < 0 {
		a.fail("type=%q: write s, r, rcs, rrs, rrc, rrcs, cpy, re or nop", word)
		return
	}
	st := Step{Kind: Kind(kind), Pos: r.pos, DepBlock: int(a.numberOr("depid", -1, schedule.MaxSteps, -1)),
		DepStep: int(a.numberOr("deps", -1, schedule.MaxSteps, -1))}
	if st.Kind != Nop {
		st.Count = int(a.number("cnt", 1, schedule.MaxChunks))
		if st.Kind.reads() || st.Kind == Recv || st.Kind == RecvCopySend {
			st.Src = a.place("src")
		}
		if st.Kind.writes() || st.Kind == Send {
			st.Dst = a.place("dst")
		}
	}
	if r.steps++; r.steps > schedule.MaxSteps {
		a.fail("more than %d steps", schedule.MaxSteps)
	}
	b.Steps = append(b.Steps, st)
}

func (a *attrs) place(end string) Place {
	buf, _ := a.text(end + "buf")
	if buf != "i" && buf != "o" && buf != "s" {
		a.fail("%sbuf=%q: write i, o or s", end, buf)
		return Place{}
	}
	return Place{buf[0], int(a.number(end+"off", 0, schedule.MaxChunks))}
}

// validate checks conditions that involve several elements, and counts the steps.
func (s *Algo) validate() error {
	if n := len(s.GPUs); s.PerRank() && s.Chunks%n != 0 {
		return s.Fault(schedule.Whole(s.Pos), "nchunksperloop=%d is no multiple of ngpus=%d, as %s "+
			"needs it", s.Chunks, n, s.Func.TestName())
	}
	for g := range s.GPUs {
		owners := map[[3]int]int{}
		for b := range s.Blocks[g] {
			s.GPUs[g].Blocks[b].Steps = len(s.Blocks[g][b].Steps)
			if err := s.validateBlock(g, b, owners); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Algo) validateBlock(g, b int, owners map[[3]int]int) error {
	k, at := &s.Blocks[g][b], schedule.Element{GPU: g, Block: b, Step: -1}
	for dir, peer := range [2]int{k.Send, k.Recv} {
		if peer == g {
			return s.Fault(at, "is joined to itself; use cpy")
		}
		end := [3]int{dir, peer, k.Channel}
		if other, taken := owners[end]; peer >= 0 && taken {
			return s.Fault(at,
				"uses the connection to gpu %d on channel %d like tb %d; give it another chan", peer,
				k.Channel, other)
		}
		owners[end] = b
	}
	for i := range k.Steps {
		st := &k.Steps[i]
		at.Step, at.Pos = i, st.Pos
		switch {
		case st.Kind.sends() && k.Send < 0:
			return s.Fault(at, "type %v sends, but the tb has send=-1", st.Kind)
		case st.Kind.receives() && k.Recv < 0:
			return s.Fault(at, "type %v receives, but the tb has recv=-1", st.Kind)
		case st.DepBlock >= 0 && (st.DepBlock >= len(s.Blocks[g]) || st.DepStep < 0 ||
			st.DepStep >= len(s.Blocks[g][st.DepBlock].Steps)):
			return s.Fault(at, "depid=%d deps=%d: the gpu has no such step", st.DepBlock, st.DepStep)
		case st.DepBlock == b && st.DepStep >= i:
			return s.Fault(at, "depid=%d deps=%d: waits for itself or a later step", st.DepBlock,
				st.DepStep)
		case st.Kind.reads() && st.Src.Off+st.Count > s.ChunksOf(g, st.Src.Buf):
			return s.Fault(at, "reads chunks %d to %d of %c, which has %d", st.Src.Off, st.Src.Off+
				st.Count-1, st.Src.Buf, s.ChunksOf(g, st.Src.Buf))
		case st.Kind.writes() && st.Dst.Off+st.Count > s.ChunksOf(g, st.Dst.Buf):
			return s.Fault(at, "writes chunks %d to %d of %c, which has %d", st.Dst.Off, st.Dst.Off+
				st.Count-1, st.Dst.Buf, s.ChunksOf(g, st.Dst.Buf))
		}
	}
	return nil
}
