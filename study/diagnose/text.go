package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Text is the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", strings.ToUpper(string(r.Verdict[:1]))+string(r.Verdict[1:]))
	if r.From != nil {
		fmt.Fprintf(&b, "; the times part from the expected ones at %d B (%s)", *r.From, r.Shape)
	}
	b.WriteString("\n")
	if r.Machine != "" {
		fmt.Fprintf(&b, "Machine: %s\n", r.Machine)
	}
	r.sizes(&b)
	for i := range r.Suspects {
		again := func(s Suspect) bool { return s.Rank == r.Suspects[i].Rank }
		r.Suspects[i].text(&b, slices.ContainsFunc(r.Suspects[:i], again))
	}
	if r.Verdict != AsExpected && len(r.Suspects) == 0 && len(r.Sizes) > 0 && !r.untried {
		b.WriteString("\nNo suspect explains the times.\n")
	}
	list(&b, "Why it hangs or failed", r.Stuck)
	list(&b, "Missing, what would decide first", r.Missing)
	list(&b, "Notes", r.Notes)
	return b.String()
}

func list(b *strings.Builder, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", head)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", l)
	}
}

func (r *Report) sizes(b *strings.Builder) {
	if len(r.Sizes) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nbytes\tmeasured us\texpected us\tfrom\tto\tratio\t\n")
	last := ""
	for i := range r.Sizes {
		z := &r.Sizes[i]
		if z.Table != last {
			fmt.Fprintf(w, "%s\t\t\t\t\t\t\n", z.Table)
			last = z.Table
		}
		verdict := ""
		if z.Verdict != AsExpected {
			verdict = string(z.Verdict)
		}
		fmt.Fprintf(w, "%d\t%.4g\t%.4g\t%.4g\t%.4g\t%.2f\t %s\n", z.Bytes, z.Measured, z.Expected[1],
			z.Expected[0], z.Expected[2], z.Measured/z.Expected[1], verdict)
	}
	w.Flush() //nolint:errcheck // into memory
}

func (s *Suspect) text(b *strings.Builder, again bool) {
	or := ""
	if again {
		or = "or, by the same curve, "
	}
	fmt.Fprintf(b, "\n%d. %s%s: %s\n", s.Rank, or, s.Kind, s.What)
	if s.Explains != 1 && !again {
		fmt.Fprintf(b, "   explains a factor of %.2f\n", s.Explains)
	}
	for i, e := range s.Evidence {
		if !again || i > 0 {
			fmt.Fprintf(b, "   evidence: %s\n", e)
		}
	}
	fmt.Fprintf(b, "   prove: %s\n   remedy: %s\n", s.Prove, s.Remedy)
}
