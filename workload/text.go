package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/units"
)

// FormatVersion is the version of the text form.
const FormatVersion = 1

// maxRanks bounds the ranks of a text: with more of them a check takes gigabytes.
const maxRanks = 1 << 20

// Format writes the text form, which Parse reads:
//
//	workload 1
//	ranks 4
//	gpu H100 type=bfloat16 efficiency=0.6 memory-efficiency=0.8 overhead=2000000
//	model tiny parameters=1000 tokens=4096 flops=9000
//	memory parameters=2000 gradients=2000 optimizer=12000 activations=7000
//	comm world *
//	comm even 0,2 kind=DP parent=world share desc="data parallel"
//	work 1 gemm flops=1000000 bytes=3000 blocks=132 persm=1 persistent priority=1
//	factor 1.25 3
//	list a 0-1,3
//	  mark step0
//	  call 0 world all_reduce float sum 1024
//	  call 0 world send float sum 16 peer=1
//	  compute 1 2500000 work=1 after=0 start=1000
//	  compute h0 900
//	list b 2
//	  …
//
// A line of a list is the kind of step, the stream (h0 is the first thread of the
// host), and what the kind needs: of call the communicator, operation, type,
// reduction, count, then root=R, peer=R, inplace, window, registered,
// splits=A,B,… and time=PS where they apply; of compute picoseconds and work; of
// record and wait the event. after= lists steps that must have ended, start= is
// when the step began where it was recorded. group and end have a stream of 0.
// mark names the place before the next step. Names with spaces are quoted as in
// Go. Comments begin with #.
//
// A list of a name with * at its end is one of each rank, NAME and the rank: what it calls on tp* it
// calls on that one of tp0, tp1, … which the rank is in (see Folded). again 4 12 are the twelve steps
// from the list's fifth on once more, with after= as far back as there; where they have not all been
// yet, those that are added repeat. A list has as many steps as without the line.
func (p *Program) Format() string { return p.Fold().Format() }

// Format returns the text form.
func (d *Folded) Format() string {
	p := &d.Program
	var b strings.Builder
	fmt.Fprintf(&b, "workload %d\nranks %d\n", FormatVersion, len(p.Of))
	p.formatGPU(&b)
	p.formatModel(&b)
	for i := range p.Comms {
		p.formatComm(&b, &p.Comms[i])
	}
	for i := range p.Works {
		formatWork(&b, i, &p.Works[i])
	}
	p.formatFactors(&b)
	of := make([][]int32, len(p.Lists))
	for r, i := range p.Of {
		of[i] = append(of[i], int32(r))
	}
	marks := slices.Clone(p.Marks)
	slices.SortStableFunc(marks, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.List, b.List), cmp.Compare(a.Step, b.Step))
	})
	for i := range p.Lists {
		n := 0
		for n < len(marks) && int(marks[n].List) == i {
			n++
		}
		name, each := p.Lists[i].Name, d.Ranked[i]
		if name = quote(name); each {
			name += EachRank
		}
		fmt.Fprintf(&b, "list %s %s\n", name, formatRanks(of[i]))
		d.formatList(&b, i, marks[:n])
		marks = marks[n:]
	}
	return b.String()
}

// formatList writes the steps of a list, those that occurred before as such.
func (d *Folded) formatList(b *strings.Builder, i int, marks []Mark) {
	l, each := &d.Lists[i], d.Ranked[i]
	r := newRepeats(l.Steps)
	for n := 0; n <= len(l.Steps); {
		for len(marks) > 0 && int(marks[0].Step) == n {
			fmt.Fprintf(b, "  mark %s\n", quote(marks[0].Name))
			marks = marks[1:]
		}
		if n == len(l.Steps) {
			return
		}
		end := len(l.Steps)
		if len(marks) > 0 {
			end = min(end, int(marks[0].Step))
		}
		if from, count := r.before(n, end); count > 0 {
			fmt.Fprintf(b, "  again %d %d\n", from, count)
			r.add(n, n+count)
			n += count
			continue
		}
		s := &l.Steps[n]
		fmt.Fprintf(b, "  %v %s%s\n", s.Kind, streamName(s.Stream), d.rest(s, each && s.Kind == Issue &&
			d.Each[s.Call]))
		r.add(n, n+1)
		n++
	}
}

// streamName returns a stream's number, h and a number for threads of the host.
func streamName(s int32) string {
	if OnHost(s) {
		return "h" + strconv.Itoa(int(s-HostStream))
	}
	return strconv.Itoa(int(s))
}

func (p *Program) formatComm(b *strings.Builder, c *Comm) {
	members := "*"
	if c.Ranks != nil {
		members = formatRanks(c.Ranks)
	}
	fmt.Fprintf(b, "comm %s %s", quote(c.Name), members)
	if c.Kind != NoKind {
		fmt.Fprintf(b, " kind=%v", c.Kind)
	}
	if c.Parent > 0 {
		fmt.Fprintf(b, " parent=%s", quote(p.Comms[c.Parent-1].Name))
	}
	if c.Share {
		b.WriteString(" share")
	}
	if c.Desc != "" {
		fmt.Fprintf(b, " desc=%s", quote(c.Desc))
	}
	b.WriteByte('\n')
}

func formatWork(b *strings.Builder, i int, w *Work) {
	fmt.Fprintf(b, "work %d %s", i+1, quote(w.Name))
	for _, f := range []struct {
		name string
		n    int64
	}{{"flops", w.FLOPs}, {"bytes", w.Bytes}, {"extra", w.Extra}, {"blocks", int64(w.Blocks)},
		{"persm", int64(w.PerSM)}, {"tiles", w.Tiles}, {"cluster", int64(w.Cluster)},
		{"priority", int64(w.Priority)}, {"kernels", int64(w.Kernels)}} {
		if f.n != 0 {
			fmt.Fprintf(b, " %s=%d", f.name, f.n)
		}
	}
	if w.Shape.Op != NoShape {
		fmt.Fprintf(b, " shape=%s", w.Shape.format())
	}
	if w.Persistent {
		b.WriteString(" persistent")
	}
	if w.Comm {
		b.WriteString(" communication")
	}
	b.WriteByte('\n')
}

// formatFactors writes the ranks of each factor, in the order of their first rank.
func (p *Program) formatFactors(b *strings.Builder) {
	var order []float64
	ranks := map[float64][]int32{}
	for r, f := range p.Factor {
		if f == 1 {
			continue
		}
		if ranks[f] == nil {
			order = append(order, f)
		}
		ranks[f] = append(ranks[f], int32(r))
	}
	for _, f := range order {
		fmt.Fprintf(b, "factor %s %s\n", strconv.FormatFloat(f, 'g', -1, 64), formatRanks(ranks[f]))
	}
}

// rest formats the part of a step after kind and stream. own: a call is on the rank's own communicator of a
// family.
func (p *Program) rest(s *Step, own bool) string {
	t := ""
	switch s.Kind {
	case Compute:
		t = fmt.Sprintf(" %d", int64(s.Time))
		if s.Work > 0 {
			t += fmt.Sprintf(" work=%d", s.Work)
		}
	case Record, Wait:
		t = fmt.Sprintf(" %d", s.Event)
	case Issue:
		t = p.formatCall(&p.Calls[s.Call], own)
	}
	if len(s.Deps) > 0 {
		t += " after=" + formatRanks(s.Deps)
	}
	if s.Recorded > 0 {
		t += fmt.Sprintf(" start=%d", int64(s.Recorded))
	}
	return t
}

func (p *Program) formatCall(c *Call, own bool) string {
	name := quote(p.Comms[c.Comm].Name)
	if own {
		name = quote(strings.TrimRight(p.Comms[c.Comm].Name, "0123456789")) + EachRank
	}
	t := fmt.Sprintf(" %s %s %s %s %d", name, c.Func.TestName(), c.Type.TestName(), c.RedOp.TestName(),
		c.Count)
	if c.Func.Rooted() {
		t += fmt.Sprintf(" root=%d", c.Root)
	}
	if message(c.Func) {
		t += fmt.Sprintf(" peer=%d", c.Peer)
	}
	for _, f := range []struct {
		word string
		on   bool
	}{{"inplace", c.InPlace}, {"window", c.Window}, {"registered", c.Registered}} {
		if f.on {
			t += " " + f.word
		}
	}
	if c.Kernel != (Kernel{}) {
		t += " kernel=" + c.Kernel.String()
	}
	if c.Splits != nil {
		parts := make([]string, len(c.Splits))
		for i, n := range c.Splits {
			parts[i] = strconv.FormatInt(n, 10)
		}
		t += " splits=" + strings.Join(parts, ",")
	}
	if c.Recorded > 0 {
		t += fmt.Sprintf(" time=%d", int64(c.Recorded))
	}
	return t
}

// formatRanks formats ascending ranks as "0-3,8"; "-" for none.
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

// quote writes a name as it is, or quoted where it would not be one word.
func quote(s string) string {
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && !strings.ContainsRune(`"#=,*`, r) }
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// unquote reverses quote.
func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	return strconv.Unquote(s)
}

// word is a field of a line with its column.
type word struct {
	text string
	col  int
}

// words cuts a line at spaces outside of quotes; a comment ends it. bad is the
// column of a quote without an end, 0 for none. The words take the place of out's.
func words(out []word, line string) (_ []word, bad int) {
	out = out[:0]
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		if line[i] == '#' {
			break
		}
		j := i
		for j < len(line) && line[j] != ' ' && line[j] != '\t' && line[j] != '#' {
			if line[j] != '"' {
				j++
				continue
			}
			q, err := strconv.QuotedPrefix(line[j:])
			if err != nil {
				return out, j + 1
			}
			j += len(q)
		}
		out = append(out, word{line[i:j], i + 1})
		i = j
	}
	return out, 0
}

// TextError is an error at a line and column of a text.
type TextError struct {
	File      string
	Line, Col int // from 1
	Problem   string
	Hint      string
}

// Error states the position, the problem and the remedy.
func (e *TextError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// picoseconds parses a time from 0 to MaxTime.
func picoseconds(s string) (units.Time, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return units.Time(n), err == nil && n >= 0 && n <= int64(MaxTime)
}
