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
	rows := [][]string{{"", "A", "B", ""}}
	for _, f := range figures {
		rows = append(rows, withReasons([]string{f.What, f.A, f.B}, f.Why)...)
	}
	fmt.Fprintf(b, "\n%s\n", head)
	table(b, rows, "llll")
}

// withReasons puts the first reason behind a row and each other on a row of its
// own.
func withReasons(row []string, why []string) [][]string {
	if len(why) == 0 {
		return [][]string{append(row, "")}
	}
	out := [][]string{append(row, why[0])}
	for _, w := range why[1:] {
		out = append(out, append(make([]string, len(row)), w))
	}
	return out
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
		rows = append(rows, []string{r.In, r.What, someOf(r.Pairs), r.Rule + " (" + r.Source + ")"})
	}
	b.WriteString("\nRefused paths:\n")
	table(b, rows, "llll")
}

func (d *Difference) choiceText(b *strings.Builder) {
	if len(d.Choices) == 0 {
		return
	}
	rows := [][]string{{"operation", "from B", "to B", "A", "B", "why"}}
	for i, c := range d.Choices {
		name := c.Op
		if i > 0 && d.Choices[i-1].Op == c.Op {
			name = ""
		}
		why := c.Why
		if i > 0 && slices.Equal(why, d.Choices[i-1].Why) {
			why = []string{"as above"}
		}
		rows = append(rows, withReasons([]string{name, group(c.From), group(c.To), c.A, c.B}, why)...)
	}
	b.WriteString("\nChoices that differ, by size:\n")
	table(b, rows, "lrrlll")
}

// timeText shows every size with another time, and names the others.
func (d *Difference) timeText(b *strings.Builder) {
	rows := [][]string{{"operation", "size B", "A us", "B us", "B/A", "A GB/s", "B GB/s", "A", "B", "why"}}
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
		row := []string{t.Op, group(t.Size), fmt.Sprintf("%.2f", t.A.Us), fmt.Sprintf("%.2f", t.B.Us), ratio(t.Ratio),
			fmt.Sprintf("%.2f", t.A.BusBW), fmt.Sprintf("%.2f", t.B.BusBW), t.A.Choice, t.B.Choice}
		if t.Op == name {
			row[0] = ""
		}
		name = t.Op
		rows = append(rows, withReasons(row, t.Why)...)
	}
	if len(rows) == 1 {
		return
	}
	b.WriteString("\nTimes that differ (busbw in GB/s):\n")
	table(b, rows, "lrrrrrrlll")
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

func ratio(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", x)
}
