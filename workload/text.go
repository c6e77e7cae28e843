package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// FormatVersion is the version of the text form.
const FormatVersion = 1

// maxRanks bounds the ranks of a text: more is a typing error.
const maxRanks = 1 << 24

// Format writes the text form, which Parse reads:
//
//	workload 1
//	ranks 4
//	comm world *
//	comm even 0,2
//	list a 0-1,3
//	  call 0 world all_reduce float sum 1024
//	  compute 1 2500000
//	list b 2
//	  …
//
// A line of a list is the kind of step, the stream, and what the kind needs: of
// call the communicator, operation, type, reduction, count, then root=R and
// inplace where they apply; of compute picoseconds; of record and wait the event.
// group and end have a stream of 0. Comments begin with #.
func (p *Program) Format() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workload %d\nranks %d\n", FormatVersion, len(p.Of))
	for i := range p.Comms {
		members := "*"
		if c := &p.Comms[i]; c.Ranks != nil {
			members = formatRanks(c.Ranks)
		}
		fmt.Fprintf(&b, "comm %s %s\n", p.Comms[i].Name, members)
	}
	of := make([][]int32, len(p.Lists))
	for r, i := range p.Of {
		of[i] = append(of[i], int32(r))
	}
	for i := range p.Lists {
		fmt.Fprintf(&b, "list %s %s\n", p.Lists[i].Name, formatRanks(of[i]))
		for _, s := range p.Lists[i].Steps {
			fmt.Fprintf(&b, "  %v %d%s\n", s.Kind, s.Stream, p.rest(s))
		}
	}
	return b.String()
}

// rest is what follows kind and stream.
func (p *Program) rest(s Step) string {
	switch s.Kind {
	case Compute:
		return fmt.Sprintf(" %d", int64(s.Time))
	case Record, Wait:
		return fmt.Sprintf(" %d", s.Event)
	case Issue:
		c := &p.Calls[s.Call]
		t := fmt.Sprintf(" %s %s %s %s %d", p.Comms[c.Comm].Name, c.Func.TestName(), c.Type.TestName(), c.RedOp.TestName(), c.Count)
		if c.Func.Rooted() {
			t += fmt.Sprintf(" root=%d", c.Root)
		}
		if c.InPlace {
			t += " inplace"
		}
		return t
	}
	return ""
}

// formatRanks writes 0-3,8; "-" for none.
func formatRanks(ranks []int32) string {
	if len(ranks) == 0 {
		return "-"
	}
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		part := strconv.Itoa(int(ranks[i]))
		if j > i {
			part += "-" + strconv.Itoa(int(ranks[j]))
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// TextError is a fault of a text.
type TextError struct {
	File      string
	Line, Col int // from 1
	Problem   string
	Hint      string
}

// Error has the place, the problem and the remedy.
func (e *TextError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Parse reads the text form. The error is a *TextError, or what Lint finds.
func Parse(text, file string) (*Program, error) {
	r := reader{file: file, comms: map[string]int32{}, lists: map[string]bool{}, calls: map[Call]int32{}, p: &Program{}}
	for line := range strings.Lines(text) {
		r.line++
		if err := r.read(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, err
		}
	}
	switch missing := slices.Index(r.p.Of, -1); {
	case r.stage == 0:
		return nil, r.fail(1, fmt.Sprintf("write workload %d in the first line", FormatVersion), "no workload")
	case missing >= 0:
		return nil, r.fail(1, "", "rank %d has no list", missing)
	}
	return r.p, r.p.Lint()
}

// reader is the state of Parse.
type reader struct {
	file  string
	line  int
	stage int // 0: the version comes, 1: the number of ranks, 2: the rest
	p     *Program
	comms map[string]int32
	lists map[string]bool
	calls map[Call]int32
}

func (r *reader) fail(col int, hint, format string, args ...any) error {
	return &TextError{r.file, r.line, col, fmt.Sprintf(format, args...), hint}
}

// word is a field of a line with its column.
type word struct {
	text string
	col  int
}

func words(line string) []word {
	var out []word
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		j := i
		for j < len(line) && line[j] != ' ' && line[j] != '\t' {
			j++
		}
		out = append(out, word{line[i:j], i + 1})
		i = j
	}
	return out
}

func (r *reader) read(line string) error {
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	w := words(line)
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
			return r.fail(w[0].col, fmt.Sprintf("write for example ranks 8, at most %d", maxRanks), "the number of ranks is expected")
		}
		r.p.Of = slices.Repeat([]int32{-1}, n)
		r.stage = 2
		return nil
	}
	switch w[0].text {
	case "comm":
		return r.comm(w)
	case "list":
		return r.list(w)
	}
	return r.step(w)
}

func (r *reader) comm(w []word) error {
	if len(w) != 3 {
		return r.fail(w[0].col, "write comm NAME *, or comm NAME 0-3,8", "a communicator has a name and ranks")
	}
	if _, twice := r.comms[w[1].text]; twice {
		return r.fail(w[1].col, "", "communicator %s for the second time", w[1].text)
	}
	c := Comm{Name: w[1].text}
	if w[2].text != "*" {
		var err error
		if c.Ranks, err = r.ranks(w[2]); err != nil {
			return err
		}
	}
	r.comms[c.Name] = int32(len(r.p.Comms))
	r.p.Comms = append(r.p.Comms, c)
	return nil
}

func (r *reader) list(w []word) error {
	if len(w) != 3 {
		return r.fail(w[0].col, "write list NAME 0-3,8", "a list has a name and ranks")
	}
	if r.lists[w[1].text] {
		return r.fail(w[1].col, "", "list %s for the second time", w[1].text)
	}
	r.lists[w[1].text] = true
	r.p.Lists = append(r.p.Lists, List{Name: w[1].text})
	if w[2].text != "-" {
		ranks, err := r.ranks(w[2])
		if err != nil {
			return err
		}
		for _, rank := range ranks {
			if r.p.Of[rank] >= 0 {
				return r.fail(w[2].col, "", "rank %d has list %s already", rank, r.p.Lists[r.p.Of[rank]].Name)
			}
			r.p.Of[rank] = int32(len(r.p.Lists)) - 1
		}
	}
	return nil
}

// ranks reads 0-3,8.
func (r *reader) ranks(w word) ([]int32, error) {
	out := []int32{}
	for part := range strings.SplitSeq(w.text, ",") {
		a, b, ranged := strings.Cut(part, "-")
		if !ranged {
			b = a
		}
		lo, err1 := strconv.Atoi(a)
		hi, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo || hi >= len(r.p.Of) || len(out)+hi-lo >= maxRanks {
			return nil, r.fail(w.col, "write for example 0-3,8", "%s: ranks are from 0 to %d", part, len(r.p.Of)-1)
		}
		for i := lo; i <= hi; i++ {
			out = append(out, int32(i))
		}
	}
	return out, nil
}

func (r *reader) step(w []word) error {
	k := Kind(slices.Index(kindNames[:], w[0].text))
	if int(k) >= len(kindNames) || len(r.p.Lists) == 0 {
		return r.fail(w[0].col, "write comm, list, or within a list "+strings.Join(kindNames[:], ", "), "%s is not known here", w[0].text)
	}
	need := map[Kind]int{Issue: 7, Compute: 3, Record: 3, Wait: 3, GroupStart: 2, GroupEnd: 2}[k]
	if len(w) < need || len(w) > need && k != Issue {
		return r.fail(w[0].col, "", "%v has %d fields, %d are expected", k, len(w), need)
	}
	stream, err := strconv.ParseInt(w[1].text, 10, 32)
	if err != nil || stream < 0 {
		return r.fail(w[1].col, "", "%s is no stream; streams are numbered from 0", w[1].text)
	}
	s := Step{Kind: k, Stream: int32(stream)}
	switch k {
	case Compute:
		n, err := strconv.ParseInt(w[2].text, 10, 64)
		if err != nil || n < 0 {
			return r.fail(w[2].col, "", "%s is no time in picoseconds", w[2].text)
		}
		s.Time = units.Time(n)
	case Record, Wait:
		n, err := strconv.ParseInt(w[2].text, 10, 32)
		if err != nil {
			return r.fail(w[2].col, "", "%s is no event", w[2].text)
		}
		s.Event = int32(n)
	case Issue:
		if s.Call, err = r.call(w[2:]); err != nil {
			return err
		}
	}
	l := &r.p.Lists[len(r.p.Lists)-1]
	l.Steps = append(l.Steps, s)
	return nil
}

// call reads COMM OP TYPE REDOP COUNT [root=R] [inplace].
func (r *reader) call(w []word) (int32, error) {
	at, ok := r.comms[w[0].text]
	if !ok {
		return 0, r.fail(w[0].col, "write comm "+w[0].text+" … before it", "no communicator %s", w[0].text)
	}
	c := Call{Comm: at}
	var err error
	if c.Func, err = coll.ParseFunc(w[1].text); err != nil {
		return 0, r.fail(w[1].col, "", "%v", err)
	}
	if c.Type, err = coll.ParseDataType(w[2].text); err != nil {
		return 0, r.fail(w[2].col, "", "%v", err)
	}
	if c.RedOp, err = coll.ParseRedOp(w[3].text); err != nil {
		return 0, r.fail(w[3].col, "", "%v", err)
	}
	if c.Count, err = strconv.ParseInt(w[4].text, 10, 64); err != nil || c.Count < 0 {
		return 0, r.fail(w[4].col, "", "%s is no count of elements", w[4].text)
	}
	for _, x := range w[5:] {
		root, isRoot := strings.CutPrefix(x.text, "root=")
		n, err := strconv.ParseInt(root, 10, 32)
		switch {
		case x.text == "inplace":
			c.InPlace = true
		case isRoot && err == nil && c.Func.Rooted():
			c.Root = int32(n)
		default:
			return 0, r.fail(x.col, "write inplace, or root=R for an operation with a root", "%s is not known here", x.text)
		}
	}
	i, known := r.calls[c]
	if !known {
		i = int32(len(r.p.Calls))
		r.calls[c] = i
		r.p.Calls = append(r.p.Calls, c)
	}
	return i, nil
}
