package sweep

import (
	"fmt"
	"strings"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/sweep"
	"github.com/spf13/cobra"
)

func search(a *cli.App) *cobra.Command {
	s := sweep.Search{Goal: "time_us", Points: 64, Seed: 1}
	var dir string
	var jobs int
	var limit time.Duration
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
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case dir == "":
				return fail.Usage("--out DIR is missing: the folder of the results")
			case s.Points < 1 || s.Round < 0 || jobs < 0:
				return fail.Usage("--points, --round and --jobs: write 1 or more")
			}
			r, err := load(a, args[0])
			if err != nil {
				return err
			}
			r.Dir, r.Jobs, r.MaxTime = a.Path(dir), jobs, limit
			s.Run = r
			found, err := s.Do(a.Context())
			if found == nil {
				return err
			}
			if e := report(a, found); e != nil {
				return e
			}
			return err
		}}
	c.Flags().StringVar(&dir, "out", "", "folder `DIR` of the results")
	c.Flags().StringVar(&s.Goal, "goal", s.Goal, "`COLUMN` or expression, the least is best")
	c.Flags().IntVar(&s.Points, "points", s.Points, "try at most `N` points")
	c.Flags().IntVar(&s.Round, "round", 0, "points `N` of a round (default a sixth of --points, 4 to 32)")
	c.Flags().Uint64Var(&s.Seed, "seed", s.Seed, "of what is drawn by chance")
	c.Flags().IntVar(&jobs, "jobs", 0, "points at a time (default: processors)")
	c.Flags().DurationVar(&limit, "max-time", 0, "begin no point after this time, 50m")
	return c
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
	if f.Best == nil {
		b.WriteString("no point has a result\n")
		return a.PrintText(b.String())
	}
	fmt.Fprintf(&b, "best by %s: %.6g  %s\n", f.Goal, f.Best.Value, f.Best.Point)
	if len(f.Front) > 1 {
		b.WriteString("front of cost and time:\n")
		for _, t := range f.Front {
			fmt.Fprintf(&b, "  %10.2f USD/h %12.2f us  %s\n", t.Rate, t.TimeUs, t.Point)
		}
	}
	return a.PrintText(b.String())
}
