package sweep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/sweep"
	"github.com/spf13/cobra"
)

// SearchOptions are the flags and arguments of search.
type SearchOptions struct {
	Spec    string
	Out     string
	Jobs    int
	MaxTime time.Duration
	Search  sweep.Search // but for its Run
}

func search(a *cli.App) *cobra.Command {
	var o SearchOptions
	c := &cobra.Command{Use: "search SPEC", Short: "Look for a sweep's best point without running all",
		Long: `search runs some points of a sweep and looks for the one with the least goal: rounds of
points, of which the best survive and their neighbours, which differ in one
factor, are tried next. Every tried point is a line of DIR, as of sweep, which runs
the others; the same seed tries the same points. --goal is a column or an
expression of columns, summed over a point's sizes; with prices in the
specification usd_h and usd_million are columns, too:

  prices: {gpuHour: 2.5, nic: 900, nicGbit: 3, switchPort: 600, cable: 150, years: 4}

It reports the best point, the front of cost and time, and what all points would take.`,
		Example: "  simccl sweep search study.json --out results --goal time_us --points 10",
		Args:    cli.Exactly("SPEC"),
		RunE:    cli.RunWithOne(a, &o, &o.Spec)}
	f := c.Flags()
	f.StringVar(&o.Out, "out", "", "folder `DIR` of the results")
	f.StringVar(&o.Search.Goal, "goal", "time_us", "`COLUMN` or expression, the least is best")
	f.IntVar(&o.Search.Points, "points", 64, "try at most `N` points")
	f.IntVar(&o.Search.Round, "round", 0, "points `N` of a round (default a sixth of --points, 4 to 32)")
	f.Uint64Var(&o.Search.Seed, "seed", 1, "of what is drawn by chance")
	f.IntVar(&o.Jobs, "jobs", 0, "points at a time (default: processors)")
	f.DurationVar(&o.MaxTime, "max-time", 0, "begin no point after this time, 50m")
	return c
}

// Run searches and prints the result.
func (o *SearchOptions) Run(ctx context.Context, a *cli.App) error {
	s := o.Search
	switch {
	case o.Out == "":
		return fail.Usage("--out DIR is missing: the folder of the results")
	case s.Points < 1 || s.Round < 0 || o.Jobs < 0:
		return fail.Usage("--points, --round and --jobs: write 1 or more")
	}
	r, err := load(a, o.Spec)
	if err != nil {
		return err
	}
	r.Dir, r.Jobs, r.MaxTime = a.Path(o.Out), o.Jobs, o.MaxTime
	s.Run = r
	found, err := s.Do(ctx)
	if found == nil {
		return err
	}
	if e := report(a, found); e != nil {
		return e
	}
	return err
}

// report prints what a search found.
func report(a *cli.App, f *sweep.Found) error {
	if a.JSON {
		return a.PrintJSON(f)
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"%d of %d points tried in %d rounds, %d failed, %.1f s of CPU; all would take about %.1f s\n",
		f.Tried, f.Points, f.Rounds, f.Failed, f.CPU, f.Exhaustive)
	if l := f.Layouts; l != nil {
		fmt.Fprintf(&b,
			"%d cannot be divided so, %d do not fit, %d take at least as long as the best five of "+
				"their machine, %d were not tried\n", l.Illegal, l.Unfit, l.Beaten, l.Open)
	}
	if f.Best == nil {
		b.WriteString("no point has a result\n")
		return a.PrintText(b.String())
	}
	fmt.Fprintf(&b, "best by %s: %.6g  %s\n", f.Goal, f.Best.Value, f.Best.Point)
	if f.Layouts != nil {
		lines := func(head string, list []sweep.Tried) {
			b.WriteString(head)
			for _, t := range list {
				fmt.Fprintf(&b, "  %6d GPUs %10.0f tokens/s a GPU %8.1f GB %12.1f ms  %s\n", t.GPUs,
					t.TokensPerSecond,
					float64(t.MemoryBytes)/(1<<30), t.TimeUs/1e3, t.Point)
			}
		}
		lines("best of each machine:\n", f.Top)
		lines("front of tokens a second by GPUs:\n", f.Front)
		return a.PrintText(b.String())
	}
	if len(f.Front) > 1 {
		b.WriteString("front of cost and time:\n")
		for _, t := range f.Front {
			fmt.Fprintf(&b, "  %10.2f USD/h %12.2f us  %s\n", t.Rate, t.TimeUs, t.Point)
		}
	}
	return a.PrintText(b.String())
}
