package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
)

// Parse reads the text form. The error is a *TextError, or what Lint finds.
func Parse(text, file string) (*Program, error) { return Read(strings.NewReader(text), file) }

// maxLine bounds a line of the text form, in bytes: a communicator may name all ranks.
const maxLine = 256 << 20

// Read is Parse for a text that is read from a stream. It also returns errors of in.
func Read(in io.Reader, file string) (*Program, error) { return read(in, file, MaxSteps) }

// read is Read with a limit (most) on the number of steps.
func read(in io.Reader, file string, most int) (*Program, error) {
	r := reader{file: file, most: most, comms: map[string]int32{}, lists: map[string]bool{},
		calls: map[readKey]int32{}, known: map[string]operands{}, d: &Folded{}}
	r.p = &r.d.Program
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	for lines.Scan() {
		r.line++
		if err := r.read(strings.TrimRight(lines.Text(), "\r")); err != nil {
			return nil, err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		return nil, r.fail(1, "", "a line of more than %d bytes", maxLine)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r.closeList()
	switch missing := slices.Index(r.p.Of, -1); {
	case r.stage == 0:
		return nil, r.fail(1, fmt.Sprintf("write workload %d in the first line", FormatVersion),
			"no workload")
	case missing >= 0:
		return nil, r.fail(1, "", "rank %d has no list", missing)
	}
	if !slices.ContainsFunc(r.p.Factor, func(f float64) bool { return f != 1 }) {
		r.p.Factor = nil
	}
	if r.each {
		p, err := r.d.Unfold()
		if err != nil {
			return nil, err
		}
		return p, p.Lint()
	}
	return r.p, r.p.Lint()
}

// callKey identifies equal calls of a text, which are stored once.
type callKey struct {
	plainCall
	splits string
}

// readKey is a callKey, and whether each rank makes the call on its own communicator.
type readKey struct {
	callKey
	each bool
}

// reader holds the state of Parse: the tables of names and the stage of the text.
type reader struct {
	file  string
	line  int
	stage int // 0: the version comes, 1: the number of ranks, 2: the rest
	d     *Folded
	p     *Program // of d
	comms map[string]int32
	lists map[string]bool
	calls map[readKey]int32
	known map[string]operands // words of calls that were read before
	words []word              // of the line
	each  bool                // there is a list of each rank
	steps int                 // of all lists, as often as they are made
	most  int                 // of them
	ranks []int32             // of the list, where each has its own
	names *families           // nil until one is asked for
	deps  []int32             // room for dependencies
}

// operands is the operation, element type and reduction of a call.
type operands struct {
	fn  coll.Func
	typ coll.DataType
	op  coll.RedOp
}

func (r *reader) fail(col int, hint, format string, args ...any) error {
	return &TextError{r.file, r.line, col, fmt.Sprintf(format, args...), hint}
}

func (r *reader) read(line string) error {
	w, bad := words(r.words, line)
	r.words = w
	if bad > 0 {
		return r.fail(bad, `write names with spaces as "a b"`, "the quote has no end")
	}
	if len(w) == 0 {
		return nil
	}
	switch r.stage {
	case 0:
		if len(w) != 2 || w[0].text != "workload" || w[1].text != strconv.Itoa(FormatVersion) {
			return r.fail(w[0].col, "", "the first line must be workload %d", FormatVersion)
		}
		r.stage = 1
		return nil
	case 1:
		n, err := strconv.Atoi(w[len(w)-1].text)
		if len(w) != 2 || w[0].text != "ranks" || err != nil || n < 1 || n > maxRanks {
			return r.fail(w[0].col, fmt.Sprintf("write for example ranks 8, at most %d", maxRanks),
				"the number of ranks is expected")
		}
		r.p.Of = slices.Repeat([]int32{-1}, n)
		r.stage = 2
		return nil
	}
	switch w[0].text {
	case "comm":
		return r.comm(w)
	case "work":
		return r.work(w)
	case "factor":
		return r.factor(w)
	case "list":
		return r.list(w)
	case "mark":
		return r.mark(w)
	case "again":
		return r.again(w)
	case "gpu":
		return r.gpu(w)
	case "model":
		return r.model(w)
	case "memory":
		return r.memory(w)
	}
	return r.step(w)
}

// name parses a name, which may be quoted.
func (r *reader) name(w word) (string, error) {
	s, err := unquote(w.text)
	if err != nil {
		return "", r.fail(w.col, `write a name as one word, or as "a b"`, "%s is no name", w.text)
	}
	return strings.Clone(s), nil // and not the line
}

// option splits name=value; the value may be quoted.
func option(w word) (name string, value word) {
	k, v, _ := strings.Cut(w.text, "=")
	return k, word{v, w.col + len(k) + 1}
}

func (r *reader) comm(w []word) error {
	if len(w) < 3 {
		return r.fail(w[0].col, "write comm NAME *, or comm NAME 0-3,8",
			"a communicator has a name and ranks")
	}
	name, err := r.name(w[1])
	if err != nil {
		return err
	}
	if _, twice := r.comms[name]; twice {
		return r.fail(w[1].col, "", "communicator %s for the second time", name)
	}
	c := Comm{Name: name}
	if w[2].text != "*" {
		if c.Ranks, err = r.numbers(w[2], len(r.p.Of), "ranks"); err != nil {
			return err
		}
	}
	for _, x := range w[3:] {
		if err := r.commOption(&c, x); err != nil {
			return err
		}
	}
	r.names = nil
	r.comms[c.Name] = int32(len(r.p.Comms))
	r.p.Comms = append(r.p.Comms, c)
	return nil
}

func (r *reader) commOption(c *Comm, x word) error {
	var err error
	switch key, value := option(x); {
	case x.text == "share":
		c.Share = true
	case key == "kind":
		i := slices.Index(commKindNames[:], value.text)
		if i < 0 {
			return r.fail(value.col, "write one of "+strings.Join(commKindNames[:], ", "),
				"%s is no kind of communicator", value.text)
		}
		c.Kind = CommKind(i)
	case key == "parent":
		name, err := r.name(value)
		if err != nil {
			return err
		}
		at, ok := r.comms[name]
		if !ok {
			return r.fail(value.col, "write comm "+value.text+" … before it", "no communicator %s", name)
		}
		c.Parent = at + 1
	case key == "desc":
		c.Desc, err = r.name(value)
	default:
		return r.fail(x.col, "write kind=, parent=, share or desc=", "%s is not known here", x.text)
	}
	return err
}

// work parses "N NAME" and the kernel's demands.
func (r *reader) work(w []word) error {
	if len(w) < 3 || w[1].text != strconv.Itoa(len(r.p.Works)+1) {
		return r.fail(w[0].col, fmt.Sprintf("write work %d NAME …; they are numbered from 1", len(r.p.Works)+
			1), "a work has a number and a name")
	}
	name, err := r.name(w[2])
	if err != nil {
		return err
	}
	k := Work{Name: name}
	for _, x := range w[3:] {
		switch x.text {
		case "persistent":
			k.Persistent = true
			continue
		case "communication":
			k.Comm = true
			continue
		}
		key, value := option(x)
		if key == "shape" {
			var ok bool
			if k.Shape, ok = parseShape(value.text); !ok {
				return r.fail(value.col, "write shape=product:4096x6144x4096:fp8, M×N×K and a precision",
					"%s is no shape", value.text)
			}
			continue
		}
		bits, known := map[string]int{"flops": 64, "bytes": 64, "extra": 64, "blocks": 32, "persm": 32,
			"tiles": 64, "cluster": 32, "priority": 8, "kernels": 32}[key]
		n, err := strconv.ParseInt(value.text, 10, max(bits, 8))
		if !known || err != nil {
			return r.fail(x.col, "write flops=, bytes=, extra=, kernels=, blocks=, persm=, tiles=, "+
				"cluster= or priority= with a number, shape=, persistent or communication",
				"%s is not known here", x.text)
		}
		switch key {
		case "flops":
			k.FLOPs = n
		case "bytes":
			k.Bytes = n
		case "extra":
			k.Extra = n
		case "blocks":
			k.Blocks = int32(n)
		case "persm":
			k.PerSM = int32(n)
		case "tiles":
			k.Tiles = n
		case "cluster":
			k.Cluster = int32(n)
		case "priority":
			k.Priority = int8(n)
		case "kernels":
			k.Kernels = int32(n)
		}
	}
	r.p.Works = append(r.p.Works, k)
	return nil
}

// factor parses "FACTOR RANKS".
func (r *reader) factor(w []word) error {
	if len(w) != 3 {
		return r.fail(w[0].col, "write factor 1.2 0-3,8", "a factor has a number and ranks")
	}
	f, err := strconv.ParseFloat(w[1].text, 64)
	if err != nil || !(f > 0 && f <= MaxFactor) {
		return r.fail(w[1].col, "", "%s is no factor; it must be above 0, at most %g", w[1].text,
			float64(MaxFactor))
	}
	ranks, err := r.numbers(w[2], len(r.p.Of), "ranks")
	if err != nil {
		return err
	}
	if r.p.Factor == nil {
		r.p.Factor = slices.Repeat([]float64{1}, len(r.p.Of))
	}
	for _, rank := range ranks {
		r.p.Factor[rank] = f
	}
	return nil
}

func (r *reader) list(w []word) error {
	if len(w) != 3 {
		return r.fail(w[0].col, "write list NAME 0-3,8", "a list has a name and ranks")
	}
	bare, each := eachRank(w[1])
	name, err := r.name(bare)
	if err != nil {
		return err
	}
	r.closeList()
	r.ranks = nil
	if each {
		r.each = true
	} else if err := r.addName(name, w[1].col); err != nil {
		return err
	}
	r.p.Lists, r.d.Ranked = append(r.p.Lists, List{Name: name}), append(r.d.Ranked, each)
	if w[2].text != "-" {
		ranks, err := r.numbers(w[2], len(r.p.Of), "ranks")
		if err != nil {
			return err
		}
		for _, rank := range ranks {
			if r.p.Of[rank] >= 0 {
				return r.fail(w[2].col, "", "rank %d has list %s already", rank, r.p.Lists[r.p.Of[rank]].Name)
			}
			r.p.Of[rank] = int32(len(r.p.Lists)) - 1
		}
		return r.listOfEach(each, name, ranks, w[1].col)
	}
	return r.listOfEach(each, name, nil, w[1].col)
}

// closeList releases unused capacity of the last list's steps.
func (r *reader) closeList() {
	if n := len(r.p.Lists); n > 0 {
		if steps := r.p.Lists[n-1].Steps; cap(steps) > len(steps)+len(steps)/16 {
			r.p.Lists[n-1].Steps = append(make([]Step, 0, len(steps)), steps...)
		}
	}
}

func (r *reader) mark(w []word) error {
	if len(w) != 2 || len(r.p.Lists) == 0 {
		return r.fail(w[0].col, "write mark NAME within a list", "a mark has a name and is in a list")
	}
	name, err := r.name(w[1])
	if err != nil {
		return err
	}
	at := len(r.p.Lists) - 1
	r.p.Marks = append(r.p.Marks, Mark{List: int32(at), Step: int32(len(r.p.Lists[at].Steps)), Name: name})
	return nil
}

// numbers parses "0-3,8", numbers below n; what names them in errors.
func (r *reader) numbers(w word, n int, what string) ([]int32, error) {
	out := []int32{}
	for part := range strings.SplitSeq(w.text, ",") {
		a, b, ranged := strings.Cut(part, "-")
		if !ranged {
			b = a
		}
		lo, err1 := strconv.Atoi(a)
		hi, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo || hi >= n || len(out)+hi-lo >= maxRanks {
			return nil, r.fail(w.col, "write for example 0-3,8", "%s: %s are from 0 to %d", part, what, n-1)
		}
		for i := lo; i <= hi; i++ {
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// stream reads 3, or h3 for a thread of the host.
func stream(s string) (int32, bool) {
	digits, host := strings.CutPrefix(s, "h")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || digits[0] == '+' {
		return 0, false
	}
	if host {
		n += int64(HostStream)
	}
	return int32(n), n < 1<<31 && host == OnHost(int32(n))
}

// fields is the minimum number of words of a step of each kind.
var fields = [numKinds]int{Issue: 7, Compute: 3, Record: 3, Wait: 3, GroupStart: 2, GroupEnd: 2}

func (r *reader) step(w []word) error {
	k := Kind(slices.Index(kindNames[:], w[0].text))
	if int(k) >= len(kindNames) || len(r.p.Lists) == 0 {
		return r.fail(w[0].col, "write comm, list, or within a list "+strings.Join(kindNames[:], ", "),
			"%s is not known here", w[0].text)
	}
	need := fields[k]
	if len(w) < need {
		return r.fail(w[0].col, "", "%v has %d fields, %d are expected", k, len(w), need)
	}
	s := Step{Kind: k}
	var ok bool
	if s.Stream, ok = stream(w[1].text); !ok {
		return r.fail(w[1].col, "", "%s is no stream; streams are numbered from 0", w[1].text)
	}
	l := &r.p.Lists[len(r.p.Lists)-1]
	rest, err := r.stepOptions(&s, w[need:], len(l.Steps))
	if err != nil {
		return err
	}
	if len(rest) > 0 && k != Issue {
		return r.fail(rest[0].col, "", "%v has %d fields, %d are expected", k, need+len(rest), need)
	}
	switch k {
	case Compute:
		if s.Time, ok = picoseconds(w[2].text); !ok {
			return r.fail(w[2].col, "", "%s is no time in picoseconds", w[2].text)
		}
	case Record, Wait:
		n, err := strconv.ParseInt(w[2].text, 10, 32)
		if err != nil {
			return r.fail(w[2].col, "", "%s is no event", w[2].text)
		}
		s.Event = int32(n)
	case Issue:
		if s.Call, err = r.call(w[2:need], rest); err != nil {
			return err
		}
	}
	return r.append(l, s)
}

func (r *reader) append(l *List, s Step) error {
	if err := r.room(max(len(r.ranks), 1)); err != nil {
		return err
	}
	l.Steps = append(l.Steps, s)
	return nil
}

// room adds n to the number of steps and returns an error if they exceed the limit.
func (r *reader) room(n int) error {
	if n > r.most-r.steps {
		return r.fail(1, "write fewer ranks or steps", "the lists of all ranks have more than %d steps",
			r.most)
	}
	r.steps += n
	return nil
}

// stepOptions parses the options of all kinds of steps; n is the step's number. It returns unknown words.
func (r *reader) stepOptions(s *Step, w []word, n int) (rest []word, err error) {
	for _, x := range w {
		switch key, value := option(x); {
		case key == "after":
			if s.Deps, err = r.numbers(value, n, "earlier steps"); err != nil {
				return nil, err
			}
		case key == "start":
			var ok bool
			if s.Recorded, ok = picoseconds(value.text); !ok {
				return nil, r.fail(value.col, "", "%s is no time in picoseconds", value.text)
			}
		case key == "work" && s.Kind == Compute:
			i, err := strconv.Atoi(value.text)
			if err != nil || i < 1 || i > len(r.p.Works) {
				return nil, r.fail(value.col, "write work N NAME … before it", "no work %s", value.text)
			}
			s.Work = int32(i)
		default:
			rest = append(rest, x)
		}
	}
	return rest, nil
}

// call parses "COMM OP TYPE REDOP COUNT" and options, and returns the call's index.
func (r *reader) call(w, options []word) (int32, error) {
	at, each, err := r.callee(w[0])
	if err != nil {
		return 0, err
	}
	x, err := r.operands(w[1], w[2], w[3])
	if err != nil {
		return 0, err
	}
	c := Call{Comm: at, Func: x.fn, Type: x.typ, RedOp: x.op}
	if c.Count, err = strconv.ParseInt(w[4].text, 10, 64); err != nil || c.Count < 0 {
		return 0, r.fail(w[4].col, "", "%s is no count of elements", w[4].text)
	}
	splits := ""
	for _, x := range options {
		if err := r.callOption(&c, x); err != nil {
			return 0, err
		}
		if strings.HasPrefix(x.text, "splits=") {
			splits = fmt.Sprint(c.Splits)
		}
	}
	key := readKey{callKey{c.plain(), splits}, each}
	i, known := r.calls[key]
	if !known {
		i = int32(len(r.p.Calls))
		r.calls[key] = i
		r.p.Calls = append(r.p.Calls, c)
		r.d.Each = append(r.d.Each, each)
	}
	return i, nil
}

// operands parses operation, element type and reduction.
func (r *reader) operands(fn, typ, op word) (operands, error) {
	key := fn.text + " " + typ.text + " " + op.text
	x, ok := r.known[key]
	if ok {
		return x, nil
	}
	var err error
	if x.fn, err = parseFunc(fn.text); err != nil {
		return x, r.fail(fn.col, "", "%v", err)
	}
	if x.typ, err = coll.ParseDataType(typ.text); err != nil {
		return x, r.fail(typ.col, "", "%v", err)
	}
	if x.op, err = coll.ParseRedOp(op.text); err != nil {
		return x, r.fail(op.col, "", "%v", err)
	}
	r.known[key] = x
	return x, nil
}

// parseFunc reads an operation, or one half of a message.
func parseFunc(s string) (coll.Func, error) {
	for _, f := range []coll.Func{coll.Send, coll.Recv} {
		if s == f.TestName() {
			return f, nil
		}
	}
	return coll.ParseFunc(s)
}

func (r *reader) callOption(c *Call, x word) error {
	key, value := option(x)
	n, err := strconv.ParseInt(value.text, 10, 32)
	number := err == nil && strings.Contains(x.text, "=")
	switch {
	case x.text == "inplace":
		c.InPlace = true
	case x.text == "window":
		c.Window = true
	case x.text == "registered":
		c.Registered = true
	case key == "root" && number && c.Func.Rooted():
		c.Root = int32(n)
	case key == "peer" && number && message(c.Func):
		c.Peer = int32(n)
	case key == "kernel" && (c.Func == coll.AllReduce || c.Func == coll.AllToAll):
		var ok bool
		if c.Kernel, ok = parseKernel(value.text); !ok {
			return r.fail(value.col, kernelHint, "%s is no kernel", value.text)
		}
	case key == "time":
		var ok bool
		if c.Recorded, ok = picoseconds(value.text); !ok {
			return r.fail(value.col, "", "%s is no time in picoseconds", value.text)
		}
	case key == "splits" && c.Func == coll.AllToAll:
		c.Splits = []int64{}
		for part := range strings.SplitSeq(value.text, ",") {
			n, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return r.fail(value.col, "write splits=A,B,… with a number for each rank",
					"%q is no count of elements", part)
			}
			c.Splits = append(c.Splits, n)
		}
	default:
		return r.fail(x.col, "write inplace, or root=R for an operation with a root", "%s is not known here",
			x.text)
	}
	return nil
}
