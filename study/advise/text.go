package advise

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/units"
)

// size formats bytes as options do: 64K.
func size(n int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if n >= u.n && n%u.n == 0 {
			return fmt.Sprintf("%d%s", n/u.n, u.name)
		}
	}
	return fmt.Sprint(int64(units.Bytes(n)))
}

// sizes formats a range of sizes.
func sizes(s [2]int64) string {
	if s[0] == s[1] {
		return size(s[0])
	}
	return size(s[0]) + " to " + size(s[1])
}

// banded is from which ratio of the slowest to the fastest draw on they are said.
const banded = 1.01

// Text returns the report for a terminal: gains, uncertainty and lines to write.
func (r *Report) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "size\tnow\tus\tbest\tus\tgain")
	for _, x := range r.Rows {
		now, what := x.Choice, size(x.Bytes)
		if r.job != [2]int64{} {
			what = "job"
		}
		if x.Channels > 0 {
			now = fmt.Sprintf("%s %d", x.Choice, x.Channels)
		}
		if x.Best == "" {
			fmt.Fprintf(w, "%s\t%s\t%.2f\tas it is\t\t\n", what, now, x.Us)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%.2f\tx %.3f\n", what, now, x.Us, x.Best, x.BestUs, x.Us/x.BestUs)
	}
	_ = w.Flush()
	for _, x := range r.Rows {
		if x.MostUs > banded*x.LeastUs {
			fmt.Fprintf(&b, "%s: routes are hashed; now is the median draw of %.2f to %.2f us, and each "+
				"setting its own median draw\n", size(x.Bytes), x.LeastUs, x.MostUs)
		}
	}
	fmt.Fprintf(&b, "\n%d settings tried, %d of them refused\n", r.Tried, len(r.Refused))
	if r.Untried > 0 {
		fmt.Fprintf(&b, "%d more were not tried for lack of time; --max-time 0 tries all\n", r.Untried)
	}
	if len(r.Advice) == 0 {
		fmt.Fprintf(&b, "None gains 3 %% or more: leave %v as it is.\n", r.site.Comm.Rules.Library)
		return b.String()
	}
	for i := range r.Advice {
		a := &r.Advice[i]
		sure := "more than the model's error"
		if !a.sure() {
			sure = "within the model's error: measure it"
		}
		fmt.Fprintf(&b, "\n%s\n  %s: x %.3f, uncertain by %.0f %%, %s\n", a.Line, sizes(a.Sizes), a.Gain,
			100*a.Uncertainty, sure)
		for _, more := range []string{a.Changes, a.Risk} {
			if more != "" {
				fmt.Fprintf(&b, "  %s\n", more)
			}
		}
	}
	b.WriteString("\nA variable holds for all sizes and operations; --write-tuner FILE writes choices by " +
		"size for NCCL's example tuner.\n")
	return b.String()
}

// Text returns the effect of a tuner file as text.
func (c *Check) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "line\tsizes\tgain\tworst\trow")
	for _, r := range c.Rows {
		fmt.Fprintf(w, "%d\t%s\tx %.3f\tx %.3f\t%s\n", r.Line, sizes(r.Sizes), r.Gain, r.Least, r.Row)
	}
	_ = w.Flush()
	fmt.Fprintf(&b, "\n%s: x %.3f over all sizes\n", c.File, c.Gain)
	for _, f := range c.Findings {
		fmt.Fprintf(&b, "%s:%d: %s\n", c.File, f.Line, f.What)
	}
	return b.String()
}

// About returns the lines that describe, in a generated tuner file, how it was made.
func (r *Report) About() []string {
	return []string{
		"simccl advise " + r.What + ": " + r.site.Name + ", " + fmt.Sprintf("%d nodes, %d ranks, %s",
			r.site.Comm.NNodes, r.site.Comm.NRanks, r.site.Config.Rules.Name()),
		"NCCL_TUNER_PLUGIN=example NCCL_TUNER_CONFIG_FILE=(this file)",
	}
}
