package plan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// TextError is a fault in plan text.
type TextError struct {
	File      string
	Line, Col int // from 1
	Problem   string
	Hint      string // what to write instead
}

func (e *TextError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Bounds on what plan text may ask for.
const (
	maxTextRanks = 1 << 20
	maxTextLine  = 1 << 20
)

// ReadText reads plan text; file names it in errors. The plan's communicator
// has ranks and buffer sizes only. Nothing is proven of the plan: Check does
// that.
func ReadText(file string, r io.Reader) (*Plan, error) {
	t := textReader{file: file, p: &Plan{kind: listed, list: new(Listing), Comm: new(connect.Comm)}}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 1<<16), maxTextLine)
	for sc.Scan() {
		t.line++
		t.text, t.col = sc.Text(), 0
		if err := t.readLine(); err != nil {
			return nil, err
		}
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		t.line++
		return nil, t.fault("line is longer than a megabyte", "")
	case err != nil:
		return nil, err
	}
	if t.line < 3 {
		t.line++
		return nil, t.fault("ends before the op line", "start with the three lines "+textMagic+", ranks and op")
	}
	return t.p, nil
}

// textReader reads line by line; col is the offset of the next word.
type textReader struct {
	file      string
	line, col int
	text      string
	word      int // offset of the last word
	p         *Plan
}

func (t *textReader) fault(problem, hint string) error {
	return &TextError{t.file, t.line, t.word + 1, problem, hint}
}

// next returns the next word, "" at the end of the line.
func (t *textReader) next() string {
	t.word = min(t.col, len(t.text))
	rest := t.text[t.word:]
	w, _, _ := strings.Cut(rest, " ")
	t.col = t.word + len(w) + 1
	return w
}

// expect reads a fixed word.
func (t *textReader) expect(word string) error {
	if got := t.next(); got != word {
		return t.fault(fmt.Sprintf("%q where %q belongs", got, word), "")
	}
	return nil
}

// number reads an integer between low and high, after the word name where it
// is not empty.
func (t *textReader) number(name string, low, high int64) (int64, error) {
	if name != "" {
		if err := t.expect(name); err != nil {
			return 0, err
		}
	}
	return t.value(t.next(), low, high)
}

func (t *textReader) value(w string, low, high int64) (int64, error) {
	v, err := strconv.ParseInt(w, 10, 64)
	if err != nil || strconv.FormatInt(v, 10) != w {
		return 0, t.fault(fmt.Sprintf("%q is not a number", w), fmt.Sprintf("write a number from %d to %d", low, high))
	}
	if v < low || v > high {
		return 0, t.fault(fmt.Sprintf("%d is out of range", v), fmt.Sprintf("write a number from %d to %d", low, high))
	}
	return v, nil
}

// small reads a number into a 32-bit field.
func small[T ~int32 | ~int | ~int64](t *textReader, name string, to *T, low, high int64) error {
	v, err := t.number(name, low, high)
	*to = T(v)
	return err
}

// one reads one of a list of words into to as its index.
func one[T ~uint8](t *textReader, name string, to *T, n int, word func(T) string) error {
	if name != "" {
		if err := t.expect(name); err != nil {
			return err
		}
	}
	w := t.next()
	var all []string
	for i := range n {
		if word(T(i)) == w {
			*to = T(i)
			return nil
		}
		all = append(all, word(T(i)))
	}
	return t.fault(fmt.Sprintf("%q is not known here", w), "write one of "+strings.Join(all, " "))
}

// end makes sure that the line is over.
func (t *textReader) end() error {
	if t.col <= len(t.text) {
		w := t.next()
		return t.fault(fmt.Sprintf("%q is too much", w), "end the line here")
	}
	return nil
}

// firstOf returns the first error.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *textReader) readLine() error {
	switch t.line {
	case 1:
		if t.text != textMagic {
			return t.fault("not plan text", "start with "+textMagic)
		}
		return nil
	case 2:
		return t.readRanks()
	case 3:
		return t.readRequest()
	}
	w := t.next()
	switch w {
	case "net":
		return t.readNet()
	case "conn":
		return t.readConn()
	case "program":
		return t.readProgram()
	}
	return t.readOp(w)
}

func (t *textReader) readRanks() error {
	c := t.p.Comm
	err := firstOf(small(t, "ranks", &c.NRanks, 1, maxTextRanks))
	if err == nil {
		err = small(t, "nodes", &c.NNodes, 1, int64(c.NRanks))
	}
	for i := range c.BuffSizes {
		name := ""
		if i == 0 {
			name = "buffers"
		}
		if err == nil {
			err = small(t, name, &c.BuffSizes[i], 0, maxBytes)
		}
	}
	return firstOf(err, t.endIf(err))
}

// endIf checks the end of the line unless something was wrong before.
func (t *textReader) endIf(err error) error {
	if err != nil {
		return nil
	}
	return t.end()
}

func (t *textReader) readRequest() error {
	r := &t.p.Req
	var in int
	err := one(t, "op", &r.Func, int(coll.NumFuncs), coll.Func.TestName)
	if err == nil {
		err = small(t, "count", &r.Count, 0, maxBytes)
	}
	if err == nil {
		err = one(t, "type", &r.Type, int(coll.NumDataTypes), coll.DataType.TestName)
	}
	if err == nil && r.Count > maxBytes/int64(r.Type.Size())/int64(t.p.Comm.NRanks) {
		err = t.fault(fmt.Sprintf("%d elements per rank are more than any memory", r.Count), "write a smaller count")
	}
	if err == nil {
		err = one(t, "redop", &r.Op, int(coll.NumRedOps), coll.RedOp.TestName)
	}
	if err == nil {
		err = small(t, "root", &r.Root, 0, int64(t.p.Comm.NRanks-1))
	}
	if err == nil {
		err = small(t, "in-place", &in, 0, 1)
	}
	r.InPlace = in == 1
	if err == nil {
		err = one(t, "algo", &r.Algo, int(coll.NumAlgorithms), coll.Algorithm.String)
	}
	if err == nil {
		err = one(t, "proto", &r.Proto, int(coll.NumProtocols), coll.Protocol.String)
	}
	if err == nil {
		err = small(t, "channels", &r.Channels, 0, 1<<20)
	}
	if err == nil {
		err = small(t, "warps", &r.Warps, 0, 1<<20)
	}
	return firstOf(err, t.endIf(err))
}

func nameIn(list []string) func(uint8) string { return func(i uint8) string { return list[i] } }

func (t *textReader) readConn() error {
	l := t.p.list
	if len(l.Programs) > 0 {
		t.word = 0
		return t.fault("a connection after the first program", "list all connections first")
	}
	c := Conn{ID: int32(len(l.Conns))}
	var kind, transport uint8
	err := small(t, "", &c.ID, int64(c.ID), int64(c.ID))
	if err == nil {
		c.Src, err = t.readPeer()
	}
	if err == nil {
		err = t.expect(">")
	}
	if err == nil {
		c.Dst, err = t.readPeer()
	}
	if err == nil {
		err = small(t, "channel", &c.Channel, 0, 1<<20)
	}
	if err == nil {
		err = one(t, "", &kind, len(routeNames), nameIn(routeNames[:]))
	}
	c.Kind = connect.RouteKind(kind)
	if err == nil {
		err = t.readNetGroup(&c)
	}
	if err == nil {
		err = one(t, "", &transport, len(transportNames), nameIn(transportNames[:]))
	}
	c.Route.Transport = connect.Transport(transport)
	if err == nil && c.Route.Transport == connect.NET {
		err = t.readRoute(&c.Route)
	}
	l.Conns = append(l.Conns, c)
	return firstOf(err, t.endIf(err))
}

func (t *textReader) readRoute(r *connect.Route) error {
	last := int64(t.p.Comm.NRanks - 1)
	var gdr [2]int
	err := small(t, "", &r.SrcNet, -1, 1<<20)
	if err == nil {
		err = small(t, "", &r.DstNet, -1, 1<<20)
	}
	if err == nil {
		err = small(t, "", &r.SrcProxy, -1, last)
	}
	if err == nil {
		err = small(t, "", &r.DstProxy, -1, last)
	}
	for i := range gdr {
		if err == nil {
			err = small(t, "", &gdr[i], 0, 1)
		}
	}
	r.SrcGDR, r.DstGDR = gdr[0] == 1, gdr[1] == 1
	return err
}

func (t *textReader) readProgram() error {
	l := t.p.list
	pr := Program{}
	err := small(t, "", &pr.Rank, 0, int64(t.p.Comm.NRanks-1))
	for _, f := range []struct {
		name      string
		to        *int32
		low, high int64
	}{{"channel", &pr.Channel, 0, 1 << 20}, {"group", &pr.Group, 0, 1 << 20}, {"phase", &pr.Phase, 0, 1 << 20}} {
		if err == nil {
			err = small(t, f.name, f.to, f.low, f.high)
		}
	}
	at := t.word
	if err == nil {
		err = one(t, "", &pr.Role, len(roleNames), Role.String)
	}
	if err == nil {
		err = one(t, "", &pr.Proto, int(coll.NumProtocols), coll.Protocol.String)
	}
	for _, f := range []struct {
		name      string
		to        *int32
		low, high int64
	}{{"threads", &pr.Threads, 0, 1 << 20}, {"workers", &pr.Workers, 0, 1 << 20}, {"slices", &pr.Slices, 1, FIFOSteps}, {"steps", &pr.SliceSteps, 1, FIFOSteps}} {
		if err == nil {
			err = small(t, f.name, f.to, f.low, f.high)
		}
	}
	if err = firstOf(err, t.endIf(err)); err != nil {
		return err
	}
	if k := len(l.Programs); k > 0 {
		q := &l.Programs[k-1]
		before := []int32{q.Rank, q.Channel, q.Phase, q.Group}
		if slices.Compare(before, []int32{pr.Rank, pr.Channel, pr.Phase, pr.Group}) >= 0 || (q.Rank == pr.Rank && q.Channel == pr.Channel && q.Group >= pr.Group) {
			t.word = at
			return t.fault("program out of order", "sort programs by rank, channel, phase and group, each once")
		}
	}
	l.Programs = append(l.Programs, ListedProgram{Program: pr})
	return nil
}

// readOp reads an op line whose first word is do.
func (t *textReader) readOp(do string) error {
	l := t.p.list
	if len(l.Programs) == 0 {
		return t.fault(fmt.Sprintf("%q before the first program", do), "write conn or program")
	}
	pr := &l.Programs[len(l.Programs)-1]
	op := Op{Rank: pr.Rank, Channel: pr.Channel, Group: pr.Group, Seq: int32(len(pr.Ops))}
	for _, w := range strings.Split(do, "+") {
		i := slices.Index(doNames[:], w)
		if i < 0 || op.Do >= 1<<i {
			return t.fault(fmt.Sprintf("%q is no primitive", do), "write conn, program, or some of "+strings.Join(doNames[:], "+")+" in this order")
		}
		op.Do |= 1 << i
	}
	if err := small(t, "", &op.Bytes, 0, maxBytes); err != nil {
		return err
	}
	w := t.next()
	for _, f := range []struct {
		prefix string
		buf    []Buffer
		to     *Ref
	}{{"in+", []Buffer{Input}, &op.Src}, {"out+", []Buffer{Output}, &op.Dst}} {
		if off, ok := strings.CutPrefix(w, f.prefix); ok {
			v, err := t.value(off, 0, maxBytes)
			if err != nil {
				return err
			}
			*f.to = Ref{f.buf[0], units.Bytes(v)}
			w = t.next()
		}
	}
	for _, f := range []struct {
		mark string
		to   *[]int32
	}{{"<", &op.From}, {">", &op.To}} {
		if w == f.mark {
			if err := t.readIDs(f.to); err != nil {
				return err
			}
			w = t.next()
		}
	}
	if err := t.readOpTail(w, &op); err != nil {
		return err
	}
	pr.Ops = append(pr.Ops, op)
	return nil
}

// readIDs reads connection ids separated by commas.
func (t *textReader) readIDs(to *[]int32) error {
	for _, w := range strings.Split(t.next(), ",") {
		v, err := t.value(w, 0, int64(len(t.p.list.Conns))-1)
		if err != nil {
			return err
		}
		*to = append(*to, int32(v))
	}
	return nil
}

// readOpTail reads chunk and step, and PAT's places; w is the word before.
func (t *textReader) readOpTail(w string, op *Op) error {
	if w != "chunk" {
		return t.fault(fmt.Sprintf("%q where %q belongs", w, "chunk"), "an op is: primitives bytes in+N out+N < ids > ids chunk N step N")
	}
	const most = 1<<31 - 1
	err := small(t, "", &op.Chunk, 0, most)
	if err == nil {
		err = small(t, "step", &op.Step, 0, most)
	}
	for _, f := range []struct {
		word  string
		off   *units.Bytes
		ahead *int32
	}{{"recv-at", &op.RecvOff, &op.RecvAhead}, {"send-at", &op.SendOff, &op.SendAhead}} {
		if err != nil || !strings.HasPrefix(t.rest(), f.word+" ") {
			continue
		}
		err = small(t, f.word, f.off, 0, maxBytes)
		if err == nil {
			err = small(t, "", f.ahead, 0, FIFOSteps-1)
		}
	}
	return firstOf(err, t.endIf(err))
}

func (t *textReader) rest() string { return t.text[min(t.col, len(t.text)):] }
