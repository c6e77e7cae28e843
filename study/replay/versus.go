package replay

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Versus is the report of a job with other options, for comparison.
type Versus struct {
	Options string  `json:"options"`
	Ratio   float64 `json:"ratio"` // of its iteration to the first
	*Report
}

// Versus returns the comparison of another report with this one.
func (r *Report) Versus(options string, other *Report) Versus {
	v := Versus{Options: options, Report: other}
	if r.IterationUs > 0 {
		v.Ratio = other.IterationUs / r.IterationUs
	}
	return v
}

// WriteVersus writes reports side by side, in milliseconds.
func (r *Report) WriteVersus(to io.Writer, list []Versus) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(name string, cell func(x *Report) string) {
		fmt.Fprintf(w, "%s\t%s", name, cell(r))
		for i := range list {
			fmt.Fprintf(w, "\t%s", cell(list[i].Report))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "\nms of an iteration\tas given")
	for i := range list {
		fmt.Fprintf(w, "\t%s", list[i].Options)
	}
	fmt.Fprintln(w)
	part := func(name string, of func(x *Report) float64) {
		line(name, func(x *Report) string { return fmt.Sprintf("%.3f", of(x)/1000) })
	}
	part("iteration", func(x *Report) float64 { return x.IterationUs })
	line("against the first", func(x *Report) string {
		if r.IterationUs <= 0 {
			return "-"
		}
		return fmt.Sprintf("%+.1f %%", 100*(x.IterationUs/r.IterationUs-1))
	})
	part("compute", func(x *Report) float64 { return x.ComputeUs })
	part("exposed communication", func(x *Report) float64 { return x.ExposedUs })
	part("  waiting for ranks", func(x *Report) float64 { return x.BubbleUs })
	part("host and idle", func(x *Report) float64 { return x.HostUs })
	part("at least", func(x *Report) float64 { return x.BoundUs })
	for i := range r.Groups {
		if i == maxRows {
			break
		}
		name := r.Groups[i].Name
		line("exposed, "+name, func(x *Report) string {
			for k := range x.Groups {
				if x.Groups[k].Name == name {
					return fmt.Sprintf("%.3f", x.Groups[k].ExposedUs/1000)
				}
			}
			return "-"
		})
	}
	return w.Flush()
}
