package explain

import (
	"fmt"
	"slices"
	"strings"
)

// Text is the difference for people.
func (d *Difference) Text() string {
	var b strings.Builder
	figureText(&b, "Given:", d.Inputs)
	if d.Same() {
		b.WriteString("\nNothing differs: same decisions, same times.\n")
	}
	figureText(&b, "Communicator:", d.Figures)
	d.pathText(&b)
	d.refusedText(&b)
	d.choiceText(&b)
	d.timeText(&b)
	return strings.TrimPrefix(b.String(), "\n")
}

func figureText(b *strings.Builder, head string, figures []Figure) {
	if len(figures) == 0 {
		return
	}
	t := reasoned{rows: [][]string{{"", "A", "B"}}, why: [][]string{nil}}
	for _, f := range figures {
		t.add([]string{f.What, f.A, f.B}, f.Why)
	}
	fmt.Fprintf(b, "\n%s\n", head)
	t.write(b, "lll")
}

// reasoned is a table whose rows have reasons, which are printed below them; rows
// that follow each other with the same reasons have them once.
type reasoned struct {
	rows [][]string
	why  [][]string
}

func (t *reasoned) add(row, why []string) {
	t.rows, t.why = append(t.rows, row), append(t.why, why)
}

func (t *reasoned) write(b *strings.Builder, align string) {
	var plain strings.Builder
	table(&plain, t.rows, align)
	i := 0
	for line := range strings.Lines(plain.String()) {
		b.WriteString(line)
		if i+1 == len(t.why) || !slices.Equal(t.why[i], t.why[i+1]) {
			for _, w := range t.why[i] {
				fmt.Fprintf(b, "      %s\n", w)
			}
		}
		i++
	}
}

// someOf lists the first pairs and counts the rest; JSON has them all.
func someOf(pairs []string) string {
	who := strings.Join(pairs[:min(len(pairs), shownPairs)], ", ")
	if n := len(pairs) - shownPairs; n > 0 {
		who += fmt.Sprintf(" and %d more", n)
	}
	return who
}

func (d *Difference) pathText(b *strings.Builder) {
	if len(d.Paths) == 0 {
		return
	}
	rows := [][]string{{"A", "B", "who"}}
	for _, p := range d.Paths {
		rows = append(rows, []string{p.A, p.B, someOf(p.Pairs)})
	}
	b.WriteString("\nPaths of the first node:\n")
	table(b, rows, "lll")
}

func (d *Difference) refusedText(b *strings.Builder) {
	if len(d.Refused) == 0 {
		return
	}
	rows := [][]string{{"only in", "what", "who", "rule"}}
	for _, r := range d.Refused {
		rows = append(rows, []string{r.In, r.What, someOf(r.Pairs), cited(r.Rule, r.Source)})
	}
	b.WriteString("\nRefused paths:\n")
	table(b, rows, "llll")
}

func (d *Difference) choiceText(b *strings.Builder) {
	if len(d.Choices) == 0 {
		return
	}
	t := reasoned{rows: [][]string{{"operation", "from B", "to B", "A", "B"}}, why: [][]string{nil}}
	for i := 0; i < len(d.Choices); i++ {
		c := d.Choices[i]
		name := c.Op
		if i > 0 && d.Choices[i-1].Op == c.Op {
			name = ""
		}
		if n := flipping(d.Choices[i:]); n > 1 {
			last := d.Choices[i+n-1]
			t.add([]string{name, group(c.From), group(last.To),
				distinct(d.Choices[i:i+n], func(c *ChoiceChange) string { return c.A }),
				distinct(d.Choices[i:i+n], func(c *ChoiceChange) string { return c.B })}, c.Why)
			i += n - 1
			continue
		}
		t.add([]string{name, group(c.From), group(c.To), c.A, c.B}, c.Why)
	}
	b.WriteString("\nChoices that differ, by size:\n")
	t.write(b, "lrrll")
}

// flipping counts the changes at the start that are narrower than 0.1 % and no further
// apart: rounding of float32.
func flipping(list []ChoiceChange) int {
	n := 0
	for n < len(list) && list[n].Op == list[0].Op && (list[n].To-list[n].From)*narrow < list[n].From &&
		(n == 0 || (list[n].From-list[n-1].To)*narrow < list[n].From) {
		n++
	}
	return n
}

// distinct lists words, each once; several flip.
func distinct(list []ChoiceChange, of func(*ChoiceChange) string) string {
	var out []string
	for i := range list {
		if w := of(&list[i]); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	if len(out) > 1 {
		return "flips: " + strings.Join(out, ", ")
	}
	return out[0]
}

// timeText shows every size with another time, and names the others.
func (d *Difference) timeText(b *strings.Builder) {
	out := reasoned{rows: [][]string{{"operation", "size B", "A us", "B us", "B/A", "A GB/s", "B GB/s", "A",
		"B"}}, why: [][]string{nil}}
	name := ""
	var same []sameTimes
	for i := range d.Times {
		t := &d.Times[i]
		if n := len(same); n == 0 || same[n-1].op != t.Op {
			same = append(same, sameTimes{op: t.Op})
		}
		s := &same[len(same)-1]
		s.all++
		if !t.changed() {
			s.sizes = append(s.sizes, group(t.Size))
			continue
		}
		row := []string{t.Op, group(t.Size), fmt.Sprintf("%.2f", t.A.Us), fmt.Sprintf("%.2f", t.B.Us),
			t.ratio(),
			fmt.Sprintf("%.2f", t.A.BusBW), fmt.Sprintf("%.2f", t.B.BusBW), t.A.Choice, t.B.Choice}
		if t.Op == name {
			row[0] = ""
		}
		name = t.Op
		out.add(row, t.Why)
	}
	if len(out.rows) == 1 {
		return
	}
	b.WriteString("\nTimes that differ (busbw in GB/s):\n")
	out.write(b, "lrrrrrrll")
	for _, s := range same {
		switch len(s.sizes) {
		case 0:
		case s.all:
			fmt.Fprintf(b, "  %s: the same time at every size\n", s.op)
		default:
			fmt.Fprintf(b, "  %s: the same time at %s B\n", s.op, strings.Join(s.sizes, ", "))
		}
	}
}

// sameTimes are the sizes of an operation that take the same time on both sides.
type sameTimes struct {
	op    string
	sizes []string
	all   int
}

// ratio is B's time over A's, empty where draws of hashed routes do not decide.
func (t *TimeChange) ratio() string {
	if t.undecided() {
		return "?"
	}
	return ratio(t.Ratio)
}

func ratio(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", x)
}
