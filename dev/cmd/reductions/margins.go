package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/simccl/simccl/dev/reductions"
	"github.com/simccl/simccl/units"
)

func margins() {
	seed := flag.Uint64("seed", 1, "of the requests")
	pairs := flag.Int("pairs", 100, "compared in all, those of FILE included")
	seconds := flag.Float64("seconds", 20, "that an exact run may take by its forecast")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: margins [-seed N] [-pairs N] [-seconds S] FILE")
		os.Exit(2)
	}
	within := reductions.Within{Time: units.Time(*seconds * float64(units.Second)), Memory: 2 << 30}
	broken, err := compare(context.Background(), flag.Arg(0), os.Stdout, *seed, *pairs, within)
	if err != nil {
		fmt.Fprintln(os.Stderr, "margins:", err)
		os.Exit(2)
	}
	if broken > 0 {
		os.Exit(1)
	}
}

// compare goes on where a file ends, until it has so many pairs, and shows them, worst first.
func compare(ctx context.Context, file string, w io.Writer, seed uint64, most int,
	within reductions.Within) (broken int, err error) {
	f, err := reductions.Resume[reductions.Pair](file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	done, next := 0, int64(0)
	for i := range f.All {
		next = max(next, f.All[i].N+1)
		if f.All[i].Skipped == "" {
			done++
		}
	}
	for ; done < most; next++ {
		var sites reductions.Sites
		r := reductions.Random(rand.New(rand.NewPCG(seed, uint64(next))))
		p, err := sites.Compare(ctx, r, within)
		if err != nil {
			p.Skipped = err.Error()
		}
		if p.N = next; p.Skipped == "" {
			done++
		}
		if err := f.Add(&p); err != nil {
			return 0, err
		}
	}
	return marginsShow(w, f.All), f.Close()
}

// marginsShow prints pairs, those first that use up most of their margins, and returns how many broke
// theirs.
func marginsShow(w io.Writer, all []reductions.Pair) (broken int) {
	drawn := len(all)
	all = slices.DeleteFunc(slices.Clone(all), func(p reductions.Pair) bool { return p.Skipped != "" })
	used := func(p *reductions.Pair) float64 { return math.Abs(p.Off()) / p.Margin }
	slices.SortStableFunc(all, func(a, b reductions.Pair) int { return cmp.Compare(used(&b), used(&a)) })
	for i := range all {
		p := &all[i]
		mark := "  "
		if p.Broken() {
			broken, mark = broken+1, "! "
		}
		fmt.Fprintf(w, "%s%+6.2f %% of %2.0f  %-6s %12.1f us, exactly %12.1f  %s\n",
			mark, 100*p.Off(), 100*p.Margin, p.Method, p.Near, p.Exact, p.Request)
	}
	fmt.Fprintf(w, "%d requests, %d approximate ones compared, %d beyond their margins\n",
		drawn, len(all), broken)
	return broken
}
