package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// maxRows is the largest number of rows of a table in the text report.
const maxRows = 24

// WriteText writes the report as text. compare adds each call with its recorded time.
func (r *Report) WriteText(to io.Writer, compare bool) error {
	fmt.Fprintf(to, "iteration %.3f ms", r.IterationUs/1000)
	if r.RecordedUs != nil {
		fmt.Fprintf(to, "   recorded %s", r.Recorded())
	}
	fmt.Fprintf(to, "   at least %.3f (%s)\n", r.BoundUs/1000, r.boundBy())
	fmt.Fprintf(to, "  compute %.3f   exposed communication %.3f, of it waiting for ranks %.3f   host and "+
		"idle %.3f   (ms, mean of %d ranks; fidelity %s, host %s)\n",
		r.ComputeUs/1000, r.ExposedUs/1000, r.BubbleUs/1000, r.HostUs/1000, r.Ranks, r.Fidelity, r.Host)
	fmt.Fprint(to, "  bounds:")
	fmt.Fprintf(to, " compute %.3f (rank %d)", r.Bounds.ComputeUs/1000, r.Bounds.ComputeRank)
	if r.Bounds.Link != "" {
		fmt.Fprintf(to, "   busiest link %.3f (%s)", r.Bounds.LinkUs/1000, r.Bounds.Link)
	}
	if r.Bounds.PathUs > 0 {
		fmt.Fprintf(to, "   critical path on an ideal network %.3f", r.Bounds.PathUs/1000)
	}
	if r.HostAloneUs != nil {
		fmt.Fprintf(to, "   host without a profiler about %.3f", *r.HostAloneUs/1000)
	}
	fmt.Fprintln(to)
	if r.Training != nil {
		fmt.Fprintf(to, "  %s\n", r.Training)
	}
	if r.Memory != nil {
		fmt.Fprintf(to, "  %s\n", r.Memory)
	}
	r.writePath(to)
	for _, x := range r.Ideal {
		fmt.Fprintf(to, "  %s at no time: iteration %.3f, %.3f less (%.1f %%)\n", x.Group, x.IterationUs/1000,
			x.WonUs/1000, 100*x.WonUs/max(r.IterationUs, 1e-9))
	}
	if len(r.Steps) > 1 {
		w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\nstep\tms\trecorded\terror")
		for _, s := range r.Steps {
			if s.RecordedUs == nil {
				fmt.Fprintf(w, "%s\t%.3f\t-\t-\n", s.Name, s.Us/1000)
				continue
			}
			if r.RecordedAs != "" {
				fmt.Fprintf(w, "%s\t%.3f\t%.3f\t-\n", s.Name, s.Us/1000, *s.RecordedUs/1000)
				continue
			}
			fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%+.1f %%\n", s.Name, s.Us/1000, *s.RecordedUs/1000,
				100*(s.Us / *s.RecordedUs - 1))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if err := r.writeGroups(to); err != nil {
		return err
	}
	if compare {
		if err := r.writeCalls(to); err != nil {
			return err
		}
	}
	for _, n := range r.Notes {
		if _, err := fmt.Fprintf(to, "note: %s\n", n); err != nil {
			return err
		}
	}
	return nil
}

// Recorded formats the recorded time in milliseconds and the relative error of the simulation, or what was
// recorded if the two are not comparable.
func (r *Report) Recorded() string {
	if r.RecordedAs != "" {
		return fmt.Sprintf("%.3f %s", *r.RecordedUs/1000, r.RecordedAs)
	}
	return fmt.Sprintf("%.3f (%+.1f %%)", *r.RecordedUs/1000, 100*(r.IterationUs / *r.RecordedUs - 1))
}

// near reports whether two figures are the same to a person.
func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*max(a, b) }

// Folded returns the groups; groups of one kind, size and use are merged into the first, whose name states
// the number of others.
func (r *Report) Folded() (out []Group) {
	var more []int
	for _, g := range r.Groups {
		i := slices.IndexFunc(out, func(o Group) bool {
			return o.Kind == g.Kind && o.Ranks == g.Ranks && o.Calls == g.Calls &&
				near(o.BytesPerRank, g.BytesPerRank) && near(o.BusyUs, g.BusyUs) &&
				near(o.ExposedUs, g.ExposedUs)
		})
		if i < 0 {
			out, more = append(out, g), append(more, 0)
			continue
		}
		more[i]++
	}
	for i, n := range more {
		if n > 0 {
			out[i].Name += fmt.Sprintf(" and %d more", n)
		}
	}
	return out
}

// Megabytes writes bytes as megabytes with four digits, or whole.
func Megabytes(bytes float64) string {
	if bytes >= 1e10 {
		return fmt.Sprintf("%.0f", bytes/1e6)
	}
	return fmt.Sprintf("%.4g", bytes/1e6)
}

// boundBy names the largest of the bounds.
func (r *Report) boundBy() string {
	switch r.BoundUs {
	case r.Bounds.PathUs:
		return "critical path on an ideal network"
	case r.Bounds.LinkUs:
		return r.Bounds.Link
	}
	if r.BoundUs < r.Bounds.ComputeUs {
		return "compute, each rank its own"
	}
	return fmt.Sprintf("compute of rank %d", r.Bounds.ComputeRank)
}

// pathParts bounds the parts of the critical path that a person reads.
const pathParts = 6

func (r *Report) writePath(to io.Writer) {
	if len(r.Path) == 0 {
		return
	}
	fmt.Fprint(to, "  the end waited for:")
	for i, s := range r.Path {
		if i == pathParts {
			fmt.Fprintf(to, " …")
			break
		}
		fmt.Fprintf(to, "  %s %.3f", s.What, s.Us/1000)
	}
	if r.HostAloneUs != nil && r.Host == "recorded" && pathLimit(r.Path, r.IterationUs) != LimitGPU {
		fmt.Fprint(to, "; --host auto for what compares with steps that no profiler slows")
	}
	fmt.Fprintln(to)
}

func (r *Report) writeGroups(to io.Writer) error {
	if len(r.Groups) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ngroup\tkind\tranks\tcalls\tMB/rank\tbusy ms\texposed ms")
	rows := r.Folded()
	for i, g := range rows {
		if i == maxRows {
			fmt.Fprintf(w, "… %d more\n", len(rows)-i)
			break
		}
		kind := cmp.Or(g.Kind, "-")
		fmt.Fprintf(w, "%s\t%s\t%d\t%.4g\t%s\t%.3f\t%.3f\n", g.Name, kind, g.Ranks, g.Calls,
			Megabytes(g.BytesPerRank), g.BusyUs/1000, g.ExposedUs/1000)
	}
	return w.Flush()
}

func (r *Report) writeCalls(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ngroup\tcall\tbytes\ttimes\trecorded us\tus\terror\talone us\tchoice")
	for i, c := range r.Calls {
		if i == maxRows {
			fmt.Fprintf(w, "… %d more\n", len(r.Calls)-i)
			break
		}
		recorded, diff := "-", "-"
		if c.RecordedUs != nil {
			recorded, diff = fmt.Sprintf("%.1f", *c.RecordedUs),
				fmt.Sprintf("%+.1f %%", 100*(c.Us / *c.RecordedUs - 1))
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%.1f\t%s\t%.1f\t%s %s\n", c.Group, c.Func, c.Bytes, c.Times,
			recorded, c.Us, diff, c.AloneUs, c.Algo, c.Proto)
	}
	return w.Flush()
}
