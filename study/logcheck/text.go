package logcheck

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/study/check"
)

// Text returns the report for a reader: a line a section, then the differences.
func (rep *Report) Text() string {
	var b strings.Builder
	verdict := "equal"
	if !rep.Equal {
		verdict = "different"
	}
	fmt.Fprintf(&b, "%s, %d communicators: %s\n\n%-10s %9s %9s\n", nameOf(rep.Version), rep.Comms, verdict,
		"section", "compared", "equal")
	for _, n := range Names {
		s := rep.Sections[n.Name]
		if s.Compared == 0 {
			fmt.Fprintf(&b, "%-10s %9s %9s\n", n.Name, "-", "not in the log")
			continue
		}
		fmt.Fprintf(&b, "%-10s %9d %9d\n", n.Name, s.Compared, s.Equal)
	}
	for _, n := range Names {
		for i, d := range rep.Sections[n.Name].Differences {
			if i == 0 {
				fmt.Fprintf(&b, "\n%s\n", n.Name)
			}
			fmt.Fprintf(&b, "  %s\n", d)
		}
	}
	for i, note := range rep.Notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if rep.github {
		b.WriteString(rep.ci().Annotations())
	}
	return b.String()
}

// ci returns the report as CI servers read it: a case a section.
func (rep *Report) ci() *check.CIReport {
	out := &check.CIReport{Name: "simccl check, " + nameOf(rep.Version)}
	for _, n := range Names {
		s := rep.Sections[n.Name]
		c := check.CICase{Name: n.Name, Skipped: s.Compared == 0}
		if s.First != "" {
			c.Failure, c.First, c.Text = fmt.Sprintf("%d of %d lines equal", s.Equal, s.Compared), s.First,
				strings.Join(s.Differences, "\n")
		}
		out.Cases = append(out.Cases, c)
	}
	return out
}
